// The rows and units of a tile, on the device.

#ifndef TF_OPS_GPU_TILES_CU_H_
#define TF_OPS_GPU_TILES_CU_H_

#include <cstdint>

#include "tf_ops/gpu/launch.cu.h"
#include "tf_ops/gpu/tile_shape.h"

namespace tf_stitch_gather {

// What one tile covers: rows [first_row, first_row + rows), and of each the
// units [first_unit, first_unit + units).
struct TileRange {
  TSG_DEVICE TileRange(const TileShape& shape, int64_t tile) {
    int64_t group = tile;
    int64_t chunk = 0;
    if (shape.chunks > 1) {
      group = tile / shape.chunks;
      chunk = tile - group * shape.chunks;
    }
    first_row = group * shape.rows_per_tile;
    const int64_t rows_left = shape.rows - first_row;
    rows = rows_left < shape.rows_per_tile ? static_cast<int>(rows_left)
                                           : shape.rows_per_tile;
    first_unit = chunk * shape.units_per_chunk;
    const int64_t units_left = shape.units_per_row - first_unit;
    units = units_left < shape.units_per_chunk ? static_cast<int>(units_left)
                                               : shape.units_per_chunk;
  }

  // The row, counted from first_row, of unit i of the tile in row-major order.
  TSG_DEVICE int RowOf(int i) const {
    if (units == 1) return i;
    return static_cast<int>(static_cast<unsigned>(i) /
                            static_cast<unsigned>(units));
  }

  int64_t first_row;
  int64_t first_unit;
  int rows;
  int units;
};

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_TILES_CU_H_
