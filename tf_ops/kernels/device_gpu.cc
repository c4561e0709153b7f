#include "tf_ops/kernels/device_gpu.h"

#include <memory>
#include <utility>

#include "tf_ops/kernels/glue.h"
#include "tf_ops/kernels/sums.h"
#include "tf_ops/ops/compat.h"

#if !defined(TSG_HOST_BACK_END)
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#if !TSG_EXECUTOR_ACTIVATES
#include "xla/stream_executor/gpu/scoped_activate_context.h"
#endif
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
#define TSG_CASE(TYPE, SUM, KIND, PARTS) \
  case tensorflow::DT_##TYPE:            \
    return {SumKind::KIND, PARTS};
    TSG_DEVICE_SUMS(TSG_CASE)
#undef TSG_CASE
    default:  // Not in the list that the kernels are registered for.
      return {SumKind::kInteger8, 0};
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
  OP_REQUIRES_OK_ASYNC(ctx, NoThrow([&] { return Start(ctx, stream, &wait); }),
                       done);
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
  OP_REQUIRES_OK_ASYNC(
      ctx, NoThrow([&] { return wait.finish(landing.data()); }), done);
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
#if TSG_EXECUTOR_ACTIVATES
          const auto active = tf_stream->parent()->Activate();
#else
          const stream_executor::gpu::ScopedActivateContext active(
              tf_stream->parent());
#endif
          status = NoThrow([&] { return finish(landing.data()); });
        }
        OP_REQUIRES_OK_ASYNC(ctx, status, done);
        done();
      });
#endif
}

}  // namespace tf_stitch_gather
