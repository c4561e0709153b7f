// The CPU kernels of MyGatherNd and MyResourceGatherNd. One kernel serves all
// types: rows move by their width, and the index type is chosen when it runs.

#include <cstdint>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
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
    const absl::Status found = tensorflow::LookupResource(
        ctx, tensorflow::HandleFromInput(ctx, 0), &variable);
    OP_REQUIRES(ctx, found.ok() && variable->is_initialized,
                absl::FailedPreconditionError(
                    "the variable has not been initialized. " +
                    std::string(found.message())));
    // Whoever assigns to the variable waits until the rows are copied.
    const tensorflow::tf_shared_lock lock(*variable->mu());
    const Tensor& params = *variable->tensor();
    OP_REQUIRES(
        ctx, params.dtype() == dtype_,
        absl::InvalidArgumentError(
            "the variable holds " + tensorflow::DataTypeString(params.dtype()) +
            ", not " + tensorflow::DataTypeString(dtype_)));
    Gather(ctx, params);
  }

 private:
  tensorflow::DataType dtype_;
};

REGISTER_KERNEL_BUILDER(Name("MyGatherNd").Device(tensorflow::DEVICE_CPU),
                        MyGatherNdOp);
REGISTER_KERNEL_BUILDER(
    Name("MyResourceGatherNd").Device(tensorflow::DEVICE_CPU),
    MyResourceGatherNdOp);

}  // namespace
}  // namespace tf_stitch_gather
