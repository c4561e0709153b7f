// What to do with an index that is out of range.

#ifndef TF_OPS_CORE_POLICY_H_
#define TF_OPS_CORE_POLICY_H_

#include <string>

#include "tf_ops/core/status.h"

namespace tf_stitch_gather {

enum class BadIndicesPolicy {
  kDefault,  // an error on CPU, zeros on GPU
  kError,    // an error on every device
  kIgnore,   // gather zeros, scatter nothing, on every device
};

// Reads the attribute `bad_indices_policy`.
Status ParseBadIndicesPolicy(const std::string& text, BadIndicesPolicy* policy);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_POLICY_H_
