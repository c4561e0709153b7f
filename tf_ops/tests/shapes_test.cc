// The checks of shapes, known and unknown, and the words of the errors.

#include <cstdio>
#include <string>

#include "tf_ops/core/dynamic_stitch.h"
#include "tf_ops/core/gather_nd.h"
#include "tf_ops/core/index_space.h"
#include "tf_ops/core/policy.h"
#include "tf_ops/tests/check.h"

namespace tf_stitch_gather::testing {
namespace {

const Shape kAny = Shape::UnknownRank();

std::string Gathered(const Shape& params, const Shape& indices,
                     int64_t batch_dims = 0) {
  Shape output;
  const Status status =
      GatherNdOutputShape(params, indices, batch_dims, &output);
  return status.ok() ? output.ToString() : status.message();
}

void TestGatherNd() {
  CHECK_CASE(Gathered({5, 4, 3}, {7, 2}) == "[7,3]", "depth 2");
  CHECK_CASE(Gathered({5, 4, 3}, {7, 0}) == "[7,5,4,3]", "depth 0");
  CHECK_CASE(Gathered({5}, {1}) == "[]", "one element");
  CHECK_CASE(Gathered({2, 5, 3}, {2, 7, 1}, 1) == "[2,7,3]", "batch");
  CHECK_CASE(Gathered({kUnknown, 3}, {kUnknown, 1}) == "[?,3]", "unknown");
  CHECK_CASE(Gathered({4, 5}, {kUnknown, 6, 1}, 1) == "[4,6]", "merged batch");
  CHECK_CASE(Gathered(kAny, {2, 1}) == "<unknown>", "unknown params");
  CHECK_CASE(Gathered({3, 3}, {2, kUnknown}) == "<unknown>", "unknown depth");
  CHECK_CASE(Gathered({3}, {2, 2}) ==
                 "index innermost dimension length must be <= params rank; "
                 "saw: 2 vs. 1",
             "too deep");
  CHECK_CASE(
      Gathered({3}, {}) == "indices must be at least a vector, got shape []",
      "scalar indices");
  CHECK_CASE(
      Gathered({2, 3, 4}, {3, 2, 1}, 2)
              .find("got batch shape (2,3) of params and (3,2) of indices") !=
          std::string::npos,
      "batch shapes");
  CHECK_CASE(
      Gathered({2, 3}, {2, 1}, 2).find("batch_dims = 2 must be less") == 0,
      "batch_dims beyond indices");
  CHECK_CASE(Gathered({2}, {2, 1, 0}, 2).find("at most the rank of params") !=
                 std::string::npos,
             "batch_dims beyond params");
  CHECK_CASE(Gathered({2}, {2, 1}, -1).find("must not be negative") !=
                 std::string::npos,
             "negative batch_dims");
}

void TestScatterNd() {
  const auto scattered = [](const Shape& indices, const Shape& updates,
                            const Shape& output, int64_t batch_dims = 0) {
    return CheckScatterNd(indices, updates, output, batch_dims).ok();
  };
  CHECK_CASE(scattered({7, 1}, {7, 3}, {5, 3}), "rows");
  CHECK_CASE(scattered({2}, {}, {5, 3}), "one element");
  CHECK_CASE(scattered({2, 7, 1}, {2, 7}, {2, 5}, 1), "batch");
  CHECK_CASE(scattered({7, 1}, kAny, {5, 3}), "unknown updates");
  CHECK_CASE(scattered({7, 1}, {kUnknown, 3}, {kUnknown, kUnknown}), "unknown");
  CHECK_CASE(!scattered({7, 1}, {7, 4}, {5, 3}), "slice");
  CHECK_CASE(!scattered({7, 1}, {6, 3}, {5, 3}), "tuples");
  CHECK_CASE(!scattered({7, 3}, {7}, {5, 3}), "depth");
}

std::string Stitched(std::initializer_list<std::pair<Shape, Shape>> parts,
                     int64_t rows) {
  StitchShapes shapes;
  for (const auto& [indices, data] : parts) {
    const Status status = shapes.Add(indices, data);
    if (!status.ok()) return status.message();
  }
  return shapes.Merged(rows).ToString();
}

void TestStitch() {
  CHECK_CASE(Stitched({{{2}, {2, 3}}, {{}, {3}}}, 4) == "[4,3]", "ranks");
  CHECK_CASE(
      Stitched({{{2}, {2, kUnknown}}, {{1}, {1, 3}}}, kUnknown) == "[?,3]",
      "merged slice");
  CHECK_CASE(Stitched({{kAny, {2, 3}}, {{1}, {1, 7}}}, 2) == "[2,7]",
             "unknown part");
  CHECK_CASE(Stitched({{kAny, kAny}}, 2) == "<unknown>", "unknown");
  CHECK_CASE(Stitched({{{2}, {2}}, {{2}, {3}}}, 2) ==
                 "data[1].shape = [3] does not start with indices[1].shape = "
                 "[2]",
             "prefix");
  CHECK_CASE(Stitched({{{2}, {2, 3}}, {{2}, {2, 4}}}, 2)
                     .find("data[1].shape = [2,4]") == 0,
             "slice");
  CHECK_CASE(BadStitchIndex(1, 2, -3).message() ==
                 "indices[1][2] = -3 is out of range",
             "message");
}

void TestIndexSpace() {
  IndexSpace space;
  CHECK_CASE(MakeIndexSpace({2, 7, 2}, {2, 5, 4, 3}, 1, &space).ok(), "space");
  CHECK_CASE(space.batches == 2 && space.tuples_per_batch == 7 &&
                 space.rows_per_batch == 20 && space.slice_elements == 3 &&
                 space.strides[0] == 4 && space.strides[1] == 1,
             "space");
  const int64_t huge = int64_t{1} << 40;
  CHECK_CASE(MakeIndexSpace({0, 3}, {0, huge, huge}, 0, &space).ok(), "empty");
  // Tuples that hold nothing are none, so that no loop on any device walks
  // them.
  CHECK_CASE(MakeIndexSpace({huge, 0}, {huge, 0}, 1, &space).ok() &&
                 space.tuples() == 0,
             "nothing");
  CHECK_CASE(MakeIndexSpace({7, 0}, {3}, 0, &space).ok() && space.tuples() == 7,
             "whole params");
  CHECK_CASE(MakeIndexSpace({1, 2}, {huge, huge}, 0, &space).code() ==
                 Code::kResourceExhausted,
             "overflow");
  const IndexTensor indices(IndexType::kInt32, {0, 0, 0, 7, 1, 2});
  CHECK_CASE(
      BadTupleMessage(indices.indices(), {1, 3, 2}, 1, "param shape", {3, 4}) ==
          "indices[0,1] = [0, 7] does not index into param shape [3,4]",
      "message");
}

void TestPolicy() {
  BadIndicesPolicy policy;
  CHECK_CASE(ParseBadIndicesPolicy("", &policy).ok() &&
                 policy == BadIndicesPolicy::kDefault,
             "empty");
  CHECK_CASE(ParseBadIndicesPolicy("IGNORE", &policy).ok() &&
                 policy == BadIndicesPolicy::kIgnore,
             "ignore");
  CHECK_CASE(
      ParseBadIndicesPolicy("ignore", &policy)
              .message()
              .find("'DEFAULT', 'ERROR' and 'IGNORE'") != std::string::npos,
      "unknown");
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  tf_stitch_gather::testing::TestGatherNd();
  tf_stitch_gather::testing::TestScatterNd();
  tf_stitch_gather::testing::TestStitch();
  tf_stitch_gather::testing::TestIndexSpace();
  tf_stitch_gather::testing::TestPolicy();
  std::puts("shapes: passed");
}
