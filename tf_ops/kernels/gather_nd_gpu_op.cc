// The GPU kernels of MyGatherNd and MyResourceGatherNd, for all types of fixed
// width.

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tf_ops/gpu/gather_nd.h"
#include "tf_ops/kernels/bad_tuple_gpu.h"
#include "tf_ops/kernels/device_gpu.h"
#include "tf_ops/kernels/glue.h"
#include "tf_ops/kernels/prepare.h"
#include "tf_ops/ops/make_kernel.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::register_kernel::Name;

// What the two ops share: all but where the params come from.
class GatherNdGpuOp : public GpuKernel {
 public:
  explicit GatherNdGpuOp(OpKernelConstruction* ctx) : GpuKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("batch_dims", &batch_dims_));
    waits_ = reports_bad_;
  }

 protected:
  absl::Status Gather(OpKernelContext* ctx, const Tensor& params,
                      const GpuStream& stream, Wait* wait) {
    IndexedCall call;
    TensorShape shape;
    TF_RETURN_IF_ERROR(
        PrepareGatherNd(ctx, params, batch_dims_, ignores_bad_, &call, &shape));
    Tensor* output;
    TF_RETURN_IF_ERROR(ctx->allocate_output(0, shape, &output));
    BadTupleReport report;
    if (reports_bad_) TF_RETURN_IF_ERROR(report.Allocate(ctx, call));
    TF_RETURN_IF_ERROR(ToTensorFlow(GpuGatherNd(
        stream, call.space, ToIndices(ctx->input(1)),
        static_cast<const char*>(params.data()),
        call.space.slice_elements * tensorflow::DataTypeSize(params.dtype()),
        report.words(), static_cast<char*>(output->data()))));
    if (!reports_bad_ || call.space.tuples() == 0) return absl::OkStatus();
    wait->from = report.words();
    wait->bytes = report.bytes();
    wait->finish = [this, report, call](const void* read) {
      return report.ToStatus(read, call, "param shape", *this);
    };
    return absl::OkStatus();
  }

 private:
  int64_t batch_dims_;
};

class MyGatherNdGpuOp : public GatherNdGpuOp {
 public:
  using GatherNdGpuOp::GatherNdGpuOp;

 private:
  absl::Status Start(OpKernelContext* ctx, const GpuStream& stream,
                     Wait* wait) override {
    return Gather(ctx, ctx->input(0), stream, wait);
  }
};

class MyResourceGatherNdGpuOp : public GatherNdGpuOp {
 public:
  explicit MyResourceGatherNdGpuOp(OpKernelConstruction* ctx)
      : GatherNdGpuOp(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dtype", &dtype_));
  }

 private:
  absl::Status Start(OpKernelContext* ctx, const GpuStream& stream,
                     Wait* wait) override {
    tensorflow::core::RefCountPtr<tensorflow::Var> variable;
    TF_RETURN_IF_ERROR(FindVariable(ctx, &variable));
    // Whoever assigns to the variable afterwards does so on the same stream,
    // behind this gather.
    const tensorflow::tf_shared_lock lock(*variable->mu());
    TF_RETURN_IF_ERROR(CheckVariable(*variable, dtype_));
    return Gather(ctx, *variable->tensor(), stream, wait);
  }

  tensorflow::DataType dtype_;
};

const KernelRegistration<MyGatherNdGpuOp> kMyGatherNd(
    Name("MyGatherNd")
        .Device(GpuKernelDevice())
        .TypeConstraint("Tparams", FixedWidthTypes()));
const KernelRegistration<MyResourceGatherNdGpuOp> kMyResourceGatherNd(
    Name("MyResourceGatherNd")
        .Device(GpuKernelDevice())
        .TypeConstraint("dtype", FixedWidthTypes())
        .HostMemory("resource"));

}  // namespace
}  // namespace tf_stitch_gather
