// Between TensorFlow's GPU devices and the device code: types, streams and
// waiting.
//
// Built with TSG_HOST_BACK_END these kernels run on the CPU device, with the
// device code's host back end under them: so their code is executed where
// there is no GPU. Such a library is for tests.

#ifndef TF_OPS_KERNELS_DEVICE_GPU_H_
#define TF_OPS_KERNELS_DEVICE_GPU_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tf_ops/gpu/scatter_nd.h"
#include "tf_ops/gpu/stream.h"

namespace tf_stitch_gather {

// The device that the kernels are registered for.
inline const char* GpuKernelDevice() {
#if defined(TSG_HOST_BACK_END)
  return tensorflow::DEVICE_CPU;
#else
  return tensorflow::DEVICE_GPU;
#endif
}

// The types that are their bytes; all but these live in host memory only.
std::vector<tensorflow::DataType> FixedWidthTypes();

// Of those the ones that can be added.
std::vector<tensorflow::DataType> SummableFixedWidthTypes();

// How a type of the second list is added: each element is `parts` elements of
// `kind`.
struct SumParts {
  SumKind kind;
  int64_t parts;
};
SumParts ToSumParts(tensorflow::DataType type);

// The stream of the device that a kernel runs on.
GpuStream StreamOf(tensorflow::OpKernelContext* ctx);

// A kernel that never blocks a thread. Where its result needs nothing of what
// the device computes, it is called as an ordinary kernel; else it hands on
// what is to be done when the device has come so far.
class GpuKernel : public tensorflow::AsyncOpKernel {
 public:
  explicit GpuKernel(tensorflow::OpKernelConstruction* ctx);

  tensorflow::AsyncOpKernel* AsAsync() override {
    return waits_ ? this : nullptr;
  }

  void ComputeAsync(tensorflow::OpKernelContext* ctx,
                    DoneCallback done) override;

 protected:
  // What remains to be done with what was read from the device.
  using Finish = std::function<absl::Status(const void* read)>;

  // What Start wants to read: `bytes` bytes of device memory, to be handed to
  // `finish`, which must hold what it needs. Nothing, if `finish` is empty.
  struct Wait {
    const void* from = nullptr;
    int64_t bytes = 0;
    Finish finish;
  };

  // Enqueues what can be done at once. Sets `wait` only if `waits_`.
  virtual absl::Status Start(tensorflow::OpKernelContext* ctx,
                             const GpuStream& stream, Wait* wait) = 0;

  bool waits_ = false;
  bool reports_bad_ = false;  // whether a bad index is an error
  bool ignores_bad_ = false;  // whether it is not even one on the CPU
};

}  // namespace tf_stitch_gather

#endif  // TF_OPS_KERNELS_DEVICE_GPU_H_
