// Tuples in the order of the rows they name: what is needed to sum all the
// updates of one row at once.

#ifndef TF_OPS_CPU_SORTED_TUPLES_H_
#define TF_OPS_CPU_SORTED_TUPLES_H_

#include <algorithm>
#include <cstdint>

#include "tf_ops/core/index_space.h"
#include "tf_ops/core/indices.h"
#include "tf_ops/core/row_key.h"
#include "tf_ops/cpu/cost_model.h"
#include "tf_ops/cpu/find_rows.h"
#include "tf_ops/cpu/move_rows.h"
#include "tf_ops/cpu/parallel.h"

namespace tf_stitch_gather {

// The row keys of tuples, sorted.
template <typename Key>
struct SortedTuples {
  const Key* keys;
  int64_t count;  // tuples in range; the others are left out
  int tuple_bits;

  int64_t row(int64_t i) const { return RowOfKey(keys[i], tuple_bits); }
  int64_t tuple(int64_t i) const { return TupleOfKey(keys[i], tuple_bits); }

  // Calls `visit(begin, end)` for each group of equal rows that begins in
  // [from, to); ranges that cover [0, count) thus visit each group once.
  template <typename Visitor>
  void VisitGroups(int64_t from, int64_t to, const Visitor& visit) const {
    int64_t begin = from;
    if (begin > 0) {
      while (begin < to && row(begin) == row(begin - 1)) ++begin;
    }
    while (begin < to) {
      int64_t end = begin + 1;
      while (end < count && row(end) == row(begin)) ++end;
      visit(begin, end);
      begin = end;
    }
  }
};

using NarrowKey = uint64_t;
using WideKey = unsigned __int128;

inline int64_t KeyBytes(const IndexSpace& space) {
  return space.tuples() * static_cast<int64_t>(FitsNarrowKey(space)
                                                   ? sizeof(NarrowKey)
                                                   : sizeof(WideKey));
}

// Sorts in place, on all workers. std::nth_element cuts the keys into one
// piece a worker, std::sort does the rest.
template <typename Key>
void ParallelSort(Key* keys, int64_t count, Workers& workers) {
  const double ns = cost::Sort(count);
  int64_t pieces = 1;
  while (pieces < workers.count() && ns / pieces > kMinParallelNs) pieces *= 2;
  const auto cut = [&](int64_t piece) { return keys + count * piece / pieces; };
  for (int64_t width = pieces; width > 1; width /= 2) {
    ParallelFor(workers, pieces / width,
                cost::kSelectNs * static_cast<double>(count) * width / pieces,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    std::nth_element(cut(i * width), cut(i * width + width / 2),
                                     cut((i + 1) * width));
                  }
                });
  }
  ParallelFor(workers, pieces, ns / static_cast<double>(pieces),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  std::sort(cut(i), cut(i + 1));
                }
              });
}

// Fills `sorted` from the tuples of `indices`, using the `scratch` of KeyBytes
// bytes. Returns the number of the first tuple out of range when there is one
// and `ignore_bad` is false, and else FirstBad::kNone.
template <typename Key>
int64_t SortTuples(const IndexSpace& space, const Indices& indices,
                   bool ignore_bad, Workers& workers, void* scratch,
                   SortedTuples<Key>* sorted) {
  Key* keys = static_cast<Key*>(scratch);
  const int64_t beyond = space.rows();  // sorts behind every row
  const int tuple_bits = TupleBits(space);
  const RowFinder finder(indices, space, 0, 1, beyond);
  FirstBad first_bad;
  std::atomic<int64_t> bad_count{0};
  ParallelFor(workers, space.tuples(), cost::Tuple(space.depth),
              [&](int64_t begin, int64_t end) {
                int64_t rows[kBlock];
                for (int64_t at = begin; at < end; at += kBlock) {
                  const int64_t count = std::min<int64_t>(kBlock, end - at);
                  const int64_t bad = finder.Find(at, count, rows);
                  if (bad > 0) {
                    bad_count += bad;
                    if (!ignore_bad) {
                      first_bad.Report(
                          at + (std::find(rows, rows + count, beyond) - rows));
                      return;
                    }
                  }
                  for (int64_t i = 0; i < count; ++i) {
                    keys[at + i] = MakeRowKey<Key>(rows[i], at + i, tuple_bits);
                  }
                }
              });
  if (first_bad.tuple() != FirstBad::kNone) return first_bad.tuple();
  ParallelSort(keys, space.tuples(), workers);
  *sorted = {keys, space.tuples() - bad_count, tuple_bits};
  return FirstBad::kNone;
}

// Calls `visit` with a SortedTuples of the key type that fits.
template <typename Visitor>
auto VisitSortedTuples(const IndexSpace& space, const Visitor& visit) {
  if (FitsNarrowKey(space)) return visit(SortedTuples<NarrowKey>());
  return visit(SortedTuples<WideKey>());
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_SORTED_TUPLES_H_
