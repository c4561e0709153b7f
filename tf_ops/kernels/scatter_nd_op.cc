// The CPU kernels of MyScatterNd and of MyGatherNdSparseGrad, which both sum
// rows at equal indices.

#include <cstdint>
#include <optional>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tf_ops/core/gather_nd.h"
#include "tf_ops/core/index_space.h"
#include "tf_ops/cpu/scatter_nd.h"
#include "tf_ops/kernels/glue.h"
#include "tf_ops/kernels/sums.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Refuses, when the kernel is made, a type that cannot be added.
absl::Status CheckSummable(tensorflow::DataType type) {
  if (VisitSum(type, [](auto) {})) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "values of type " + tensorflow::DataTypeString(type) +
      " cannot be added: T must be a numeric type, bool or string");
}

// Reads the shape that a scatter is asked for.
absl::Status ReadShape(const Tensor& tensor, Shape* shape) {
  if (tensor.dims() != 1) {
    return absl::InvalidArgumentError("shape must be a vector, got shape " +
                                      tensor.shape().DebugString());
  }
  if (tensor.NumElements() > kMaxRank) {
    return absl::InvalidArgumentError(
        "shape has " + std::to_string(tensor.NumElements()) +
        " dimensions; a tensor has at most " + std::to_string(kMaxRank));
  }
  const Indices dims = ToIndices(tensor);
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    const int64_t dim = dims.at(i);
    if (dim < 0) {
      return absl::InvalidArgumentError("shape[" + std::to_string(i) +
                                        "] = " + std::to_string(dim) +
                                        " must not be negative");
    }
    shape->Append(dim);
  }
  return absl::OkStatus();
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
    const Tensor& indices = ctx->input(0);
    const Tensor& updates = ctx->input(1);
    const Shape indices_shape = ToShape(indices.shape());
    Shape output_shape;
    OP_REQUIRES_OK(ctx, ReadShape(ctx->input(2), &output_shape));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, ToTensorShape(output_shape, &shape));
    OP_REQUIRES_OK(ctx, ToTensorFlow(CheckScatterNd(
                            indices_shape, ToShape(updates.shape()),
                            output_shape, batch_dims_)));
    IndexSpace space;
    OP_REQUIRES_OK(ctx, ToTensorFlow(MakeIndexSpace(
                            indices_shape, output_shape,
                            static_cast<int>(batch_dims_), &space)));
    Tensor* output;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &output));
    VisitSum(updates.dtype(), [&](auto sum) {
      Run<decltype(sum)>(ctx, space, indices, indices_shape, updates,
                         output_shape, output);
    });
  }

 private:
  template <typename Sum>
  void Run(OpKernelContext* ctx, const IndexSpace& space, const Tensor& indices,
           const Shape& indices_shape, const Tensor& updates,
           const Shape& output_shape, Tensor* output) {
    using Value = typename Sum::Value;
    DeviceWorkers workers(ctx);
    const ScatterWay way = ChooseScatterWay(space, sizeof(Value),
                                            kSumsInPlace<Sum>, workers.count());
    Tensor scratch_tensor;
    void* scratch;
    OP_REQUIRES_OK(ctx, AllocateScratch(ctx, ScatterScratchBytes(space, way),
                                        &scratch_tensor, &scratch));
    const int64_t bad = ScatterNd<Sum>(
        space, ToIndices(indices), static_cast<const Value*>(updates.data()),
        ignore_bad_, way, workers, scratch,
        static_cast<Value*>(output->data()));
    if (bad != FirstBad::kNone) {
      ctx->SetStatus(ToTensorFlow(
          Status::InvalidArgument(BadTupleMessage(
              ToIndices(indices), indices_shape, bad, "shape", output_shape)),
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
    const Tensor& indices = ctx->input(0);
    const Tensor& grad = ctx->input(1);
    const Shape indices_shape = ToShape(indices.shape());
    Shape values_shape;
    OP_REQUIRES_OK(
        ctx, ToTensorFlow(SparseGradShape(indices_shape, ToShape(grad.shape()),
                                          &values_shape)));
    // The gradient addresses num_rows rows of the slices that `values` holds.
    int64_t num_rows = 0;
    OP_REQUIRES_OK(ctx, ScalarIndex(ctx->input(2), "num_rows", &num_rows));
    Shape params_shape = values_shape;
    params_shape.set_dim(0, num_rows);
    IndexSpace space;
    OP_REQUIRES_OK(ctx, ToTensorFlow(MakeIndexSpace(indices_shape, params_shape,
                                                    0, &space)));
    VisitSum(grad.dtype(), [&](auto sum) {
      VisitSortedTuples(space, [&](auto sorted) {
        Run<decltype(sum)>(ctx, space, indices, indices_shape, grad,
                           params_shape, sorted);
      });
    });
  }

 private:
  template <typename Sum, typename Sorted>
  void Run(OpKernelContext* ctx, const IndexSpace& space, const Tensor& indices,
           const Shape& indices_shape, const Tensor& grad,
           const Shape& params_shape, Sorted sorted) {
    using Value = typename Sum::Value;
    DeviceWorkers workers(ctx);
    Tensor scratch_tensor;
    void* scratch;
    OP_REQUIRES_OK(
        ctx, AllocateScratch(ctx, KeyBytes(space), &scratch_tensor, &scratch));
    const int64_t bad = SortTuples(space, ToIndices(indices), ignore_bad_,
                                   workers, scratch, &sorted);
    if (bad != FirstBad::kNone) {
      ctx->SetStatus(ToTensorFlow(Status::InvalidArgument(BadTupleMessage(
                                      ToIndices(indices), indices_shape, bad,
                                      "param shape", params_shape)),
                                  *this));
      return;
    }
    const MergedRows merged(sorted, workers);
    Tensor* rows;
    Tensor* values;
    OP_REQUIRES_OK(
        ctx, ctx->allocate_output(0, TensorShape({merged.count()}), &rows));
    Shape values_shape = params_shape;
    values_shape.set_dim(0, merged.count());
    TensorShape shape;
    OP_REQUIRES_OK(ctx, ToTensorShape(values_shape, &shape));
    OP_REQUIRES_OK(ctx, ctx->allocate_output(1, shape, &values));
    merged.Write<Sum>(sorted, static_cast<const Value*>(grad.data()),
                      space.slice_elements, workers,
                      static_cast<int64_t*>(rows->data()),
                      static_cast<Value*>(values->data()));
  }

  bool ignore_bad_;
};

REGISTER_KERNEL_BUILDER(Name("MyScatterNd").Device(tensorflow::DEVICE_CPU),
                        MyScatterNdOp);
REGISTER_KERNEL_BUILDER(
    Name("MyGatherNdSparseGrad").Device(tensorflow::DEVICE_CPU),
    MyGatherNdSparseGradOp);

}  // namespace
}  // namespace tf_stitch_gather
