#include "tf_ops/cpu/move_rows.h"

#include <algorithm>
#include <cstdint>

#include "tf_ops/core/checked_math.h"
#include "tf_ops/cpu/copy_bytes.h"

namespace tf_stitch_gather {
namespace {

// Rows of a cache line and more are fetched ahead by so many rows; narrower
// ones are in flight by themselves, since the processor looks past them.
constexpr int64_t kPrefetchRows = 16;
constexpr int64_t kCacheLine = 64;

// The first lines of a row; the hardware follows from there.
constexpr int64_t kPrefetchLines = 4;

template <typename Row, bool kMayBeNone, bool kWide>
void Move(const RowAddress* sources, int64_t count, int64_t row_bytes,
          char* dst) {
  const int64_t lines =
      std::min(kPrefetchLines, CeilDivide(row_bytes, kCacheLine));
  for (int64_t i = 0; i < count; ++i, dst += row_bytes) {
    if constexpr (kWide) {
      if (i + kPrefetchRows < count) {
        // In numbers: the address may be kNoRow, to which no pointer adds.
        const RowAddress ahead = sources[i + kPrefetchRows];
        for (int64_t line = 0; line < lines; ++line) {
          __builtin_prefetch(
              reinterpret_cast<const void*>(ahead + line * kCacheLine));
        }
      }
    }
    if (kMayBeNone && sources[i] == kNoRow) {
      Row::Clear(row_bytes, dst);
    } else {
      Row::Copy(reinterpret_cast<const char*>(sources[i]), row_bytes, dst);
    }
  }
}

template <bool kMayBeNone>
MoveRowsFn SelectMove(int64_t row_bytes) {
  return VisitRow(row_bytes, [&](auto row) -> MoveRowsFn {
    using Row = decltype(row);
    return row_bytes < kCacheLine ? &Move<Row, kMayBeNone, false>
                                  : &Move<Row, kMayBeNone, true>;
  });
}

}  // namespace

RowMover ByteRowMover(int64_t row_bytes) {
  RowMover mover;
  mover.move = SelectMove<true>(row_bytes);
  mover.move_all = SelectMove<false>(row_bytes);
  mover.row_bytes = row_bytes;
  mover.row_ns = cost::Row(row_bytes);
  mover.plain_bytes = true;
  return mover;
}

}  // namespace tf_stitch_gather
