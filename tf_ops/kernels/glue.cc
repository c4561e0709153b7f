#include "tf_ops/kernels/glue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/tstring.h"
#include "tf_ops/core/checked_math.h"
#include "tf_ops/cpu/block_queue.h"

namespace tf_stitch_gather {

using tensorflow::DataType;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

absl::Status ToTensorFlow(const Status& status, const OpKernel& kernel) {
  const absl::Status converted = ToTensorFlow(status);
  if (converted.ok()) return converted;
  return absl::Status(converted.code(),
                      status.message() + ", node name: " + kernel.name());
}

Shape ToShape(const TensorShape& shape) {
  Shape converted;
  for (int i = 0; i < shape.dims(); ++i) converted.Append(shape.dim_size(i));
  return converted;
}

absl::Status ToTensorShape(const Shape& shape, TensorShape* tensor_shape) {
  int64_t elements;
  if (!shape.Elements(0, shape.rank(), &elements)) {
    return absl::ResourceExhaustedError(
        "a tensor of shape " + shape.ToString() +
        " has more elements than 64 bits can count");
  }
  *tensor_shape = TensorShape();
  for (int i = 0; i < shape.rank(); ++i) {
    const absl::Status status = tensor_shape->AddDimWithStatus(shape.dim(i));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ScalarIndex(const Tensor& tensor, const char* name,
                         int64_t* value) {
  if (tensor.dims() != 0) {
    return absl::InvalidArgumentError(std::string(name) +
                                      " must be a scalar, got shape " +
                                      tensor.shape().DebugString());
  }
  *value = ToIndices(tensor).at(0);
  if (*value < 0) {
    return absl::InvalidArgumentError(std::string(name) + " = " +
                                      std::to_string(*value) +
                                      " must not be negative");
  }
  return absl::OkStatus();
}

absl::Status MakeRowMover(DataType type, int64_t slice_elements, int64_t rows,
                          RowMover* mover) {
  if (type == tensorflow::DT_STRING) {
    *mover = ObjectRowMover<tensorflow::tstring>(slice_elements);
  } else if (type == tensorflow::DT_VARIANT) {
    *mover = ObjectRowMover<tensorflow::Variant>(slice_elements);
  } else if (type == tensorflow::DT_RESOURCE) {
    *mover = ObjectRowMover<tensorflow::ResourceHandle>(slice_elements);
  } else if (tensorflow::DataTypeCanUseMemcpy(type) &&
             tensorflow::DataTypeSize(type) > 0) {
    *mover =
        ByteRowMover(slice_elements * tensorflow::DataTypeSize(type), rows);
  } else {
    return absl::InvalidArgumentError(
        "no tensor on the CPU has the data type " +
        tensorflow::DataTypeString(type));
  }
  return absl::OkStatus();
}

absl::Status IgnoresBadIndices(OpKernelConstruction* ctx, bool* ignores) {
  std::string text;
  absl::Status status = ctx->GetAttr("bad_indices_policy", &text);
  if (!status.ok()) return status;
  BadIndicesPolicy policy = BadIndicesPolicy::kDefault;
  status = ToTensorFlow(ParseBadIndicesPolicy(text, &policy));
  *ignores = policy == BadIndicesPolicy::kIgnore;
  return status;
}

absl::Status RefuseReferences(OpKernelConstruction* ctx) {
  for (int i = 0; i < ctx->num_inputs(); ++i) {
    if (tensorflow::IsRefType(ctx->input_type(i))) {
      return absl::InvalidArgumentError(
          "input " + std::to_string(i) + " has the reference type " +
          tensorflow::DataTypeString(ctx->input_type(i)) +
          "; pass the value that it refers to");
    }
  }
  return absl::OkStatus();
}

absl::Status AllocateScratch(OpKernelContext* ctx, int64_t bytes,
                             Tensor* tensor, void** scratch) {
  *scratch = nullptr;
  if (bytes == 0) return absl::OkStatus();
  const absl::Status status =
      ctx->allocate_temp(tensorflow::DT_INT8, TensorShape({bytes}), tensor);
  if (status.ok()) *scratch = tensor->data();
  return status;
}

DeviceWorkers::DeviceWorkers(OpKernelContext* ctx)
    : threads_(*ctx->device()->tensorflow_cpu_worker_threads()) {}

int DeviceWorkers::count() const { return threads_.num_threads; }

void DeviceWorkers::Run(int64_t units, int64_t block,
                        const std::function<void(int64_t, int64_t)>& work) {
  const int64_t helpers =
      std::min<int64_t>(count(), CeilDivide(units, block)) - 1;
  RunBlocks(units, block, helpers, work, [&](std::function<void()> help) {
    threads_.workers->Schedule(std::move(help));
  });
}

}  // namespace tf_stitch_gather
