// What the kernels of an op do on every device before they run: read the
// inputs' shapes and check them.

#ifndef TF_OPS_KERNELS_PREPARE_H_
#define TF_OPS_KERNELS_PREPARE_H_

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tf_ops/core/dynamic_stitch.h"
#include "tf_ops/core/index_space.h"
#include "tf_ops/core/shape.h"
#include "tf_ops/core/stitch_parts.h"

namespace tf_stitch_gather {

// A gather or a scatter: `indices` address `target`, which is the params or
// the output.
struct IndexedCall {
  Shape indices;
  Shape target;
  IndexSpace space;
};

// Of MyGatherNd and MyResourceGatherNd. `output` is the shape of the output.
// Refuses to gather from params without entries unless `ignore_bad`.
absl::Status PrepareGatherNd(tensorflow::OpKernelContext* ctx,
                             const tensorflow::Tensor& params,
                             int64_t batch_dims, bool ignore_bad,
                             IndexedCall* call,
                             tensorflow::TensorShape* output);

// The variable whose handle is input 0; refuses a handle of none.
absl::Status FindVariable(
    tensorflow::OpKernelContext* ctx,
    tensorflow::core::RefCountPtr<tensorflow::Var>* variable);

// Refuses a variable, whose lock is held, without a value or of another type.
absl::Status CheckVariable(tensorflow::Var& variable,
                           tensorflow::DataType type);

// Of MyScatterNd.
absl::Status PrepareScatterNd(tensorflow::OpKernelContext* ctx,
                              int64_t batch_dims, IndexedCall* call,
                              tensorflow::TensorShape* output);

// Of MyGatherNdSparseGrad; the target is the params.
absl::Status PrepareSparseGrad(tensorflow::OpKernelContext* ctx,
                               IndexedCall* call);

// The shape of the gradient's values when there are `rows` rows.
absl::Status SparseGradValues(const IndexedCall& call, int64_t rows,
                              tensorflow::TensorShape* values);

// Of both stitches: the parts, whose rows are the data, and the elements of a
// row.
absl::Status PrepareStitch(tensorflow::OpKernelContext* ctx,
                           StitchShapes* shapes, StitchParts* parts,
                           int64_t* row_elements);

// Of MyDynamicStitchGrad: allocates the outputs, which are the rows of the
// parts.
absl::Status PrepareStitchGrad(tensorflow::OpKernelContext* ctx,
                               StitchParts* parts, int64_t* row_elements);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_KERNELS_PREPARE_H_
