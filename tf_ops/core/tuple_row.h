// The arithmetic from a tuple of indices to the row it names, for the loops of
// every device.

#ifndef TF_OPS_CORE_TUPLE_ROW_H_
#define TF_OPS_CORE_TUPLE_ROW_H_

#include <cstdint>
#include <type_traits>

#include "tf_ops/core/host_device.h"

namespace tf_stitch_gather {

// Whether an index is in [0, dim); `bound` is IndexBound<Index>(dim).
template <typename Index>
TSG_HOST_DEVICE inline bool IndexFits(Index index,
                                      std::make_unsigned_t<Index> bound) {
  return static_cast<std::make_unsigned_t<Index>>(index) < bound;
}

// What an index adds to the place of its row. The product of an index out of
// range wraps around and is of no use.
template <typename Index>
TSG_HOST_DEVICE inline uint64_t IndexStep(Index index, uint64_t stride) {
  return static_cast<uint64_t>(static_cast<int64_t>(index)) * stride;
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_TUPLE_ROW_H_
