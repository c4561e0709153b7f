// The least and the greatest of a block of indices: one fast look tells that
// all of them are in range, so that the loops over them need not ask.

#ifndef TF_OPS_CPU_EXTREMES_H_
#define TF_OPS_CPU_EXTREMES_H_

#include <cstdint>

namespace tf_stitch_gather {

// Lowers *least and raises *greatest until they bound the indices.
void Widen(const int16_t* indices, int64_t count, int16_t* least,
           int16_t* greatest);
void Widen(const int32_t* indices, int64_t count, int32_t* least,
           int32_t* greatest);
void Widen(const int64_t* indices, int64_t count, int64_t* least,
           int64_t* greatest);

// Whether each of the indices is in [0, bound).
template <typename Index>
bool AllBelow(const Index* indices, int64_t count, int64_t bound) {
  Index least = 0;
  Index greatest = -1;
  Widen(indices, count, &least, &greatest);
  return least >= 0 && static_cast<int64_t>(greatest) < bound;
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_EXTREMES_H_
