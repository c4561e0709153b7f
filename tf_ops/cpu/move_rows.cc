#include "tf_ops/cpu/move_rows.h"

#include <algorithm>
#include <cstdint>

#include "tf_ops/cpu/copy_bytes.h"

namespace tf_stitch_gather {
namespace {

// Rows of a cache line and more are fetched ahead by so many rows; narrower
// ones are in flight by themselves, since the processor looks past them.
constexpr int64_t kPrefetchRows = 16;
constexpr int64_t kCacheLine = 64;

// The first lines of a row; the hardware follows from there.
constexpr int64_t kPrefetchLines = 4;

template <typename Row>
void MoveNarrow(const char* const* sources, int64_t count, int64_t row_bytes,
                char* dst) {
  for (int64_t i = 0; i < count; ++i, dst += row_bytes) {
    if (sources[i] != nullptr) {
      Row::Copy(sources[i], row_bytes, dst);
    } else {
      Row::Clear(row_bytes, dst);
    }
  }
}

template <typename Row>
void MoveWide(const char* const* sources, int64_t count, int64_t row_bytes,
              char* dst) {
  const int64_t lines =
      std::min(kPrefetchLines, (row_bytes + kCacheLine - 1) / kCacheLine);
  for (int64_t i = 0; i < count; ++i, dst += row_bytes) {
    if (i + kPrefetchRows < count) {
      const char* ahead = sources[i + kPrefetchRows];
      for (int64_t line = 0; line < lines; ++line) {
        __builtin_prefetch(ahead + line * kCacheLine);
      }
    }
    if (sources[i] != nullptr) {
      Row::Copy(sources[i], row_bytes, dst);
    } else {
      Row::Clear(row_bytes, dst);
    }
  }
}

}  // namespace

RowMover ByteRowMover(int64_t row_bytes) {
  RowMover mover;
  mover.move = VisitRow(row_bytes, [&](auto row) -> MoveRowsFn {
    using Row = decltype(row);
    return row_bytes < kCacheLine ? &MoveNarrow<Row> : &MoveWide<Row>;
  });
  mover.row_bytes = row_bytes;
  mover.row_ns = cost::Row(row_bytes);
  mover.plain_bytes = true;
  return mover;
}

}  // namespace tf_stitch_gather
