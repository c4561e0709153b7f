// How the classes of this folder add their operation to a graph. Not for use
// from outside.

#ifndef TF_OPS_CC_OP_BUILDER_H_
#define TF_OPS_CC_OP_BUILDER_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tf_stitch_gather {
namespace ops {
namespace internal {

// Collects the inputs and attributes of one operation and adds it to the graph
// of a scope. The first error goes to the status of the scope; from then on the
// calls do nothing, and Finish returns an operation without a node.
class OpBuilder {
 public:
  OpBuilder(const tensorflow::Scope& scope, std::string type)
      : scope_(scope), type_(std::move(type)) {}

  OpBuilder& Input(const tensorflow::Input& input) {
    if (scope_.ok()) {
      inputs_.emplace_back(tensorflow::ops::AsNodeOut(scope_, input));
    }
    return *this;
  }

  OpBuilder& InputList(const tensorflow::InputList& inputs) {
    NodeOuts list;
    for (const tensorflow::Input& input : inputs) {
      if (!scope_.ok()) return *this;
      list.push_back(tensorflow::ops::AsNodeOut(scope_, input));
    }
    inputs_.emplace_back(std::move(list));
    return *this;
  }

  template <typename Value>
  OpBuilder& Attr(const std::string& name, const Value& value) {
    tensorflow::AttrValue attr;
    tensorflow::SetAttrValue(value, &attr);
    attrs_.emplace_back(name, std::move(attr));
    return *this;
  }

  tensorflow::Operation Finish() const {
    if (!scope_.ok()) return {};
    tensorflow::NodeBuilder builder(scope_.GetUniqueNameForOp(type_), type_);
    for (const auto& input : inputs_) {
      std::visit([&builder](const auto& value) { builder.Input(value); },
                 input);
    }
    for (const auto& [name, value] : attrs_) builder.Attr(name, value);
    scope_.UpdateBuilder(&builder);
    tensorflow::Node* node = nullptr;
    scope_.UpdateStatus(builder.Finalize(scope_.graph(), &node));
    if (!scope_.ok()) return {};
    scope_.UpdateStatus(scope_.DoShapeInference(node));
    if (!scope_.ok()) return {};
    return tensorflow::Operation(node);
  }

 private:
  using NodeOut = tensorflow::NodeBuilder::NodeOut;
  using NodeOuts = std::vector<NodeOut>;

  const tensorflow::Scope& scope_;
  std::string type_;
  std::vector<std::variant<NodeOut, NodeOuts>> inputs_;
  std::vector<std::pair<std::string, tensorflow::AttrValue>> attrs_;
};

// Output `index` of an operation, or an output without a node of one that could
// not be added.
inline tensorflow::Output OutputOf(const tensorflow::Operation& operation,
                                   int index = 0) {
  if (operation.node() == nullptr) return {};
  return {operation, index};
}

// Refuses lists of unequal lengths and empty ones, in the words of TensorFlow's
// Python API, which says them where the C++ API speaks of an attribute N.
inline void CheckStitchLists(const tensorflow::Scope& scope,
                             const std::string& type,
                             const tensorflow::InputList& indices,
                             const tensorflow::InputList& data) {
  const auto parts = indices.end() - indices.begin();
  const auto data_parts = data.end() - data.begin();
  if (data_parts != parts) {
    scope.UpdateStatus(absl::InvalidArgumentError(absl::StrCat(
        "List argument 'data' to '", type, "' Op with length ", data_parts,
        " must match length ", parts, " of argument 'indices'.")));
  } else if (parts == 0) {
    scope.UpdateStatus(absl::InvalidArgumentError(
        absl::StrCat("List argument 'indices' to '", type,
                     "' Op with length 0 shorter than minimum length 1.")));
  }
}

}  // namespace internal
}  // namespace ops
}  // namespace tf_stitch_gather

#endif  // TF_OPS_CC_OP_BUILDER_H_
