#include "tf_ops/grappler/prune.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::FunctionDef;
using tensorflow::NodeDef;

std::string NodeOf(const std::string& input) {
  const size_t begin = !input.empty() && input[0] == '^' ? 1 : 0;
  return input.substr(begin, input.find(':') - begin);
}

bool HasEffect(const NodeDef& node) {
  const tensorflow::OpDef* op_def = nullptr;
  return !tensorflow::OpRegistry::Global()
              ->LookUpOpDef(node.op(), &op_def)
              .ok() ||
         op_def->is_stateful();
}

}  // namespace

void Prune(const std::vector<std::string>& tensors, FunctionDef* function) {
  std::unordered_map<std::string, const NodeDef*> nodes;
  std::unordered_map<std::string, int> uses;
  for (const NodeDef& node : function->node_def()) {
    nodes[node.name()] = &node;
    for (const std::string& input : node.input()) ++uses[NodeOf(input)];
  }
  for (const auto& ret : function->ret()) ++uses[NodeOf(ret.second)];
  for (const auto& ret : function->control_ret()) ++uses[NodeOf(ret.second)];

  std::vector<std::string> unused;
  for (const std::string& tensor : tensors) unused.push_back(NodeOf(tensor));
  std::unordered_set<std::string> removed;
  while (!unused.empty()) {
    const std::string name = unused.back();
    unused.pop_back();
    const auto node = nodes.find(name);
    if (node == nodes.end() || uses[name] > 0 || HasEffect(*node->second) ||
        !removed.insert(name).second) {
      continue;
    }
    for (const std::string& input : node->second->input()) {
      if (--uses[NodeOf(input)] == 0) unused.push_back(NodeOf(input));
    }
  }
  if (removed.empty()) return;
  google::protobuf::RepeatedPtrField<NodeDef> kept;
  for (NodeDef& node : *function->mutable_node_def()) {
    if (removed.count(node.name()) == 0) kept.Add()->Swap(&node);
  }
  function->mutable_node_def()->Swap(&kept);
}

}  // namespace tf_stitch_gather
