#include "tf_ops/grappler/graph_view.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::NodeDef;

// More than any shape has dimensions, and any computation of one has nodes.
constexpr int kLongestVector = 256;
constexpr int kMostSteps = 5000;

int64_t IntAttr(const NodeDef& node, const char* name) {
  const auto found = node.attr().find(name);
  return found == node.attr().end() ? 0 : found->second.i();
}

bool IsIndexType(const NodeDef& node, const char* name) {
  const auto found = node.attr().find(name);
  if (found == node.attr().end()) return false;
  const tensorflow::DataType type = found->second.type();
  return type == tensorflow::DT_INT16 || type == tensorflow::DT_INT32 ||
         type == tensorflow::DT_INT64;
}

// Numbers that do not fit are cast as wrongly before as after.
bool IsIntegerCast(const NodeDef& node) {
  return node.op() == "Cast" && DataInputs(node) == 1 &&
         IsIndexType(node, "SrcT") && IsIndexType(node, "DstT");
}

std::optional<std::vector<int64_t>> Integers(const tensorflow::Tensor& tensor) {
  const auto copy = [](auto flat) {
    return std::vector<int64_t>(flat.data(), flat.data() + flat.size());
  };
  switch (tensor.dtype()) {
    case tensorflow::DT_INT16:
      return copy(tensor.flat<int16_t>());
    case tensorflow::DT_INT32:
      return copy(tensor.flat<int32_t>());
    case tensorflow::DT_INT64:
      return copy(tensor.flat<int64_t>());
    default:
      return std::nullopt;
  }
}

}  // namespace

bool Same(const Size& a, const Size& b) {
  return a.kind != Size::Kind::kUnknown && a.kind == b.kind &&
         a.value == b.value && a.tensor == b.tensor;
}

Size Product(const Sizes& sizes) {
  if (sizes.size() == 1) return sizes.front();
  int64_t product = 1;
  for (const Size& size : sizes) {
    if (size.kind != Size::Kind::kNumber ||
        __builtin_mul_overflow(product, size.value, &product)) {
      return {};
    }
  }
  return Size::Of(product);
}

int DataInputs(const NodeDef& node) {
  int count = 0;
  for (const std::string& input : node.input()) {
    if (!input.empty() && input[0] != '^') ++count;
  }
  return count;
}

GraphView::GraphView(bool is_function, Nodes* nodes,
                     const std::unordered_set<std::string>& fed,
                     const tensorflow::grappler::GraphProperties& properties)
    : is_function_(is_function),
      nodes_(nodes),
      fed_(fed),
      properties_(properties) {
  for (NodeDef& node : *nodes) by_name_[node.name()] = &node;
}

// "node", "node:1" in a graph; "node:output:1", "argument" in a function.
GraphView::Tensor GraphView::Resolve(const std::string& input) const {
  std::string name = input;
  int64_t output = 0;
  // Longer chains than there are nodes go round in a broken graph.
  for (int step = 0; step <= nodes_->size(); ++step) {
    const std::vector<std::string> parts = absl::StrSplit(name, ':');
    output = 0;
    if (parts.size() > 1 && !absl::SimpleAtoi(parts.back(), &output)) break;
    name = parts[0];
    const auto node = by_name_.find(name);
    if (node == by_name_.end() || node->second->op() != "Identity" ||
        node->second->input_size() == 0 || fed_.count(name) > 0) {
      break;
    }
    name = node->second->input(0);
  }
  return {name, output};
}

const NodeDef* GraphView::Producer(const std::string& input) const {
  const std::string name = Resolve(input).node;
  const auto node = by_name_.find(name);
  if (node == by_name_.end() || fed_.count(name) > 0) return nullptr;
  return node->second;
}

const NodeDef* GraphView::PastCasts(const std::string& input) const {
  const NodeDef* node = Producer(input);
  for (int step = 0; node != nullptr && IsIntegerCast(*node) && step < 4;
       ++step) {
    node = Producer(node->input(0));
  }
  return node;
}

const NodeDef* GraphView::Producer(const std::string& input, const char* op,
                                   int inputs) const {
  const NodeDef* node = PastCasts(input);
  if (node == nullptr || node->op() != op || DataInputs(*node) != inputs) {
    return nullptr;
  }
  return node;
}

const tensorflow::TensorShapeProto* GraphView::Shape(
    const Tensor& tensor) const {
  if (!properties_.HasOutputProperties(tensor.node)) return nullptr;
  const auto& outputs = properties_.GetOutputProperties(tensor.node);
  if (tensor.output >= static_cast<int64_t>(outputs.size())) return nullptr;
  const tensorflow::TensorShapeProto& shape = outputs[tensor.output].shape();
  return shape.unknown_rank() ? nullptr : &shape;
}

std::optional<int64_t> GraphView::Rank(const std::string& input) const {
  const tensorflow::TensorShapeProto* shape = Shape(Resolve(input));
  if (shape == nullptr) return std::nullopt;
  return shape->dim_size();
}

Size GraphView::Dimension(const std::string& input, int64_t k) const {
  const Tensor tensor = Resolve(input);
  const tensorflow::TensorShapeProto* shape = Shape(tensor);
  if (shape != nullptr) {
    if (k >= shape->dim_size()) return {};
    // Grappler numbers unknown dimensions that are the same downward from -2.
    const int64_t size = shape->dim(static_cast<int>(k)).size();
    if (size >= 0) return Size::Of(size);
  }
  return {Size::Kind::kDimension, k,
          absl::StrCat(tensor.node, ":", tensor.output)};
}

std::optional<tensorflow::Tensor> GraphView::Constant(
    const std::string& input) const {
  const NodeDef* node = Producer(input, "Const", 0);
  if (node == nullptr) return std::nullopt;
  const auto value = node->attr().find("value");
  tensorflow::Tensor tensor;
  if (value == node->attr().end() ||
      !tensor.FromProto(value->second.tensor())) {
    return std::nullopt;
  }
  return tensor;
}

std::optional<Sizes> GraphView::Values(const std::string& input) const {
  const NodeDef* node = Producer(input);
  if (node == nullptr || ++steps_ > kMostSteps) return std::nullopt;
  return Compute(*node, Resolve(input).output);
}

Size GraphView::Scalar(const std::string& input) const {
  const std::optional<Sizes> values = Values(input);
  return values && values->size() == 1 ? values->front() : Size();
}

std::optional<Sizes> GraphView::Compute(const NodeDef& node,
                                        int64_t output) const {
  const std::string& op = node.op();
  const int inputs = DataInputs(node);
  if (op == "Const") {
    const std::optional<tensorflow::Tensor> tensor = Constant(node.name());
    if (!tensor || tensor->dims() > 1 ||
        tensor->NumElements() > kLongestVector) {
      return std::nullopt;
    }
    const auto integers = Integers(*tensor);
    if (!integers) return std::nullopt;
    Sizes sizes;
    for (const int64_t value : *integers) sizes.push_back(Size::Of(value));
    return sizes;
  }
  if (inputs == 0) return std::nullopt;
  if (IsIntegerCast(node)) return Values(node.input(0));
  if (op == "Shape") {
    const std::optional<int64_t> rank = Rank(node.input(0));
    if (!rank) return std::nullopt;
    Sizes sizes;
    for (int64_t k = 0; k < *rank; ++k) {
      sizes.push_back(Dimension(node.input(0), k));
    }
    return sizes;
  }
  if (op == "StridedSlice" && inputs == 4) return StridedSlice(node);
  if (op == "Pack" && IntAttr(node, "axis") == 0) {
    return Concatenated(node, inputs);
  }
  if (op == "ConcatV2" && inputs > 1 && Scalar(node.input(inputs - 1)).is(0)) {
    return Concatenated(node, inputs - 1);
  }
  if (op == "ExpandDims" || op == "Reshape") {
    const std::optional<Sizes> values = Values(node.input(0));
    if (values && values->size() == 1) return values;
    return std::nullopt;
  }
  if (op == "Unpack" && IntAttr(node, "axis") == 0) {
    const std::optional<Sizes> values = Values(node.input(0));
    if (values && output < static_cast<int64_t>(values->size())) {
      return Sizes{(*values)[output]};
    }
    return std::nullopt;
  }
  if (op == "Fill" && inputs == 2) {
    const Size count = Scalar(node.input(0));
    if (count.kind != Size::Kind::kNumber || count.value < 0 ||
        count.value > kLongestVector) {
      return std::nullopt;
    }
    return Sizes(count.value, Scalar(node.input(1)));
  }
  if (op == "Size") {
    const Size iota = Iota(node.input(0));
    if (iota.kind != Size::Kind::kUnknown) return Sizes{iota};
    return Rank(node.input(0)) == 1
               ? std::make_optional(Sizes{Dimension(node.input(0), 0)})
               : std::nullopt;
  }
  if (op == "Rank") {
    const std::optional<int64_t> rank = Rank(node.input(0));
    if (rank) return Sizes{Size::Of(*rank)};
    return std::nullopt;
  }
  if (op == "Sub" && inputs == 2) return Sizes{Difference(node)};
  if (op == "Prod" && inputs == 2) {
    const std::optional<Sizes> values = Values(node.input(0));
    return Sizes{values ? Product(*values) : Size()};
  }
  return std::nullopt;
}

std::optional<Sizes> GraphView::Concatenated(const NodeDef& node,
                                             int parts) const {
  Sizes all;
  for (int m = 0; m < parts; ++m) {
    const std::optional<Sizes> values = Values(node.input(m));
    if (!values) return std::nullopt;
    all.insert(all.end(), values->begin(), values->end());
  }
  return all;
}

Size GraphView::Difference(const NodeDef& node) const {
  const Size a = Scalar(node.input(0));
  const Size b = Scalar(node.input(1));
  if (a.kind != Size::Kind::kNumber || b.kind != Size::Kind::kNumber) return {};
  return Size::Of(a.value - b.value);
}

std::optional<Sizes> GraphView::StridedSlice(const NodeDef& node) const {
  const Size first = Scalar(node.input(1));
  const Size last = Scalar(node.input(2));
  const bool whole_begin = IntAttr(node, "begin_mask") == 1;
  const bool whole_end = IntAttr(node, "end_mask") == 1;
  if (!Scalar(node.input(3)).is(1) || IntAttr(node, "ellipsis_mask") != 0 ||
      IntAttr(node, "new_axis_mask") != 0 ||
      (!whole_begin && first.kind != Size::Kind::kNumber) ||
      (!whole_end && last.kind != Size::Kind::kNumber)) {
    return std::nullopt;
  }
  const bool shrink = IntAttr(node, "shrink_axis_mask") == 1;
  int64_t begin = whole_begin ? 0 : first.value;
  int64_t end = last.value;
  std::optional<Sizes> values = Values(node.input(0));
  if (!values) {
    // The leading dimensions of a tensor of unknown rank.
    const NodeDef* shape = Producer(node.input(0), "Shape", 1);
    if (shape == nullptr || begin < 0 || whole_end || end < begin || shrink ||
        end > kLongestVector) {
      return std::nullopt;
    }
    values = Sizes();
    for (int64_t k = 0; k < end; ++k) {
      values->push_back(Dimension(shape->input(0), k));
    }
  }
  const int64_t count = static_cast<int64_t>(values->size());
  if (begin < 0) begin += count;
  if (whole_end) end = count;
  if (end < 0) end += count;
  if (shrink) end = begin + 1;
  begin = std::clamp<int64_t>(begin, 0, count);
  end = std::clamp<int64_t>(end, begin, count);
  return Sizes(values->begin() + begin, values->begin() + end);
}

Size GraphView::Iota(const std::string& input) const {
  const NodeDef* node = Producer(input, "Range", 3);
  if (node == nullptr || !Scalar(node->input(0)).is(0) ||
      !Scalar(node->input(2)).is(1)) {
    return {};
  }
  return Scalar(node->input(1));
}

bool GraphView::AllOnes(const std::string& input) const {
  const NodeDef* fill = Producer(input, "Fill", 2);
  if (fill != nullptr && Scalar(fill->input(1)).is(1)) return true;
  const std::optional<tensorflow::Tensor> tensor = Constant(input);
  if (!tensor) return false;
  const auto integers = Integers(*tensor);
  return integers && std::all_of(integers->begin(), integers->end(),
                                 [](int64_t value) { return value == 1; });
}

std::string GraphView::Add(const NodeDef& like, const std::string& suffix,
                           NodeDef node) {
  std::string name = absl::StrCat(like.name(), "/", suffix);
  for (int n = 1; by_name_.count(name) > 0; ++n) {
    name = absl::StrCat(like.name(), "/", suffix, "_", n);
  }
  node.set_name(name);
  node.set_device(like.device());
  NodeDef* added = nodes_->Add();
  *added = std::move(node);
  by_name_[name] = added;
  return is_function_ ? absl::StrCat(name, ":output:0") : name;
}

}  // namespace tf_stitch_gather
