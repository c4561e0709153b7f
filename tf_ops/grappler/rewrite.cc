#include "tf_ops/grappler/rewrite.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tf_ops/grappler/index_grid.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr char kXlaMustCompile[] = "_XlaMustCompile";

template <typename Def>
bool XlaMustCompile(const Def& def) {
  const auto found = def.attr().find(kXlaMustCompile);
  return found != def.attr().end() && found->second.b();
}

void AddCalledFunctions(const AttrValue& value,
                        std::vector<std::string>* names) {
  if (value.has_func()) names->push_back(value.func().name());
  for (const auto& function : value.list().func()) {
    names->push_back(function.name());
  }
}

// The functions that XLA compiles as a whole, and those that they call.
std::unordered_set<std::string> CompiledFunctions(const GraphDef& graph) {
  std::unordered_map<std::string, const FunctionDef*> functions;
  std::vector<std::string> reached;
  const auto reach_from = [&](const NodeDef& node) {
    if (!XlaMustCompile(node) && node.op() != "XlaLaunch") return;
    for (const auto& attr : node.attr()) {
      AddCalledFunctions(attr.second, &reached);
    }
  };
  for (const NodeDef& node : graph.node()) reach_from(node);
  for (const FunctionDef& function : graph.library().function()) {
    const std::string& name = function.signature().name();
    functions[name] = &function;
    if (XlaMustCompile(function)) reached.push_back(name);
    for (const NodeDef& node : function.node_def()) reach_from(node);
  }
  std::unordered_set<std::string> compiled;
  while (!reached.empty()) {
    const std::string name = reached.back();
    reached.pop_back();
    const auto function = functions.find(name);
    if (function == functions.end() || !compiled.insert(name).second) continue;
    for (const NodeDef& node : function->second->node_def()) {
      for (const auto& attr : node.attr()) {
        AddCalledFunctions(attr.second, &reached);
      }
    }
  }
  return compiled;
}

class Rewriter {
 public:
  explicit Rewriter(const RewriteOptions& options) : options_(options) {}

  // Rewrites `nodes`, those of `function` or, with an empty name, of the graph.
  template <typename Nodes>
  void Rewrite(const std::string& function, bool compiled, Nodes* nodes) {
    for (NodeDef& node : *nodes) {
      if (Counterpart(node.op(), options_.direction) == nullptr) continue;
      const std::string op = node.op();
      std::string reason = ReasonOfPlace(node, compiled);
      if (reason.empty()) {
        reason = Convert(options_.direction, options_.device_types, &node);
      }
      Add(reason.empty() ? Outcome::kReplaced : Outcome::kSkipped, function,
          node.name(), op, reason);
    }
  }

  void Add(Outcome::Kind kind, const std::string& function,
           const std::string& node, const std::string& op,
           const std::string& reason) {
    outcomes_.push_back({kind, function, node, op, reason});
  }

  std::vector<Outcome> Finish() { return std::move(outcomes_); }

 private:
  // Why no node here may be ours; empty if it may.
  std::string ReasonOfPlace(const NodeDef& node, bool compiled) const {
    if (options_.direction == Direction::kToBuiltin) return "";
    if (node.attr().contains("_tpu_replicate")) return "it runs on a TPU";
    if (!options_.xla && (compiled || XlaMustCompile(node))) {
      return "XLA compiles it, and does not know our ops";
    }
    return "";
  }

  const RewriteOptions& options_;
  std::vector<Outcome> outcomes_;
};

}  // namespace

std::vector<Outcome> RewriteGraph(const RewriteOptions& options,
                                  GraphDef* graph) {
  Rewriter rewriter(options);
  const std::unordered_set<std::string> compiled = CompiledFunctions(*graph);
  rewriter.Rewrite("", false, graph->mutable_node());
  // A graph without a library is to stay without one.
  for (int k = 0; k < graph->library().function_size(); ++k) {
    FunctionDef& function = *graph->mutable_library()->mutable_function(k);
    const std::string& name = function.signature().name();
    rewriter.Rewrite(name, compiled.count(name) > 0,
                     function.mutable_node_def());
  }
  if (options.direction == Direction::kToOurs) {
    for (const Collapse& collapse :
         CollapseIndexGrids(options.prune, options.fed, graph)) {
      rewriter.Add(Outcome::kCollapsed, collapse.function, collapse.node,
                   collapse.op, "");
    }
  }
  return rewriter.Finish();
}

}  // namespace tf_stitch_gather
