// From index tuples to the places they name, a block at a time.

#ifndef TF_OPS_CPU_FIND_ROWS_H_
#define TF_OPS_CPU_FIND_ROWS_H_

#include <atomic>
#include <cstdint>

#include "tf_ops/core/index_space.h"
#include "tf_ops/core/indices.h"

namespace tf_stitch_gather {

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
  // returns how many are bad. Reads each index once.
  int64_t Find(int64_t begin, int64_t count, int64_t* places) const;

 private:
  // For tuples of one batch, whose rows start at `base`.
  using FindFn = int64_t (*)(const void* tuples, int64_t count,
                             const RowFinder& finder, int64_t base,
                             int64_t* places);
  template <typename Index, int kDepth>
  static int64_t FindIn(const void* tuples, int64_t count,
                        const RowFinder& finder, int64_t base, int64_t* places);
  template <typename Index>
  static FindFn Select(int depth);

  Indices indices_;
  const IndexSpace& space_;
  int64_t base_;
  int64_t scale_;
  int64_t bad_place_;
  int64_t tuple_bytes_;
  FindFn find_;
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
