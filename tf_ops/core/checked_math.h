// 64-bit products that say when they do not fit.

#ifndef TF_OPS_CORE_CHECKED_MATH_H_
#define TF_OPS_CORE_CHECKED_MATH_H_

#include <cstdint>

namespace tf_stitch_gather {

// Multiplies non-negative `a` and `b` into `product`; false on overflow.
inline bool MultiplyFits(int64_t a, int64_t b, int64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

// Whether the bytes of so many elements can be counted, whatever their type. Of
// a tensor without elements a slice may have more.
inline bool BytesFit(int64_t elements) {
  constexpr int64_t kMaxElementBytes = 1024;
  int64_t bytes;
  return MultiplyFits(elements, kMaxElementBytes, &bytes);
}

inline int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_CHECKED_MATH_H_
