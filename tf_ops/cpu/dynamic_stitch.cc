#include "tf_ops/cpu/dynamic_stitch.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>

#include "tf_ops/core/tuple_row.h"
#include "tf_ops/cpu/copy_bytes.h"
#include "tf_ops/cpu/cost_model.h"
#include "tf_ops/cpu/extremes.h"
#include "tf_ops/cpu/fetch_ahead.h"
#include "tf_ops/cpu/huge_pages.h"
#include "tf_ops/cpu/read_once.h"

namespace tf_stitch_gather {
namespace {

// Rows narrower than this are written straight to their places: a map of 8
// bytes a row would cost more than it saves.
constexpr int64_t kMinMappedBytes = 64;

bool UsesMap(const RowMover& mover) {
  return mover.row_bytes > 0 &&
         (!mover.plain_bytes || mover.row_bytes >= kMinMappedBytes);
}

// The pieces of the parts that cover sources [begin, end), as
// visit(part number, first position, positions).
template <typename Visitor>
void VisitParts(const StitchParts& parts, int64_t begin, int64_t end,
                const Visitor& visit) {
  const auto& list = parts.parts();
  auto part = list.begin() +
              PartOfSource(list.data(), static_cast<int>(list.size()), begin);
  for (; part != list.end() && begin < end; ++part) {
    const int64_t position = begin - part->first;
    const int64_t count = std::min(part->count - position, end - begin);
    if (count > 0)
      visit(static_cast<int>(part - list.begin()), position, count);
    begin += std::max<int64_t>(count, 0);
  }
}

// Calls visit(part, position, indices, count, known) for blocks of at most
// kBlock indices of sources [begin, end), each read once. The indices
// [count, known), `ahead` where the part has them, come with the next call, and
// are there for fetching.
template <typename Index, typename Visitor>
void VisitBlocks(const StitchParts& parts, int64_t begin, int64_t end,
                 int64_t ahead, const Visitor& visit) {
  VisitParts(parts, begin, end, [&](int part, int64_t position, int64_t count) {
    const Index* from =
        static_cast<const Index*>(parts.parts()[part].indices) + position;
    ForEachBlockAhead<Index>(
        0, count, ahead,
        [=](int64_t at, int64_t fresh, Index* block) {
          ReadOnceAhead(from + at, fresh, block);
          return true;
        },
        [&](int64_t at, int64_t here, int64_t known, const Index* block) {
          visit(part, position + at, block, here, known);
        });
  });
}

// The first bad source that any thread has met.
class FirstBadSource {
 public:
  void Report(int part, int64_t position, int64_t value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!bad_.found() || part < bad_.part ||
        (part == bad_.part && position < bad_.position)) {
      bad_ = {part, position, value};
    }
  }
  BadSource get() const { return bad_; }

 private:
  std::mutex mutex_;
  BadSource bad_;
};

// Calls visit(i, row) for each index of a block in [0, rows), and reports the
// others to `bad`, which may be null. A visitor that holds what it needs by
// value spares reading it anew after each write: 1.2 ns an index, not 2.
template <typename Index, typename Visitor>
void VisitRows(const Index* block, int64_t count, int64_t rows, int part,
               int64_t position, FirstBadSource* bad, const Visitor& visit) {
  if (AllBelow(block, count, rows)) {
    for (int64_t i = 0; i < count; ++i) {
      visit(i, static_cast<int64_t>(block[i]));
    }
    return;
  }
  const auto bound = IndexBound<Index>(rows);
  for (int64_t i = 0; i < count; ++i) {
    if (static_cast<decltype(bound)>(block[i]) < bound) {
      visit(i, static_cast<int64_t>(block[i]));
    } else if (bad != nullptr) {
      bad->Report(part, position + i, block[i]);
    }
  }
}

// A list that is written at random is fetched ahead from so many bytes on.
// Smaller ones were mostly cleared just before, and are in a cache: 4-byte rows
// took 1.8 ns in place of 1.2. In lists of 8 MB, 5 to 15 % of the time is
// saved.
constexpr int64_t kMinFetchedList = int64_t{2} << 20;

// Fetches the entry, of `bytes`, that an index names, which may be out of
// range.
template <typename Index>
void FetchEntry(const void* list, int64_t bytes, Index index) {
  Fetch(reinterpret_cast<uintptr_t>(list) +
            IndexStep(index, static_cast<uint64_t>(bytes)),
        bytes);
}

// VisitRows, for a visitor that writes entry `row` of `list`, of `bytes` each.
template <typename Index, typename Visitor>
void WriteRows(const Index* block, int64_t count, int64_t known, int64_t rows,
               int part, int64_t position, FirstBadSource* bad,
               const void* list, int64_t bytes, const Visitor& write) {
  const int64_t fetched = rows * bytes >= kMinFetchedList ? known : 0;
  VisitRows(block, count, rows, part, position, bad,
            [=](int64_t i, int64_t row) {
              if (i + kMaxFetchAhead < fetched) {
                FetchEntry(list, bytes, block[i + kMaxFetchAhead]);
              }
              write(i, row);
            });
}

// Reports the indices outside [0, rows).
template <typename Index>
void CheckSources(const StitchParts& parts, int64_t rows, FirstBadSource* bad) {
  VisitBlocks<Index>(parts, 0, parts.sources(), 0,
                     [&](int part, int64_t position, const Index* block,
                         int64_t count, int64_t) {
                       VisitRows(block, count, rows, part, position, bad,
                                 [](int64_t, int64_t) {});
                     });
}

template <typename Index>
int64_t CountRows(const StitchParts& parts, Workers& workers, BadSource* bad) {
  std::mutex mutex;
  Index greatest = -1;
  Index least = 0;
  ParallelFor(
      workers, parts.sources(), cost::kScanNs, [&](int64_t begin, int64_t end) {
        Index high = -1;
        Index low = 0;
        VisitBlocks<Index>(parts, begin, end, 0,
                           [&](int, int64_t, const Index* block, int64_t count,
                               int64_t) { Widen(block, count, &low, &high); });
        const std::lock_guard<std::mutex> lock(mutex);
        greatest = std::max(greatest, high);
        least = std::min(least, low);
      });
  if (least < 0) {
    FirstBadSource first;
    CheckSources<Index>(parts, std::numeric_limits<int64_t>::max(), &first);
    *bad = first.get();
  }
  // No tensor has 2^63 rows; the greatest index alone then stays out of range.
  return std::min(static_cast<int64_t>(greatest),
                  std::numeric_limits<int64_t>::max() - 1) +
         1;
}

// The stitch without a map, on one thread: every source in turn writes its
// row, over zeros. The rows are narrow, so clearing all costs little, and
// serves those that no source names.
template <typename Index>
void StitchStraight(const StitchParts& parts, int64_t rows,
                    const RowMover& mover, Workers& workers, char* merged,
                    FirstBadSource* bad) {
  const int64_t row_bytes = mover.row_bytes;
  ParallelFor(workers, rows * row_bytes, cost::kZeroByteNs,
              [&](int64_t begin, int64_t end) {
                std::memset(merged + begin, 0,
                            static_cast<size_t>(end - begin));
              });
  VisitRow(row_bytes, [&](auto kind) {
    using Row = decltype(kind);
    VisitBlocks<Index>(
        parts, 0, parts.sources(), kMaxFetchAhead,
        [&](int part, int64_t position, const Index* block, int64_t count,
            int64_t known) {
          const char* from = parts.parts()[part].rows + position * row_bytes;
          WriteRows(block, count, known, rows, part, position, bad, merged,
                    row_bytes, [=](int64_t i, int64_t row) {
                      Row::Copy(from + i * row_bytes, row_bytes,
                                merged + row * row_bytes);
                    });
        });
  });
}

// The stitch by a map: the address of each row's last source first, then the
// rows in the order of `merged`, on all threads.
template <typename Index>
void StitchMapped(const StitchParts& parts, int64_t rows, const RowMover& mover,
                  Workers& workers, RowAddress* sources, char* merged,
                  FirstBadSource* bad) {
  const int64_t row_bytes = mover.row_bytes;
  std::memset(sources, 0, static_cast<size_t>(rows) * sizeof(*sources));
  VisitBlocks<Index>(
      parts, 0, parts.sources(), kMaxFetchAhead,
      [&](int part, int64_t position, const Index* block, int64_t count,
          int64_t known) {
        const RowAddress from = reinterpret_cast<RowAddress>(
            parts.parts()[part].rows + position * mover.row_bytes);
        WriteRows(block, count, known, rows, part, position, bad, sources,
                  sizeof(*sources), [=](int64_t i, int64_t row) {
                    sources[row] = from + i * row_bytes;
                  });
      });
  ParallelFor(workers, rows, mover.row_ns, [&](int64_t begin, int64_t end) {
    mover.move(sources + begin, end - begin, end - begin, mover.row_bytes,
               merged + begin * mover.row_bytes);
  });
}

template <typename Index, typename Source>
void RouteGrad(const StitchParts& parts, int64_t rows, const char* grad,
               const RowMover& mover, Workers& workers, Source* winners,
               FirstBadSource* bad) {
  const int64_t row_bytes = mover.row_bytes;
  const RowAddress base = reinterpret_cast<RowAddress>(grad);
  const int64_t fetch_ahead = FetchAhead(row_bytes);
  // Entries of rows that no source names are never read.
  VisitBlocks<Index>(
      parts, 0, parts.sources(), kMaxFetchAhead,
      [&](int part, int64_t position, const Index* block, int64_t count,
          int64_t known) {
        const int64_t first = parts.parts()[part].first + position;
        WriteRows(block, count, known, rows, part, position, bad, winners,
                  sizeof(*winners), [=](int64_t i, int64_t row) {
                    winners[row] = static_cast<Source>(first + i);
                  });
      });
  ParallelFor(workers, parts.sources(), cost::kIndexNs + mover.row_ns,
              [&](int64_t begin, int64_t end) {
                VisitBlocks<Index>(
                    parts, begin, end, fetch_ahead,
                    [&](int part, int64_t position, const Index* block,
                        int64_t count, int64_t known) {
                      const StitchParts::Part& to = parts.parts()[part];
                      const int64_t first = to.first + position;
                      RowAddress from[kBlock];
                      std::fill_n(from, count, kNoRow);
                      VisitRows(
                          block, count, rows, part, position, bad,
                          [=, &from](int64_t i, int64_t row) {
                            if (i + fetch_ahead < known) {
                              const Index ahead = block[i + fetch_ahead];
                              FetchEntry(winners, sizeof(*winners), ahead);
                              FetchEntry(grad, row_bytes, ahead);
                            }
                            const bool won =
                                winners[row] == static_cast<Source>(first + i);
                            from[i] = won ? base + row * row_bytes : kNoRow;
                          });
                      mover.move(from, count, 0, mover.row_bytes,
                                 to.rows + position * mover.row_bytes);
                    });
              });
}

bool FitsNarrowSource(const StitchParts& parts) {
  return parts.sources() <= std::numeric_limits<uint32_t>::max();
}

}  // namespace

int64_t StitchRows(const StitchParts& parts, Workers& workers, BadSource* bad) {
  return VisitIndexType(parts.type(), [&](auto zero) {
    return CountRows<decltype(zero)>(parts, workers, bad);
  });
}

int64_t StitchScratchBytes(int64_t rows, const RowMover& mover) {
  return UsesMap(mover) ? rows * static_cast<int64_t>(sizeof(RowAddress)) : 0;
}

BadSource Stitch(const StitchParts& parts, int64_t rows, const RowMover& mover,
                 bool ignore_bad, Workers& workers, void* scratch,
                 char* merged) {
  if (mover.plain_bytes) AdviseHugePages(merged, rows * mover.row_bytes);
  FirstBadSource bad;
  FirstBadSource* const report = ignore_bad ? nullptr : &bad;
  VisitIndexType(parts.type(), [&](auto zero) {
    using Index = decltype(zero);
    if (UsesMap(mover)) {
      StitchMapped<Index>(parts, rows, mover, workers,
                          static_cast<RowAddress*>(scratch), merged, report);
    } else {
      StitchStraight<Index>(parts, rows, mover, workers, merged, report);
    }
  });
  return bad.get();
}

int64_t StitchGradScratchBytes(const StitchParts& parts, int64_t rows,
                               const RowMover& mover) {
  if (mover.row_bytes == 0) return 0;
  return rows * static_cast<int64_t>(FitsNarrowSource(parts)
                                         ? sizeof(uint32_t)
                                         : sizeof(uint64_t));
}

BadSource StitchGrad(const StitchParts& parts, int64_t rows, const char* grad,
                     const RowMover& mover, bool ignore_bad, Workers& workers,
                     void* scratch) {
  FirstBadSource bad;
  FirstBadSource* const report = ignore_bad ? nullptr : &bad;
  VisitIndexType(parts.type(), [&](auto zero) {
    using Index = decltype(zero);
    if (mover.row_bytes == 0) {
      CheckSources<Index>(parts, rows, report);
    } else if (FitsNarrowSource(parts)) {
      RouteGrad<Index>(parts, rows, grad, mover, workers,
                       static_cast<uint32_t*>(scratch), report);
    } else {
      RouteGrad<Index>(parts, rows, grad, mover, workers,
                       static_cast<uint64_t*>(scratch), report);
    }
  });
  return bad.get();
}

}  // namespace tf_stitch_gather
