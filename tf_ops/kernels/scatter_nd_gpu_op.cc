// The GPU kernels of MyScatterNd and of MyGatherNdSparseGrad, for all types of
// fixed width that can be added.

#include <cstdint>
#include <memory>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/util/determinism.h"
#include "tf_ops/gpu/scatter_nd.h"
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

class MyScatterNdGpuOp : public GpuKernel {
 public:
  explicit MyScatterNdGpuOp(OpKernelConstruction* ctx) : GpuKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("batch_dims", &batch_dims_));
    waits_ = reports_bad_;
  }

 private:
  absl::Status Start(OpKernelContext* ctx, const GpuStream& stream,
                     Wait* wait) override {
    const Indices indices = ToIndices(ctx->input(0));
    const Tensor& updates = ctx->input(1);
    IndexedCall call;
    TensorShape shape;
    TF_RETURN_IF_ERROR(PrepareScatterNd(ctx, batch_dims_, &call, &shape));
    Tensor* output;
    TF_RETURN_IF_ERROR(ctx->allocate_output(0, shape, &output));
    BadTupleReport report;
    if (reports_bad_) TF_RETURN_IF_ERROR(report.Allocate(ctx, call));

    const SumParts sum = ToSumParts(updates.dtype());
    const int64_t width = call.space.slice_elements * sum.parts;
    if (AddsAtomically(sum.kind, tensorflow::OpDeterminismRequired())) {
      TF_RETURN_IF_ERROR(ToTensorFlow(
          GpuScatterNdAtomic(stream, call.space, indices, sum.kind, width,
                             updates.data(), report.words(), output->data())));
    } else {
      GpuRowSums sums;
      TF_RETURN_IF_ERROR(
          ToTensorFlow(sums.Plan(call.space, sum.kind, width, false)));
      Tensor scratch_tensor;
      void* scratch;
      TF_RETURN_IF_ERROR(AllocateScratch(ctx, sums.scratch_bytes(),
                                         &scratch_tensor, &scratch));
      TF_RETURN_IF_ERROR(
          ToTensorFlow(sums.Sort(stream, indices, report.words(), scratch)));
      TF_RETURN_IF_ERROR(
          ToTensorFlow(sums.Scatter(stream, updates.data(), output->data())));
    }
    if (!reports_bad_ || call.space.tuples() == 0) return absl::OkStatus();
    wait->from = report.words();
    wait->bytes = report.bytes();
    wait->finish = [this, report, call](const void* read) {
      return report.ToStatus(read, call, "shape", *this);
    };
    return absl::OkStatus();
  }

  int64_t batch_dims_;
};

// The number of rows is known when the device has counted them: the outputs
// are made then.
class MyGatherNdSparseGradGpuOp : public GpuKernel {
 public:
  explicit MyGatherNdSparseGradGpuOp(OpKernelConstruction* ctx)
      : GpuKernel(ctx) {
    waits_ = true;
  }

 private:
  absl::Status Start(OpKernelContext* ctx, const GpuStream& stream,
                     Wait* wait) override {
    IndexedCall call;
    TF_RETURN_IF_ERROR(PrepareSparseGrad(ctx, &call));
    const SumParts sum = ToSumParts(ctx->input(1).dtype());
    GpuRowSums sums;
    TF_RETURN_IF_ERROR(ToTensorFlow(
        sums.Plan(call.space, sum.kind, call.space.slice_elements * sum.parts,
                  /*merges=*/true)));
    Tensor scratch_tensor;
    void* scratch;
    TF_RETURN_IF_ERROR(
        AllocateScratch(ctx, sums.scratch_bytes(), &scratch_tensor, &scratch));
    // The number of rows goes behind the report of a tuple of one index.
    constexpr int kCount = 2;
    BadTupleReport report;
    TF_RETURN_IF_ERROR(report.Allocate(ctx, call, /*more_words=*/1));
    TF_RETURN_IF_ERROR(ToTensorFlow(
        sums.Sort(stream, ToIndices(ctx->input(0)), report.words(), scratch)));
    TF_RETURN_IF_ERROR(
        ToTensorFlow(sums.CountRows(stream, report.words() + kCount)));
    wait->from = report.words();
    wait->bytes = report.bytes();
    wait->finish = [=](const void* read) mutable -> absl::Status {
      if (reports_bad_) {
        TF_RETURN_IF_ERROR(report.ToStatus(read, call, "param shape", *this));
      }
      const int64_t count =
          static_cast<int64_t>(static_cast<const uint64_t*>(read)[kCount]);
      Tensor* rows;
      Tensor* values;
      TF_RETURN_IF_ERROR(ctx->allocate_output(0, TensorShape({count}), &rows));
      TensorShape shape;
      TF_RETURN_IF_ERROR(SparseGradValues(call, count, &shape));
      TF_RETURN_IF_ERROR(ctx->allocate_output(1, shape, &values));
      // Holds the scratch memory until here.
      static_cast<void>(scratch_tensor);
      return ToTensorFlow(sums.Merge(stream, ctx->input(1).data(),
                                     static_cast<int64_t*>(rows->data()),
                                     values->data()));
    };
    return absl::OkStatus();
  }
};

const KernelRegistration<MyScatterNdGpuOp> kMyScatterNd(
    Name("MyScatterNd")
        .Device(GpuKernelDevice())
        .TypeConstraint("T", SummableFixedWidthTypes())
        .HostMemory("shape"));
const KernelRegistration<MyGatherNdSparseGradGpuOp> kMyGatherNdSparseGrad(
    Name("MyGatherNdSparseGrad")
        .Device(GpuKernelDevice())
        .TypeConstraint("T", SummableFixedWidthTypes())
        .HostMemory("num_rows"));

}  // namespace
}  // namespace tf_stitch_gather
