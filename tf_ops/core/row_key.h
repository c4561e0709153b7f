// Keys that hold a row in their upper bits and the number of a tuple in their
// lower ones, so that sorting them keeps the tuples of a row in order.

#ifndef TF_OPS_CORE_ROW_KEY_H_
#define TF_OPS_CORE_ROW_KEY_H_

#include <cstdint>

#include "tf_ops/core/host_device.h"
#include "tf_ops/core/index_space.h"

namespace tf_stitch_gather {

// The bits that tell `values` values apart.
inline int BitsFor(uint64_t values) {
  int bits = 0;
  while (bits < 63 && (uint64_t{1} << bits) < values) ++bits;
  return bits;
}

inline int TupleBits(const IndexSpace& space) {
  return BitsFor(static_cast<uint64_t>(space.tuples()));
}

// Of a row, or of rows(), which stands for tuples out of range and sorts
// behind every row.
inline int RowBits(const IndexSpace& space) {
  return BitsFor(static_cast<uint64_t>(space.rows()) + 1);
}

// Whether row and tuple fit a 64-bit key.
inline bool FitsNarrowKey(const IndexSpace& space) {
  return RowBits(space) + TupleBits(space) <= 64;
}

template <typename Key>
TSG_HOST_DEVICE inline Key MakeRowKey(int64_t row, int64_t tuple,
                                      int tuple_bits) {
  return static_cast<Key>(row) << tuple_bits | static_cast<Key>(tuple);
}

template <typename Key>
TSG_HOST_DEVICE inline int64_t RowOfKey(Key key, int tuple_bits) {
  return static_cast<int64_t>(key >> tuple_bits);
}

template <typename Key>
TSG_HOST_DEVICE inline int64_t TupleOfKey(Key key, int tuple_bits) {
  return static_cast<int64_t>(key & ((Key{1} << tuple_bits) - 1));
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_ROW_KEY_H_
