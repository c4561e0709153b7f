// Proves that a tensor is the index grid of a batch.

#ifndef TF_OPS_GRAPPLER_MATCH_GRID_H_
#define TF_OPS_GRAPPLER_MATCH_GRID_H_

#include <optional>
#include <string>

#include "tf_ops/grappler/graph_view.h"

namespace tf_stitch_gather {

// The shape of the batch that `grid` lists, or nothing if that is not proven:
// grid[p, ..., :] is the p-th position in the batch, in row-major order, for
// each p, whatever stands between.
std::optional<Sizes> MatchGrid(const GraphView& view, const std::string& grid);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GRAPPLER_MATCH_GRID_H_
