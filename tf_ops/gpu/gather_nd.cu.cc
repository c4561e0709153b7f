#include "tf_ops/gpu/gather_nd.h"

#include <cstdint>

#include "tf_ops/gpu/move_rows.cu.h"
#include "tf_ops/gpu/tuple_reader.cu.h"

namespace tf_stitch_gather {
namespace {

template <typename Reader>
struct GatherRouter {
  TSG_DEVICE Route operator()(int64_t tuple) const {
    const int64_t row = reader.Row(tuple);
    if (row < 0 && report != nullptr) {
      AtomicMin(report, static_cast<uint64_t>(tuple));
    }
    return {row < 0 ? nullptr : params + row * row_bytes,
            output + tuple * row_bytes};
  }

  Reader reader;
  const char* params;
  char* output;
  int64_t row_bytes;
  uint64_t* report;
};

// One thread: copies the indices of the tuple that a report tells.
template <typename Index>
struct DescribeTuple {
  TSG_DEVICE void operator()(int64_t) const {
    if (report[0] == kNoBadIndex) return;
    for (int k = 0; k < depth; ++k) {
      report[1 + k] =
          static_cast<uint64_t>(static_cast<int64_t>(ReadIndex<Index>(
              indices, static_cast<int64_t>(report[0]) * depth + k)));
    }
  }

  const void* indices;
  int depth;
  uint64_t* report;
};

}  // namespace

Status GpuDescribeBadTuple(const GpuStream& stream, const Indices& indices,
                           int depth, uint64_t* report) {
  return VisitIndexType(indices.type, [&](auto zero) {
    return LaunchItems(
        stream, 1, DescribeTuple<decltype(zero)>{indices.data, depth, report});
  });
}

Status GpuGatherNd(const GpuStream& stream, const IndexSpace& space,
                   const Indices& indices, const char* params,
                   int64_t row_bytes, uint64_t* report, char* output) {
  if (report != nullptr) {
    const Status status =
        GpuFill(stream, report, kEmptyReportByte, sizeof(*report));
    if (!status.ok()) return status;
  }
  if (space.tuples() == 0 || (row_bytes == 0 && report == nullptr)) return {};
  const int vector_bytes =
      VectorBytes(row_bytes, AddressBits(params) | AddressBits(output));
  const Status status = VisitReader(space, indices, [&](auto reader) {
    using Reader = decltype(reader);
    constexpr bool kAllWidths = Reader::kMaxDepth <= kShallow;
    return MoveRows<kAllWidths>(
        stream, space.tuples(), row_bytes, vector_bytes,
        GatherRouter<Reader>{reader, params, output, row_bytes, report});
  });
  if (!status.ok() || report == nullptr) return status;
  return GpuDescribeBadTuple(stream, indices, space.depth, report);
}

}  // namespace tf_stitch_gather
