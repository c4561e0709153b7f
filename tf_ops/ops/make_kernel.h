// How kernels are made and registered, so that none of them throws.

#ifndef TF_OPS_OPS_MAKE_KERNEL_H_
#define TF_OPS_OPS_MAKE_KERNEL_H_

#include <type_traits>

#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tf_ops/ops/convert.h"

namespace tf_stitch_gather {

// What TensorFlow takes as the factory of a kernel.
template <typename Kernel>
tensorflow::OpKernel* MakeKernel(tensorflow::OpKernelConstruction* ctx) {
  tensorflow::OpKernel* kernel = nullptr;
  const absl::Status status = NoThrow([&] {
    kernel = new Kernel(ctx);
    return absl::OkStatus();
  });
  if (!status.ok()) ctx->SetStatus(status);
  return kernel;
}

// `Kernel`, whose Compute does not throw.
template <typename Kernel>
class NoThrowKernel final : public Kernel {
 public:
  using Kernel::Kernel;

  void Compute(tensorflow::OpKernelContext* ctx) override {
    const absl::Status status = NoThrow([&] {
      Kernel::Compute(ctx);
      return absl::OkStatus();
    });
    if (!status.ok()) ctx->SetStatus(status);
  }
};

// Registers a kernel when the library is loaded. An asynchronous one sees to
// its own exceptions.
template <typename Kernel>
class KernelRegistration {
 public:
  explicit KernelRegistration(tensorflow::KernelDefBuilder& builder)
      : registrar_(builder.Build(), "", MakeKernel<Registered>) {}

 private:
  using Registered =
      std::conditional_t<std::is_base_of_v<tensorflow::AsyncOpKernel, Kernel>,
                         Kernel, NoThrowKernel<Kernel>>;

  tensorflow::kernel_factory::OpKernelRegistrar registrar_;
};

}  // namespace tf_stitch_gather

#endif  // TF_OPS_OPS_MAKE_KERNEL_H_
