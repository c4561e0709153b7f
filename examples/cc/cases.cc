#include "cases.h"

#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/data_flow_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tf_ops/cc/ops.h"

using tensorflow::AddSymbolicGradients;
using tensorflow::Output;
using tensorflow::OutputList;
using tensorflow::Scope;
using tensorflow::Tensor;
using tensorflow::ops::Const;
using tf_stitch_gather::ops::MyDynamicStitch;
using tf_stitch_gather::ops::MyDynamicStitchSized;
using tf_stitch_gather::ops::MyGatherNd;
using tf_stitch_gather::ops::MyScatterNd;

namespace {

// A value of a reference page, written as it is there.
using Value = tensorflow::Input::Initializer;

}  // namespace

std::vector<Case> GatherCases(const Scope& root) {
  const Value matrix = {{"a", "b"}, {"c", "d"}};
  const Value cube = {{{"a0", "b0"}, {"c0", "d0"}},
                      {{"a1", "b1"}, {"c1", "d1"}}};
  std::vector<Case> cases;
  const auto add = [&](const char* name, const Value& params,
                       const Value& indices, const Value& expected) {
    const MyGatherNd gather(root, params, indices);
    cases.push_back({name, gather.output, expected.tensor});
  };
  add("gather: elements of a matrix", matrix, {{0, 0}, {1, 1}}, {"a", "d"});
  add("gather: rows of a matrix", matrix, {{1}, {0}}, {{"c", "d"}, {"a", "b"}});
  add("gather: matrix of a cube", cube, {{1}}, {{{"a1", "b1"}, {"c1", "d1"}}});
  add("gather: rows of a cube", cube, {{0, 1}, {1, 0}},
      {{"c0", "d0"}, {"a1", "b1"}});
  add("gather: elements of a cube", cube, {{0, 0, 1}, {1, 0, 1}}, {"b0", "b1"});
  add("gather: batched elements of a matrix", matrix, {{{0, 0}}, {{0, 1}}},
      {{"a"}, {"b"}});
  add("gather: batched rows of a matrix", matrix, {{{1}}, {{0}}},
      {{{"c", "d"}}, {{"a", "b"}}});
  add("gather: batched matrices of a cube", cube, {{{1}}, {{0}}},
      {{{{"a1", "b1"}, {"c1", "d1"}}}, {{{"a0", "b0"}, {"c0", "d0"}}}});
  add("gather: batched rows of a cube", cube,
      {{{0, 1}, {1, 0}}, {{0, 0}, {1, 1}}},
      {{{"c0", "d0"}, {"a1", "b1"}}, {{"a0", "b0"}, {"c1", "d1"}}});
  add("gather: batched elements of a cube", cube,
      {{{0, 0, 1}, {1, 0, 1}}, {{0, 1, 1}, {1, 1, 0}}},
      {{"b0", "b1"}, {"d0", "c1"}});

  const Value numbers = {{1, 2}, {3, 4}};
  const MyGatherNd along_batch(root, numbers, {{1}, {0}},
                               MyGatherNd::BatchDims(1));
  cases.push_back(
      {"gather: batch_dims = 1", along_batch, Value({2, 3}).tensor});
  const MyGatherNd ignoring(
      root, numbers, {{1}, {5}, {-1}},
      MyGatherNd::Attrs().BadIndicesPolicy("IGNORE").BatchDims(0));
  cases.push_back({"gather: bad indices ignored", ignoring,
                   Value({{3, 4}, {0, 0}, {0, 0}}).tensor});
  const MyScatterNd scatter(root, {{4}, {3}, {1}, {7}, {1}},
                            {9, 10, 11, 12, 100}, {8});
  cases.push_back({"scatter: an index that comes twice", scatter,
                   Value({0, 111, 0, 10, 9, 0, 0, 12}).tensor});
  return cases;
}

std::vector<Case> StitchCases(const Scope& root) {
  namespace tfo = tensorflow::ops;
  std::vector<Case> cases;
  const MyDynamicStitch interleaved(
      root, {6, {4, 1}, {{5, 2}, {0, 3}}},
      {{61, 62},
       {{41, 42}, {11, 12}},
       {{{51, 52}, {21, 22}}, {{1, 2}, {31, 32}}}});
  cases.push_back(
      {"stitch: scalar, vector and matrix of indices", interleaved,
       Value(
           {{1, 2}, {11, 12}, {21, 22}, {31, 32}, {41, 42}, {51, 52}, {61, 62}})
           .tensor});

  const Output x = Const(root, {0.1f, -1.0f, 5.2f, 4.3f, -1.0f, 7.4f});
  const Output condition =
      tfo::Cast(root, tfo::NotEqual(root, x, -1.0f), tensorflow::DT_INT32);
  const tfo::DynamicPartition data(root, x, condition, 2);
  const tfo::DynamicPartition rows(root, tfo::Range(root, 0, 6, 1), condition,
                                   2);
  const Output changed = tfo::Add(root, data[1], 1.0f);
  const MyDynamicStitch merged(root, rows.outputs, {data[0], changed});
  cases.push_back(
      {"stitch: partitions merged", merged,
       Value({0.1f + 1.0f, -1.0f, 5.2f + 1.0f, 4.3f + 1.0f, -1.0f, 7.4f + 1.0f})
           .tensor});

  const MyDynamicStitchSized sized(
      root, 4, {{2, 0}, {9, 0}}, {{12, 10}, {29, 20}},
      MyDynamicStitchSized::BadIndicesPolicy("IGNORE"));
  cases.push_back({"stitch: 4 rows, the last writer wins", sized,
                   Value({20, 0, 12, 0}).tensor});
  return cases;
}

std::vector<Case> GradientCases(const Scope& root) {
  std::vector<Case> cases;
  const Output params = Const(root, {{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}});
  const Output indices = Const(root, {{2}, {0}, {2}});
  const MyGatherNd gather(root, params, indices);
  const Output upstream =
      Const(root, {{1.0f, 2.0f}, {10.0f, 20.0f}, {100.0f, 200.0f}});
  OutputList grads;
  root.UpdateStatus(
      AddSymbolicGradients(root, {gather}, {params}, {upstream}, &grads));
  if (!root.ok()) return cases;
  cases.push_back(
      {"gradient of gather: row 2 taken twice", grads[0],
       Value({{10.0f, 20.0f}, {0.0f, 0.0f}, {101.0f, 202.0f}}).tensor});

  const Output first = Const(root, {1.0f, 2.0f});
  const Output second = Const(root, {3.0f, 4.0f});
  const MyDynamicStitch stitch(root, {{0, 2}, {1, 0}}, {first, second});
  const Output stitch_upstream = Const(root, {1.0f, 10.0f, 100.0f});
  root.UpdateStatus(AddSymbolicGradients(root, {stitch}, {first, second},
                                         {stitch_upstream}, &grads));
  if (!root.ok()) return cases;
  cases.push_back({"gradient of stitch: overwritten row", grads[0],
                   Value({0.0f, 100.0f}).tensor});
  cases.push_back({"gradient of stitch: rows that won", grads[1],
                   Value({10.0f, 1.0f}).tensor});

  // Through the gradient of one of the two lists only.
  OutputList second_grads;
  root.UpdateStatus(AddSymbolicGradients(root, {grads[1]}, {stitch_upstream},
                                         {Const(root, {5.0f, 7.0f})},
                                         &second_grads));
  if (!root.ok()) return cases;
  cases.push_back({"second gradient of stitch", second_grads[0],
                   Value({7.0f, 5.0f, 0.0f}).tensor});

  const Output updates = Const(root, {1.0f, 2.0f, 3.0f});
  const MyScatterNd scatter(root, Const(root, {{1}, {3}, {1}}), updates, {4});
  root.UpdateStatus(
      AddSymbolicGradients(root, {scatter}, {updates},
                           {Const(root, {1.0f, 2.0f, 3.0f, 4.0f})}, &grads));
  if (!root.ok()) return cases;
  cases.push_back(
      {"gradient of scatter", grads[0], Value({2.0f, 4.0f, 2.0f}).tensor});
  return cases;
}
