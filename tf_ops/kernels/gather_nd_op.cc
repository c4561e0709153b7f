// The CPU kernel of MyGatherNd. One kernel serves all types: rows move by
// their width, and the index type is chosen when it runs.

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"
#include "tf_ops/core/gather_nd.h"
#include "tf_ops/core/index_space.h"
#include "tf_ops/cpu/find_rows.h"
#include "tf_ops/cpu/gather_nd.h"
#include "tf_ops/kernels/glue.h"

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
    const Shape params_shape = ToShape(params.shape());
    const Shape indices_shape = ToShape(indices.shape());

    Shape output_shape;
    OP_REQUIRES_OK(
        ctx, ToTensorFlow(GatherNdOutputShape(params_shape, indices_shape,
                                              batch_dims_, &output_shape)));
    IndexSpace space;
    OP_REQUIRES_OK(ctx, ToTensorFlow(MakeIndexSpace(
                            indices_shape, params_shape,
                            static_cast<int>(batch_dims_), &space)));
    if (space.tuples() > 0 && space.rows_per_batch == 0 && !ignore_bad_) {
      ctx->SetStatus(ToTensorFlow(EmptyParams(params_shape), *this));
      return;
    }
    RowMover mover;
    OP_REQUIRES_OK(ctx,
                   MakeRowMover(params.dtype(), space.slice_elements, &mover));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, ToTensorShape(output_shape, &shape));
    Tensor* output;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &output));

    DeviceWorkers workers(ctx);
    const int64_t bad = GatherNd(
        space, ToIndices(indices), static_cast<const char*>(params.data()),
        mover, ignore_bad_, workers, static_cast<char*>(output->data()));
    if (bad != FirstBad::kNone) {
      ctx->SetStatus(ToTensorFlow(Status::InvalidArgument(BadTupleMessage(
                                      ToIndices(indices), indices_shape, bad,
                                      "param shape", params_shape)),
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
