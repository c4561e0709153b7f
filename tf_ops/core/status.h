// The outcome of a check, without TensorFlow.

#ifndef TF_OPS_CORE_STATUS_H_
#define TF_OPS_CORE_STATUS_H_

#include <string>
#include <utility>

namespace tf_stitch_gather {

enum class Code {
  kOk,
  kInvalidArgument,    // the caller's inputs do not fit together
  kResourceExhausted,  // the result cannot be addressed or held
  kInternal,           // a device refused its work
};

// An error code with the text a user reads; ok() when there is none.
class [[nodiscard]] Status {
 public:
  Status() = default;

  static Status InvalidArgument(std::string message) {
    return Status(Code::kInvalidArgument, std::move(message));
  }
  static Status ResourceExhausted(std::string message) {
    return Status(Code::kResourceExhausted, std::move(message));
  }
  static Status Internal(std::string message) {
    return Status(Code::kInternal, std::move(message));
  }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Status(Code code, std::string message)
      : code_(code), message_(std::move(message)) {}

  Code code_ = Code::kOk;
  std::string message_;
};

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_STATUS_H_
