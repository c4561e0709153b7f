// Puts our ops in the place of built-in ones in a whole graph, or back.

#ifndef TF_OPS_GRAPPLER_REWRITE_H_
#define TF_OPS_GRAPPLER_REWRITE_H_

#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tf_ops/grappler/rules.h"

namespace tf_stitch_gather {

// What became of a node that has a counterpart.
struct Outcome {
  enum Kind { kReplaced, kCollapsed, kSkipped };
  Kind kind;
  std::string function;  // empty in the graph itself
  std::string node;
  std::string op;      // before
  std::string reason;  // of kSkipped
};

struct RewriteOptions {
  Direction direction = Direction::kToOurs;
  // Whether XLA knows our ops. If not, functions that it compiles are left.
  bool xla = false;
  // Of the devices for nodes that name none; empty if not known.
  std::set<std::string> device_types;
  // Nodes of the graph whose values are given from outside.
  std::unordered_set<std::string> fed;
  // Whether nodes that an index grid leaves without a use are removed from
  // functions. Grappler and the runtime do that themselves.
  bool prune = false;
};

// Rewrites the nodes of `graph` and of its function library. A node keeps its
// name, inputs, device and attributes. On the way to our ops, a lookup behind
// the index grid of tf.gather_nd(batch_dims=...) becomes one with batch
// dimensions.
std::vector<Outcome> RewriteGraph(const RewriteOptions& options,
                                  tensorflow::GraphDef* graph);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GRAPPLER_REWRITE_H_
