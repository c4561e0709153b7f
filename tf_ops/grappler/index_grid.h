// The index grid of tf.gather_nd(batch_dims=...): the op of TensorFlow has no
// batch dimensions, so Python puts the batch's own position in front of every
// index tuple. Where the graph proves that this is what was put there, a lookup
// or its gradient does without the grid.

#ifndef TF_OPS_GRAPPLER_INDEX_GRID_H_
#define TF_OPS_GRAPPLER_INDEX_GRID_H_

#include <string>
#include <unordered_set>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"

namespace tf_stitch_gather {

// A node that does without its grid now.
struct Collapse {
  std::string function;  // empty in the graph itself
  std::string node;
  std::string op;
};

// Looks at each MyGatherNd and MyScatterNd of the graph and of its functions
// whose indices are a grid joined to other indices:
//
//     grid[p, ..., :] = the p-th position in the batch, of shape [D_0, ...,
//     D_n]
//
// with D_k the dimensions of the params. They take the other indices alone, and
// the params with the batch in one dimension; what they return is the same, be
// it that an index is bad.
//
// `fed` names the nodes of the graph whose values are given from outside. With
// `prune`, nodes of functions that are then without a use are removed.
std::vector<Collapse> CollapseIndexGrids(
    bool prune, const std::unordered_set<std::string>& fed,
    tensorflow::GraphDef* graph);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GRAPPLER_INDEX_GRID_H_
