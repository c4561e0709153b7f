// scatter_nd on the CPU, and the merged sparse gradient: sums of rows.
//
// The sum of each output element is taken in the order of the tuples, on any
// number of threads, so that the result has the same bits on every run. A type
// brings its arithmetic in a `Sum`:
//   using Value;  using Wide;            // stored, and summed, types
//   static constexpr bool kPlainBytes;   // whether zero is all bytes zero
//   static void Add(const Value&, Wide*);
//   static Value Round(const Wide&);     // where Wide is not Value
// Where Wide is Value, a sum is kept in the output. Where it is wider, a row's
// updates must be summed at one go, and the tuples are sorted by row.

#ifndef TF_OPS_CPU_SCATTER_ND_H_
#define TF_OPS_CPU_SCATTER_ND_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "tf_ops/core/checked_math.h"
#include "tf_ops/core/index_space.h"
#include "tf_ops/core/indices.h"
#include "tf_ops/cpu/cost_model.h"
#include "tf_ops/cpu/fetch_ahead.h"
#include "tf_ops/cpu/find_rows.h"
#include "tf_ops/cpu/huge_pages.h"
#include "tf_ops/cpu/multiversion.h"
#include "tf_ops/cpu/parallel.h"
#include "tf_ops/cpu/sorted_tuples.h"
#include "tf_ops/cpu/unroll.h"

namespace tf_stitch_gather {

template <typename Sum>
inline constexpr bool kSumsInPlace =
    std::is_same_v<typename Sum::Value, typename Sum::Wide>;

// Threads that share rows take at least so much of each: of 64 bytes, the
// memory was read many times over, and two threads were slower than one.
inline constexpr int64_t kMinColumnBytes = 256;

// The ways to divide a scatter among threads.
enum class ScatterWay {
  kInOrder,   // zeros on all threads, then one thread adds
  kByBatch,   // a thread zeroes and adds within its batches
  kByColumn,  // a thread adds its columns of every update
  kSorted,    // a thread sums the groups of its rows
};

inline ScatterWay ChooseScatterWay(const IndexSpace& space, int value_bytes,
                                   bool sums_in_place, int workers) {
  if (!sums_in_place) return ScatterWay::kSorted;
  const int64_t row_bytes = space.slice_elements * value_bytes;
  const double add_ns = static_cast<double>(space.tuples()) *
                        (cost::Tuple(space.depth) + cost::Row(row_bytes));
  if (workers <= 1 || add_ns < kMinParallelNs) return ScatterWay::kInOrder;
  if (space.batches >= int64_t{2} * workers) return ScatterWay::kByBatch;
  if (row_bytes >= 2 * kMinColumnBytes) return ScatterWay::kByColumn;
  return ScatterWay::kInOrder;
}

// The bytes of scratch memory of a scatter: at most 8 for each tuple, or 16
// where rows times tuples is more than 2^64.
inline int64_t ScatterScratchBytes(const IndexSpace& space, ScatterWay way) {
  switch (way) {
    case ScatterWay::kByColumn:
      return space.tuples() * static_cast<int64_t>(sizeof(int64_t));
    case ScatterWay::kSorted:
      return KeyBytes(space);
    default:
      return 0;
  }
}

// Columns [first, last) of rows of `width` elements.
struct Columns {
  int64_t width;
  int64_t first;
  int64_t last;
};

// All columns of rows whose width is known when this is compiled.
template <int64_t kWidth>
struct AllColumns {
  static constexpr int64_t width = kWidth;
  static constexpr int64_t first = 0;
  static constexpr int64_t last = kWidth;
};

// Calls `visit` with all columns of rows of `width`. A row of a width that is
// known is added by a few vector instructions: one of 64 bytes took 2.9 to 5.5
// ns in place of 7.7 to 8.9, and one of 16 bytes 2 to 3 in place of 4 to 5.
template <typename Visitor>
void VisitColumns(int64_t width, const Visitor& visit) {
  switch (width) {
    case 1:
      return visit(AllColumns<1>());
    case 2:
      return visit(AllColumns<2>());
    case 3:
      return visit(AllColumns<3>());
    case 4:
      return visit(AllColumns<4>());
    case 8:
      return visit(AllColumns<8>());
    case 16:
      return visit(AllColumns<16>());
    case 32:
      return visit(AllColumns<32>());
    case 64:
      return visit(AllColumns<64>());
    default:
      return visit(Columns{width, 0, width});
  }
}

// So many rows ahead of an addition its row is fetched. That has just been
// cleared, so it is mostly in some cache; more were slower from there.
template <typename SomeColumns>
constexpr int64_t kAddAhead =
    std::is_same_v<SomeColumns, AllColumns<1>> ? kMaxFetchAhead : 32;

// Adds columns of `count` rows of updates to the rows of output, and fetches
// the rows [count, known). A negative row is skipped.
template <typename Sum, typename SomeColumns>
void AddRows(const int64_t* rows, int64_t count, int64_t known,
             const typename Sum::Value* updates, SomeColumns columns,
             typename Sum::Value* output) {
  using Value = typename Sum::Value;
  constexpr int64_t kAhead = kAddAhead<SomeColumns>;
  const auto fetch = [=](int64_t i) {
    constexpr int64_t kBytes = sizeof(Value);
    if (i >= known) return;
    Fetch(reinterpret_cast<uintptr_t>(output) +
              (rows[i] * columns.width + columns.first) * kBytes,
          (columns.last - columns.first) * kBytes);
  };
  if constexpr (std::is_same_v<SomeColumns, AllColumns<1>>) {
    for (int64_t i = 0; i < count; ++i) {
      fetch(i + kAhead);
      if (rows[i] >= 0) Sum::Add(updates[i], output + rows[i]);
    }
    return;
  }
  RunBestVersion([=] {
    for (int64_t i = 0; i < count; ++i) {
      fetch(i + kAhead);
      if (rows[i] < 0) continue;
      const Value* __restrict from = updates + i * columns.width;
      Value* __restrict to = output + rows[i] * columns.width;
      // GCC would unroll a short loop before it looks for vectors in it.
      TSG_UNROLL(1)
      for (int64_t j = columns.first; j < columns.last; ++j) {
        Sum::Add(from[j], to + j);
      }
    }
  });
}

// Sums the rows of `updates` whose tuples are at [begin, end) of `sorted` into
// the row `to`, rounding once.
template <typename Sum, typename Key>
void SumGroup(const SortedTuples<Key>& sorted, int64_t begin, int64_t end,
              const typename Sum::Value* updates, int64_t width,
              typename Sum::Value* to) {
  const int64_t row_bytes = width * static_cast<int64_t>(sizeof(*updates));
  const int64_t fetch_ahead = FetchAhead(row_bytes);
  // The updates of the groups that follow, too.
  const auto fetch = [&](int64_t i) {
    if (i + fetch_ahead >= sorted.count) return;
    Fetch(reinterpret_cast<uintptr_t>(updates) +
              sorted.tuple(i + fetch_ahead) * row_bytes,
          row_bytes);
  };
  if constexpr (kSumsInPlace<Sum>) {
    fetch(begin);
    std::copy_n(updates + sorted.tuple(begin) * width, width, to);
    for (int64_t i = begin + 1; i < end; ++i) {
      fetch(i);
      const typename Sum::Value* from = updates + sorted.tuple(i) * width;
      for (int64_t j = 0; j < width; ++j) Sum::Add(from[j], to + j);
    }
  } else {
    // Columns whose sums fit the first-level cache beside the updates.
    constexpr int64_t kColumns = 512;
    typename Sum::Wide sums[kColumns];
    for (int64_t first = 0; first < width; first += kColumns) {
      const int64_t columns = std::min(kColumns, width - first);
      std::fill_n(sums, columns, typename Sum::Wide{});
      for (int64_t i = begin; i < end; ++i) {
        if (first == 0) fetch(i);
        const typename Sum::Value* from =
            updates + sorted.tuple(i) * width + first;
        for (int64_t j = 0; j < columns; ++j) Sum::Add(from[j], sums + j);
      }
      for (int64_t j = 0; j < columns; ++j) {
        to[first + j] = Sum::Round(sums[j]);
      }
    }
  }
}

// Zeroes elements [begin, end). Objects come constructed, and need nothing.
template <typename Sum>
void Clear(typename Sum::Value* output, int64_t begin, int64_t end) {
  if constexpr (Sum::kPlainBytes) {
    std::memset(static_cast<void*>(output + begin), 0,
                static_cast<size_t>(end - begin) * sizeof(*output));
  }
}

template <typename Sum>
void ClearAll(int64_t elements, Workers& workers, typename Sum::Value* output) {
  ParallelFor(
      workers, elements, cost::kZeroByteNs * sizeof(*output),
      [&](int64_t begin, int64_t end) { Clear<Sum>(output, begin, end); });
}

// ScatterNd where sums are kept in the output.
template <typename Sum>
int64_t ScatterInPlace(const IndexSpace& space, const Indices& indices,
                       const typename Sum::Value* updates, bool ignore_bad,
                       ScatterWay way, Workers& workers, void* scratch,
                       typename Sum::Value* output) {
  constexpr int64_t kSkip = -1;
  const int64_t width = space.slice_elements;
  const int64_t tuples = space.tuples();
  const RowFinder finder(indices, space, 0, 1, kSkip);
  const double find_ns = cost::Tuple(space.depth);
  FirstBad first_bad;

  // Finds the rows of a block; false when a bad one ends the work.
  const auto find = [&](int64_t at, int64_t count, int64_t* rows) {
    if (finder.Find(at, count, rows) == 0 || ignore_bad) return true;
    first_bad.Report(at + (std::find(rows, rows + count, kSkip) - rows));
    return false;
  };
  // Adds the updates of tuples [begin, end), block by block.
  const auto add = [&](int64_t begin, int64_t end) {
    VisitColumns(width, [&](auto columns) {
      ForEachBlockAhead<int64_t>(
          begin, end, kAddAhead<decltype(columns)>,
          [&](int64_t at, int64_t count, int64_t* rows) {
            return !first_bad.Before(at) && find(at, count, rows);
          },
          [&](int64_t at, int64_t count, int64_t known, const int64_t* rows) {
            AddRows<Sum>(rows, count, known, updates + at * width, columns,
                         output);
          });
    });
  };

  if (way == ScatterWay::kByBatch) {
    const int64_t batch_elements = space.rows_per_batch * width;
    const int64_t row_bytes = width * static_cast<int64_t>(sizeof(*output));
    ParallelFor(
        workers, space.batches,
        static_cast<double>(space.tuples_per_batch) *
            (find_ns + cost::Row(row_bytes)),
        [&](int64_t begin, int64_t end) {
          Clear<Sum>(output, begin * batch_elements, end * batch_elements);
          add(begin * space.tuples_per_batch, end * space.tuples_per_batch);
        });
    return first_bad.tuple();
  }

  ClearAll<Sum>(space.rows() * width, workers, output);
  if (way == ScatterWay::kInOrder) {
    add(0, tuples);
    return first_bad.tuple();
  }

  int64_t* rows = static_cast<int64_t*>(scratch);
  ParallelFor(workers, tuples, find_ns, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kBlock) {
      if (!find(at, std::min<int64_t>(kBlock, end - at), rows + at)) return;
    }
  });
  if (first_bad.tuple() != FirstBad::kNone) return first_bad.tuple();
  // Threads that share a row do not share its cache lines.
  constexpr int64_t kValueBytes = sizeof(*output);
  const int64_t pieces = std::clamp<int64_t>(
      width * kValueBytes / kMinColumnBytes, 1, workers.count());
  const int64_t unit = std::max<int64_t>(kCacheLine / kValueBytes, 1);
  const int64_t columns =
      CeilDivide(CeilDivide(std::max<int64_t>(width, 1), pieces), unit) * unit;
  ParallelFor(workers, CeilDivide(width, columns),
              static_cast<double>(tuples) * cost::Row(columns * kValueBytes),
              [&](int64_t begin, int64_t end) {
                const Columns some = {width, begin * columns,
                                      std::min(end * columns, width)};
                AddRows<Sum>(rows, tuples, tuples, updates, some, output);
              });
  return FirstBad::kNone;
}

// ScatterNd where a row's updates are summed at one go.
template <typename Sum>
int64_t ScatterSorted(const IndexSpace& space, const Indices& indices,
                      const typename Sum::Value* updates, bool ignore_bad,
                      Workers& workers, void* scratch,
                      typename Sum::Value* output) {
  const int64_t width = space.slice_elements;
  const int64_t row_bytes = width * static_cast<int64_t>(sizeof(*output));
  ClearAll<Sum>(space.rows() * width, workers, output);
  return VisitSortedTuples(space, [&](auto sorted) {
    const int64_t bad =
        SortTuples(space, indices, ignore_bad, workers, scratch, &sorted);
    if (bad != FirstBad::kNone) return bad;
    ParallelFor(workers, sorted.count, cost::Row(row_bytes),
                [&](int64_t from, int64_t to) {
                  sorted.VisitGroups(from, to, [&](int64_t begin, int64_t end) {
                    SumGroup<Sum>(sorted, begin, end, updates, width,
                                  output + sorted.row(begin) * width);
                  });
                });
    return bad;
  });
}

// Adds row t of `updates` to the row of `output` that tuple t of `indices`
// names. Every element of `output` is written. Tuples out of range are skipped
// if `ignore_bad`; else the number of the first one is returned, and
// FirstBad::kNone where there is none. `scratch` holds ScatterScratchBytes.
template <typename Sum>
int64_t ScatterNd(const IndexSpace& space, const Indices& indices,
                  const typename Sum::Value* updates, bool ignore_bad,
                  ScatterWay way, Workers& workers, void* scratch,
                  typename Sum::Value* output) {
  if constexpr (Sum::kPlainBytes) {
    AdviseHugePages(output, space.rows() * space.slice_elements *
                                static_cast<int64_t>(sizeof(*output)));
  }
  if constexpr (kSumsInPlace<Sum>) {
    return ScatterInPlace<Sum>(space, indices, updates, ignore_bad, way,
                               workers, scratch, output);
  } else {
    return ScatterSorted<Sum>(space, indices, updates, ignore_bad, workers,
                              scratch, output);
  }
}

// The rows that sorted tuples name, each once, in ascending order: how many
// there are, and the sums of their updates.
class MergedRows {
 public:
  template <typename Key>
  MergedRows(const SortedTuples<Key>& sorted, Workers& workers) {
    // Pieces of equal length; firsts_[p] is the number of rows before piece p.
    piece_ = std::max<int64_t>(CeilDivide(sorted.count, kPieces), 1);
    std::fill(firsts_, firsts_ + kPieces + 1, 0);
    ParallelFor(workers, kPieces, static_cast<double>(piece_),
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) {
                    int64_t rows = 0;
                    Visit(sorted, p, [&](int64_t, int64_t) { ++rows; });
                    firsts_[p + 1] = rows;
                  }
                });
    std::partial_sum(firsts_, firsts_ + kPieces + 1, firsts_);
  }

  int64_t count() const { return firsts_[kPieces]; }

  // Writes the count() rows, and the sums of the rows of `updates`.
  template <typename Sum, typename Key>
  void Write(const SortedTuples<Key>& sorted,
             const typename Sum::Value* updates, int64_t width,
             Workers& workers, int64_t* rows,
             typename Sum::Value* values) const {
    const int64_t row_bytes = width * static_cast<int64_t>(sizeof(*values));
    ParallelFor(workers, kPieces,
                static_cast<double>(piece_) * cost::Row(row_bytes),
                [&](int64_t begin, int64_t end) {
                  int64_t row = firsts_[begin];
                  for (int64_t p = begin; p < end; ++p) {
                    Visit(sorted, p, [&](int64_t from, int64_t to) {
                      rows[row] = sorted.row(from);
                      SumGroup<Sum>(sorted, from, to, updates, width,
                                    values + row * width);
                      ++row;
                    });
                  }
                });
  }

 private:
  static constexpr int64_t kPieces = 64;

  template <typename Key, typename Visitor>
  void Visit(const SortedTuples<Key>& sorted, int64_t piece,
             const Visitor& visit) const {
    sorted.VisitGroups(std::min(piece * piece_, sorted.count),
                       std::min((piece + 1) * piece_, sorted.count), visit);
  }

  int64_t piece_;
  int64_t firsts_[kPieces + 1];
};

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_SCATTER_ND_H_
