// Random gathers and scatters, in every way of dividing them, against loops
// that do one element after the other.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tf_ops/core/index_space.h"
#include "tf_ops/cpu/gather_nd.h"
#include "tf_ops/cpu/scatter_nd.h"
#include "tf_ops/tests/check.h"
#include "tf_ops/tests/problem.h"
#include "tf_ops/tests/sums.h"

namespace tf_stitch_gather::testing {
namespace {

// `moved` is the number of rows that the mover is made for; the output starts
// `offset` bytes after where a tensor may.
void TestGather(const Problem& p, int64_t moved, int64_t offset,
                Workers& workers) {
  for (const int width : {1, 2, 3, 4, 8, 16}) {
    const int64_t row_bytes = p.space.slice_elements * width;
    std::vector<char> params(p.space.rows() * row_bytes + 1);
    for (size_t i = 0; i < params.size(); ++i) {
      params[i] = static_cast<char>(i * 31 + 1);
    }
    for (const IndexType type : kIndexTypes) {
      const IndexTensor indices(type, p.values);
      const int64_t bytes = p.space.tuples() * row_bytes;
      std::vector<char> memory(kTensorAlignment + offset + bytes + 1, 'x');
      char* const output = TensorIn(memory) + offset;
      const RowMover mover = ByteRowMover(row_bytes, moved);
      const int64_t bad =
          GatherNd(p.space, indices.indices(), params.data(), mover,
                   /*ignore_bad=*/true, workers, output);
      CHECK_CASE(bad == FirstBad::kNone, p.name);
      for (int64_t t = 0; t < p.space.tuples(); ++t) {
        std::vector<char> expected(row_bytes, 0);
        if (p.rows[t] >= 0) {
          std::memcpy(expected.data(), params.data() + p.rows[t] * row_bytes,
                      row_bytes);
        }
        CHECK_CASE(std::equal(expected.begin(), expected.end(),
                              output + t * row_bytes),
                   p.name + ", tuple " + std::to_string(t));
      }
      CHECK_CASE(output[bytes] == 'x', p.name);
      CHECK_CASE(GatherNd(p.space, indices.indices(), params.data(), mover,
                          /*ignore_bad=*/false, workers, output) == p.first_bad,
                 p.name);
    }
  }
}

// Narrow rows of params that no cache holds, which are fetched ahead.
void TestGatherOfManyRows() {
  constexpr int64_t kRows = 5'000'000;
  std::vector<int32_t> params(kRows);
  for (int64_t i = 0; i < kRows; ++i) params[i] = static_cast<int32_t>(i * 31);
  Random random(1);
  std::vector<int64_t> values(1000);
  for (int64_t& value : values) value = random.Below(kRows);
  IndexSpace space;
  CHECK_CASE(MakeIndexSpace(Shape{1000, 1}, Shape{kRows}, 0, &space).ok(),
             "many rows");
  const IndexTensor indices(IndexType::kInt32, values);
  std::vector<int32_t> output(1000);
  ThreadWorkers workers(2);
  GatherNd(space, indices.indices(),
           reinterpret_cast<const char*>(params.data()), ByteRowMover(4, 1000),
           /*ignore_bad=*/false, workers,
           reinterpret_cast<char*>(output.data()));
  for (int64_t i = 0; i < 1000; ++i) {
    CHECK_CASE(output[i] == params[values[i]], "many rows");
  }
}

// A narrow type whose sum must be kept in a wider one.
struct ByteSum {
  using Value = int8_t;
  using Wide = int32_t;
  static constexpr bool kPlainBytes = true;
  static void Add(int8_t value, int32_t* sum) { *sum += value; }
  static int8_t Round(int32_t sum) { return static_cast<int8_t>(sum / 2); }
};

template <typename Sum>
void TestScatter(const Problem& p, std::initializer_list<ScatterWay> ways,
                 Workers& workers) {
  using Value = typename Sum::Value;
  const int64_t width = p.space.slice_elements;
  std::vector<Value> updates(p.space.tuples() * width);
  for (size_t i = 0; i < updates.size(); ++i) {
    updates[i] = static_cast<Value>(static_cast<int>(i * 7 % 101) - 50);
    if constexpr (std::is_same_v<Value, float>) updates[i] *= 1.1f;
  }
  std::vector<typename Sum::Wide> sums(p.space.rows() * width);
  std::vector<bool> named(p.space.rows());
  for (int64_t t = 0; t < p.space.tuples(); ++t) {
    if (p.rows[t] < 0) continue;
    named[p.rows[t]] = true;
    for (int64_t j = 0; j < width; ++j) {
      Sum::Add(updates[t * width + j], &sums[p.rows[t] * width + j]);
    }
  }
  std::vector<Value> expected(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    if constexpr (kSumsInPlace<Sum>) {
      expected[i] = sums[i];
    } else {
      expected[i] = Sum::Round(sums[i]);
    }
  }
  for (const IndexType type : kIndexTypes) {
    const IndexTensor indices(type, p.values);
    for (const ScatterWay way : ways) {
      const std::string name =
          p.name + ", way " + std::to_string(static_cast<int>(way));
      std::vector<char> scratch(ScatterScratchBytes(p.space, way) + 1);
      std::vector<Value> output(expected.size(), Value{77});
      CHECK_CASE(
          ScatterNd<Sum>(p.space, indices.indices(), updates.data(),
                         /*ignore_bad=*/true, way, workers, scratch.data(),
                         output.data()) == FirstBad::kNone,
          name);
      CHECK_CASE(std::memcmp(output.data(), expected.data(),
                             expected.size() * sizeof(Value)) == 0,
                 name);
      CHECK_CASE(ScatterNd<Sum>(p.space, indices.indices(), updates.data(),
                                /*ignore_bad=*/false, way, workers,
                                scratch.data(), output.data()) == p.first_bad,
                 name);
    }
    // The merged rows are those of the dense sum.
    std::vector<char> scratch(KeyBytes(p.space) + 1);
    VisitSortedTuples(p.space, [&](auto sorted) {
      CHECK_CASE(SortTuples(p.space, indices.indices(), true, workers,
                            scratch.data(), &sorted) == FirstBad::kNone,
                 p.name);
      const MergedRows merged(sorted, workers);
      std::vector<int64_t> rows(merged.count());
      std::vector<Value> values(merged.count() * width);
      merged.Write<Sum>(sorted, updates.data(), width, workers, rows.data(),
                        values.data());
      CHECK_CASE(merged.count() == std::count(named.begin(), named.end(), true),
                 p.name);
      for (int64_t i = 0; i < merged.count(); ++i) {
        CHECK_CASE(i == 0 || rows[i] > rows[i - 1], p.name);
        CHECK_CASE(std::equal(expected.begin() + rows[i] * width,
                              expected.begin() + (rows[i] + 1) * width,
                              values.begin() + i * width),
                   p.name);
      }
    });
  }
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  using namespace tf_stitch_gather;           // NOLINT: a test's main
  using namespace tf_stitch_gather::testing;  // NOLINT
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const Problem problem = MakeProblem(seed, /*with_bad=*/seed % 2 == 1);
    for (const int threads : {1, 2, 5}) {
      ThreadWorkers workers(threads);
      TestGather(problem, problem.space.tuples(), 0, workers);
      TestGather(problem, kManyRows, 0, workers);
      TestGather(problem, kManyRows, 1, workers);
      TestGather(problem, kManyRows, 16, workers);
      TestScatter<PlainSum<float>>(
          problem,
          {ScatterWay::kInOrder, ScatterWay::kByBatch, ScatterWay::kByColumn},
          workers);
      TestScatter<ByteSum>(problem, {ScatterWay::kSorted}, workers);
    }
  }
  TestGatherOfManyRows();
  std::puts("gather and scatter: passed");
}
