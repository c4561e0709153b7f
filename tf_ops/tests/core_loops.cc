// The core loops on one thread, one at a time, for counting the instructions
// that each takes: `core_loops` lists the cases with their numbers of rows,
// `core_loops CASE` runs one. Only CountedLoop() is to be counted.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tf_ops/core/index_space.h"
#include "tf_ops/core/stitch_parts.h"
#include "tf_ops/cpu/dynamic_stitch.h"
#include "tf_ops/cpu/gather_nd.h"
#include "tf_ops/cpu/scatter_nd.h"
#include "tf_ops/tests/check.h"
#include "tf_ops/tests/sums.h"

// Where the counting is switched on, found by its name.
extern "C" __attribute__((noinline)) void CountedLoop(
    const std::function<void()>& loop) {
  loop();
}

namespace tf_stitch_gather::testing {
namespace {

constexpr int64_t kRows = 20000;
constexpr int64_t kParts = 4;

// kRows tuples that address `target`, whose slices have its last dimension.
struct Tuples {
  Tuples(IndexType type, const Shape& target) {
    const int depth = target.rank() - 1;
    CHECK_CASE(MakeIndexSpace(Shape{kRows, depth}, target, 0, &space).ok(),
               "tuples");
    Random random(1);
    std::vector<int64_t> values;
    for (int64_t i = 0; i < kRows; ++i) {
      for (int k = 0; k < depth; ++k) {
        values.push_back(random.Below(target.dim(k)));
      }
    }
    indices = std::make_unique<IndexTensor>(type, values);
  }

  IndexSpace space;
  std::unique_ptr<IndexTensor> indices;
};

void Gather(IndexType type, const Shape& params) {
  const Tuples tuples(type, params);
  const int64_t row_bytes = tuples.space.slice_elements * 4;
  const std::vector<char> from(tuples.space.rows() * row_bytes, 1);
  const int64_t bytes = kRows * row_bytes;
  std::vector<char> memory(kTensorAlignment + bytes);
  char* const to = TensorIn(memory);
  ThreadWorkers worker(1);
  CountedLoop([&] {
    GatherNd(tuples.space, tuples.indices->indices(), from.data(),
             ByteRowMover(row_bytes, kRows), false, worker, to);
  });
  CHECK_CASE(to[0] == 1 && to[bytes - 1] == 1, "gather");
}

template <typename Sum>
void Scatter(const Shape& output) {
  const Tuples tuples(IndexType::kInt32, output);
  const IndexSpace& space = tuples.space;
  const ScatterWay way = ChooseScatterWay(space, 4, kSumsInPlace<Sum>, 1);
  const std::vector<float> updates(kRows * space.slice_elements, 1.0F);
  std::vector<char> scratch(ScatterScratchBytes(space, way));
  std::vector<float> sums(space.rows() * space.slice_elements);
  ThreadWorkers worker(1);
  CountedLoop([&] {
    ScatterNd<Sum>(space, tuples.indices->indices(), updates.data(), false, way,
                   worker, scratch.data(), sums.data());
  });
  double total = 0;
  for (const float sum : sums) total += sum;
  CHECK_CASE(total == static_cast<double>(updates.size()), "scatter");
}

// kRows rows in kParts parts, in an order that a prime step mixes.
struct Parts {
  explicit Parts(int64_t row_bytes)
      : parts(IndexType::kInt32, kParts), rows(kRows * row_bytes, 1) {
    constexpr int64_t kStep = 7919;
    constexpr int64_t kPartRows = kRows / kParts;
    for (int64_t part = 0; part < kParts; ++part) {
      std::vector<int64_t> values;
      for (int64_t i = 0; i < kPartRows; ++i) {
        values.push_back((part * kPartRows + i) * kStep % kRows);
      }
      indices.emplace_back(IndexType::kInt32, values);
    }
    for (int64_t part = 0; part < kParts; ++part) {
      parts.Add(indices[part].indices().data,
                rows.data() + part * kPartRows * row_bytes, kPartRows);
    }
  }

  StitchParts parts;
  std::vector<IndexTensor> indices;
  std::vector<char> rows;
};

void StitchForward(int64_t row_bytes) {
  const Parts parts(row_bytes);
  std::vector<char> scratch(kRows * sizeof(int64_t) + sizeof(int64_t));
  std::vector<char> merged(kRows * row_bytes);
  ThreadWorkers worker(1);
  CountedLoop([&] {
    BadSource bad;
    StitchRows(parts.parts, worker, &bad);
    Stitch(parts.parts, kRows, ByteRowMover(row_bytes, kRows), false, worker,
           scratch.data(), merged.data());
  });
  CHECK_CASE(merged.front() == 1 && merged.back() == 1, "stitch");
}

void StitchBackward(int64_t row_bytes) {
  const Parts parts(row_bytes);
  const std::vector<char> grad(kRows * row_bytes, 2);
  std::vector<char> scratch(kRows * sizeof(int64_t) + sizeof(int64_t));
  ThreadWorkers worker(1);
  CountedLoop([&] {
    StitchGrad(parts.parts, kRows, grad.data(), ByteRowMover(row_bytes, kRows),
               false, worker, scratch.data());
  });
  CHECK_CASE(parts.rows.front() == 2 && parts.rows.back() == 2,
             "stitch gradient");
}

struct Case {
  const char* name;
  std::function<void()> run;
};

const Case kCases[] = {
    {"gather, 4-byte rows", [] { Gather(IndexType::kInt32, Shape{kRows, 1}); }},
    {"gather, 4-byte rows, int64 indices",
     [] { Gather(IndexType::kInt64, Shape{kRows, 1}); }},
    {"gather, 12-byte rows",
     [] { Gather(IndexType::kInt32, Shape{kRows, 3}); }},
    {"gather, 64-byte rows",
     [] { Gather(IndexType::kInt32, Shape{kRows, 16}); }},
    {"gather, 256-byte rows",
     [] { Gather(IndexType::kInt32, Shape{kRows, 64}); }},
    {"gather, depth 2, 4-byte rows",
     [] { Gather(IndexType::kInt32, Shape{100, 100, 1}); }},
    {"gather, depth 4, 16-byte rows",
     [] { Gather(IndexType::kInt32, Shape{10, 10, 10, 10, 4}); }},
    {"scatter, 4-byte rows", [] { Scatter<PlainSum<float>>(Shape{kRows, 1}); }},
    {"scatter, 64-byte rows",
     [] { Scatter<PlainSum<float>>(Shape{kRows, 16}); }},
    {"scatter by sorting, 64-byte rows",
     [] { Scatter<WideSum<float, double>>(Shape{kRows, 16}); }},
    {"stitch, 4-byte rows", [] { StitchForward(4); }},
    {"stitch, 64-byte rows", [] { StitchForward(64); }},
    {"stitch gradient, 64-byte rows", [] { StitchBackward(64); }},
};

}  // namespace
}  // namespace tf_stitch_gather::testing

int main(int argc, char** argv) {
  using namespace tf_stitch_gather::testing;  // NOLINT: a test's main
  for (const Case& one : kCases) {
    if (argc == 1) {
      std::printf("%lld %s\n", static_cast<long long>(kRows), one.name);
    } else if (std::strcmp(argv[1], one.name) == 0) {
      one.run();
      return 0;
    }
  }
  return argc == 1 ? 0 : 2;
}
