// The gradients of the ops for SymbolicGradient, which differentiates a
// function of the runtime. They are functions themselves, built of these ops.
// The other two registries are in python/tf_stitch_gather/_gradients.py and in
// tf_ops/cc/gradients.h.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::AttrSlice;
using tensorflow::DT_INT64;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefHelper;
using Node = FunctionDefHelper::Node;

using Attrs =
    std::vector<std::pair<std::string, FunctionDefHelper::AttrValueWrapper>>;

constexpr char kIndexType[] = "Tindices: {int16, int32, int64}";
constexpr char kStitchIndexType[] = "Tindices: {int32, int64}";

Node MakeNode(const std::string& name, const std::string& op,
              const std::vector<std::string>& inputs, const Attrs& attrs) {
  Node node;
  node.ret = {name};
  node.op = op;
  node.arg = inputs;
  node.attr = attrs;
  return node;
}

// The gradients count in 64 bits, which hold the shape of every tensor and the
// values of every index type.
Node ToInt64(const std::string& name, const std::string& indices) {
  return MakeNode(name, "Cast", {indices},
                  {{"SrcT", "$Tindices"}, {"DstT", DT_INT64}});
}

Node ShapeOf(const std::string& name, const std::string& tensor,
             const char* type) {
  return MakeNode(name, "Shape", {tensor},
                  {{"T", type}, {"out_type", DT_INT64}});
}

Node ZerosLike(const std::string& name, const std::string& tensor,
               const char* type) {
  return MakeNode(name, "ZerosLike", {tensor}, {{"T", type}});
}

absl::Status GatherNdGrad(const AttrSlice&, FunctionDef* gradient) {
  *gradient = FunctionDefHelper::Create(
      "_", {"params: Tparams", "indices: Tindices", "output_grad: Tparams"},
      {"params_grad: Tparams", "indices_grad: Tindices"},
      {"Tparams: type", kIndexType, "bad_indices_policy: string",
       "batch_dims: int"},
      {ToInt64("places", "indices"), ShapeOf("shape", "params", "$Tparams"),
       MakeNode("scatter", "MyScatterNd",
                {"places:y:0", "output_grad", "shape:output:0"},
                {{"T", "$Tparams"},
                 {"Tindices", DT_INT64},
                 {"bad_indices_policy", "$bad_indices_policy"},
                 {"batch_dims", "$batch_dims"}}),
       ZerosLike("zeros", "indices", "$Tindices")},
      {{"params_grad", "scatter:output:0"}, {"indices_grad", "zeros:y:0"}});
  return absl::OkStatus();
}

absl::Status ScatterNdGrad(const AttrSlice&, FunctionDef* gradient) {
  *gradient = FunctionDefHelper::Create(
      "_",
      {"indices: Tindices", "updates: T", "shape: Tindices", "output_grad: T"},
      {"indices_grad: Tindices", "updates_grad: T", "shape_grad: Tindices"},
      {"T: type", kIndexType, "bad_indices_policy: string", "batch_dims: int"},
      {MakeNode("gather", "MyGatherNd", {"output_grad", "indices"},
                {{"Tparams", "$T"},
                 {"Tindices", "$Tindices"},
                 {"bad_indices_policy", "$bad_indices_policy"},
                 {"batch_dims", "$batch_dims"}}),
       ZerosLike("indices_zeros", "indices", "$Tindices"),
       ZerosLike("shape_zeros", "shape", "$Tindices")},
      {{"indices_grad", "indices_zeros:y:0"},
       {"updates_grad", "gather:output:0"},
       {"shape_grad", "shape_zeros:y:0"}});
  return absl::OkStatus();
}

// The attributes of a node, in number and type of its list inputs.
struct Lists {
  absl::Status Read(const AttrSlice& attrs) {
    TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(attrs, "N", &parts));
    return tensorflow::GetNodeAttr(attrs, "Tindices", &index_type);
  }

  int64_t parts;
  tensorflow::DataType index_type;
};

// Adds a node "indices_zeros" with a list of zeros, one for each of the
// indices.
void AddZerosOfIndices(const Lists& lists, std::vector<Node>* nodes) {
  std::vector<std::string> zeros;
  for (int64_t m = 0; m < lists.parts; ++m) {
    const std::string name = absl::StrCat("zeros_", m);
    nodes->push_back(ZerosLike(name, absl::StrCat("indices:", m), "$Tindices"));
    zeros.push_back(absl::StrCat(name, ":y:0"));
  }
  const tensorflow::DataTypeVector types(lists.parts, lists.index_type);
  nodes->push_back(
      MakeNode("indices_zeros", "IdentityN", zeros, {{"T", types}}));
}

// A node "stitch_grad".
Node StitchGrad(const FunctionDefHelper::AttrValueWrapper& policy) {
  return MakeNode("stitch_grad", "MyDynamicStitchGrad",
                  {"indices", "merged_grad"},
                  {{"N", "$N"},
                   {"T", "$T"},
                   {"Tindices", "$Tindices"},
                   {"bad_indices_policy", policy}});
}

absl::Status DynamicStitchGrad(const AttrSlice& attrs, FunctionDef* gradient) {
  Lists lists;
  TF_RETURN_IF_ERROR(lists.Read(attrs));
  std::vector<Node> nodes = {StitchGrad("")};
  AddZerosOfIndices(lists, &nodes);
  *gradient = FunctionDefHelper::Create(
      "_", {"indices: N * Tindices", "data: N * T", "merged_grad: T"},
      {"indices_grad: N * Tindices", "data_grad: N * T"},
      {"N: int", "T: type", kStitchIndexType}, nodes,
      {{"indices_grad", "indices_zeros:output"},
       {"data_grad", "stitch_grad:data_grads"}});
  return absl::OkStatus();
}

absl::Status DynamicStitchSizedGrad(const AttrSlice& attrs,
                                    FunctionDef* gradient) {
  Lists lists;
  TF_RETURN_IF_ERROR(lists.Read(attrs));
  std::vector<Node> nodes = {StitchGrad("$bad_indices_policy"),
                             ZerosLike("size_zero", "size", "$Tindices")};
  AddZerosOfIndices(lists, &nodes);
  *gradient = FunctionDefHelper::Create(
      "_",
      {"size: Tindices", "indices: N * Tindices", "data: N * T",
       "merged_grad: T"},
      {"size_grad: Tindices", "indices_grad: N * Tindices", "data_grad: N * T"},
      {"N: int", "T: type", kStitchIndexType, "bad_indices_policy: string"},
      nodes,
      {{"size_grad", "size_zero:y:0"},
       {"indices_grad", "indices_zeros:output"},
       {"data_grad", "stitch_grad:data_grads"}});
  return absl::OkStatus();
}

// The stitch with the same winners takes each row back to where it came from.
absl::Status DynamicStitchGradGrad(const AttrSlice& attrs,
                                   FunctionDef* gradient) {
  Lists lists;
  TF_RETURN_IF_ERROR(lists.Read(attrs));
  constexpr int64_t kFirst[] = {0};
  std::vector<Node> nodes = {
      ShapeOf("shape", "grad", "$T"),
      FunctionDefHelper::Const("first", absl::MakeConstSpan(kFirst)),
      MakeNode("rows", "MyGatherNd", {"shape:output:0", "first:output:0"},
               {{"Tparams", DT_INT64},
                {"Tindices", DT_INT64},
                {"bad_indices_policy", ""},
                {"batch_dims", 0}})};
  std::vector<std::string> inputs = {"rows:output:0"};
  for (int64_t m = 0; m < lists.parts; ++m) {
    const std::string name = absl::StrCat("places_", m);
    nodes.push_back(ToInt64(name, absl::StrCat("indices:", m)));
    inputs.push_back(absl::StrCat(name, ":y:0"));
  }
  inputs.push_back("data_grads_grad");
  nodes.push_back(MakeNode("stitch", "MyDynamicStitchSized", inputs,
                           {{"N", "$N"},
                            {"T", "$T"},
                            {"Tindices", DT_INT64},
                            {"bad_indices_policy", "$bad_indices_policy"}}));
  AddZerosOfIndices(lists, &nodes);
  *gradient = FunctionDefHelper::Create(
      "_", {"indices: N * Tindices", "grad: T", "data_grads_grad: N * T"},
      {"indices_grad: N * Tindices", "grad_grad: T"},
      {"N: int", "T: type", kStitchIndexType, "bad_indices_policy: string"},
      nodes,
      {{"indices_grad", "indices_zeros:output"},
       {"grad_grad", "stitch:merged:0"}});
  return absl::OkStatus();
}

REGISTER_OP_GRADIENT("MyGatherNd", GatherNdGrad);
REGISTER_OP_GRADIENT("MyScatterNd", ScatterNdGrad);
REGISTER_OP_GRADIENT("MyDynamicStitch", DynamicStitchGrad);
REGISTER_OP_GRADIENT("MyDynamicStitchSized", DynamicStitchSizedGrad);
REGISTER_OP_GRADIENT("MyDynamicStitchGrad", DynamicStitchGradGrad);

}  // namespace
}  // namespace tf_stitch_gather
