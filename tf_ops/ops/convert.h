// What shape functions and kernels both need of TensorFlow.

#ifndef TF_OPS_OPS_CONVERT_H_
#define TF_OPS_OPS_CONVERT_H_

#include "tensorflow/core/framework/tensor.h"
#include "tf_ops/core/indices.h"
#include "tf_ops/core/no_throw.h"
#include "tf_ops/core/status.h"

namespace tf_stitch_gather {

// The status of TensorFlow that an outcome of the core stands for.
absl::Status ToTensorFlow(const Status& status);

// The status of a call that found no memory. It is made when the library is
// loaded, so that handing it on needs none.
const absl::Status& OutOfMemory();

// What `call` returns, or OutOfMemory().
template <typename Call>
absl::Status NoThrow(const Call& call) {
  return NoThrow(call, OutOfMemory());
}

// Of a tensor of type int16, int32 or int64.
Indices ToIndices(const tensorflow::Tensor& tensor);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_OPS_CONVERT_H_
