// Between TensorFlow and the loops: shapes, errors, types and threads.

#ifndef TF_OPS_KERNELS_GLUE_H_
#define TF_OPS_KERNELS_GLUE_H_

#include <cstdint>
#include <functional>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tf_ops/core/indices.h"
#include "tf_ops/core/policy.h"
#include "tf_ops/core/shape.h"
#include "tf_ops/core/status.h"
#include "tf_ops/cpu/move_rows.h"
#include "tf_ops/cpu/parallel.h"
#include "tf_ops/ops/convert.h"

namespace tf_stitch_gather {

// As without a kernel, with the name of its node behind the message.
absl::Status ToTensorFlow(const Status& status,
                          const tensorflow::OpKernel& kernel);

Shape ToShape(const tensorflow::TensorShape& shape);

// ResourceExhausted where the elements cannot be counted in 64 bits.
absl::Status ToTensorShape(const Shape& shape,
                           tensorflow::TensorShape* tensor_shape);

// The value of a tensor that must be a scalar of an index type.
absl::Status ScalarIndex(const tensorflow::Tensor& tensor, const char* name,
                         int64_t* value);

// How rows of a type are moved; InvalidArgument for a type that no CPU tensor
// holds.
absl::Status MakeRowMover(tensorflow::DataType type, int64_t slice_elements,
                          int64_t rows, RowMover* mover);

// Reads the attribute bad_indices_policy, if the op has one. On the CPU only
// IGNORE lets a bad index pass.
absl::Status IgnoresBadIndices(tensorflow::OpKernelConstruction* ctx,
                               bool* ignores);

// Refuses the reference types of TensorFlow 1, whose tensors may be replaced
// while a kernel reads them.
absl::Status RefuseReferences(tensorflow::OpKernelConstruction* ctx);

// Scratch memory of `bytes`, which lives as long as `tensor`.
absl::Status AllocateScratch(tensorflow::OpKernelContext* ctx, int64_t bytes,
                             tensorflow::Tensor* tensor, void** scratch);

// The threads of the device that a kernel runs on.
class DeviceWorkers : public Workers {
 public:
  explicit DeviceWorkers(tensorflow::OpKernelContext* ctx);

  int count() const override;
  void Run(int64_t units, int64_t block,
           const std::function<void(int64_t, int64_t)>& work) override;

 private:
  const tensorflow::DeviceBase::CpuWorkerThreads& threads_;
};

}  // namespace tf_stitch_gather

#endif  // TF_OPS_KERNELS_GLUE_H_
