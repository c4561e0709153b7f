// Small gathers and scatters of any contents, in memory of just their size,
// against loops that do one element after the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tf_ops/core/index_space.h"
#include "tf_ops/cpu/gather_nd.h"
#include "tf_ops/cpu/scatter_nd.h"
#include "tf_ops/tests/check.h"
#include "tf_ops/tests/fuzz_input.h"
#include "tf_ops/tests/sums.h"

namespace tf_stitch_gather::testing {
namespace {

struct Case {
  Shape indices_shape;
  Shape target_shape;
  IndexSpace space;
  std::unique_ptr<IndexTensor> indices;
  std::vector<int64_t> rows;  // of each tuple, -1 out of range
  int64_t first_bad = FirstBad::kNone;
};

bool MakeCase(FuzzInput& input, Case* c) {
  const int batch = static_cast<int>(input.Below(3));
  const int depth = static_cast<int>(input.Below(6));
  for (int i = 0; i < batch; ++i) {
    const int64_t dim = input.Below(4);
    c->indices_shape.Append(dim);
    c->target_shape.Append(dim);
  }
  c->indices_shape.Append(input.Below(20));
  c->indices_shape.Append(depth);
  for (int i = 0; i < depth; ++i) c->target_shape.Append(input.Below(5));
  const int64_t slice = input.Below(16) == 0 ? 130 : input.Below(9);
  c->target_shape.Append(slice);
  FUZZ_CHECK(
      MakeIndexSpace(c->indices_shape, c->target_shape, batch, &c->space).ok());
  if (c->space.rows() * slice > 20000) return false;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < c->space.tuples() * depth; ++i) {
    values.push_back(input.Index(c->space.dims[i % depth]));
  }
  c->indices = std::make_unique<IndexTensor>(input.Type(), values);
  const Indices indices = c->indices->indices();
  for (int64_t t = 0; t < c->space.tuples(); ++t) {
    int64_t row = t / c->space.tuples_per_batch * c->space.rows_per_batch;
    for (int k = 0; k < depth && row >= 0; ++k) {
      const int64_t index = indices.at(t * depth + k);
      const bool fits = index >= 0 && index < c->space.dims[k];
      row = fits ? row + index * c->space.strides[k] : -1;
    }
    c->rows.push_back(row);
    if (row < 0) c->first_bad = std::min(c->first_bad, t);
  }
  return true;
}

// Memory that ends where it ends, full of bytes that nobody wrote.
std::unique_ptr<char[]> Memory(int64_t bytes) {
  std::unique_ptr<char[]> memory(new char[bytes]);
  std::memset(memory.get(), 0x5a, bytes);
  return memory;
}

void Gather(const Case& c, int64_t element_bytes, int64_t moved,
            Workers& workers) {
  const IndexSpace& space = c.space;
  const int64_t row_bytes = space.slice_elements * element_bytes;
  const auto params = Memory(space.rows() * row_bytes);
  for (int64_t i = 0; i < space.rows() * row_bytes; ++i) {
    params[i] = static_cast<char>(i * 31 + 7);
  }
  const auto output = Memory(space.tuples() * row_bytes);
  const RowMover mover = ByteRowMover(row_bytes, moved);
  FUZZ_CHECK(GatherNd(space, c.indices->indices(), params.get(), mover, false,
                      workers, output.get()) == c.first_bad);
  FUZZ_CHECK(GatherNd(space, c.indices->indices(), params.get(), mover, true,
                      workers, output.get()) == FirstBad::kNone);
  for (int64_t t = 0; t < space.tuples(); ++t) {
    for (int64_t j = 0; j < row_bytes; ++j) {
      const char want = c.rows[t] < 0 ? 0 : params[c.rows[t] * row_bytes + j];
      FUZZ_CHECK(output[t * row_bytes + j] == want);
    }
  }
}

void GatherStrings(const Case& c, Workers& workers) {
  const IndexSpace& space = c.space;
  const int64_t width = space.slice_elements;
  std::vector<std::string> params(space.rows() * width);
  for (size_t i = 0; i < params.size(); ++i) {
    params[i] = std::string(i % 40, static_cast<char>('a' + i % 26));
  }
  std::vector<std::string> output(space.tuples() * width, "before");
  const RowMover mover = ObjectRowMover<std::string>(width);
  FUZZ_CHECK(GatherNd(space, c.indices->indices(),
                      reinterpret_cast<const char*>(params.data()), mover, true,
                      workers, reinterpret_cast<char*>(output.data())) ==
             FirstBad::kNone);
  for (int64_t t = 0; t < space.tuples(); ++t) {
    for (int64_t j = 0; j < width; ++j) {
      FUZZ_CHECK(output[t * width + j] ==
                 (c.rows[t] < 0 ? "" : params[c.rows[t] * width + j]));
    }
  }
}

template <typename Sum>
void Scatter(const Case& c, std::initializer_list<ScatterWay> ways,
             Workers& workers) {
  const IndexSpace& space = c.space;
  const int64_t width = space.slice_elements;
  const auto updates = Memory(space.tuples() * width);
  std::vector<uint8_t> want(space.rows() * width);
  std::vector<bool> named(space.rows());
  for (int64_t i = 0; i < space.tuples() * width; ++i) {
    updates[i] = static_cast<char>(i * 13 + 1);
    const int64_t row = c.rows[i / width];
    if (row >= 0) {
      want[row * width + i % width] += static_cast<uint8_t>(updates[i]);
    }
  }
  for (const int64_t row : c.rows) {
    if (row >= 0) named[row] = true;
  }
  const auto* from = reinterpret_cast<const uint8_t*>(updates.get());
  for (const ScatterWay way : ways) {
    const auto scratch = Memory(ScatterScratchBytes(space, way));
    const auto output = Memory(space.rows() * width);
    auto* to = reinterpret_cast<uint8_t*>(output.get());
    FUZZ_CHECK(ScatterNd<Sum>(space, c.indices->indices(), from, false, way,
                              workers, scratch.get(), to) == c.first_bad);
    FUZZ_CHECK(ScatterNd<Sum>(space, c.indices->indices(), from, true, way,
                              workers, scratch.get(), to) == FirstBad::kNone);
    FUZZ_CHECK(std::equal(want.begin(), want.end(), to));
  }
  const auto scratch = Memory(KeyBytes(space));
  VisitSortedTuples(space, [&](auto sorted) {
    FUZZ_CHECK(SortTuples(space, c.indices->indices(), true, workers,
                          scratch.get(), &sorted) == FirstBad::kNone);
    const MergedRows merged(sorted, workers);
    FUZZ_CHECK(merged.count() == std::count(named.begin(), named.end(), true));
    std::vector<int64_t> rows(merged.count());
    const auto values = Memory(merged.count() * width);
    merged.Write<Sum>(sorted, from, width, workers, rows.data(),
                      reinterpret_cast<uint8_t*>(values.get()));
    for (int64_t i = 0; i < merged.count(); ++i) {
      FUZZ_CHECK(named[rows[i]] && (i == 0 || rows[i] > rows[i - 1]));
      FUZZ_CHECK(width == 0 ||
                 std::memcmp(values.get() + i * width,
                             want.data() + rows[i] * width, width) == 0);
    }
  });
}

}  // namespace
}  // namespace tf_stitch_gather::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tf_stitch_gather;           // NOLINT: a test's entry
  using namespace tf_stitch_gather::testing;  // NOLINT
  FuzzInput input(data, size);
  static constexpr int64_t kElementBytes[] = {1, 2, 3, 4, 8, 16, 33};
  const int64_t element_bytes = kElementBytes[input.Below(7)];
  ThreadWorkers workers(1 + static_cast<int>(input.Below(2)) * 2);
  Case c;
  if (!MakeCase(input, &c)) return 0;
  for (const int64_t moved : {c.space.tuples(), kManyRows}) {
    Gather(c, element_bytes, moved, workers);
  }
  GatherStrings(c, workers);
  Scatter<PlainSum<uint8_t>>(
      c, {ScatterWay::kInOrder, ScatterWay::kByBatch, ScatterWay::kByColumn},
      workers);
  Scatter<WideSum<uint8_t, int32_t>>(c, {ScatterWay::kSorted}, workers);
  return 0;
}
