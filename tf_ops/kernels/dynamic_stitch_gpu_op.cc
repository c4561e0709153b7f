// The GPU kernels of MyDynamicStitch, MyDynamicStitchSized and
// MyDynamicStitchGrad, for all types of fixed width.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "tensorflow/core/framework/op_kernel.h"
#include "tf_ops/core/dynamic_stitch.h"
#include "tf_ops/gpu/dynamic_stitch.h"
#include "tf_ops/kernels/device_gpu.h"
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

// The parts of a stitch, here and on the device, and a report there. Copies
// share the memory.
struct PartsOnDevice {
  // Sends the parts to the device.
  absl::Status Upload(OpKernelContext* ctx, const GpuStream& stream) {
    void* memory;
    TF_RETURN_IF_ERROR(AllocateScratch(ctx, GpuStitchTableBytes(*parts),
                                       &table_tensor, &table));
    TF_RETURN_IF_ERROR(
        AllocateScratch(ctx, sizeof(StitchReport), &report_tensor, &memory));
    report = static_cast<StitchReport*>(memory);
    return ToTensorFlow(GpuUploadParts(stream, *parts, table));
  }

  // The error that a copy of the report tells of, if any.
  absl::Status ToStatus(const void* read, int64_t size,
                        const OpKernel& kernel) const {
    const BadSource bad =
        ToBadSource(*parts, *static_cast<const StitchReport*>(read));
    if (!bad.found()) return absl::OkStatus();
    return ToTensorFlow(BadStitchIndex(bad.part, bad.position, bad.value, size),
                        kernel);
  }

  std::shared_ptr<StitchParts> parts = std::make_shared<StitchParts>();
  Tensor table_tensor;
  void* table = nullptr;
  Tensor report_tensor;
  StitchReport* report = nullptr;
};

// A stitch whose inputs are checked.
struct StitchCall {
  absl::Status Prepare(OpKernelContext* ctx, const GpuStream& stream) {
    int64_t row_elements;
    TF_RETURN_IF_ERROR(
        PrepareStitch(ctx, &shapes, on_device.parts.get(), &row_elements));
    row_bytes =
        row_elements * tensorflow::DataTypeSize(ctx->expected_output_dtype(0));
    return on_device.Upload(ctx, stream);
  }

  // Stitches into `rows` rows.
  absl::Status Run(OpKernelContext* ctx, const GpuStream& stream, int64_t rows,
                   StitchReport* report) const {
    TensorShape shape;
    TF_RETURN_IF_ERROR(ToTensorShape(shapes.Merged(rows), &shape));
    Tensor* merged;
    TF_RETURN_IF_ERROR(ctx->allocate_output(0, shape, &merged));
    Tensor scratch_tensor;
    void* scratch;
    TF_RETURN_IF_ERROR(AllocateScratch(
        ctx, GpuStitchScratchBytes(*on_device.parts, rows, row_bytes),
        &scratch_tensor, &scratch));
    return ToTensorFlow(GpuStitch(stream, *on_device.parts, on_device.table,
                                  rows, row_bytes, report, scratch,
                                  static_cast<char*>(merged->data())));
  }

  StitchShapes shapes;
  PartsOnDevice on_device;
  int64_t row_bytes = 0;
};

// The number of rows is known when the device has seen the indices: 16 bytes
// come back, and the rest is enqueued then.
class MyDynamicStitchGpuOp : public GpuKernel {
 public:
  explicit MyDynamicStitchGpuOp(OpKernelConstruction* ctx) : GpuKernel(ctx) {
    waits_ = true;
  }

 private:
  absl::Status Start(OpKernelContext* ctx, const GpuStream& stream,
                     Wait* wait) override {
    StitchCall call;
    TF_RETURN_IF_ERROR(call.Prepare(ctx, stream));
    const PartsOnDevice& on_device = call.on_device;
    if (on_device.parts->sources() == 0) {
      return call.Run(ctx, stream, 0, nullptr);
    }
    TF_RETURN_IF_ERROR(ToTensorFlow(GpuStitchRows(
        stream, *on_device.parts, on_device.table, on_device.report)));
    wait->from = on_device.report;
    wait->bytes = sizeof(StitchReport);
    wait->finish = [=](const void* read) -> absl::Status {
      TF_RETURN_IF_ERROR(call.on_device.ToStatus(read, kUnknown, *this));
      // No tensor has 2^63 rows; the greatest index alone is refused below.
      const int64_t greatest =
          std::min(static_cast<const StitchReport*>(read)->value,
                   std::numeric_limits<int64_t>::max() - 1);
      return call.Run(ctx, stream, greatest + 1, nullptr);
    };
    return absl::OkStatus();
  }
};

class MyDynamicStitchSizedGpuOp : public GpuKernel {
 public:
  explicit MyDynamicStitchSizedGpuOp(OpKernelConstruction* ctx)
      : GpuKernel(ctx) {
    waits_ = reports_bad_;
  }

 private:
  absl::Status Start(OpKernelContext* ctx, const GpuStream& stream,
                     Wait* wait) override {
    StitchCall call;
    TF_RETURN_IF_ERROR(call.Prepare(ctx, stream));
    int64_t rows = 0;
    TF_RETURN_IF_ERROR(ScalarIndex(ctx->input(0), "size", &rows));
    StitchReport* report = reports_bad_ ? call.on_device.report : nullptr;
    TF_RETURN_IF_ERROR(call.Run(ctx, stream, rows, report));
    if (!reports_bad_) return absl::OkStatus();
    wait->from = report;
    wait->bytes = sizeof(StitchReport);
    wait->finish = [this, rows, on_device = call.on_device](const void* read) {
      return on_device.ToStatus(read, rows, *this);
    };
    return absl::OkStatus();
  }
};

class MyDynamicStitchGradGpuOp : public GpuKernel {
 public:
  explicit MyDynamicStitchGradGpuOp(OpKernelConstruction* ctx)
      : GpuKernel(ctx) {
    waits_ = reports_bad_;
  }

 private:
  absl::Status Start(OpKernelContext* ctx, const GpuStream& stream,
                     Wait* wait) override {
    PartsOnDevice on_device;
    int64_t row_elements;
    TF_RETURN_IF_ERROR(
        PrepareStitchGrad(ctx, on_device.parts.get(), &row_elements));
    TF_RETURN_IF_ERROR(on_device.Upload(ctx, stream));
    const Tensor& grad = ctx->input(ctx->num_inputs() - 1);
    const int64_t rows = grad.dim_size(0);
    const int64_t row_bytes =
        row_elements * tensorflow::DataTypeSize(grad.dtype());
    Tensor scratch_tensor;
    void* scratch;
    TF_RETURN_IF_ERROR(AllocateScratch(
        ctx, GpuStitchScratchBytes(*on_device.parts, rows, row_bytes),
        &scratch_tensor, &scratch));
    StitchReport* report = reports_bad_ ? on_device.report : nullptr;
    TF_RETURN_IF_ERROR(ToTensorFlow(GpuStitchGrad(
        stream, *on_device.parts, on_device.table, rows,
        static_cast<const char*>(grad.data()), row_bytes, report, scratch)));
    if (!reports_bad_) return absl::OkStatus();
    wait->from = report;
    wait->bytes = sizeof(StitchReport);
    wait->finish = [this, rows, on_device](const void* read) {
      return on_device.ToStatus(read, rows, *this);
    };
    return absl::OkStatus();
  }
};

const KernelRegistration<MyDynamicStitchGpuOp> kMyDynamicStitch(
    Name("MyDynamicStitch")
        .Device(GpuKernelDevice())
        .TypeConstraint("T", FixedWidthTypes()));
const KernelRegistration<MyDynamicStitchSizedGpuOp> kMyDynamicStitchSized(
    Name("MyDynamicStitchSized")
        .Device(GpuKernelDevice())
        .TypeConstraint("T", FixedWidthTypes())
        .HostMemory("size"));
const KernelRegistration<MyDynamicStitchGradGpuOp> kMyDynamicStitchGrad(
    Name("MyDynamicStitchGrad")
        .Device(GpuKernelDevice())
        .TypeConstraint("T", FixedWidthTypes()));

}  // namespace
}  // namespace tf_stitch_gather
