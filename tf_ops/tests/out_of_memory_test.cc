// Each allocation of each loop fails once: std::bad_alloc comes to the caller
// or the result is right all the same, no thread ends the process, and nothing
// leaks. The same for what a block of a loop throws on a helper's thread.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tf_ops/core/dynamic_stitch.h"
#include "tf_ops/core/gather_nd.h"
#include "tf_ops/core/index_space.h"
#include "tf_ops/core/no_throw.h"
#include "tf_ops/core/policy.h"
#include "tf_ops/cpu/block_queue.h"
#include "tf_ops/cpu/dynamic_stitch.h"
#include "tf_ops/cpu/gather_nd.h"
#include "tf_ops/cpu/scatter_nd.h"
#include "tf_ops/tests/check.h"
#include "tf_ops/tests/sums.h"

namespace {

// The number of allocations until the one that fails; negative: none fails.
std::atomic<int64_t> until_failure{-1};
std::atomic<int64_t> live{0};

}  // namespace

void* operator new(size_t size) {
  if (until_failure.load() >= 0 && until_failure.fetch_sub(1) == 0) {
    throw std::bad_alloc();
  }
  void* memory = std::malloc(size + 1);
  if (memory == nullptr) throw std::bad_alloc();
  ++live;
  return memory;
}

void operator delete(void* memory) noexcept {
  if (memory != nullptr) --live;
  std::free(memory);
}

void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace tf_stitch_gather::testing {
namespace {

// As the kernels' threads: helpers that wake whenever they do.
class HelperWorkers : public Workers {
 public:
  explicit HelperWorkers(int count) : count_(count) { threads_.reserve(1000); }

  int count() const override { return count_; }

  void Run(int64_t units, int64_t block,
           const std::function<void(int64_t, int64_t)>& work) override {
    RunBlocks(units, block, count_ - 1, work, [&](auto help) {
      const std::lock_guard<std::mutex> lock(mutex_);
      threads_.emplace_back(std::move(help));
    });
  }

  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  int count_;
  std::mutex mutex_;  // A late helper is called by whoever works.
  std::vector<std::thread> threads_;
};

// Runs `call` with its first, second, ... allocation failing, until none is
// left, and returns how many failed. `right` says whether the result is.
template <typename Call, typename Right>
int FailEach(const std::string& name, HelperWorkers& workers, const Call& call,
             const Right& right) {
  constexpr int kEnough = 1000;
  for (int number = 0; number < kEnough; ++number) {
    const int64_t before = live;
    until_failure = number;
    const bool came_to_end = NoThrow(
        [&] {
          call();
          return true;
        },
        false);
    const bool failed = until_failure.exchange(-1) < 0;
    workers.Join();
    const int64_t after = live;
    const std::string which = name + ", allocation " + std::to_string(number);
    CHECK_CASE(after == before, "no leak: " + which);
    CHECK_CASE(came_to_end || failed, which);
    CHECK_CASE(!came_to_end || right(), which);
    if (!failed) return number;
  }
  CHECK_CASE(false, name + " never ends");
  return 0;
}

constexpr int64_t kCount = 60'000;
constexpr int64_t kWidth = 8;

struct Inputs {
  Inputs() : indices(kCount), rows(kCount * kWidth), output(kCount * kWidth) {
    for (int64_t i = 0; i < kCount; ++i) indices[i] = kCount - 1 - i;
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
    CHECK_CASE(MakeIndexSpace({kCount, 1}, {kCount, kWidth}, 0, &space).ok(),
               "space");
  }

  // Whether `values` are the rows in reverse.
  bool Reversed(const std::vector<float>& values) const {
    for (int64_t i = 0; i < kCount * kWidth; ++i) {
      const int64_t row = kCount - 1 - i / kWidth;
      if (values[i] != rows[row * kWidth + i % kWidth]) return false;
    }
    return true;
  }

  std::vector<int64_t> indices;
  std::vector<float> rows;
  std::vector<float> output;
  IndexSpace space;
};

int FailLoops(HelperWorkers& workers) {
  Inputs in;
  const Indices indices = {in.indices.data(), IndexType::kInt64};
  const char* rows = reinterpret_cast<const char*>(in.rows.data());
  char* output = reinterpret_cast<char*>(in.output.data());
  const RowMover mover = ByteRowMover(kWidth * sizeof(float), kCount);
  const auto reversed = [&] { return in.Reversed(in.output); };
  int failed = FailEach(
      "gather", workers,
      [&] { GatherNd(in.space, indices, rows, mover, false, workers, output); },
      reversed);

  using Sum = PlainSum<float>;
  using Wide = WideSum<float, double>;
  std::vector<char> scratch(std::max(
      ScatterScratchBytes(in.space, ScatterWay::kSorted), KeyBytes(in.space)));
  for (const ScatterWay way :
       {ScatterWay::kInOrder, ScatterWay::kByBatch, ScatterWay::kByColumn}) {
    failed += FailEach(
        "scatter", workers,
        [&] {
          ScatterNd<Sum>(in.space, indices, in.rows.data(), false, way, workers,
                         scratch.data(), in.output.data());
        },
        reversed);
  }
  failed += FailEach(
      "sorted scatter", workers,
      [&] {
        ScatterNd<Wide>(in.space, indices, in.rows.data(), false,
                        ScatterWay::kSorted, workers, scratch.data(),
                        in.output.data());
      },
      reversed);
  VisitSortedTuples(in.space, [&](auto sorted) {
    std::vector<int64_t> named(kCount);
    failed += FailEach(
        "merged rows", workers,
        [&] {
          SortTuples(in.space, indices, false, workers, scratch.data(),
                     &sorted);
          const MergedRows merged(sorted, workers);
          merged.Write<Sum>(sorted, in.rows.data(), kWidth, workers,
                            named.data(), in.output.data());
        },
        reversed);
  });

  std::vector<char> map(StitchScratchBytes(kCount, mover));
  failed += FailEach(
      "stitch", workers,
      [&] {
        StitchParts parts(IndexType::kInt64, 1);
        parts.Add(indices.data, rows, kCount);
        BadSource bad;
        Stitch(parts, StitchRows(parts, workers, &bad), mover, false, workers,
               map.data(), output);
      },
      reversed);
  failed += FailEach(
      "gradient of a stitch", workers,
      [&] {
        StitchParts parts(IndexType::kInt64, 1);
        parts.Add(indices.data, output, kCount);
        std::vector<char> winners(StitchGradScratchBytes(parts, kCount, mover));
        StitchGrad(parts, kCount, rows, mover, false, workers, winners.data());
      },
      reversed);
  return failed;
}

// Shapes of so many dimensions, and messages, are on the heap.
int FailChecks(HelperWorkers& workers) {
  Shape large;
  for (int i = 0; i < 20; ++i) large.Append(2);
  const int64_t bad_tuple[] = {0, 5};
  int failed = FailEach(
      "shapes", workers,
      [&] {
        Shape result;
        CHECK_CASE(GatherNdOutputShape(large, {2, 2}, 0, &result).ok() &&
                       !GatherNdOutputShape(large, {2, 200}, 0, &result).ok() &&
                       !CheckScatterNd({3, 1}, large, {4, 4}, 0).ok(),
                   "shapes");
        StitchShapes stitch;
        CHECK_CASE(stitch.Add({2}, large).ok() && !stitch.Add({3}, large).ok(),
                   "stitch");
        BadIndicesPolicy policy;
        CHECK_CASE(!ParseBadIndicesPolicy(std::string(99, 'x'), &policy).ok(),
                   "policy");
      },
      [] { return true; });
  failed += FailEach(
      "messages", workers,
      [&] {
        const std::string text = BadTupleMessage({bad_tuple, IndexType::kInt64},
                                                 {2, 1}, 1, "shape", large) +
                                 BadStitchIndex(0, 1, 7, 5).message();
        CHECK_CASE(!text.empty(), "messages");
      },
      [] { return true; });
  return failed;
}

// Every block is done though one throws, and that comes to the caller.
void TestThrowingBlocks(HelperWorkers& workers) {
  constexpr int64_t kUnits = 1000;
  for (int64_t thrower = 0; thrower < kUnits; thrower += 37) {
    std::vector<std::atomic<int>> done(kUnits);
    std::string what;
    try {
      workers.Run(kUnits, 7, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++done[i];
        if (begin <= thrower && thrower < end) {
          throw std::length_error("block of " + std::to_string(thrower));
        }
      });
    } catch (const std::length_error& error) {
      what = error.what();
    }
    workers.Join();
    CHECK_CASE(what == "block of " + std::to_string(thrower), what);
    for (const std::atomic<int>& times : done) CHECK_CASE(times == 1, what);
  }
  CHECK_CASE(
      NoThrow([]() -> int { throw std::length_error("too long"); }, 7) == 7,
      "NoThrow");
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  using namespace tf_stitch_gather::testing;  // NOLINT: a test's main
  int failed = 0;
  for (const int threads : {1, 2, 4}) {
    HelperWorkers workers(threads);
    failed += FailLoops(workers) + FailChecks(workers);
    TestThrowingBlocks(workers);
  }
  CHECK_CASE(failed > 0, "allocations");
  std::printf("out of memory: passed, %d failed allocations\n", failed);
}
