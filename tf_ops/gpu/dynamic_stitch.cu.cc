#include "tf_ops/gpu/dynamic_stitch.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tf_ops/core/tuple_row.h"
#include "tf_ops/gpu/memory.cu.h"
#include "tf_ops/gpu/move_rows.cu.h"

namespace tf_stitch_gather {
namespace {

using Part = StitchParts::Part;

// The parts in device memory.
struct PartTable {
  PartTable(const StitchParts& stitch_parts, const void* table)
      : parts(static_cast<const Part*>(table)),
        count(static_cast<int>(stitch_parts.parts().size())) {}

  const Part* parts;
  int count;
};

// Walks sources that mostly lie in the same part as the one before.
class PartCursor {
 public:
  TSG_DEVICE explicit PartCursor(const PartTable& table) : table_(table) {}

  TSG_DEVICE const Part& Seek(int64_t source) {
    if (source < part_.first || source >= part_.first + part_.count) {
      part_ = table_.parts[PartOfSource(table_.parts, table_.count, source)];
    }
    return part_;
  }

 private:
  const PartTable& table_;
  Part part_ = {nullptr, nullptr, 0, 0};
};

// Writes parts into the table out of the kernel's own parameters, so that no
// copy from host memory has to be waited for.
struct UploadParts {
  static constexpr int kParts = 120;  // within 4 KB of parameters

  TSG_DEVICE void operator()(int64_t i) const { table[i] = parts[i]; }

  Part* table;
  Part parts[kParts];
};

// Calls visit(part, source) for every source: eight a thread, neighbours on
// neighbouring threads.
inline constexpr int kSourcesPerThread = 8;
inline constexpr int64_t kSourcesPerTile =
    int64_t{kThreads} * kSourcesPerThread;

template <typename Visit>
TSG_DEVICE void VisitSources(const PartTable& table, int64_t sources,
                             int64_t tile, int thread, const Visit& visit) {
  PartCursor cursor(table);
  for (int k = 0; k < kSourcesPerThread; ++k) {
    const int64_t source = tile * kSourcesPerTile + k * kThreads + thread;
    if (source < sources) visit(cursor.Seek(source), source);
  }
}

template <typename Index>
TSG_DEVICE Index IndexOf(const Part& part, int64_t source) {
  return ReadIndex<Index>(part.indices, source - part.first);
}

// A tile's greatest index, reduced in shared memory, goes to the report by one
// atomic operation; negative indices are rare and report themselves.
template <typename Index>
struct FindGreatest {
  struct Shared {
    int64_t greatest[kThreads];
  };

  TSG_DEVICE void operator()(const Block& block, int64_t tile,
                             Shared& shared) const {
    block.ForEachThread([&](int thread) {
      int64_t greatest = -1;
      VisitSources(
          table, sources, tile, thread, [&](const Part& part, int64_t source) {
            const int64_t index = IndexOf<Index>(part, source);
            if (index < 0) {
              AtomicMin(&report->bad_source, static_cast<uint64_t>(source));
            } else if (index > greatest) {
              greatest = index;
            }
          });
      shared.greatest[thread] = greatest;
    });
    for (int half = kThreads / 2; half > 0; half /= 2) {
      block.ForEach(half, [&](int i) {
        const int64_t other = shared.greatest[i + half];
        if (other > shared.greatest[i]) shared.greatest[i] = other;
      });
    }
    block.ForEach(1,
                  [&](int) { AtomicMax(&report->value, shared.greatest[0]); });
  }

  PartTable table;
  int64_t sources;
  StitchReport* report;
};

// One thread: puts the index of a bad source into the report.
template <typename Index>
struct DescribeSource {
  TSG_DEVICE void operator()(int64_t) const {
    if (report->bad_source == kNoBadIndex) return;
    const int64_t source = static_cast<int64_t>(report->bad_source);
    report->value = IndexOf<Index>(PartCursor(table).Seek(source), source);
  }

  PartTable table;
  StitchReport* report;
};

// The map from rows to their winners holds numbers of sources plus 1, and 0
// for a row that none names; the greatest number wins, as StitchParts says.
template <typename Winner>
TSG_DEVICE Winner ToWinner(int64_t source) {
  return static_cast<Winner>(source + 1);
}

template <typename Index, typename Winner>
struct FindWinners {
  struct Shared {};

  TSG_DEVICE void operator()(const Block& block, int64_t tile, Shared&) const {
    block.ForEachThread([&](int thread) {
      VisitSources(
          table, sources, tile, thread, [&](const Part& part, int64_t source) {
            const Index index = IndexOf<Index>(part, source);
            if (IndexFits(index, IndexBound<Index>(rows))) {
              if (winners != nullptr) {
                AtomicMax(winners + index, ToWinner<Winner>(source));
              }
            } else if (report != nullptr) {
              AtomicMin(&report->bad_source, static_cast<uint64_t>(source));
            }
          });
    });
  }

  PartTable table;
  int64_t sources;
  int64_t rows;
  Winner* winners;  // null: only the indices are checked
  StitchReport* report;
};

// From a row of `merged` to the data that won it.
template <typename Winner>
struct StitchRouter {
  TSG_DEVICE Route operator()(int64_t row) const {
    Route route = {nullptr, merged + row * row_bytes};
    const Winner winner = winners[row];
    if (winner != 0) {
      const int64_t source = static_cast<int64_t>(winner) - 1;
      const Part& part =
          table.parts[PartOfSource(table.parts, table.count, source)];
      route.from = part.rows + (source - part.first) * row_bytes;
    }
    return route;
  }

  PartTable table;
  const Winner* winners;
  int64_t row_bytes;
  char* merged;
};

// From the gradient of a source to the row of `grad` that it won.
template <typename Index, typename Winner>
struct StitchGradRouter {
  TSG_DEVICE Route operator()(int64_t source) const {
    const Part& part =
        table.parts[PartOfSource(table.parts, table.count, source)];
    Route route = {nullptr, part.rows + (source - part.first) * row_bytes};
    const Index index = IndexOf<Index>(part, source);
    if (IndexFits(index, IndexBound<Index>(rows)) &&
        winners[index] == ToWinner<Winner>(source)) {
      route.from = grad + static_cast<int64_t>(index) * row_bytes;
    }
    return route;
  }

  PartTable table;
  int64_t rows;
  const Winner* winners;
  int64_t row_bytes;
  const char* grad;
};

bool FitsNarrowWinner(const StitchParts& parts) {
  return parts.sources() < std::numeric_limits<uint32_t>::max();
}

// Calls `visit` with an Index and a Winner.
template <typename Visitor>
Status VisitTypes(const StitchParts& parts, const Visitor& visit) {
  // A stitch has no int16 indices.
  if (parts.type() == IndexType::kInt32) {
    if (FitsNarrowWinner(parts)) return visit(int32_t{}, uint32_t{});
    return visit(int32_t{}, uint64_t{});
  }
  if (FitsNarrowWinner(parts)) return visit(int64_t{}, uint32_t{});
  return visit(int64_t{}, uint64_t{});
}

Status EmptyReport(const GpuStream& stream, StitchReport* report) {
  static_assert(static_cast<int64_t>(kNoBadIndex) == -1);
  if (report == nullptr) return {};
  return GpuFill(stream, report, kEmptyReportByte, sizeof(*report));
}

template <typename Index>
Status Describe(const GpuStream& stream, const PartTable& table,
                StitchReport* report) {
  if (report == nullptr) return {};
  return LaunchItems(stream, 1, DescribeSource<Index>{table, report});
}

// Fills the map of `rows` winners, if there is one, and the report.
template <typename Index, typename Winner>
Status MapWinners(const GpuStream& stream, const StitchParts& parts,
                  const PartTable& table, int64_t rows, Winner* winners,
                  StitchReport* report) {
  Status status = EmptyReport(stream, report);
  if (status.ok() && winners != nullptr) {
    status = GpuFill(stream, winners, 0,
                     rows * static_cast<int64_t>(sizeof(Winner)));
  }
  if (!status.ok() || (winners == nullptr && report == nullptr)) return status;
  status = LaunchTiles(stream, CeilDivide(parts.sources(), kSourcesPerTile),
                       FindWinners<Index, Winner>{table, parts.sources(), rows,
                                                  winners, report});
  if (!status.ok()) return status;
  return Describe<Index>(stream, table, report);
}

// The address bits of the rows of all parts.
uintptr_t RowBits(const StitchParts& parts) {
  uintptr_t bits = 0;
  for (const Part& part : parts.parts()) bits |= AddressBits(part.rows);
  return bits;
}

}  // namespace

BadSource ToBadSource(const StitchParts& parts, const StitchReport& report) {
  BadSource bad;
  if (report.bad_source == kNoBadIndex) return bad;
  const int64_t source = static_cast<int64_t>(report.bad_source);
  const auto& list = parts.parts();
  bad.part = PartOfSource(list.data(), static_cast<int>(list.size()), source);
  bad.position = source - list[bad.part].first;
  bad.value = report.value;
  return bad;
}

int64_t GpuStitchTableBytes(const StitchParts& parts) {
  return static_cast<int64_t>(parts.parts().size() * sizeof(Part));
}

Status GpuUploadParts(const GpuStream& stream, const StitchParts& parts,
                      void* table) {
  const auto& list = parts.parts();
  UploadParts upload = {};
  for (size_t first = 0; first < list.size(); first += UploadParts::kParts) {
    const size_t count =
        std::min<size_t>(UploadParts::kParts, list.size() - first);
    upload.table = static_cast<Part*>(table) + first;
    std::copy_n(list.begin() + first, count, upload.parts);
    const Status status =
        LaunchItems(stream, static_cast<int64_t>(count), upload);
    if (!status.ok()) return status;
  }
  return {};
}

Status GpuStitchRows(const GpuStream& stream, const StitchParts& parts,
                     const void* table, StitchReport* report) {
  Status status = EmptyReport(stream, report);
  if (!status.ok()) return status;
  const PartTable on_device(parts, table);
  return VisitTypes(parts, [&](auto index, auto) -> Status {
    using Index = decltype(index);
    const Status launched =
        LaunchTiles(stream, CeilDivide(parts.sources(), kSourcesPerTile),
                    FindGreatest<Index>{on_device, parts.sources(), report});
    if (!launched.ok()) return launched;
    return Describe<Index>(stream, on_device, report);
  });
}

int64_t GpuStitchScratchBytes(const StitchParts& parts, int64_t rows,
                              int64_t row_bytes) {
  if (row_bytes == 0) return 0;
  return rows * static_cast<int64_t>(FitsNarrowWinner(parts)
                                         ? sizeof(uint32_t)
                                         : sizeof(uint64_t));
}

Status GpuStitch(const GpuStream& stream, const StitchParts& parts,
                 const void* table, int64_t rows, int64_t row_bytes,
                 StitchReport* report, void* scratch, char* merged) {
  const PartTable on_device(parts, table);
  return VisitTypes(parts, [&](auto index, auto winner) -> Status {
    using Winner = decltype(winner);
    Winner* winners = row_bytes == 0 ? nullptr : static_cast<Winner*>(scratch);
    const Status mapped = MapWinners<decltype(index)>(stream, parts, on_device,
                                                      rows, winners, report);
    if (!mapped.ok() || row_bytes == 0) return mapped;
    return MoveRows</*kAllWidths=*/true>(
        stream, rows, row_bytes,
        VectorBytes(row_bytes, RowBits(parts) | AddressBits(merged)),
        StitchRouter<Winner>{on_device, winners, row_bytes, merged});
  });
}

Status GpuStitchGrad(const GpuStream& stream, const StitchParts& parts,
                     const void* table, int64_t rows, const char* grad,
                     int64_t row_bytes, StitchReport* report, void* scratch) {
  const PartTable on_device(parts, table);
  return VisitTypes(parts, [&](auto index, auto winner) -> Status {
    using Index = decltype(index);
    using Winner = decltype(winner);
    Winner* winners = row_bytes == 0 ? nullptr : static_cast<Winner*>(scratch);
    const Status mapped =
        MapWinners<Index>(stream, parts, on_device, rows, winners, report);
    if (!mapped.ok() || row_bytes == 0) return mapped;
    return MoveRows</*kAllWidths=*/true>(
        stream, parts.sources(), row_bytes,
        VectorBytes(row_bytes, RowBits(parts) | AddressBits(grad)),
        StitchGradRouter<Index, Winner>{on_device, rows, winners, row_bytes,
                                        grad});
  });
}

}  // namespace tf_stitch_gather
