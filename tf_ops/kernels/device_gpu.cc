#include "tf_ops/kernels/device_gpu.h"

#include <memory>
#include <utility>

#include "tf_ops/kernels/glue.h"
#include "tf_ops/kernels/sums.h"

#if !defined(TSG_HOST_BACK_END)
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "xla/stream_executor/stream.h"
#include "xla/stream_executor/stream_executor.h"
#endif

namespace tf_stitch_gather {

using tensorflow::DataType;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

std::vector<DataType> FixedWidthTypes() {
  std::vector<DataType> types;
  for (int i = tensorflow::DataType_MIN; i <= tensorflow::DataType_MAX; ++i) {
    const DataType type = static_cast<DataType>(i);
    if (tensorflow::DataType_IsValid(i) && !tensorflow::IsRefType(type) &&
        tensorflow::DataTypeCanUseMemcpy(type) &&
        tensorflow::DataTypeSize(type) > 0) {
      types.push_back(type);
    }
  }
  return types;
}

std::vector<DataType> SummableFixedWidthTypes() {
  std::vector<DataType> types;
  for (const DataType type : FixedWidthTypes()) {
    if (VisitSum(type, [](auto) {})) types.push_back(type);
  }
  return types;
}

SumParts ToSumParts(DataType type) {
  switch (type) {
    case tensorflow::DT_FLOAT:
      return {SumKind::kFloat, 1};
    case tensorflow::DT_DOUBLE:
      return {SumKind::kDouble, 1};
    case tensorflow::DT_COMPLEX64:
      return {SumKind::kFloat, 2};
    case tensorflow::DT_COMPLEX128:
      return {SumKind::kDouble, 2};
    case tensorflow::DT_INT4:
    case tensorflow::DT_UINT4:
      return {SumKind::kNibble, 1};
    case tensorflow::DT_BOOL:
      return {SumKind::kOr, 1};
    case tensorflow::DT_HALF:
      return {SumKind::kHalf, 1};
    case tensorflow::DT_BFLOAT16:
      return {SumKind::kBfloat16, 1};
    case tensorflow::DT_FLOAT8_E5M2:
      return {SumKind::kFloat8E5M2, 1};
    case tensorflow::DT_FLOAT8_E4M3FN:
      return {SumKind::kFloat8E4M3Fn, 1};
    case tensorflow::DT_FLOAT8_E4M3FNUZ:
      return {SumKind::kFloat8E4M3Fnuz, 1};
    case tensorflow::DT_FLOAT8_E4M3B11FNUZ:
      return {SumKind::kFloat8E4M3B11Fnuz, 1};
    case tensorflow::DT_FLOAT8_E5M2FNUZ:
      return {SumKind::kFloat8E5M2Fnuz, 1};
    default:
      break;
  }
  // Integers of either sign wrap around in the same way.
  switch (tensorflow::DataTypeSize(type)) {
    case 1:
      return {SumKind::kInteger8, 1};
    case 2:
      return {SumKind::kInteger16, 1};
    case 4:
      return {SumKind::kInteger32, 1};
    default:
      return {SumKind::kInteger64, 1};
  }
}

GpuStream StreamOf(OpKernelContext* ctx) {
  GpuStream stream;
#if defined(TSG_HOST_BACK_END)
  static_cast<void>(ctx);
#else
  stream.handle =
      ctx->op_device_context()->stream()->platform_specific_handle().stream;
#endif
  return stream;
}

GpuKernel::GpuKernel(OpKernelConstruction* ctx) : AsyncOpKernel(ctx) {
  OP_REQUIRES_OK(ctx, RefuseReferences(ctx));
  if (!ctx->HasAttr("bad_indices_policy")) return;
  std::string text;
  BadIndicesPolicy policy = BadIndicesPolicy::kDefault;
  OP_REQUIRES_OK(ctx, ctx->GetAttr("bad_indices_policy", &text));
  OP_REQUIRES_OK(ctx, ToTensorFlow(ParseBadIndicesPolicy(text, &policy)));
  ignores_bad_ = policy == BadIndicesPolicy::kIgnore;
  reports_bad_ = policy == BadIndicesPolicy::kError;
#if defined(TSG_HOST_BACK_END)
  // The device is the CPU, where the default is an error.
  reports_bad_ = !ignores_bad_;
#endif
}

void GpuKernel::ComputeAsync(OpKernelContext* ctx, DoneCallback done) {
  const GpuStream stream = StreamOf(ctx);
  Wait wait;
  OP_REQUIRES_OK_ASYNC(ctx, Start(ctx, stream, &wait), done);
  if (!wait.finish) {
    done();
    return;
  }
  // Page-locked memory, into which the device copies by itself.
  tensorflow::AllocatorAttributes on_host;
  on_host.set_on_host(true);
  on_host.set_gpu_compatible(true);
  Tensor landing;
  OP_REQUIRES_OK_ASYNC(
      ctx,
      ctx->allocate_temp(tensorflow::DT_INT8, TensorShape({wait.bytes}),
                         &landing, on_host),
      done);
  OP_REQUIRES_OK_ASYNC(ctx,
                       ToTensorFlow(GpuCopyToHost(stream, wait.from, wait.bytes,
                                                  landing.data())),
                       done);
#if defined(TSG_HOST_BACK_END)
  OP_REQUIRES_OK_ASYNC(ctx, wait.finish(landing.data()), done);
  done();
#else
  stream_executor::Stream* tf_stream = ctx->op_device_context()->stream();
  ctx->device()->tensorflow_accelerator_device_info()->event_mgr->ThenExecute(
      tf_stream, [ctx, tf_stream, landing, finish = std::move(wait.finish),
                  done = std::move(done)]() {
        absl::Status status;
        {
          // This thread serves all devices. What `done` runs on it may want
          // another one, so this ends before.
          const auto active = tf_stream->parent()->Activate();
          status = finish(landing.data());
        }
        OP_REQUIRES_OK_ASYNC(ctx, status, done);
        done();
      });
#endif
}

}  // namespace tf_stitch_gather
