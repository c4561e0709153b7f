#include "tf_ops/cpu/find_rows.h"

#include <algorithm>
#include <type_traits>

#include "tf_ops/core/tuple_row.h"
#include "tf_ops/cpu/move_rows.h"
#include "tf_ops/cpu/read_once.h"

namespace tf_stitch_gather {
namespace {

// The depth of a loop that takes any.
constexpr int kAnyDepth = -1;

}  // namespace

template <typename Index, int kDepth>
int64_t RowFinder::FindIn(const void* tuples, int64_t count,
                          const RowFinder& finder, int64_t base,
                          int64_t* places) {
  const IndexSpace& space = finder.space_;
  const Index* from = static_cast<const Index*>(tuples);
  using Unsigned = std::make_unsigned_t<Index>;
  int64_t bad = 0;
  if constexpr (kDepth == kAnyDepth) {
    Index tuple[kMaxRank];
    for (int64_t i = 0; i < count; ++i, from += space.depth) {
      ReadOnce(from, space.depth, tuple);
      bool fits = space.rows_per_batch > 0;
      uint64_t row = 0;
      for (int k = 0; k < space.depth; ++k) {
        fits &= IndexFits(tuple[k], IndexBound<Index>(space.dims[k]));
        row += IndexStep(tuple[k], static_cast<uint64_t>(space.strides[k]));
      }
      bad += !fits;
      places[i] = fits ? base + static_cast<int64_t>(row) * finder.scale_
                       : finder.bad_place_;
    }
  } else {
    Index tuple[kBlock * kDepth];
    ReadOnce(from, count * kDepth, tuple);
    Unsigned bounds[kDepth];
    uint64_t steps[kDepth];
    for (int k = 0; k < kDepth; ++k) {
      bounds[k] = IndexBound<Index>(space.dims[k]);
      steps[k] = static_cast<uint64_t>(space.strides[k] * finder.scale_);
    }
    const auto fits = [&](int64_t i) {
      bool all = true;
      for (int k = 0; k < kDepth; ++k) {
        all &= IndexFits(tuple[i * kDepth + k], bounds[k]);
      }
      return all;
    };
    // Mostly all fit: then one look at the end tells, and each place is
    // computed as if it did.
    bool all_fit = true;
    for (int64_t i = 0; i < count; ++i) {
      uint64_t place = static_cast<uint64_t>(base);
      for (int k = 0; k < kDepth; ++k) {
        place += IndexStep(tuple[i * kDepth + k], steps[k]);
      }
      all_fit &= fits(i);
      places[i] = static_cast<int64_t>(place);
    }
    for (int64_t i = 0; !all_fit && i < count; ++i) {
      if (!fits(i)) {
        places[i] = finder.bad_place_;
        ++bad;
      }
    }
  }
  return bad;
}

template <typename Index>
RowFinder::FindFn RowFinder::Select(int depth) {
  switch (depth) {
    case 1:
      return &RowFinder::FindIn<Index, 1>;
    case 2:
      return &RowFinder::FindIn<Index, 2>;
    case 3:
      return &RowFinder::FindIn<Index, 3>;
    case 4:
      return &RowFinder::FindIn<Index, 4>;
    default:
      return &RowFinder::FindIn<Index, kAnyDepth>;
  }
}

RowFinder::RowFinder(const Indices& indices, const IndexSpace& space,
                     int64_t base, int64_t scale, int64_t bad_place)
    : indices_(indices),
      space_(space),
      base_(base),
      scale_(scale),
      bad_place_(bad_place) {
  tuple_bytes_ = space.depth * IndexBytes(indices.type);
  find_ = VisitIndexType(indices.type, [&](auto zero) {
    return Select<decltype(zero)>(space.depth);
  });
}

int64_t RowFinder::Find(int64_t begin, int64_t count, int64_t* places) const {
  const char* tuples =
      static_cast<const char*>(indices_.data) + begin * tuple_bytes_;
  if (space_.batches == 1) return find_(tuples, count, *this, base_, places);

  int64_t bad = 0;
  int64_t batch = begin / space_.tuples_per_batch;
  int64_t left = (batch + 1) * space_.tuples_per_batch - begin;
  while (count > 0) {
    const int64_t here = std::min(count, left);
    bad += find_(tuples, here, *this,
                 base_ + batch * space_.rows_per_batch * scale_, places);
    tuples += here * tuple_bytes_;
    places += here;
    count -= here;
    left = space_.tuples_per_batch;
    ++batch;
  }
  return bad;
}

}  // namespace tf_stitch_gather
