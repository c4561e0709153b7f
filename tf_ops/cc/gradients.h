// The gradients of the ops for tensorflow::AddSymbolicGradients. A program that
// includes this header has them; they are built of these ops, and so can be
// differentiated again.

#ifndef TF_OPS_CC_GRADIENTS_H_
#define TF_OPS_CC_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/cc/framework/grad_op_registry.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tf_ops/cc/dynamic_stitch.h"
#include "tf_ops/cc/gather_nd.h"
#include "tf_ops/cc/op_builder.h"
#include "tf_ops/cc/scatter_nd.h"

namespace tf_stitch_gather {
namespace ops {
namespace internal {

// As 64 bits hold the shape of every tensor and the values of every index type,
// the gradients count in them whatever the type of the forward indices.
inline tensorflow::Output ToInt64(const tensorflow::Scope& scope,
                                  const tensorflow::Output& indices) {
  if (indices.type() == tensorflow::DT_INT64) return indices;
  return OutputOf(OpBuilder(scope, "Cast")
                      .Input(indices)
                      .Attr("DstT", tensorflow::DT_INT64)
                      .Finish());
}

inline tensorflow::Output ShapeOf(const tensorflow::Scope& scope,
                                  const tensorflow::Output& tensor) {
  return OutputOf(OpBuilder(scope, "Shape")
                      .Input(tensor)
                      .Attr("out_type", tensorflow::DT_INT64)
                      .Finish());
}

inline tensorflow::OutputList Inputs(const tensorflow::Operation& op, int first,
                                     int count) {
  tensorflow::OutputList inputs;
  for (int i = first; i < first + count; ++i) inputs.push_back(op.input(i));
  return inputs;
}

inline absl::Status GetPolicy(const tensorflow::Operation& op,
                              std::string* policy) {
  return tensorflow::GetNodeAttr(op.node()->attrs(), "bad_indices_policy",
                                 policy);
}

inline absl::Status GetBatchDims(const tensorflow::Operation& op,
                                 int64_t* batch_dims) {
  return tensorflow::GetNodeAttr(op.node()->attrs(), "batch_dims", batch_dims);
}

inline absl::Status GatherNdGrad(
    const tensorflow::Scope& scope, const tensorflow::Operation& op,
    const std::vector<tensorflow::Output>& grad_inputs,
    std::vector<tensorflow::Output>* grad_outputs) {
  std::string policy;
  TF_RETURN_IF_ERROR(GetPolicy(op, &policy));
  int64_t batch_dims;
  TF_RETURN_IF_ERROR(GetBatchDims(op, &batch_dims));
  const MyScatterNd params_grad(
      scope, ToInt64(scope, op.input(1)), grad_inputs[0],
      ShapeOf(scope, op.input(0)),
      MyScatterNd::BadIndicesPolicy(policy).BatchDims(batch_dims));
  *grad_outputs = {params_grad.output, tensorflow::NoGradient()};
  return scope.status();
}

inline absl::Status ScatterNdGrad(
    const tensorflow::Scope& scope, const tensorflow::Operation& op,
    const std::vector<tensorflow::Output>& grad_inputs,
    std::vector<tensorflow::Output>* grad_outputs) {
  std::string policy;
  TF_RETURN_IF_ERROR(GetPolicy(op, &policy));
  int64_t batch_dims;
  TF_RETURN_IF_ERROR(GetBatchDims(op, &batch_dims));
  const MyGatherNd updates_grad(
      scope, grad_inputs[0], op.input(0),
      MyGatherNd::BadIndicesPolicy(policy).BatchDims(batch_dims));
  *grad_outputs = {tensorflow::NoGradient(), updates_grad.output,
                   tensorflow::NoGradient()};
  return scope.status();
}

// Of an op with inputs `first` others, N indices and N data.
inline absl::Status StitchGrad(const tensorflow::Scope& scope,
                               const tensorflow::Operation& op, int first,
                               const std::string& policy,
                               const tensorflow::Output& grad,
                               std::vector<tensorflow::Output>* grad_outputs) {
  const int parts = (op.num_inputs() - first) / 2;
  const MyDynamicStitchGrad data_grads(
      scope, Inputs(op, first, parts), grad,
      MyDynamicStitchGrad::BadIndicesPolicy(policy));
  grad_outputs->assign(first + parts, tensorflow::NoGradient());
  grad_outputs->insert(grad_outputs->end(), data_grads.data_grads.begin(),
                       data_grads.data_grads.end());
  return scope.status();
}

inline absl::Status DynamicStitchGrad(
    const tensorflow::Scope& scope, const tensorflow::Operation& op,
    const std::vector<tensorflow::Output>& grad_inputs,
    std::vector<tensorflow::Output>* grad_outputs) {
  return StitchGrad(scope, op, 0, "", grad_inputs[0], grad_outputs);
}

inline absl::Status DynamicStitchSizedGrad(
    const tensorflow::Scope& scope, const tensorflow::Operation& op,
    const std::vector<tensorflow::Output>& grad_inputs,
    std::vector<tensorflow::Output>* grad_outputs) {
  std::string policy;
  TF_RETURN_IF_ERROR(GetPolicy(op, &policy));
  return StitchGrad(scope, op, 1, policy, grad_inputs[0], grad_outputs);
}

// The stitch with the same winners takes each row back to where it came from.
inline absl::Status DynamicStitchGradGrad(
    const tensorflow::Scope& scope, const tensorflow::Operation& op,
    const std::vector<tensorflow::Output>& grad_inputs,
    std::vector<tensorflow::Output>* grad_outputs) {
  std::string policy;
  TF_RETURN_IF_ERROR(GetPolicy(op, &policy));
  const int parts = op.num_inputs() - 1;
  tensorflow::OutputList indices;
  tensorflow::OutputList data;
  for (int m = 0; m < parts; ++m) {
    indices.push_back(ToInt64(scope, op.input(m)));
    data.push_back(
        grad_inputs[m] == tensorflow::NoGradient()
            ? OutputOf(
                  OpBuilder(scope, "ZerosLike").Input(op.output(m)).Finish())
            : grad_inputs[m]);
  }
  const MyGatherNd rows(scope, ShapeOf(scope, op.input(parts)), {0});
  const MyDynamicStitchSized grad_grad(
      scope, rows, indices, data,
      MyDynamicStitchSized::BadIndicesPolicy(policy));
  grad_outputs->assign(parts, tensorflow::NoGradient());
  grad_outputs->push_back(grad_grad.merged);
  return scope.status();
}

// The registry ends the process when an op is registered twice, which several
// shared libraries that include this header would bring about.
inline bool RegisterGradient(const char* op, tensorflow::ops::GradFunc grad) {
  auto* registry = tensorflow::ops::GradOpRegistry::Global();
  tensorflow::ops::GradFunc registered;
  return registry->Lookup(op, &registered).ok() || registry->Register(op, grad);
}

inline const bool kGradientsAreRegistered =
    RegisterGradient("MyGatherNd", GatherNdGrad) &&
    RegisterGradient("MyScatterNd", ScatterNdGrad) &&
    RegisterGradient("MyDynamicStitch", DynamicStitchGrad) &&
    RegisterGradient("MyDynamicStitchSized", DynamicStitchSizedGrad) &&
    RegisterGradient("MyDynamicStitchGrad", DynamicStitchGradGrad);

}  // namespace internal
}  // namespace ops
}  // namespace tf_stitch_gather

#endif  // TF_OPS_CC_GRADIENTS_H_
