// The device's stitch and its gradient on the host back end against the CPU's.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tf_ops/cpu/dynamic_stitch.h"
#include "tf_ops/gpu/dynamic_stitch.h"
#include "tf_ops/tests/check.h"
#include "tf_ops/tests/gpu_memory.h"

namespace tf_stitch_gather::testing {
namespace {

bool Same(const BadSource& a, const BadSource& b) {
  return a.part == b.part &&
         (!a.found() || (a.position == b.position && a.value == b.value));
}

// What a call on the device left in its report.
BadSource Bad(const StitchParts& parts, const GpuMemory& report) {
  return ToBadSource(parts, report.values<StitchReport>()[0]);
}

struct Case {
  uint64_t seed;
  int parts;
  int64_t sources_per_part;
  int64_t rows_named;
  int64_t row_bytes;
  bool with_negative;
};

void TestStitch(const Case& c, IndexType type, int64_t offset,
                const GpuStream& stream) {
  Random random(c.seed);
  const std::string name = "seed " + std::to_string(c.seed) + ", " +
                           std::to_string(c.parts) + " parts, row of " +
                           std::to_string(c.row_bytes);
  ThreadWorkers workers(1);
  const int64_t row_bytes = c.row_bytes;
  std::vector<IndexTensor> indices;
  std::vector<GpuMemory> data;
  std::vector<GpuMemory> grads;
  std::vector<std::vector<char>> expected_grads;
  StitchParts parts(type, c.parts);
  StitchParts grad_parts(type, c.parts);
  StitchParts expected_parts(type, c.parts);
  for (int m = 0; m < c.parts; ++m) {
    const int64_t count =
        random.Below(5) == 0 ? 0 : random.Below(c.sources_per_part + 1);
    std::vector<int64_t> values(count);
    for (int64_t& value : values) {
      value = c.with_negative && random.Below(40) == 0
                  ? -1 - random.Below(9)
                  : random.Below(c.rows_named);
    }
    std::vector<char> bytes(count * row_bytes);
    for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
    indices.emplace_back(type, values);
    data.emplace_back(bytes, offset);
    grads.emplace_back(count * row_bytes, offset);
    expected_grads.emplace_back(count * row_bytes);
    parts.Add(indices[m].indices().data, data[m].data(), count);
    grad_parts.Add(indices[m].indices().data, grads[m].data(), count);
    expected_parts.Add(indices[m].indices().data, expected_grads[m].data(),
                       count);
  }
  GpuMemory table(GpuStitchTableBytes(parts));
  GpuMemory grad_table(GpuStitchTableBytes(parts));
  GpuMemory report(sizeof(StitchReport));
  StitchReport* on_device = report.as<StitchReport>();
  CheckOk(GpuUploadParts(stream, parts, table.data()), name);
  CheckOk(GpuUploadParts(stream, grad_parts, grad_table.data()), name);

  BadSource bad;
  const int64_t rows = StitchRows(parts, workers, &bad);
  CheckOk(GpuStitchRows(stream, parts, table.data(), on_device), name);
  CHECK_CASE(Same(Bad(parts, report), bad), name);
  if (!bad.found()) CHECK_CASE(on_device->value == rows - 1, name);

  const RowMover mover = ByteRowMover(row_bytes, rows);
  for (const int64_t size : {rows, rows + 3, rows - 1, int64_t{0}}) {
    if (size < 0) continue;
    std::vector<char> cpu_scratch(
        std::max(StitchScratchBytes(size, mover),
                 StitchGradScratchBytes(parts, size, mover)) +
        1);
    GpuMemory scratch(GpuStitchScratchBytes(parts, size, row_bytes));
    std::vector<char> expected(size * row_bytes);
    bad = Stitch(parts, size, mover, false, workers, cpu_scratch.data(),
                 expected.data());
    for (const bool reports : {true, false}) {
      GpuMemory merged(size * row_bytes, offset);
      CheckOk(GpuStitch(stream, parts, table.data(), size, row_bytes,
                        reports ? on_device : nullptr, scratch.data(),
                        merged.data()),
              name);
      CHECK_CASE(merged.values<char>() == expected, name);
      CHECK_CASE(merged.Intact() && scratch.Intact(), name);
      if (reports) CHECK_CASE(Same(Bad(parts, report), bad), name);
    }
    GpuMemory grad(expected, offset);
    bad = StitchGrad(expected_parts, size, expected.data(), mover, false,
                     workers, cpu_scratch.data());
    CheckOk(GpuStitchGrad(stream, grad_parts, grad_table.data(), size,
                          grad.data(), row_bytes, on_device, scratch.data()),
            name);
    CHECK_CASE(Same(Bad(parts, report), bad), name);
    for (int m = 0; m < c.parts; ++m) {
      CHECK_CASE(grads[m].values<char>() == expected_grads[m], name);
      CHECK_CASE(grads[m].Intact() && data[m].Intact(), name);
    }
  }
  CHECK_CASE(table.Intact() && grad_table.Intact() && report.Intact(), name);
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  using namespace tf_stitch_gather;           // NOLINT: a test's main
  using namespace tf_stitch_gather::testing;  // NOLINT
  uint64_t seed = 0;
  for (const IndexType type : {IndexType::kInt32, IndexType::kInt64}) {
    for (const GpuStream& stream : Streams()) {
      for (const int64_t row_bytes :
           {0, 1, 2, 3, 4, 8, 12, 16, 48, 64, 100, 300}) {
        for (const int64_t offset : {0, 1, 4, 8}) {
          TestStitch({++seed, 5, 400, 1500, row_bytes, seed % 3 == 0}, type,
                     offset, stream);
        }
      }
      // Many duplicates, many parts, wide rows, many sources.
      TestStitch({++seed, 3, 3000, 2, 64, false}, type, 0, stream);
      TestStitch({++seed, 700, 6, 900, 20, false}, type, 0, stream);
      TestStitch({++seed, 2, 6, 9, 40000, false}, type, 0, stream);
      TestStitch({++seed, 2, 60000, 90000, 4, false}, type, 0, stream);
      TestStitch({++seed, 1, 0, 1, 4, false}, type, 0, stream);
    }
  }
  std::puts("stitch on the device: passed");
}
