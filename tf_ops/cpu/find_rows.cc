#include "tf_ops/cpu/find_rows.h"

#include <algorithm>
#include <limits>

#include "tf_ops/core/tuple_row.h"
#include "tf_ops/cpu/fetch_ahead.h"
#include "tf_ops/cpu/read_once.h"
#include "tf_ops/cpu/row_numbers.h"

namespace tf_stitch_gather {
namespace {

// Numbers of rows, and the scale that makes places of them, have 32 bits.
constexpr int64_t kMaxNumber = std::numeric_limits<uint32_t>::max();

// So many indices are read at a time.
constexpr int64_t kReadIndices = int64_t{4} * kBlock;

template <typename Index>
bool ReadNumbers(const void* tuples, int64_t count, const IndexSpace& space,
                 uint32_t* numbers) {
  const Index* from = static_cast<const Index*>(tuples);
  Index block[kReadIndices];
  const int64_t step = kReadIndices / std::max(space.depth, 1);
  for (int64_t at = 0; at < count; at += step) {
    const int64_t here = std::min(step, count - at);
    ReadOnceAhead(from + at * space.depth, here * space.depth, block);
    if (!RowNumbers(block, here, space, numbers + at)) return false;
  }
  return true;
}

// One tuple at a time, each of them in range or not.
template <typename Index>
int64_t FindEach(const void* tuples, int64_t count, const IndexSpace& space,
                 int64_t base, int64_t scale, int64_t bad_place,
                 int64_t* places) {
  const Index* from = static_cast<const Index*>(tuples);
  Index tuple[kMaxRank];
  int64_t bad = 0;
  for (int64_t i = 0; i < count; ++i, from += space.depth) {
    ReadOnce(from, space.depth, tuple);
    bool fits = space.rows_per_batch > 0;
    uint64_t row = 0;
    for (int k = 0; k < space.depth; ++k) {
      fits &= IndexFits(tuple[k], IndexBound<Index>(space.dims[k]));
      row += IndexStep(tuple[k], static_cast<uint64_t>(space.strides[k]));
    }
    bad += !fits;
    places[i] = fits ? base + static_cast<int64_t>(row) * scale : bad_place;
  }
  return bad;
}

}  // namespace

RowFinder::RowFinder(const Indices& indices, const IndexSpace& space,
                     int64_t base, int64_t scale, int64_t bad_place)
    : indices_(indices),
      space_(space),
      base_(base),
      scale_(scale),
      bad_place_(bad_place),
      numbered_(space.rows() > 0 && space.rows() <= kMaxNumber &&
                scale <= kMaxNumber) {
  tuple_bytes_ = space.depth * IndexBytes(indices.type);
  VisitIndexType(indices.type, [&](auto zero) {
    read_numbers_ = &ReadNumbers<decltype(zero)>;
    find_each_ = &FindEach<decltype(zero)>;
  });
}

template <typename Visitor>
bool RowFinder::VisitBatches(int64_t begin, int64_t count,
                             const Visitor& visit) const {
  const char* tuples =
      static_cast<const char*>(indices_.data) + begin * tuple_bytes_;
  if (space_.batches == 1) return visit(tuples, count, 0, 0);

  int64_t batch = begin / space_.tuples_per_batch;
  int64_t left = (batch + 1) * space_.tuples_per_batch - begin;
  for (int64_t at = 0; at < count; ++batch) {
    const int64_t here = std::min(count - at, left);
    if (!visit(tuples + at * tuple_bytes_, here, at,
               batch * space_.rows_per_batch)) {
      return false;
    }
    at += here;
    left = space_.tuples_per_batch;
  }
  return true;
}

bool RowFinder::FindNumbers(int64_t begin, int64_t count,
                            uint32_t* numbers) const {
  if (!numbered_) return false;
  return VisitBatches(
      begin, count,
      [&](const char* tuples, int64_t here, int64_t at, int64_t first_row) {
        if (!read_numbers_(tuples, here, space_, numbers + at)) return false;
        if (first_row > 0) {
          for (int64_t i = at; i < at + here; ++i) {
            numbers[i] += static_cast<uint32_t>(first_row);
          }
        }
        return true;
      });
}

int64_t RowFinder::Find(int64_t begin, int64_t count, int64_t* places) const {
  // Mostly all are in range, and their places are then found sooner.
  uint32_t numbers[kBlock];
  if (FindNumbers(begin, count, numbers)) {
    RowPlaces(numbers, count, base_, static_cast<uint32_t>(scale_), places);
    return 0;
  }
  int64_t bad = 0;
  VisitBatches(
      begin, count,
      [&](const char* tuples, int64_t here, int64_t at, int64_t first_row) {
        bad += find_each_(tuples, here, space_, base_ + first_row * scale_,
                          scale_, bad_place_, places + at);
        return true;
      });
  return bad;
}

}  // namespace tf_stitch_gather
