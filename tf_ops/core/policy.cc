#include "tf_ops/core/policy.h"

#include <cstddef>
#include <string>

namespace tf_stitch_gather {
namespace {

// `text` for a message: a NUL would end it, other bytes may be no text at all,
// and an attribute may be of any length.
std::string Printable(const std::string& text) {
  constexpr size_t kLongest = 60;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string printable;
  for (const char c : text.substr(0, kLongest)) {
    if (c >= ' ' && c <= '~') {
      printable += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      printable += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text.size() > kLongest ? printable + "..." : printable;
}

}  // namespace

Status ParseBadIndicesPolicy(const std::string& text,
                             BadIndicesPolicy* policy) {
  if (text.empty() || text == "DEFAULT") {
    *policy = BadIndicesPolicy::kDefault;
  } else if (text == "ERROR") {
    *policy = BadIndicesPolicy::kError;
  } else if (text == "IGNORE") {
    *policy = BadIndicesPolicy::kIgnore;
  } else {
    return Status::InvalidArgument(
        "bad_indices_policy = '" + Printable(text) +
        "' is not one of '' (the default), 'DEFAULT', 'ERROR' and 'IGNORE'");
  }
  return {};
}

}  // namespace tf_stitch_gather
