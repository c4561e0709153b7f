// Moving rows: the one loop that gather, stitch and their gradients share.

#ifndef TF_OPS_CPU_MOVE_ROWS_H_
#define TF_OPS_CPU_MOVE_ROWS_H_

#include <cstdint>

#include "tf_ops/cpu/cost_model.h"

namespace tf_stitch_gather {

// The address of a row, as a number, so that it can be computed as one; kNoRow
// stands for a row of zeros (empty strings, default variants).
using RowAddress = int64_t;
inline constexpr RowAddress kNoRow = 0;
static_assert(sizeof(const char*) == sizeof(RowAddress));

// Writes `count` consecutive rows of `row_bytes` each from `dst` on: row i is
// a copy of the row at sources[i]. The sources [count, known) are those of the
// rows that come next; they are fetched.
using MoveRowsFn = void (*)(const RowAddress* sources, int64_t count,
                            int64_t known, int64_t row_bytes, char* dst);

// How one type's rows of one size are moved.
struct RowMover {
  MoveRowsFn move;      // where any source may be kNoRow
  MoveRowsFn move_all;  // where none is
  int64_t row_bytes;    // in memory, objects included
  double row_ns;        // the cost of one row
  bool plain_bytes;     // whether a row may be copied by its bytes
};

// For types that are their bytes; the loop's copy has a width that is fixed
// at compile time for every row of up to 256 bytes. `rows` are written in all:
// an output that is large goes past the caches.
RowMover ByteRowMover(int64_t row_bytes, int64_t rows);

// For types that need their own copy: `T` has a default constructor and copy
// assignment, and dst holds constructed objects.
template <typename T>
RowMover ObjectRowMover(int64_t slice_elements) {
  RowMover mover;
  mover.move = [](const RowAddress* sources, int64_t count, int64_t /*known*/,
                  int64_t row_bytes, char* dst) {
    const int64_t elements = row_bytes / static_cast<int64_t>(sizeof(T));
    T* to = reinterpret_cast<T*>(dst);
    for (int64_t i = 0; i < count; ++i, to += elements) {
      const T* from = reinterpret_cast<const T*>(sources[i]);
      for (int64_t j = 0; j < elements; ++j) {
        if (from != nullptr) {
          to[j] = from[j];
        } else {
          to[j] = T();
        }
      }
    }
  };
  mover.move_all = mover.move;
  mover.row_bytes = slice_elements * static_cast<int64_t>(sizeof(T));
  mover.row_ns = cost::kObjectNs * static_cast<double>(slice_elements);
  mover.plain_bytes = false;
  return mover;
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_MOVE_ROWS_H_
