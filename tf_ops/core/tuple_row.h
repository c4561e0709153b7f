// The arithmetic from a tuple of indices to the row it names, for the loops of
// every device.

#ifndef TF_OPS_CORE_TUPLE_ROW_H_
#define TF_OPS_CORE_TUPLE_ROW_H_

#include <cstdint>
#include <type_traits>

#include "tf_ops/core/host_device.h"

namespace tf_stitch_gather {

// Takes one index of a tuple: adds its step to `place`, and says whether the
// index is below `bound`, which comes from IndexBound. The product of an index
// out of range wraps around and is of no use.
template <typename Index>
TSG_HOST_DEVICE inline bool AddIndex(Index index,
                                     std::make_unsigned_t<Index> bound,
                                     uint64_t step, uint64_t* place) {
  *place += static_cast<uint64_t>(static_cast<int64_t>(index)) * step;
  return static_cast<std::make_unsigned_t<Index>>(index) < bound;
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_TUPLE_ROW_H_
