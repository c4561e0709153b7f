// Random stitches and their gradients against loops that do one row after the
// other.

#include "tf_ops/cpu/dynamic_stitch.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tf_ops/tests/check.h"

namespace tf_stitch_gather::testing {
namespace {

void TestStitch(uint64_t seed, IndexType type, int64_t row_bytes,
                bool many_rows, Workers& workers) {
  Random random(seed);
  const std::string name =
      "seed " + std::to_string(seed) + ", row of " + std::to_string(row_bytes);
  const int part_count = static_cast<int>(1 + random.Below(6));
  const int64_t rows_named = 1 + random.Below(2000);
  std::vector<IndexTensor> indices;
  std::vector<std::vector<int64_t>> values(part_count);
  std::vector<std::vector<char>> data(part_count);
  std::vector<std::vector<char>> grads(part_count);
  int64_t greatest = -1;
  for (int m = 0; m < part_count; ++m) {
    const int64_t count = random.Below(4) ? random.Below(900) : 0;
    for (int64_t i = 0; i < count; ++i) {
      values[m].push_back(random.Below(rows_named));
      greatest = std::max(greatest, values[m].back());
    }
    data[m].resize(count * row_bytes + 1);
    grads[m].assign(count * row_bytes + 1, 'x');
    for (char& byte : data[m]) byte = static_cast<char>(random.Below(256));
    indices.emplace_back(type, values[m]);
  }
  StitchParts parts(type, part_count);
  StitchParts grad_parts(type, part_count);
  for (int m = 0; m < part_count; ++m) {
    const int64_t count = static_cast<int64_t>(values[m].size());
    parts.Add(indices[m].indices().data, data[m].data(), count);
    grad_parts.Add(indices[m].indices().data, grads[m].data(), count);
  }

  BadSource bad;
  const int64_t rows = StitchRows(parts, workers, &bad);
  CHECK_CASE(!bad.found() && rows == greatest + 1, name);

  // One row more than is named, which must come out as zeros, and one less,
  // which makes the greatest index a bad one.
  for (const int64_t size : {rows, rows + 1, rows - 1}) {
    if (size < 0) continue;
    std::vector<char> expected(size * row_bytes, 0);
    std::vector<std::pair<int, int64_t>> winner(size, {-1, 0});
    BadSource first_bad;
    for (int m = 0; m < part_count; ++m) {
      for (size_t i = 0; i < values[m].size(); ++i) {
        const int64_t row = values[m][i];
        if (row >= size) {
          if (!first_bad.found()) first_bad = {m, static_cast<int64_t>(i), row};
          continue;
        }
        std::memcpy(expected.data() + row * row_bytes,
                    data[m].data() + i * row_bytes, row_bytes);
        winner[row] = {m, static_cast<int64_t>(i)};
      }
    }
    const RowMover mover =
        ByteRowMover(row_bytes, many_rows ? kManyRows : size);
    std::vector<char> scratch(
        std::max(StitchScratchBytes(size, mover),
                 StitchGradScratchBytes(grad_parts, size, mover)) +
            1,
        'x');
    std::vector<char> merged(expected.size() + 1, 'x');
    CHECK_CASE(!Stitch(parts, size, mover, true, workers, scratch.data(),
                       merged.data())
                    .found(),
               name);
    CHECK_CASE(std::equal(expected.begin(), expected.end(), merged.begin()) &&
                   merged.back() == 'x',
               name);
    bad = Stitch(parts, size, mover, false, workers, scratch.data(),
                 merged.data());
    CHECK_CASE(bad.part == first_bad.part &&
                   bad.position == first_bad.position &&
                   bad.value == first_bad.value,
               name);

    bad = StitchGrad(grad_parts, size, expected.data(), mover, false, workers,
                     scratch.data());
    CHECK_CASE(bad.part == first_bad.part && bad.position == first_bad.position,
               name);
    CHECK_CASE(!StitchGrad(grad_parts, size, expected.data(), mover, true,
                           workers, scratch.data())
                    .found(),
               name);
    for (int m = 0; m < part_count; ++m) {
      CHECK_CASE(grads[m].back() == 'x', name);
      for (size_t i = 0; i < values[m].size(); ++i) {
        const int64_t row = values[m][i];
        const bool won =
            row < size &&
            winner[row] == std::make_pair(m, static_cast<int64_t>(i));
        const std::vector<char> zeros(row_bytes, 0);
        const char* from =
            won ? expected.data() + row * row_bytes : zeros.data();
        CHECK_CASE(
            std::memcmp(grads[m].data() + i * row_bytes, from, row_bytes) == 0,
            name);
      }
    }
  }
}

// Lists and outputs that are large enough to be fetched ahead.
void TestManyRows(int64_t row_bytes, Workers& workers) {
  constexpr int64_t kRows = 600'007;
  const std::string name = "many rows of " + std::to_string(row_bytes);
  std::vector<int64_t> values(kRows);
  std::vector<char> data(kRows * row_bytes);
  std::vector<char> expected(data.size());
  for (int64_t i = 0; i < kRows; ++i) {
    values[i] = i * 7919 % kRows;
    std::memcpy(data.data() + i * row_bytes, &i,
                std::min<int64_t>(row_bytes, 8));
    std::memcpy(expected.data() + values[i] * row_bytes,
                data.data() + i * row_bytes, row_bytes);
  }
  const IndexTensor indices(IndexType::kInt32, values);
  const RowMover mover = ByteRowMover(row_bytes, kRows);
  StitchParts parts(IndexType::kInt32, 1);
  parts.Add(indices.indices().data, data.data(), kRows);
  std::vector<char> grads(data.size(), 'x');
  StitchParts grad_parts(IndexType::kInt32, 1);
  grad_parts.Add(indices.indices().data, grads.data(), kRows);
  std::vector<char> scratch(
      std::max(StitchScratchBytes(kRows, mover),
               StitchGradScratchBytes(grad_parts, kRows, mover)));
  std::vector<char> merged(data.size(), 'x');
  CHECK_CASE(!Stitch(parts, kRows, mover, false, workers, scratch.data(),
                     merged.data())
                  .found(),
             name);
  CHECK_CASE(merged == expected, name);
  CHECK_CASE(!StitchGrad(grad_parts, kRows, merged.data(), mover, false,
                         workers, scratch.data())
                  .found(),
             name);
  CHECK_CASE(grads == data, name);
}

void TestNegative() {
  ThreadWorkers workers(3);
  const IndexTensor first(IndexType::kInt32, {4, 2});
  const IndexTensor second(IndexType::kInt32, {1, -7, -9});
  StitchParts parts(IndexType::kInt32, 2);
  parts.Add(first.indices().data, nullptr, 2);
  parts.Add(second.indices().data, nullptr, 3);
  BadSource bad;
  StitchRows(parts, workers, &bad);
  CHECK_CASE(bad.part == 1 && bad.position == 1 && bad.value == -7, "negative");
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  using namespace tf_stitch_gather;           // NOLINT: a test's main
  using namespace tf_stitch_gather::testing;  // NOLINT
  for (uint64_t seed = 0; seed < 60; ++seed) {
    for (const int threads : {1, 4}) {
      ThreadWorkers workers(threads);
      for (const IndexType type : {IndexType::kInt32, IndexType::kInt64}) {
        for (const int64_t row_bytes :
             {0, 1, 4, 7, 31, 32, 64, 96, 100, 256, 300}) {
          TestStitch(seed, type, row_bytes, false, workers);
          TestStitch(seed, type, row_bytes, true, workers);
        }
      }
    }
  }
  ThreadWorkers workers(2);
  for (const int64_t row_bytes : {4, 12, 64}) TestManyRows(row_bytes, workers);
  TestNegative();
  std::puts("dynamic_stitch: passed");
}
