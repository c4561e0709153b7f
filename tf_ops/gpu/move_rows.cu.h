// Moving rows on the device: the one kernel that gather, stitch and their
// gradients share.

#ifndef TF_OPS_GPU_MOVE_ROWS_CU_H_
#define TF_OPS_GPU_MOVE_ROWS_CU_H_

#include <cstdint>
#include <type_traits>

#include "tf_ops/gpu/launch.cu.h"
#include "tf_ops/gpu/tiles.cu.h"

namespace tf_stitch_gather {

struct alignas(16) Vector16 {
  uint64_t low;
  uint64_t high;
};

// The widest vector that divides rows of `row_bytes` and all addresses, whose
// bits are or'ed together in `addresses`.
inline int VectorBytes(int64_t row_bytes, uintptr_t addresses) {
  const uintptr_t bits = static_cast<uintptr_t>(row_bytes) | addresses;
  for (int bytes = 16; bytes > 1; bytes /= 2) {
    if (bits % bytes == 0) return bytes;
  }
  return 1;
}

inline uintptr_t AddressBits(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

// Where one row comes from and goes to; zeros come from null.
struct Route {
  const char* from;
  char* to;
};

// A router has `Route operator()(int64_t row) const`. It may be called more
// than once for a row.
//
// A tile is up to kTileRows rows of up to kTileUnits vectors in all, or such a
// piece of one wide row. First each thread asks for the routes of every 256th
// row, so that a row's indices are read and multiplied once; then the threads
// move the vectors in row-major order: neighbours move neighbouring vectors,
// narrow rows share a warp and wide ones take many threads. Each thread has
// kInFlight loads under way before it stores.
template <typename Vector, typename Router>
struct MoveWork {
  static constexpr int kInFlight = 4;

  struct Shared {
    Route routes[kTileRows];
  };

  TSG_DEVICE void operator()(const Block& block, int64_t tile,
                             Shared& shared) const {
    const TileRange range(shape, tile);
    block.ForEach(range.rows, [&](int i) {
      shared.routes[i] = router(range.first_row + i);
    });
    const int count = range.rows * range.units;
    const int64_t first_byte =
        range.first_unit * static_cast<int64_t>(sizeof(Vector));
    block.ForEachThread([&](int thread) {
      for (int first = thread; first < count; first += kThreads * kInFlight) {
        Vector vectors[kInFlight];
        Vector* to[kInFlight];
#if defined(__CUDACC__)
#pragma unroll
#endif
        for (int k = 0; k < kInFlight; ++k) {
          const int i = first + k * kThreads;
          to[k] = nullptr;
          if (i < count) {
            const int row = range.RowOf(i);
            const Route route = shared.routes[row];
            const int64_t at =
                first_byte + static_cast<int64_t>(i - row * range.units) *
                                 static_cast<int64_t>(sizeof(Vector));
            to[k] = reinterpret_cast<Vector*>(route.to + at);
            vectors[k] =
                route.from == nullptr
                    ? Vector{}
                    : *reinterpret_cast<const Vector*>(route.from + at);
          }
        }
#if defined(__CUDACC__)
#pragma unroll
#endif
        for (int k = 0; k < kInFlight; ++k) {
          if (to[k] != nullptr) *to[k] = vectors[k];
        }
      }
    });
  }

  Router router;
  TileShape shape;
};

template <typename Vector, typename Router>
Status MoveVectors(const GpuStream& stream, int64_t rows, int64_t row_bytes,
                   const Router& router) {
  const TileShape shape =
      MakeTileShape(rows, row_bytes / static_cast<int64_t>(sizeof(Vector)));
  return LaunchTiles(stream, shape.tiles(),
                     MoveWork<Vector, Router>{router, shape});
}

// Moves `rows` rows along their routes; with row_bytes 0 the router is called
// all the same. `kAllWidths` says whether there is a kernel for each width of
// vectors, or for 1 and 16 bytes only.
template <bool kAllWidths, typename Router>
Status MoveRows(const GpuStream& stream, int64_t rows, int64_t row_bytes,
                int vector_bytes, const Router& router) {
  if (vector_bytes == 16) {
    return MoveVectors<Vector16>(stream, rows, row_bytes, router);
  }
  if constexpr (kAllWidths) {
    switch (vector_bytes) {
      case 8:
        return MoveVectors<uint64_t>(stream, rows, row_bytes, router);
      case 4:
        return MoveVectors<uint32_t>(stream, rows, row_bytes, router);
      case 2:
        return MoveVectors<uint16_t>(stream, rows, row_bytes, router);
      default:
        break;
    }
  }
  return MoveVectors<uint8_t>(stream, rows, row_bytes, router);
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_MOVE_ROWS_CU_H_
