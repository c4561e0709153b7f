#include "tf_ops/cpu/row_numbers.h"

#include <cstdint>
#include <type_traits>

#include "tf_ops/core/tuple_row.h"
#include "tf_ops/cpu/multiversion.h"

namespace tf_stitch_gather {
namespace {

template <typename Index>
struct Dimension {
  std::make_unsigned_t<Index> bound;
  uint32_t stride;
};

template <typename Index>
Dimension<Index> DimensionOf(const IndexSpace& space, int k) {
  return {IndexBound<Index>(space.dims[k]),
          static_cast<uint32_t>(space.strides[k])};
}

// With AVX2 0.1 ns an index where all are in the cache; 0.3 to 0.8 without.
template <int kDepth, typename Index>
bool NumbersOfDepth(const Index* tuples, int64_t count, const IndexSpace& space,
                    uint32_t* numbers) {
  Dimension<Index> dims[kDepth];
  for (int k = 0; k < kDepth; ++k) dims[k] = DimensionOf<Index>(space, k);
  // Of the indices' width, so that it is a lane of the same vectors.
  std::make_unsigned_t<Index> bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t number = 0;
    for (int k = 0; k < kDepth; ++k) {
      const Index index = tuples[i * kDepth + k];
      bad |= !IndexFits(index, dims[k].bound);
      number += static_cast<uint32_t>(index) * dims[k].stride;
    }
    numbers[i] = number;
  }
  return bad == 0;
}

template <typename Index>
bool NumbersOfAnyDepth(const Index* tuples, int64_t count,
                       const IndexSpace& space, uint32_t* numbers) {
  bool all_fit = true;
  for (int64_t i = 0; i < count; ++i, tuples += space.depth) {
    uint32_t number = 0;
    for (int k = 0; k < space.depth; ++k) {
      const Dimension<Index> dim = DimensionOf<Index>(space, k);
      all_fit &= IndexFits(tuples[k], dim.bound);
      number += static_cast<uint32_t>(tuples[k]) * dim.stride;
    }
    numbers[i] = number;
  }
  return all_fit;
}

template <typename Index>
bool Numbers(const Index* tuples, int64_t count, const IndexSpace& space,
             uint32_t* numbers) {
  switch (space.depth) {
    case 1:
      return NumbersOfDepth<1>(tuples, count, space, numbers);
    case 2:
      return NumbersOfDepth<2>(tuples, count, space, numbers);
    case 3:
      return NumbersOfDepth<3>(tuples, count, space, numbers);
    case 4:
      return NumbersOfDepth<4>(tuples, count, space, numbers);
    default:
      return NumbersOfAnyDepth(tuples, count, space, numbers);
  }
}

template <typename Index>
bool BestNumbers(const Index* tuples, int64_t count, const IndexSpace& space,
                 uint32_t* numbers) {
  bool all_fit;
  RunBestVersion([&] { all_fit = Numbers(tuples, count, space, numbers); });
  return all_fit;
}

}  // namespace

bool RowNumbers(const int16_t* tuples, int64_t count, const IndexSpace& space,
                uint32_t* numbers) {
  return BestNumbers(tuples, count, space, numbers);
}

bool RowNumbers(const int32_t* tuples, int64_t count, const IndexSpace& space,
                uint32_t* numbers) {
  return BestNumbers(tuples, count, space, numbers);
}

bool RowNumbers(const int64_t* tuples, int64_t count, const IndexSpace& space,
                uint32_t* numbers) {
  return BestNumbers(tuples, count, space, numbers);
}

void RowPlaces(const uint32_t* numbers, int64_t count, int64_t base,
               uint32_t scale, int64_t* places) {
  RunBestVersion([=] {
    for (int64_t i = 0; i < count; ++i) {
      places[i] = base + static_cast<int64_t>(uint64_t{numbers[i]} * scale);
    }
  });
}

}  // namespace tf_stitch_gather
