// The GPU kernel of MyGatherNd, for all types of fixed width.

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"
#include "tf_ops/gpu/gather_nd.h"
#include "tf_ops/kernels/bad_tuple_gpu.h"
#include "tf_ops/kernels/device_gpu.h"
#include "tf_ops/kernels/glue.h"
#include "tf_ops/kernels/prepare.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

class MyGatherNdGpuOp : public GpuKernel {
 public:
  explicit MyGatherNdGpuOp(OpKernelConstruction* ctx) : GpuKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("batch_dims", &batch_dims_));
    waits_ = reports_bad_;
  }

 private:
  absl::Status Start(OpKernelContext* ctx, const GpuStream& stream,
                     Wait* wait) override {
    const Tensor& params = ctx->input(0);
    IndexedCall call;
    TensorShape shape;
    TF_RETURN_IF_ERROR(
        PrepareGatherNd(ctx, batch_dims_, ignores_bad_, &call, &shape));
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

  int64_t batch_dims_;
};

REGISTER_KERNEL_BUILDER(Name("MyGatherNd")
                            .Device(GpuKernelDevice())
                            .TypeConstraint("Tparams", FixedWidthTypes()),
                        MyGatherNdGpuOp);

}  // namespace
}  // namespace tf_stitch_gather
