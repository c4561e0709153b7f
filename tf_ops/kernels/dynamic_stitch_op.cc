// The CPU kernels of MyDynamicStitch, MyDynamicStitchSized and
// MyDynamicStitchGrad, for all types at once.

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"
#include "tf_ops/core/dynamic_stitch.h"
#include "tf_ops/cpu/dynamic_stitch.h"
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

absl::Status BadIndexStatus(const BadSource& bad, int64_t size,
                            const OpKernel& kernel) {
  return ToTensorFlow(BadStitchIndex(bad.part, bad.position, bad.value, size),
                      kernel);
}

// Reads `indices` and `data`, tells the merged shape but for its rows, which
// `Rows` gives, and stitches.
class StitchOp : public OpKernel {
 public:
  explicit StitchOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, RefuseReferences(ctx));
  }

  void Compute(OpKernelContext* ctx) override {
    StitchShapes shapes;
    StitchParts parts;
    int64_t row_elements = 0;
    OP_REQUIRES_OK(ctx, PrepareStitch(ctx, &shapes, &parts, &row_elements));
    DeviceWorkers workers(ctx);
    int64_t rows = 0;
    OP_REQUIRES_OK(ctx, Rows(ctx, parts, workers, &rows));

    RowMover mover;
    OP_REQUIRES_OK(ctx, MakeRowMover(ctx->expected_output_dtype(0),
                                     row_elements, rows, &mover));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, ToTensorShape(shapes.Merged(rows), &shape));
    Tensor* merged;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &merged));
    Tensor scratch_tensor;
    void* scratch;
    OP_REQUIRES_OK(ctx, AllocateScratch(ctx, StitchScratchBytes(rows, mover),
                                        &scratch_tensor, &scratch));
    const BadSource bad = Stitch(parts, rows, mover, ignore_bad_, workers,
                                 scratch, static_cast<char*>(merged->data()));
    OP_REQUIRES(ctx, !bad.found(), BadIndexStatus(bad, rows, *this));
  }

 protected:
  // The number of rows of `merged`.
  virtual absl::Status Rows(OpKernelContext* ctx, const StitchParts& parts,
                            Workers& workers, int64_t* rows) const = 0;

  bool ignore_bad_ = false;
};

class MyDynamicStitchOp : public StitchOp {
 public:
  using StitchOp::StitchOp;

 private:
  absl::Status Rows(OpKernelContext*, const StitchParts& parts,
                    Workers& workers, int64_t* rows) const override {
    BadSource bad;
    *rows = StitchRows(parts, workers, &bad);
    if (!bad.found()) return absl::OkStatus();
    return BadIndexStatus(bad, kUnknown, *this);
  }
};

class MyDynamicStitchSizedOp : public StitchOp {
 public:
  explicit MyDynamicStitchSizedOp(OpKernelConstruction* ctx) : StitchOp(ctx) {
    OP_REQUIRES_OK(ctx, IgnoresBadIndices(ctx, &ignore_bad_));
  }

 private:
  absl::Status Rows(OpKernelContext* ctx, const StitchParts&, Workers&,
                    int64_t* rows) const override {
    return ScalarIndex(ctx->input(0), "size", rows);
  }
};

class MyDynamicStitchGradOp : public OpKernel {
 public:
  explicit MyDynamicStitchGradOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, RefuseReferences(ctx));
    OP_REQUIRES_OK(ctx, IgnoresBadIndices(ctx, &ignore_bad_));
  }

  void Compute(OpKernelContext* ctx) override {
    StitchParts parts;
    int64_t row_elements = 0;
    OP_REQUIRES_OK(ctx, PrepareStitchGrad(ctx, &parts, &row_elements));
    const Tensor& grad = ctx->input(ctx->num_inputs() - 1);
    const int64_t rows = grad.dim_size(0);
    RowMover mover;
    OP_REQUIRES_OK(
        ctx, MakeRowMover(grad.dtype(), row_elements, parts.sources(), &mover));
    Tensor scratch_tensor;
    void* scratch;
    OP_REQUIRES_OK(
        ctx, AllocateScratch(ctx, StitchGradScratchBytes(parts, rows, mover),
                             &scratch_tensor, &scratch));
    DeviceWorkers workers(ctx);
    const BadSource bad =
        StitchGrad(parts, rows, static_cast<const char*>(grad.data()), mover,
                   ignore_bad_, workers, scratch);
    OP_REQUIRES(ctx, !bad.found(), BadIndexStatus(bad, rows, *this));
  }

 private:
  bool ignore_bad_;
};

const KernelRegistration<MyDynamicStitchOp> kMyDynamicStitch(
    Name("MyDynamicStitch").Device(tensorflow::DEVICE_CPU));
const KernelRegistration<MyDynamicStitchSizedOp> kMyDynamicStitchSized(
    Name("MyDynamicStitchSized").Device(tensorflow::DEVICE_CPU));
const KernelRegistration<MyDynamicStitchGradOp> kMyDynamicStitchGrad(
    Name("MyDynamicStitchGrad").Device(tensorflow::DEVICE_CPU));

}  // namespace
}  // namespace tf_stitch_gather
