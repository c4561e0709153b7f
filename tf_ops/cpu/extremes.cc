#include "tf_ops/cpu/extremes.h"

#include <algorithm>
#include <cstdint>

#include "tf_ops/cpu/multiversion.h"

namespace tf_stitch_gather {
namespace {

// Without AVX2 there is no minimum of 32-bit numbers in a vector: 0.75 ns an
// index instead of 0.1.
template <typename Index>
void WidenAny(const Index* indices, int64_t count, Index* least,
              Index* greatest) {
  RunBestVersion([=] {
    Index low = *least;
    Index high = *greatest;
    for (int64_t i = 0; i < count; ++i) {
      low = std::min(low, indices[i]);
      high = std::max(high, indices[i]);
    }
    *least = low;
    *greatest = high;
  });
}

}  // namespace

void Widen(const int16_t* indices, int64_t count, int16_t* least,
           int16_t* greatest) {
  WidenAny(indices, count, least, greatest);
}

void Widen(const int32_t* indices, int64_t count, int32_t* least,
           int32_t* greatest) {
  WidenAny(indices, count, least, greatest);
}

void Widen(const int64_t* indices, int64_t count, int64_t* least,
           int64_t* greatest) {
  WidenAny(indices, count, least, greatest);
}

}  // namespace tf_stitch_gather
