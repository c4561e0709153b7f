// The device's gather on the host back end against the CPU's.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tf_ops/cpu/find_rows.h"
#include "tf_ops/cpu/gather_nd.h"
#include "tf_ops/gpu/gather_nd.h"
#include "tf_ops/gpu/tile_shape.h"
#include "tf_ops/tests/check.h"
#include "tf_ops/tests/gpu_memory.h"
#include "tf_ops/tests/problem.h"

namespace tf_stitch_gather::testing {
namespace {

// Gathers rows of `row_bytes` on both, from and to addresses that are
// `offset` bytes off.
void TestGather(const Problem& p, int64_t row_bytes, int64_t offset,
                const GpuStream& stream) {
  const std::string name = p.name + ", row of " + std::to_string(row_bytes) +
                           " at " + std::to_string(offset);
  ThreadWorkers workers(1);
  const RowMover mover = ByteRowMover(row_bytes, p.space.tuples());
  Random random(row_bytes);
  std::vector<char> params_bytes(p.space.rows() * row_bytes);
  for (char& byte : params_bytes) byte = static_cast<char>(random.Below(256));
  GpuMemory params(params_bytes, offset);
  for (const IndexType type : kIndexTypes) {
    const IndexTensor indices(type, p.values);
    std::vector<char> expected(p.space.tuples() * row_bytes);
    GatherNd(p.space, indices.indices(), params.data(), mover,
             /*ignore_bad=*/true, workers, expected.data());
    for (const bool reports : {false, true}) {
      GpuMemory output(static_cast<int64_t>(expected.size()), offset);
      GpuMemory report(BadTupleReportBytes(p.space.depth));
      CheckOk(GpuGatherNd(stream, p.space, indices.indices(), params.data(),
                          row_bytes, reports ? report.as<uint64_t>() : nullptr,
                          output.data()),
              name);
      CHECK_CASE(output.values<char>() == expected, name);
      CHECK_CASE(output.Intact() && report.Intact() && params.Intact(), name);
      if (!reports) continue;
      const std::vector<int64_t> words = report.values<int64_t>();
      if (p.first_bad == INT64_MAX) {
        CHECK_CASE(static_cast<uint64_t>(words[0]) == kNoBadIndex, name);
        continue;
      }
      CHECK_CASE(words[0] == p.first_bad, name);
      for (int k = 0; k < p.space.depth; ++k) {
        CHECK_CASE(words[1 + k] == p.values[p.first_bad * p.space.depth + k],
                   name);
      }
    }
  }
}

// A gather of depth `depth` from a tensor of as many small dimensions.
Problem DeepProblem(int depth) {
  Random random(depth);
  Problem p;
  p.indices_shape = {50, depth};
  p.target_shape = Shape();
  for (int k = 0; k < depth; ++k) p.target_shape.Append(k % 40 == 0 ? 2 : 1);
  p.target_shape.Append(3);
  CHECK_CASE(MakeIndexSpace(p.indices_shape, p.target_shape, 0, &p.space).ok(),
             "space");
  for (int64_t t = 0; t < 50; ++t) {
    for (int k = 0; k < depth; ++k) {
      p.values.push_back(random.Below(p.space.dims[k]));
    }
  }
  p.values[30 * depth + depth - 1] = -4;
  p.first_bad = 30;
  p.name = "depth " + std::to_string(depth);
  return p;
}

// One-column indices into `rows` rows.
Problem FlatProblem(int64_t rows, int64_t tuples) {
  Random random(rows + tuples);
  Problem p;
  p.indices_shape = {tuples, 1};
  p.target_shape = {rows, 1};
  CHECK_CASE(MakeIndexSpace(p.indices_shape, p.target_shape, 0, &p.space).ok(),
             "space");
  for (int64_t t = 0; t < tuples; ++t) {
    p.values.push_back(random.Below(rows));
  }
  p.name = std::to_string(tuples) + " of " + std::to_string(rows) + " rows";
  return p;
}

// Rows of a dimension of size 0: every index is bad.
void TestNoRows() {
  Problem p;
  p.indices_shape = {4, 2};
  p.target_shape = {3, 0, 5};
  CHECK_CASE(MakeIndexSpace(p.indices_shape, p.target_shape, 0, &p.space).ok(),
             "space");
  p.values.assign(8, 0);
  p.first_bad = 0;
  p.name = "no rows";
  TestGather(p, 20, 0, GpuStream());
}

// The arithmetic of grids and tiles at sizes that no test can run.
void TestLimits() {
  const GpuStream stream;
  CHECK_CASE(GridBlocks(stream, 0) == 0, "no tile");
  CHECK_CASE(GridBlocks(stream, 7) == 7, "few tiles");
  CHECK_CASE(GridBlocks(stream, int64_t{1} << 60) == kMaxGridBlocks, "many");
  CHECK_CASE(GridBlocks({nullptr, 5}, 7) == 5, "a small grid");
  CHECK_CASE(GridBlocks({nullptr, INT64_MAX}, INT64_MAX) == kMaxGridBlocks,
             "a stream that asks for more");
  for (const int64_t rows :
       {int64_t{1}, int64_t{1023}, int64_t{1} << 31, (int64_t{1} << 40) + 1}) {
    for (const int64_t units :
         {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{2048}, int64_t{2049},
          (int64_t{1} << 20) + 7}) {
      const TileShape shape = MakeTileShape(rows, units);
      const std::string name =
          std::to_string(rows) + " rows of " + std::to_string(units);
      CHECK_CASE(shape.rows_per_tile >= 1 && shape.rows_per_tile <= kTileRows,
                 name);
      CHECK_CASE(
          int64_t{shape.rows_per_tile} * shape.units_per_chunk <= kTileUnits,
          name);
      CHECK_CASE(shape.chunks == 1 || shape.rows_per_tile == 1, name);
      CHECK_CASE(shape.chunks * std::max(shape.units_per_chunk, 1) >= units &&
                     (shape.chunks - 1) * shape.units_per_chunk <=
                         std::max<int64_t>(units - 1, 0),
                 name);
      const int64_t groups = shape.tiles() / shape.chunks;
      CHECK_CASE(groups * shape.rows_per_tile >= rows &&
                     (groups - 1) * shape.rows_per_tile < rows,
                 name);
    }
  }
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  using namespace tf_stitch_gather;           // NOLINT: a test's main
  using namespace tf_stitch_gather::testing;  // NOLINT
  TestLimits();
  TestNoRows();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Problem problem = MakeProblem(seed, /*with_bad=*/seed % 2 == 1);
    const GpuStream& stream = Streams()[seed % Streams().size()];
    for (const int width : {1, 2, 4, 8, 16}) {
      TestGather(problem, problem.space.slice_elements * width, 0, stream);
    }
  }
  for (const GpuStream& stream : Streams()) {
    const Problem problem = FlatProblem(300, 2500);
    for (const int64_t row_bytes :
         {0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 100, 128}) {
      for (const int64_t offset : {0, 1, 2, 4, 8, 16}) {
        TestGather(problem, row_bytes, offset, stream);
      }
    }
    // Rows of more than one tile, and tiles of rows that do not fill them.
    for (const int64_t row_bytes : {4096, 5000, 33000, 100003}) {
      TestGather(FlatProblem(5, 7), row_bytes, 0, stream);
    }
    for (const int depth : {8, 9, 100, 253}) {
      for (const int64_t row_bytes : {3, 12, 16}) {
        TestGather(DeepProblem(depth), row_bytes, 0, stream);
      }
    }
    TestGather(FlatProblem(30000, 40000), 4, 0, stream);
    TestGather(FlatProblem(10, 0), 4, 0, stream);
  }
  std::puts("gather on the device: passed");
}
