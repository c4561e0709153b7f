// The CPU kernels of MyScatterNd and of MyGatherNdSparseGrad, which both sum
// rows at equal indices.

#include <cstdint>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tf_ops/cpu/scatter_nd.h"
#include "tf_ops/kernels/glue.h"
#include "tf_ops/kernels/prepare.h"
#include "tf_ops/kernels/sums.h"
#include "tf_ops/ops/make_kernel.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::register_kernel::Name;

// Refuses, when the kernel is made, a type that cannot be added.
absl::Status CheckSummable(tensorflow::DataType type) {
  if (VisitSum(type, [](auto) {})) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "values of type " + tensorflow::DataTypeString(type) +
      " cannot be added: T must be a numeric type, bool or string");
}

class MyScatterNdOp : public OpKernel {
 public:
  explicit MyScatterNdOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, RefuseReferences(ctx));
    OP_REQUIRES_OK(ctx, IgnoresBadIndices(ctx, &ignore_bad_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("batch_dims", &batch_dims_));
    OP_REQUIRES_OK(ctx, CheckSummable(ctx->input_type(1)));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& updates = ctx->input(1);
    IndexedCall call;
    TensorShape shape;
    OP_REQUIRES_OK(ctx, PrepareScatterNd(ctx, batch_dims_, &call, &shape));
    Tensor* output;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &output));
    VisitSum(updates.dtype(),
             [&](auto sum) { Run<decltype(sum)>(ctx, call, output); });
  }

 private:
  template <typename Sum>
  void Run(OpKernelContext* ctx, const IndexedCall& call, Tensor* output) {
    using Value = typename Sum::Value;
    const Indices indices = ToIndices(ctx->input(0));
    DeviceWorkers workers(ctx);
    const ScatterWay way = ChooseScatterWay(call.space, sizeof(Value),
                                            kSumsInPlace<Sum>, workers.count());
    Tensor scratch_tensor;
    void* scratch;
    OP_REQUIRES_OK(ctx,
                   AllocateScratch(ctx, ScatterScratchBytes(call.space, way),
                                   &scratch_tensor, &scratch));
    const int64_t bad = ScatterNd<Sum>(
        call.space, indices, static_cast<const Value*>(ctx->input(1).data()),
        ignore_bad_, way, workers, scratch,
        static_cast<Value*>(output->data()));
    if (bad != FirstBad::kNone) {
      ctx->SetStatus(
          ToTensorFlow(Status::InvalidArgument(BadTupleMessage(
                           indices, call.indices, bad, "shape", call.target)),
                       *this));
    }
  }

  bool ignore_bad_;
  int64_t batch_dims_;
};

class MyGatherNdSparseGradOp : public OpKernel {
 public:
  explicit MyGatherNdSparseGradOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, RefuseReferences(ctx));
    OP_REQUIRES_OK(ctx, IgnoresBadIndices(ctx, &ignore_bad_));
    OP_REQUIRES_OK(ctx, CheckSummable(ctx->input_type(1)));
  }

  void Compute(OpKernelContext* ctx) override {
    IndexedCall call;
    OP_REQUIRES_OK(ctx, PrepareSparseGrad(ctx, &call));
    VisitSum(ctx->input(1).dtype(), [&](auto sum) {
      VisitSortedTuples(call.space, [&](auto sorted) {
        Run<decltype(sum)>(ctx, call, sorted);
      });
    });
  }

 private:
  template <typename Sum, typename Sorted>
  void Run(OpKernelContext* ctx, const IndexedCall& call, Sorted sorted) {
    using Value = typename Sum::Value;
    const Indices indices = ToIndices(ctx->input(0));
    DeviceWorkers workers(ctx);
    Tensor scratch_tensor;
    void* scratch;
    OP_REQUIRES_OK(ctx, AllocateScratch(ctx, KeyBytes(call.space),
                                        &scratch_tensor, &scratch));
    const int64_t bad =
        SortTuples(call.space, indices, ignore_bad_, workers, scratch, &sorted);
    if (bad != FirstBad::kNone) {
      ctx->SetStatus(ToTensorFlow(
          Status::InvalidArgument(BadTupleMessage(indices, call.indices, bad,
                                                  "param shape", call.target)),
          *this));
      return;
    }
    const MergedRows merged(sorted, workers);
    Tensor* rows;
    Tensor* values;
    OP_REQUIRES_OK(
        ctx, ctx->allocate_output(0, TensorShape({merged.count()}), &rows));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, SparseGradValues(call, merged.count(), &shape));
    OP_REQUIRES_OK(ctx, ctx->allocate_output(1, shape, &values));
    merged.Write<Sum>(sorted, static_cast<const Value*>(ctx->input(1).data()),
                      call.space.slice_elements, workers,
                      static_cast<int64_t*>(rows->data()),
                      static_cast<Value*>(values->data()));
  }

  bool ignore_bad_;
};

const KernelRegistration<MyScatterNdOp> kMyScatterNd(
    Name("MyScatterNd").Device(tensorflow::DEVICE_CPU));
const KernelRegistration<MyGatherNdSparseGradOp> kMyGatherNdSparseGrad(
    Name("MyGatherNdSparseGrad").Device(tensorflow::DEVICE_CPU));

}  // namespace
}  // namespace tf_stitch_gather
