// The CPU kernels of MyGatherNd and MyResourceGatherNd. One kernel serves all
// types: rows move by their width, and the index type is chosen when it runs.

#include <cstdint>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tf_ops/cpu/find_rows.h"
#include "tf_ops/cpu/gather_nd.h"
#include "tf_ops/kernels/glue.h"
#include "tf_ops/kernels/prepare.h"
#include "tf_ops/ops/make_kernel.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::register_kernel::Name;

// What the two ops share: all but where the params come from.
class GatherNdOp : public OpKernel {
 public:
  explicit GatherNdOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, RefuseReferences(ctx));
    OP_REQUIRES_OK(ctx, IgnoresBadIndices(ctx, &ignore_bad_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("batch_dims", &batch_dims_));
  }

 protected:
  void Gather(OpKernelContext* ctx, const Tensor& params) {
    const Tensor& indices = ctx->input(1);
    IndexedCall call;
    TensorShape shape;
    OP_REQUIRES_OK(ctx, PrepareGatherNd(ctx, params, batch_dims_, ignore_bad_,
                                        &call, &shape));
    RowMover mover;
    OP_REQUIRES_OK(ctx, MakeRowMover(params.dtype(), call.space.slice_elements,
                                     call.space.tuples(), &mover));
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

class MyGatherNdOp : public GatherNdOp {
 public:
  using GatherNdOp::GatherNdOp;

  void Compute(OpKernelContext* ctx) override { Gather(ctx, ctx->input(0)); }
};

class MyResourceGatherNdOp : public GatherNdOp {
 public:
  explicit MyResourceGatherNdOp(OpKernelConstruction* ctx) : GatherNdOp(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dtype", &dtype_));
  }

  void Compute(OpKernelContext* ctx) override {
    tensorflow::core::RefCountPtr<tensorflow::Var> variable;
    OP_REQUIRES_OK(ctx, FindVariable(ctx, &variable));
    // Whoever assigns to the variable waits until the rows are copied.
    const tensorflow::tf_shared_lock lock(*variable->mu());
    OP_REQUIRES_OK(ctx, CheckVariable(*variable, dtype_));
    Gather(ctx, *variable->tensor());
  }

 private:
  tensorflow::DataType dtype_;
};

const KernelRegistration<MyGatherNdOp> kMyGatherNd(
    Name("MyGatherNd").Device(tensorflow::DEVICE_CPU));
const KernelRegistration<MyResourceGatherNdOp> kMyResourceGatherNd(
    Name("MyResourceGatherNd").Device(tensorflow::DEVICE_CPU));

}  // namespace
}  // namespace tf_stitch_gather
