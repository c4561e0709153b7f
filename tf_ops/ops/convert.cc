#include "tf_ops/ops/convert.h"

namespace tf_stitch_gather {

absl::Status ToTensorFlow(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return absl::OkStatus();
    case Code::kInvalidArgument:
      return absl::InvalidArgumentError(status.message());
    case Code::kResourceExhausted:
      return absl::ResourceExhaustedError(status.message());
    case Code::kInternal:
      break;
  }
  return absl::InternalError(status.message());
}

const absl::Status& OutOfMemory() {
  static const auto* const status = new absl::Status(
      absl::ResourceExhaustedError("no memory for the small objects of the "
                                   "call: free some, or raise the "
                                   "limit of the process"));
  return *status;
}

namespace {

[[maybe_unused]] const absl::Status& made_in_time = OutOfMemory();

}  // namespace

Indices ToIndices(const tensorflow::Tensor& tensor) {
  switch (tensor.dtype()) {
    case tensorflow::DT_INT16:
      return {tensor.data(), IndexType::kInt16};
    case tensorflow::DT_INT32:
      return {tensor.data(), IndexType::kInt32};
    default:
      return {tensor.data(), IndexType::kInt64};
  }
}

}  // namespace tf_stitch_gather
