// Switches by which a user turns a way of doing things off.

#ifndef TF_OPS_CPU_SWITCHES_H_
#define TF_OPS_CPU_SWITCHES_H_

#include <cstdlib>
#include <cstring>

namespace tf_stitch_gather {

// Whether the environment variable `name` is 0. Slow: keep the answer.
inline bool IsSwitchedOff(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::strcmp(value, "0") == 0;
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_SWITCHES_H_
