// Stands in for a header that TensorFlow's wheel includes but does not hold:
// the declarations that its inline functions name.

#ifndef TF_OPS_XLA_COMPAT_FARMHASH_H_
#define TF_OPS_XLA_COMPAT_FARMHASH_H_

#include <cstddef>
#include <cstdint>
#include <utility>

namespace util {

using uint128_t = std::pair<uint64_t, uint64_t>;

inline uint64_t Uint128Low64(const uint128_t& value) { return value.first; }
inline uint64_t Uint128High64(const uint128_t& value) { return value.second; }

uint32_t Fingerprint32(const char* text, size_t size);
uint64_t Fingerprint64(const char* text, size_t size);
uint128_t Fingerprint128(const char* text, size_t size);

}  // namespace util

#endif  // TF_OPS_XLA_COMPAT_FARMHASH_H_
