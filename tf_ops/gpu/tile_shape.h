// How rows are cut into the tiles of a kernel.

#ifndef TF_OPS_GPU_TILE_SHAPE_H_
#define TF_OPS_GPU_TILE_SHAPE_H_

#include <algorithm>
#include <cstdint>

#include "tf_ops/core/checked_math.h"

namespace tf_stitch_gather {

// The most rows and units of a tile. 1024 rows are four a thread, and their
// addresses fill 16 KB; 2048 units of 16 bytes are eight loads a thread.
inline constexpr int kTileRows = 1024;
inline constexpr int kTileUnits = 2048;

// Smaller problems get smaller tiles, down to one unit a thread, so that there
// are about so many: a few for each multiprocessor of a large device.
inline constexpr int kLeastTileUnits = 256;
inline constexpr int64_t kEnoughTiles = 1024;

// Tiles of several whole rows, or of a piece (chunk) of one row. Rows are
// counted in units: vectors to move, or elements to add.
struct TileShape {
  int64_t rows;
  int64_t units_per_row;
  int rows_per_tile;
  int units_per_chunk;
  int64_t chunks;  // of a row

  int64_t tiles() const { return CeilDivide(rows, rows_per_tile) * chunks; }
};

inline TileShape MakeTileShape(int64_t rows, int64_t units_per_row) {
  int64_t units = kTileUnits;
  while (units > kLeastTileUnits &&
         static_cast<double>(rows) * static_cast<double>(units_per_row) <
             static_cast<double>(units * kEnoughTiles)) {
    units /= 2;
  }
  TileShape shape;
  shape.rows = rows;
  shape.units_per_row = units_per_row;
  shape.rows_per_tile = static_cast<int>(std::clamp<int64_t>(
      units / std::max<int64_t>(units_per_row, 1), 1, kTileRows));
  shape.units_per_chunk =
      static_cast<int>(std::min<int64_t>(units_per_row, units));
  shape.chunks =
      units_per_row == 0 ? 1 : CeilDivide(units_per_row, shape.units_per_chunk);
  return shape;
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_TILE_SHAPE_H_
