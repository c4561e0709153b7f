#include "tf_ops/grappler/rules.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::NodeDef;
using tensorflow::OpDef;

struct Pair {
  const char* builtin;
  const char* ours;
};

// Inputs and outputs of the two have the same names and order. Of two built-in
// ops for one of ours, the first is the way back.
constexpr Pair kPairs[] = {
    {"DynamicStitch", "MyDynamicStitch"},
    {"ParallelDynamicStitch", "MyDynamicStitch"},
    {"GatherNd", "MyGatherNd"},
    {"ResourceGatherNd", "MyResourceGatherNd"},
    {"ScatterNd", "MyScatterNd"},
};

const OpDef* FindOp(const std::string& op) {
  const OpDef* op_def = nullptr;
  const absl::Status found =
      tensorflow::OpRegistry::Global()->LookUpOpDef(op, &op_def);
  return found.ok() ? op_def : nullptr;
}

bool HasKernel(const std::string& device_type, const NodeDef& node) {
  return tensorflow::FindKernelDef(tensorflow::DeviceType(device_type), node,
                                   nullptr, nullptr)
      .ok();
}

// The types of the devices that `node` may be placed on.
std::set<std::string> DeviceTypes(const NodeDef& node,
                                  const std::set<std::string>& available) {
  tensorflow::DeviceNameUtils::ParsedName device;
  if (tensorflow::DeviceNameUtils::ParseFullName(node.device(), &device) &&
      device.has_type) {
    return {device.type};
  }
  return available;
}

// Gives `node`, of the op `from`, the attributes of `to`.
std::string ConvertAttributes(const OpDef& from, const OpDef& to,
                              NodeDef* node) {
  std::vector<std::string> dropped;
  for (const auto& [name, value] : node->attr()) {
    if (name[0] == '_' || tensorflow::FindAttr(name, to) != nullptr) continue;
    const OpDef::AttrDef* attr = tensorflow::FindAttr(name, from);
    if (attr == nullptr) {
      return absl::StrCat("the attribute ", name, " is unknown");
    }
    if (!tensorflow::AreAttrValuesEqual(value, attr->default_value())) {
      return absl::StrCat(to.name(), " has no attribute ", name);
    }
    dropped.push_back(name);
  }
  for (const std::string& name : dropped) node->mutable_attr()->erase(name);
  return "";
}

}  // namespace

const char* Counterpart(const std::string& op, Direction direction) {
  for (const Pair& pair : kPairs) {
    if (direction == Direction::kToOurs && op == pair.builtin) return pair.ours;
    if (direction == Direction::kToBuiltin && op == pair.ours) {
      return pair.builtin;
    }
  }
  return nullptr;
}

std::string Convert(Direction direction,
                    const std::set<std::string>& device_types, NodeDef* node) {
  const std::string op = Counterpart(node->op(), direction);
  const OpDef* from = FindOp(node->op());
  const OpDef* to = FindOp(op);
  if (from == nullptr || to == nullptr) return "the op is not registered";

  NodeDef converted = *node;
  converted.set_op(op);
  const std::string reason = ConvertAttributes(*from, *to, &converted);
  if (!reason.empty()) return reason;

  // Both with all attributes, as a kernel sees them. A model for an older
  // server must not name an attribute of a built-in op that it does not know.
  NodeDef before = *node;
  NodeDef after = converted;
  tensorflow::AddDefaultsToNodeDef(*from, &before);
  tensorflow::AddDefaultsToNodeDef(*to, &after);
  const absl::Status valid = tensorflow::ValidateNodeDef(after, *to);
  if (!valid.ok()) return std::string(valid.message());
  if (direction == Direction::kToOurs) converted = after;

  for (const std::string& type : DeviceTypes(*node, device_types)) {
    const bool had_kernel = HasKernel(type, before);
    const bool has_kernel = HasKernel(type, after);
    if (had_kernel && !has_kernel) {
      return absl::StrCat(op, " has no kernel for its type on ", type);
    }
    // On a GPU a bad index is zeros by default, and on the CPU an error.
    if (!had_kernel && has_kernel && type != tensorflow::DEVICE_CPU) {
      return absl::StrCat("it would move to ", type);
    }
  }
  *node = converted;
  return "";
}

}  // namespace tf_stitch_gather
