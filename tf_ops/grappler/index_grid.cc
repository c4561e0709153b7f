#include "tf_ops/grappler/index_grid.h"

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/grappler/costs/graph_properties.h"
#include "tensorflow/core/grappler/grappler_item.h"
#include "tensorflow/core/grappler/utils/functions.h"
#include "tf_ops/grappler/graph_view.h"
#include "tf_ops/grappler/match_grid.h"
#include "tf_ops/grappler/prune.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::DT_INT32;
using tensorflow::DT_INT64;
using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;
using tensorflow::grappler::GraphProperties;
using tensorflow::grappler::GrapplerItem;

constexpr char kGather[] = "MyGatherNd";
constexpr char kScatter[] = "MyScatterNd";

AttrValue Type(DataType type) {
  AttrValue value;
  value.set_type(type);
  return value;
}

// Not every op on shapes has a kernel for 64 bits there.
bool IsOnGpu(const NodeDef& node) {
  return absl::StrContains(node.device(), "GPU");
}

DataType TypeAttr(const NodeDef& node, const char* name) {
  const auto found = node.attr().find(name);
  return found == node.attr().end() ? tensorflow::DT_INVALID
                                    : found->second.type();
}

NodeDef MakeNode(const char* op, std::initializer_list<std::string> inputs,
                 std::initializer_list<std::pair<const char*, DataType>> types,
                 int64_t count = 0) {
  NodeDef node;
  node.set_op(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (const auto& [name, type] : types) {
    (*node.mutable_attr())[name] = Type(type);
  }
  if (count > 0) (*node.mutable_attr())["N"].set_i(count);
  return node;
}

NodeDef MakeConst(DataType type, std::initializer_list<int64_t> values,
                  bool scalar = false) {
  tensorflow::TensorShape shape;
  if (!scalar) shape.AddDim(static_cast<int64_t>(values.size()));
  Tensor tensor(type, shape);
  int64_t k = 0;
  for (const int64_t value : values) {
    if (type == DT_INT64) {
      tensor.flat<int64_t>()(k++) = value;
    } else if (type == DT_INT32) {
      tensor.flat<int32_t>()(k++) = static_cast<int32_t>(value);
    } else {
      tensor.flat<int16_t>()(k++) = static_cast<int16_t>(value);
    }
  }
  NodeDef node = MakeNode("Const", {}, {{"dtype", type}});
  tensor.AsProtoTensorContent((*node.mutable_attr())["value"].mutable_tensor());
  return node;
}

// `shape` of `type` with its first `batch_dims` sizes multiplied into one.
std::string Flattened(const NodeDef& like, const std::string& shape,
                      DataType type, int64_t batch_dims, GraphView* view) {
  const auto add = [&](const char* suffix, NodeDef node) {
    // A constant in the body of a loop has to wait for something of that loop.
    const NodeDef* producer = view->Producer(shape);
    if (node.input().empty() && producer != nullptr) {
      node.add_input("^" + producer->name());
    }
    return view->Add(like, suffix, std::move(node));
  };
  const std::string zero = add("batch/begin", MakeConst(type, {0}));
  const std::string count = add("batch/dims", MakeConst(type, {batch_dims}));
  const std::string all = add("batch/rest", MakeConst(type, {-1}));
  const std::string axis = add("batch/axis", MakeConst(DT_INT32, {0}, true));
  const std::string batch = add(
      "batch/shape",
      MakeNode("Slice", {shape, zero, count}, {{"T", type}, {"Index", type}}));
  const std::string slice = add(
      "batch/slice_shape",
      MakeNode("Slice", {shape, count, all}, {{"T", type}, {"Index", type}}));
  NodeDef product =
      MakeNode("Prod", {batch, axis}, {{"T", type}, {"Tidx", DT_INT32}});
  (*product.mutable_attr())["keep_dims"].set_b(true);
  const std::string size = add("batch/size", product);
  return add("batch/flat_shape",
             MakeNode("ConcatV2", {size, slice, axis},
                      {{"T", type}, {"Tidx", DT_INT32}}, 2));
}

NodeDef MakeReshape(const std::string& tensor, DataType type,
                    const std::string& shape, DataType shape_type) {
  return MakeNode("Reshape", {tensor, shape},
                  {{"T", type}, {"Tshape", shape_type}});
}

// One graph or function body.
class Body {
 public:
  Body(bool is_function, const std::unordered_set<std::string>& fed,
       const GraphProperties& properties, GraphView::Nodes* nodes)
      : view_(is_function, nodes, fed, properties) {}

  // Whether the node does without its grid now; `unused` then names the tensor
  // that it used before.
  bool Collapse(NodeDef* node, std::string* unused) {
    const bool gather = node->op() == kGather;
    const int indices_at = gather ? 1 : 0;
    const NodeDef* concat =
        view_.Producer(node->input(indices_at), "ConcatV2", 3);
    if (concat == nullptr) return false;
    const Size axis = view_.Scalar(concat->input(2));
    const std::optional<int64_t> rank = view_.Rank(concat->input(0));
    if (!axis.is(-1) && !(rank && axis.is(*rank - 1))) return false;
    const std::optional<Sizes> batch = MatchGrid(view_, concat->input(0));
    if (!batch ||
        !(gather ? FitsParams(*node, *batch) : FitsShape(*node, *batch))) {
      return false;
    }
    *unused = node->input(indices_at);
    const std::string indices = concat->input(1);
    if (gather) {
      CollapseGather(indices, static_cast<int64_t>(batch->size()), node);
    } else {
      CollapseScatter(indices, static_cast<int64_t>(batch->size()), node);
    }
    return true;
  }

 private:
  bool FitsParams(const NodeDef& node, const Sizes& batch) const {
    for (size_t k = 0; k < batch.size(); ++k) {
      const int64_t dimension = static_cast<int64_t>(k);
      if (!Same(batch[k], view_.Dimension(node.input(0), dimension))) {
        return false;
      }
    }
    return true;
  }

  bool FitsShape(const NodeDef& node, const Sizes& batch) const {
    std::optional<Sizes> shape = view_.Values(node.input(2));
    if (!shape) {
      const NodeDef* source = view_.Producer(node.input(2), "Shape", 1);
      if (source == nullptr) return false;
      shape = Sizes();
      for (size_t k = 0; k < batch.size(); ++k) {
        shape->push_back(
            view_.Dimension(source->input(0), static_cast<int64_t>(k)));
      }
    }
    if (shape->size() < batch.size()) return false;
    for (size_t k = 0; k < batch.size(); ++k) {
      if (!Same(batch[k], (*shape)[k])) return false;
    }
    return true;
  }

  // With several batch dimensions, one that holds them all: what the grid gave
  // is kept even where the batch shapes of params and indices differ, and the
  // result has the shape that the nodes behind expect.
  void CollapseGather(const std::string& indices, int64_t batch_dims,
                      NodeDef* node) {
    if (batch_dims > 1) {
      const DataType type = TypeAttr(*node, "Tparams");
      const DataType shape_type = IsOnGpu(*node) ? DT_INT32 : DT_INT64;
      const std::string params = node->input(0);
      const std::string shape = view_.Add(
          *node, "params_shape",
          MakeNode("Shape", {params}, {{"T", type}, {"out_type", shape_type}}));
      const std::string flat =
          Flattened(*node, shape, shape_type, batch_dims, &view_);
      node->set_input(0,
                      view_.Add(*node, "params",
                                MakeReshape(params, type, flat, shape_type)));
    }
    node->set_input(1, indices);
    (*node->mutable_attr())["batch_dims"].set_i(1);
  }

  void CollapseScatter(const std::string& indices, int64_t batch_dims,
                       NodeDef* node) {
    node->set_input(0, indices);
    (*node->mutable_attr())["batch_dims"].set_i(1);
    if (batch_dims == 1) return;
    const DataType index_type = TypeAttr(*node, "Tindices");
    const DataType type = TypeAttr(*node, "T");
    const std::string shape = node->input(2);
    NodeDef scatter = *node;
    scatter.set_input(2,
                      Flattened(*node, shape, index_type, batch_dims, &view_));
    NodeDef reshape = MakeReshape(view_.Add(*node, "sums", std::move(scatter)),
                                  type, shape, index_type);
    reshape.set_name(node->name());
    reshape.set_device(node->device());
    *node = std::move(reshape);
  }

  GraphView view_;
};

// A node whose indices may begin with a grid. Cheap: most graphs have none.
std::vector<NodeDef*> Candidates(GraphView::Nodes* nodes) {
  std::vector<NodeDef*> candidates;
  for (NodeDef& node : *nodes) {
    if (node.op() != kGather && node.op() != kScatter) continue;
    const auto batch_dims = node.attr().find("batch_dims");
    if (batch_dims != node.attr().end() && batch_dims->second.i() != 0) {
      continue;
    }
    const int wanted = node.op() == kGather ? 2 : 3;
    // Reshape, which a scatter becomes, takes no shape of 16 bits.
    if (DataInputs(node) == wanted &&
        (node.op() == kGather ||
         TypeAttr(node, "Tindices") != tensorflow::DT_INT16)) {
      candidates.push_back(&node);
    }
  }
  return candidates;
}

}  // namespace

std::vector<Collapse> CollapseIndexGrids(
    bool prune, const std::unordered_set<std::string>& fed, GraphDef* graph) {
  std::vector<Collapse> collapses;
  const auto run = [&](const std::string& function, GrapplerItem item,
                       const std::unordered_set<std::string>& given,
                       GraphView::Nodes* nodes) {
    std::vector<std::string> unused;
    GraphProperties properties(item);
    // The arguments of a function have the shapes that it was traced with; what
    // a graph is fed may have another than its node.
    if (!properties
             .InferStatically(/*assume_valid_feeds=*/!function.empty(),
                              /*aggressive_shape_inference=*/false,
                              /*include_tensor_values=*/false)
             .ok()) {
      return unused;
    }
    Body body(!function.empty(), given, properties, nodes);
    for (NodeDef* node : Candidates(nodes)) {
      const std::string op = node->op();
      std::string tensor;
      if (!body.Collapse(node, &tensor)) continue;
      collapses.push_back({function, node->name(), op});
      unused.push_back(tensor);
    }
    return unused;
  };

  if (!Candidates(graph->mutable_node()).empty()) {
    GrapplerItem item;
    item.graph = *graph;
    for (const std::string& name : fed) item.feed.push_back({name, Tensor()});
    run("", std::move(item), fed, graph->mutable_node());
  }
  std::unique_ptr<tensorflow::FunctionLibraryDefinition> library;
  for (int k = 0; k < graph->library().function_size(); ++k) {
    FunctionDef& function = *graph->mutable_library()->mutable_function(k);
    if (Candidates(function.mutable_node_def()).empty()) continue;
    if (library == nullptr) {
      library = std::make_unique<tensorflow::FunctionLibraryDefinition>(
          tensorflow::OpRegistry::Global(), graph->library());
    }
    tensorflow::grappler::GrapplerFunctionItem item;
    if (!tensorflow::grappler::MakeGrapplerFunctionItem(
             function, *library, graph->versions().producer(), &item)
             .ok()) {
      continue;
    }
    const std::vector<std::string> unused =
        run(function.signature().name(), item, {}, function.mutable_node_def());
    if (prune) Prune(unused, &function);
  }
  return collapses;
}

}  // namespace tf_stitch_gather
