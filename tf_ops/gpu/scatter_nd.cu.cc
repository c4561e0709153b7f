// The scatter by atomic adds.

#include "tf_ops/gpu/scatter_nd.h"

#include <cstdint>

#include "tf_ops/gpu/gather_nd.h"
#include "tf_ops/gpu/sums.cu.h"
#include "tf_ops/gpu/tiles.cu.h"
#include "tf_ops/gpu/tuple_reader.cu.h"

namespace tf_stitch_gather {
namespace {

template <typename Value>
struct AddOne {
  TSG_DEVICE static void Do(Value value, Value* sum) { AtomicAdd(sum, value); }
};

// One true value makes the sum true: all who write, write the same.
struct SetTrue {
  TSG_DEVICE static void Do(uint8_t value, uint8_t* sum) {
    if (value != 0) {
      DeviceAtomic<uint8_t>(*sum).store(1, cuda::memory_order_relaxed);
    }
  }
};

// A tile is up to kTileRows updates of up to kTileUnits elements in all, or
// such a piece of one wide update. First each thread finds the rows of every
// 256th tuple; then the threads add the elements in row-major order, so that
// neighbours read, and add to, neighbouring elements.
template <typename Value, typename Add, typename Reader>
struct AddWork {
  struct Shared {
    int64_t rows[kTileRows];
  };

  TSG_DEVICE void operator()(const Block& block, int64_t tile,
                             Shared& shared) const {
    const TileRange range(shape, tile);
    block.ForEach(range.rows, [&](int i) {
      const int64_t tuple = range.first_row + i;
      const int64_t row = reader.Row(tuple);
      shared.rows[i] = row;
      if (row < 0 && report != nullptr) {
        AtomicMin(report, static_cast<uint64_t>(tuple));
      }
    });
    block.ForEach(range.rows * range.units, [&](int i) {
      const int at = range.RowOf(i);
      const int64_t row = shared.rows[at];
      const int64_t column = range.first_unit + (i - at * range.units);
      if (row >= 0) {
        Add::Do(updates[(range.first_row + at) * shape.units_per_row + column],
                output + row * shape.units_per_row + column);
      }
    });
  }

  Reader reader;
  TileShape shape;
  const Value* updates;
  uint64_t* report;
  Value* output;
};

template <typename Value, typename Add>
Status Scatter(const GpuStream& stream, const IndexSpace& space,
               const Indices& indices, int64_t width, const void* updates,
               uint64_t* report, void* output) {
  return VisitReader(space, indices, [&](auto reader) {
    const TileShape shape = MakeTileShape(space.tuples(), width);
    return LaunchTiles(stream, shape.tiles(),
                       AddWork<Value, Add, decltype(reader)>{
                           reader, shape, static_cast<const Value*>(updates),
                           report, static_cast<Value*>(output)});
  });
}

}  // namespace

bool AddsAtomically(SumKind kind, bool deterministic) {
  switch (kind) {
    case SumKind::kFloat:
    case SumKind::kDouble:
      return !deterministic;
    case SumKind::kInteger32:
    case SumKind::kInteger64:
    case SumKind::kOr:
      return true;
    default:
      return false;
  }
}

Status GpuScatterNdAtomic(const GpuStream& stream, const IndexSpace& space,
                          const Indices& indices, SumKind kind, int64_t width,
                          const void* updates, uint64_t* report, void* output) {
  Status status =
      GpuFill(stream, output, 0, space.rows() * width * ElementBytes(kind));
  if (status.ok() && report != nullptr) {
    status = GpuFill(stream, report, kEmptyReportByte, sizeof(*report));
  }
  if (!status.ok() || space.tuples() == 0 ||
      (width == 0 && report == nullptr)) {
    return status;
  }
  const auto scatter = [&](auto value, auto add) {
    return Scatter<decltype(value), decltype(add)>(
        stream, space, indices, width, updates, report, output);
  };
  switch (kind) {
    case SumKind::kFloat:
      status = scatter(float{}, AddOne<float>());
      break;
    case SumKind::kDouble:
      status = scatter(double{}, AddOne<double>());
      break;
    case SumKind::kInteger32:
      status = scatter(uint32_t{}, AddOne<uint32_t>());
      break;
    case SumKind::kInteger64:
      status = scatter(uint64_t{}, AddOne<uint64_t>());
      break;
    case SumKind::kOr:
      status = scatter(uint8_t{}, SetTrue());
      break;
    default:
      return Status::Internal("there are no atomic adds for this type");
  }
  if (!status.ok() || report == nullptr) return status;
  return GpuDescribeBadTuple(stream, indices, space.depth, report);
}

}  // namespace tf_stitch_gather
