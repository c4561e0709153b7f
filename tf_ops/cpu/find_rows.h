// From index tuples to the places they name, a block at a time.

#ifndef TF_OPS_CPU_FIND_ROWS_H_
#define TF_OPS_CPU_FIND_ROWS_H_

#include <atomic>
#include <cstdint>

#include "tf_ops/core/index_space.h"
#include "tf_ops/core/indices.h"

namespace tf_stitch_gather {

// Indices and sources are handled in blocks of so many, which with their
// scratch stay in the first-level cache.
inline constexpr int kBlock = 512;

// Turns tuples into places: the place of a row is base + row * scale, and
// `bad_place` stands for a tuple that is out of range. With the address of a
// tensor as the base and the bytes of a row as the scale, places are pointers.
class RowFinder {
 public:
  // Keeps references to neither argument's tensor shape, only to the indices'
  // memory and to `space`, which must outlive the finder.
  RowFinder(const Indices& indices, const IndexSpace& space, int64_t base,
            int64_t scale, int64_t bad_place);

  // Writes the places of tuples [begin, begin + count), count <= kBlock, and
  // returns how many are bad. No place comes from more than one read of an
  // index.
  int64_t Find(int64_t begin, int64_t count, int64_t* places) const;

  // Writes the numbers of their rows, if all are in range, and the rows of the
  // space and the scale are fewer than 2^32; else false, and the numbers are of
  // no use.
  bool FindNumbers(int64_t begin, int64_t count, uint32_t* numbers) const;

 private:
  // Calls visit(tuples, count, number of the first one within these, first row
  // of their batch) for the pieces of [begin, begin + count) that are of one
  // batch, until it returns false.
  template <typename Visitor>
  bool VisitBatches(int64_t begin, int64_t count, const Visitor& visit) const;

  Indices indices_;
  const IndexSpace& space_;
  int64_t base_;
  int64_t scale_;
  int64_t bad_place_;
  bool numbered_;
  int64_t tuple_bytes_;
  // For tuples of one batch, in the type of the indices.
  bool (*read_numbers_)(const void* tuples, int64_t count,
                        const IndexSpace& space, uint32_t* numbers);
  int64_t (*find_each_)(const void* tuples, int64_t count,
                        const IndexSpace& space, int64_t base, int64_t scale,
                        int64_t bad_place, int64_t* places);
};

// The first bad tuple that any thread has met; kNone at first.
class FirstBad {
 public:
  static constexpr int64_t kNone = INT64_MAX;

  void Report(int64_t tuple) {
    int64_t seen = tuple_.load(std::memory_order_relaxed);
    while (tuple < seen && !tuple_.compare_exchange_weak(
                               seen, tuple, std::memory_order_relaxed)) {
    }
  }
  // Whether a bad tuple before `tuple` is known, so that the work from there
  // on is in vain.
  bool Before(int64_t tuple) const {
    return tuple_.load(std::memory_order_relaxed) < tuple;
  }
  int64_t tuple() const { return tuple_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> tuple_{kNone};
};

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_FIND_ROWS_H_
