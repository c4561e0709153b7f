#include "tf_ops/core/policy.h"

namespace tf_stitch_gather {

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
        "bad_indices_policy = '" + text +
        "' is not one of '' (the default), 'DEFAULT', 'ERROR' and 'IGNORE'");
  }
  return {};
}

}  // namespace tf_stitch_gather
