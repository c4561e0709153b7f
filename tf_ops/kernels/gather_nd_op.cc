// The CPU kernel of MyGatherNd. One kernel serves all types: rows move by
// their width, and the index type is chosen when it runs.

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"
#include "tf_ops/cpu/find_rows.h"
#include "tf_ops/cpu/gather_nd.h"
#include "tf_ops/kernels/glue.h"
#include "tf_ops/kernels/prepare.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

class MyGatherNdOp : public OpKernel {
 public:
  explicit MyGatherNdOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, RefuseReferences(ctx));
    OP_REQUIRES_OK(ctx, IgnoresBadIndices(ctx, &ignore_bad_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("batch_dims", &batch_dims_));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& params = ctx->input(0);
    const Tensor& indices = ctx->input(1);
    IndexedCall call;
    TensorShape shape;
    OP_REQUIRES_OK(
        ctx, PrepareGatherNd(ctx, batch_dims_, ignore_bad_, &call, &shape));
    RowMover mover;
    OP_REQUIRES_OK(
        ctx, MakeRowMover(params.dtype(), call.space.slice_elements, &mover));
    Tensor* output;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &output));

    DeviceWorkers workers(ctx);
    const int64_t bad = GatherNd(
        call.space, ToIndices(indices), static_cast<const char*>(params.data()),
        mover, ignore_bad_, workers, static_cast<char*>(output->data()));
    if (bad != FirstBad::kNone) {
      ctx->SetStatus(ToTensorFlow(Status::InvalidArgument(BadTupleMessage(
                                      ToIndices(indices), call.indices, bad,
                                      "param shape", call.target)),
                                  *this));
    }
  }

 private:
  bool ignore_bad_;
  int64_t batch_dims_;
};

REGISTER_KERNEL_BUILDER(Name("MyGatherNd").Device(tensorflow::DEVICE_CPU),
                        MyGatherNdOp);

}  // namespace
}  // namespace tf_stitch_gather
