// What shape functions and kernels both need of TensorFlow.

#ifndef TF_OPS_OPS_CONVERT_H_
#define TF_OPS_OPS_CONVERT_H_

#include "tensorflow/core/framework/tensor.h"
#include "tf_ops/core/indices.h"
#include "tf_ops/core/status.h"

namespace tf_stitch_gather {

// The status of TensorFlow that an outcome of the core stands for.
absl::Status ToTensorFlow(const Status& status);

// Of a tensor of type int16, int32 or int64.
Indices ToIndices(const tensorflow::Tensor& tensor);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_OPS_CONVERT_H_
