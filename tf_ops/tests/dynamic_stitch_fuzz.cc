// Small stitches and their gradients of any contents, in memory of just their
// size, against loops that do one row after the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tf_ops/cpu/dynamic_stitch.h"
#include "tf_ops/tests/check.h"
#include "tf_ops/tests/fuzz_input.h"

namespace tf_stitch_gather::testing {
namespace {

struct Part {
  std::unique_ptr<IndexTensor> indices;
  int64_t count;
  std::unique_ptr<char[]> data;
  std::unique_ptr<char[]> grad;
};

std::unique_ptr<char[]> Memory(int64_t bytes) {
  std::unique_ptr<char[]> memory(new char[bytes]);
  std::memset(memory.get(), 0x5a, bytes);
  return memory;
}

bool Same(const BadSource& a, const BadSource& b) {
  return a.part == b.part &&
         (!a.found() || (a.position == b.position && a.value == b.value));
}

// A stitch of `parts` into `rows` rows, and its gradient, by a mover that is
// made for `moved` rows.
void StitchInto(const std::vector<Part>& list, IndexType type, int64_t rows,
                int64_t row_bytes, int64_t moved, Workers& workers) {
  StitchParts parts(type, static_cast<int>(list.size()));
  StitchParts grads(type, static_cast<int>(list.size()));
  const auto want = Memory(rows * row_bytes);
  std::memset(want.get(), 0, rows * row_bytes);
  std::vector<std::pair<size_t, int64_t>> winners(rows, {list.size(), 0});
  BadSource first_bad;
  for (size_t m = 0; m < list.size(); ++m) {
    const Part& part = list[m];
    const Indices indices = part.indices->indices();
    parts.Add(indices.data, part.data.get(), part.count);
    grads.Add(indices.data, part.grad.get(), part.count);
    for (int64_t i = 0; i < part.count; ++i) {
      const int64_t row = indices.at(i);
      if (row < 0 || row >= rows) {
        if (!first_bad.found()) first_bad = {static_cast<int>(m), i, row};
        continue;
      }
      std::memcpy(want.get() + row * row_bytes, &part.data[i * row_bytes],
                  row_bytes);
      winners[row] = {m, i};
    }
  }
  const RowMover mover = ByteRowMover(row_bytes, moved);
  const auto scratch = Memory(StitchScratchBytes(rows, mover));
  const auto merged = Memory(rows * row_bytes);
  FUZZ_CHECK(Same(
      Stitch(parts, rows, mover, false, workers, scratch.get(), merged.get()),
      first_bad));
  FUZZ_CHECK(
      !Stitch(parts, rows, mover, true, workers, scratch.get(), merged.get())
           .found());
  FUZZ_CHECK(std::memcmp(merged.get(), want.get(), rows * row_bytes) == 0);

  const auto grad_scratch = Memory(StitchGradScratchBytes(grads, rows, mover));
  FUZZ_CHECK(Same(StitchGrad(grads, rows, merged.get(), mover, false, workers,
                             grad_scratch.get()),
                  first_bad));
  FUZZ_CHECK(!StitchGrad(grads, rows, merged.get(), mover, true, workers,
                         grad_scratch.get())
                  .found());
  for (size_t m = 0; m < list.size(); ++m) {
    for (int64_t i = 0; i < list[m].count; ++i) {
      const int64_t row = list[m].indices->indices().at(i);
      const bool won =
          row >= 0 && row < rows && winners[row] == std::make_pair(m, i);
      for (int64_t j = 0; j < row_bytes; ++j) {
        FUZZ_CHECK(list[m].grad[i * row_bytes + j] ==
                   (won ? merged[row * row_bytes + j] : 0));
      }
    }
  }
}

}  // namespace
}  // namespace tf_stitch_gather::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tf_stitch_gather;           // NOLINT: a test's entry
  using namespace tf_stitch_gather::testing;  // NOLINT
  FuzzInput input(data, size);
  static constexpr int64_t kRowBytes[] = {0,  1,  2,  4,  7,  8,
                                          16, 31, 32, 64, 300};
  const int64_t row_bytes = kRowBytes[input.Below(11)];
  const IndexType type = input.Below(2) ? IndexType::kInt64 : IndexType::kInt32;
  ThreadWorkers workers(1 + static_cast<int>(input.Below(2)) * 2);
  const int64_t size_asked = input.Below(40);
  const int64_t named = 1 + input.Below(40);
  std::vector<Part> list(1 + input.Below(5));
  for (Part& part : list) {
    part.count = input.Below(4) ? input.Below(24) : 0;
    std::vector<int64_t> values;
    for (int64_t i = 0; i < part.count; ++i) {
      values.push_back(input.Index(named));
    }
    part.indices = std::make_unique<IndexTensor>(type, values);
    part.data = Memory(part.count * row_bytes);
    for (int64_t i = 0; i < part.count * row_bytes; ++i) {
      part.data[i] = static_cast<char>(i * 31 + 5);
    }
    part.grad = Memory(part.count * row_bytes);
  }
  StitchInto(list, type, size_asked, row_bytes, kManyRows, workers);

  // Without a size, the greatest index tells it.
  StitchParts parts(type, static_cast<int>(list.size()));
  BadSource first_bad;
  int64_t greatest = -1;
  bool negative = false;
  for (size_t m = 0; m < list.size(); ++m) {
    const Indices indices = list[m].indices->indices();
    parts.Add(indices.data, list[m].data.get(), list[m].count);
    for (int64_t i = 0; i < list[m].count; ++i) {
      greatest = std::max(greatest, indices.at(i));
      negative = negative || indices.at(i) < 0;
      // The index whose row count 64 bits cannot hold is bad beside another.
      if ((indices.at(i) < 0 || indices.at(i) == INT64_MAX) &&
          !first_bad.found()) {
        first_bad = {static_cast<int>(m), i, indices.at(i)};
      }
    }
  }
  BadSource bad;
  const int64_t rows = StitchRows(parts, workers, &bad);
  FUZZ_CHECK(Same(bad, negative ? first_bad : BadSource()));
  if (!bad.found()) {
    FUZZ_CHECK(rows == std::min(greatest, INT64_MAX - 1) + 1);
    if (rows <= 4096) StitchInto(list, type, rows, row_bytes, rows, workers);
  }
  return 0;
}
