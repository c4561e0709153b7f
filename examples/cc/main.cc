// Builds the examples of the reference pages as a graph, runs it, prints what
// came out, and ends with 1 if anything is not as it should be.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cases.h"
#include "tf_ops/cc/client_session.h"
#include "tf_ops/cc/ops.h"

namespace {

using tensorflow::ClientSession;
using tensorflow::Output;
using tensorflow::Scope;
using tensorflow::Tensor;
using tf_stitch_gather::ops::MyDynamicStitch;
using tf_stitch_gather::ops::MyGatherNd;

int failures = 0;

void PrintRow(const std::string& name, const std::string& value, bool right) {
  std::printf("%-5s  %-46s  %s\n", right ? "ok" : "WRONG", name.c_str(),
              value.c_str());
  if (!right) ++failures;
}

template <typename T>
bool ElementsAreEqual(const Tensor& a, const Tensor& b) {
  return std::equal(a.flat<T>().data(), a.flat<T>().data() + a.NumElements(),
                    b.flat<T>().data());
}

bool AreEqual(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  switch (a.dtype()) {
    case tensorflow::DT_STRING:
      return ElementsAreEqual<tensorflow::tstring>(a, b);
    case tensorflow::DT_INT32:
      return ElementsAreEqual<int32_t>(a, b);
    case tensorflow::DT_FLOAT:
      return ElementsAreEqual<float>(a, b);
    default:
      return false;
  }
}

void RunCases(const ClientSession& session, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    std::vector<Tensor> outputs;
    const absl::Status status = session.Run({one.output}, &outputs);
    if (status.ok()) {
      PrintRow(one.name, outputs[0].SummarizeValue(16),
               AreEqual(outputs[0], one.expected));
    } else {
      PrintRow(one.name, status.ToString(), false);
    }
  }
}

// Expects an error of bad input that begins with `words`.
void ExpectError(const std::string& name, const absl::Status& status,
                 const std::string& words) {
  const std::string message(status.message());
  const bool right = absl::IsInvalidArgument(status) &&
                     message.compare(0, words.size(), words) == 0;
  PrintRow(name, right ? words : status.ToString(), right);
}

// An error in the graph is in the status of its scope, and one in the indices
// in the status of the run.
void ExpectErrors() {
  const Scope policy = Scope::NewRootScope();
  MyGatherNd(policy, {1, 2, 3}, {{0}}, MyGatherNd::BadIndicesPolicy("CLAMP"));
  ExpectError("error: a policy that does not exist", policy.status(),
              "bad_indices_policy = 'CLAMP' is not one of");

  const Scope depth = Scope::NewRootScope();
  const MyGatherNd too_deep(depth, {1, 2, 3}, {{0, 0}});
  ExpectError(
      "error: indices too deep", depth.status(),
      "index innermost dimension length must be <= params rank; saw: 2 vs. 1");
  std::vector<Tensor> outputs;
  ExpectError("error: that graph run all the same",
              ClientSession(depth).Run({too_deep.output}, &outputs),
              "index innermost dimension length must be <= params rank");

  const Scope lists = Scope::NewRootScope();
  MyDynamicStitch(lists, {0, 1}, {10});
  ExpectError("error: lists of unequal lengths", lists.status(),
              "List argument 'data' to 'MyDynamicStitch' Op with length 1 must "
              "match length 2 of argument 'indices'.");

  const Scope none = Scope::NewRootScope();
  MyDynamicStitch(none, tensorflow::OutputList(), tensorflow::OutputList());
  ExpectError("error: no tensors", none.status(),
              "List argument 'indices' to 'MyDynamicStitch' Op with length 0 "
              "shorter than minimum length 1.");

  const Scope range = Scope::NewRootScope();
  const MyGatherNd gather(range, {1, 2, 3}, {{0}, {7}});
  ExpectError("error: an index out of range",
              ClientSession(range).Run({gather.output}, &outputs),
              "indices[1] = [7] does not index into param shape [3]");
}

}  // namespace

int main() {
  const Scope root = Scope::NewRootScope();
  std::vector<Case> cases;
  for (const auto make : {GatherCases, StitchCases, GradientCases}) {
    for (Case& one : make(root)) cases.push_back(std::move(one));
    if (!root.ok()) {
      std::fprintf(stderr, "%s\n", root.status().ToString().c_str());
      return 1;
    }
  }
  RunCases(ClientSession(root), cases);
  ExpectErrors();
  std::printf("%d wrong\n", failures);
  return failures == 0 ? 0 : 1;
}
