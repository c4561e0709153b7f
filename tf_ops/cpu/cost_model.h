// What the loops cost, in nanoseconds on one core: the numbers by which work
// is split among threads and one way of doing it is chosen over another.

#ifndef TF_OPS_CPU_COST_MODEL_H_
#define TF_OPS_CPU_COST_MODEL_H_

#include <cmath>
#include <cstdint>

namespace tf_stitch_gather::cost {

// Reading, checking and multiplying one index of a tuple.
inline constexpr double kIndexNs = 0.6;

// Looking at an index for the greatest.
inline constexpr double kScanNs = 0.2;

// Copying or adding a row: a fixed part, and the bytes at the rate of memory.
inline constexpr double kRowNs = 1.0;
inline constexpr double kByteNs = 0.12;

// Writing zeros.
inline constexpr double kZeroByteNs = 0.05;

// Copying a string, a variant or a resource handle.
inline constexpr double kObjectNs = 40.0;

// Sorting, per key and doubling of the keys.
inline constexpr double kSortNs = 1.3;

inline double Sort(int64_t keys) {
  return kSortNs * static_cast<double>(keys) *
         std::log2(static_cast<double>(keys) + 2);
}
inline double Tuple(int depth) { return kIndexNs * (depth + 1); }
inline double Row(int64_t bytes) {
  return kRowNs + kByteNs * static_cast<double>(bytes);
}

}  // namespace tf_stitch_gather::cost

#endif  // TF_OPS_CPU_COST_MODEL_H_
