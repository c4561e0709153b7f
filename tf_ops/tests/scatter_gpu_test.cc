// The device's scatters on the host back end against sums that are exact, and
// against the CPU's.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tf_ops/core/mini_float.h"
#include "tf_ops/cpu/scatter_nd.h"
#include "tf_ops/gpu/gather_nd.h"
#include "tf_ops/gpu/scatter_nd.h"
#include "tf_ops/tests/check.h"
#include "tf_ops/tests/gpu_memory.h"
#include "tf_ops/tests/problem.h"

namespace tf_stitch_gather::testing {
namespace {

template <typename T>
struct PlainTestSum {
  using Value = T;
  using Wide = T;
  static constexpr bool kPlainBytes = true;
  static void Add(T value, T* sum) { *sum = static_cast<T>(*sum + value); }
};

template <typename Mini>
struct MiniTestSum {
  using Value = typename Mini::Code;
  using Wide = float;
  static constexpr bool kPlainBytes = true;
  static void Add(Value value, float* sum) { *sum += Mini::Decode(value); }
  static Value Round(float sum) { return Mini::Encode(sum); }
};

template <int kBits>
struct SubByteTestSum {
  using Value = uint8_t;
  using Wide = int;
  static constexpr bool kPlainBytes = true;
  static void Add(uint8_t value, int* sum) { *sum += value; }
  static uint8_t Round(int sum) {
    return static_cast<uint8_t>(sum % (1 << kBits));
  }
};

struct OrTestSum {
  using Value = uint8_t;
  using Wide = uint8_t;
  static constexpr bool kPlainBytes = true;
  static void Add(uint8_t value, uint8_t* sum) { *sum = *sum || value; }
};

// Updates whose sums are exact in any order: small integers, of a few bits in
// the narrow floats.
template <typename Value>
Value UpdateOf(SumKind kind, Random& random) {
  switch (kind) {
    case SumKind::kHalf:
      return static_cast<Value>(
          Half::Encode(static_cast<float>(random.Below(9)) - 4));
    case SumKind::kBfloat16:
      return static_cast<Value>(
          Bfloat16::Encode(static_cast<float>(random.Below(9)) - 4));
    case SumKind::kFloat8E5M2:
    case SumKind::kFloat8E4M3Fn:
    case SumKind::kFloat8E4M3Fnuz:
    case SumKind::kFloat8E4M3B11Fnuz:
    case SumKind::kFloat8E5M2Fnuz:
      // Codes of numbers between 2^-4 and 2^4 or so, of either sign.
      return static_cast<Value>(random.Below(2) * 128 + 40 + random.Below(32));
    case SumKind::kNibble:
    case SumKind::kFloat4E2M1Fn:
      return static_cast<Value>(random.Below(16));
    case SumKind::kCrumb:
      return static_cast<Value>(random.Below(4));
    case SumKind::kOr:
      return static_cast<Value>(random.Below(4) == 0);
    default:
      return static_cast<Value>(random.Below(2001) - 1000);
  }
}

template <typename Sum>
void TestScatter(const Problem& p, SumKind kind, const GpuStream& stream) {
  using Value = typename Sum::Value;
  const int64_t width = p.space.slice_elements;
  const std::string name =
      p.name + ", kind " + std::to_string(static_cast<int>(kind));
  CHECK_CASE(ElementBytes(kind) == sizeof(Value), name);
  Random random(17);
  std::vector<Value> values(p.space.tuples() * width);
  for (Value& value : values) value = UpdateOf<Value>(kind, random);
  GpuMemory updates(values);
  ThreadWorkers workers(1);

  for (const IndexType type : kIndexTypes) {
    const IndexTensor indices(type, p.values);
    std::vector<Value> expected(p.space.rows() * width);
    const ScatterWay way =
        kSumsInPlace<Sum> ? ScatterWay::kInOrder : ScatterWay::kSorted;
    std::vector<char> cpu_scratch(KeyBytes(p.space) + 1);
    ScatterNd<Sum>(p.space, indices.indices(), values.data(), true, way,
                   workers, cpu_scratch.data(), expected.data());

    const auto check_report = [&](const GpuMemory& report) {
      const std::vector<int64_t> words = report.values<int64_t>();
      CHECK_CASE(report.Intact(), name);
      if (p.first_bad == INT64_MAX) {
        CHECK_CASE(static_cast<uint64_t>(words[0]) == kNoBadIndex, name);
        return;
      }
      CHECK_CASE(words[0] == p.first_bad, name);
      for (int k = 0; k < p.space.depth; ++k) {
        CHECK_CASE(words[1 + k] == p.values[p.first_bad * p.space.depth + k],
                   name);
      }
    };

    for (const bool deterministic : {false, true}) {
      GpuMemory output(static_cast<int64_t>(expected.size() * sizeof(Value)));
      GpuMemory report(BadTupleReportBytes(p.space.depth));
      uint64_t* bad = deterministic ? nullptr : report.as<uint64_t>();
      if (AddsAtomically(kind, deterministic)) {
        CheckOk(GpuScatterNdAtomic(stream, p.space, indices.indices(), kind,
                                   width, updates.data(), bad, output.data()),
                name);
      } else {
        GpuRowSums sums;
        CheckOk(sums.Plan(p.space, kind, width, /*merges=*/false), name);
        GpuMemory scratch(sums.scratch_bytes());
        CheckOk(sums.Sort(stream, indices.indices(), bad, scratch.data()),
                name);
        CheckOk(sums.Scatter(stream, updates.data(), output.data()), name);
        CHECK_CASE(scratch.Intact(), name);
      }
      CHECK_CASE(output.Intact(), name);
      CHECK_CASE(output.values<Value>() == expected, name);
      if (bad != nullptr) check_report(report);
    }

    // The merged rows are those of the dense sum.
    GpuRowSums sums;
    CheckOk(sums.Plan(p.space, kind, width, /*merges=*/true), name);
    GpuMemory scratch(sums.scratch_bytes());
    GpuMemory report(BadTupleReportBytes(p.space.depth));
    GpuMemory count(sizeof(uint64_t));
    CheckOk(sums.Sort(stream, indices.indices(), report.as<uint64_t>(),
                      scratch.data()),
            name);
    CheckOk(sums.CountRows(stream, count.as<uint64_t>()), name);
    std::vector<bool> named(p.space.rows());
    for (const int64_t row : p.rows) {
      if (row >= 0) named[row] = true;
    }
    const int64_t merged = *count.as<int64_t>();
    CHECK_CASE(merged == std::count(named.begin(), named.end(), true), name);
    GpuMemory rows(merged * static_cast<int64_t>(sizeof(int64_t)));
    GpuMemory to(merged * width * static_cast<int64_t>(sizeof(Value)));
    CheckOk(sums.Merge(stream, updates.data(), rows.as<int64_t>(), to.data()),
            name);
    CHECK_CASE(rows.Intact() && to.Intact() && scratch.Intact(), name);
    check_report(report);
    const std::vector<int64_t> row_list = rows.values<int64_t>();
    const std::vector<Value> sum_list = to.values<Value>();
    for (int64_t i = 0; i < merged; ++i) {
      CHECK_CASE(i == 0 || row_list[i] > row_list[i - 1], name);
      CHECK_CASE(named[row_list[i]], name);
      CHECK_CASE(std::equal(sum_list.begin() + i * width,
                            sum_list.begin() + (i + 1) * width,
                            expected.begin() + row_list[i] * width),
                 name);
    }
  }
}

void TestKinds(const Problem& p, const GpuStream& stream) {
  TestScatter<PlainTestSum<float>>(p, SumKind::kFloat, stream);
  TestScatter<PlainTestSum<double>>(p, SumKind::kDouble, stream);
  TestScatter<PlainTestSum<uint8_t>>(p, SumKind::kInteger8, stream);
  TestScatter<PlainTestSum<uint16_t>>(p, SumKind::kInteger16, stream);
  TestScatter<PlainTestSum<uint32_t>>(p, SumKind::kInteger32, stream);
  TestScatter<PlainTestSum<uint64_t>>(p, SumKind::kInteger64, stream);
  TestScatter<SubByteTestSum<4>>(p, SumKind::kNibble, stream);
  TestScatter<SubByteTestSum<2>>(p, SumKind::kCrumb, stream);
  TestScatter<OrTestSum>(p, SumKind::kOr, stream);
  TestScatter<MiniTestSum<Half>>(p, SumKind::kHalf, stream);
  TestScatter<MiniTestSum<Bfloat16>>(p, SumKind::kBfloat16, stream);
  TestScatter<MiniTestSum<Float8E5M2>>(p, SumKind::kFloat8E5M2, stream);
  TestScatter<MiniTestSum<Float8E4M3Fn>>(p, SumKind::kFloat8E4M3Fn, stream);
  TestScatter<MiniTestSum<Float8E4M3Fnuz>>(p, SumKind::kFloat8E4M3Fnuz, stream);
  TestScatter<MiniTestSum<Float8E4M3B11Fnuz>>(p, SumKind::kFloat8E4M3B11Fnuz,
                                              stream);
  TestScatter<MiniTestSum<Float8E5M2Fnuz>>(p, SumKind::kFloat8E5M2Fnuz, stream);
  TestScatter<MiniTestSum<Float4E2M1Fn>>(p, SumKind::kFloat4E2M1Fn, stream);
}

// Tuples of one column into `rows` rows, most of them into the first one.
Problem HotRow(int64_t rows, int64_t tuples, int64_t width) {
  Random random(3);
  Problem p;
  p.indices_shape = {tuples, 1};
  p.target_shape = {rows, width};
  CHECK_CASE(MakeIndexSpace(p.indices_shape, p.target_shape, 0, &p.space).ok(),
             "space");
  for (int64_t t = 0; t < tuples; ++t) {
    p.values.push_back(random.Below(3) == 0 ? random.Below(rows) : 0);
    p.rows.push_back(p.values.back());
  }
  p.name = std::to_string(tuples) + " tuples, a hot row";
  return p;
}

// The sums of floats in general: the same bits for any grid, and close to the
// exact sum, which a plain float32 loop over so many terms is not.
void TestDeterminism() {
  const Problem p = HotRow(50, 200000, 3);
  const IndexTensor indices(IndexType::kInt32, p.values);
  Random random(1);
  std::vector<float> values(p.space.tuples() * 3);
  for (float& value : values) {
    value = static_cast<float>(random.Below(1 << 20)) * 1.1e-6f;
  }
  std::vector<double> exact(50 * 3);
  for (int64_t t = 0; t < p.space.tuples(); ++t) {
    for (int j = 0; j < 3; ++j) exact[p.rows[t] * 3 + j] += values[t * 3 + j];
  }
  std::vector<std::vector<float>> results;
  for (const GpuStream& stream : Streams()) {
    GpuRowSums sums;
    CheckOk(sums.Plan(p.space, SumKind::kFloat, 3, false), p.name);
    GpuMemory scratch(sums.scratch_bytes());
    GpuMemory output(50 * 3 * sizeof(float));
    CheckOk(sums.Sort(stream, indices.indices(), nullptr, scratch.data()),
            p.name);
    CheckOk(sums.Scatter(stream, values.data(), output.data()), p.name);
    results.push_back(output.values<float>());
  }
  for (size_t i = 0; i < exact.size(); ++i) {
    CHECK_CASE(std::abs(results[0][i] - exact[i]) <= 2e-5 * exact[i], p.name);
  }
  for (const auto& result : results) {
    CHECK_CASE(std::memcmp(result.data(), results[0].data(),
                           result.size() * sizeof(float)) == 0,
               p.name);
  }
}

// More rows than leave room for a tuple in a 64-bit key.
void TestWideKeys(int64_t rows, const GpuStream& stream) {
  Random random(rows % 1000);
  const int64_t tuples = 3000;
  const Shape indices_shape = {tuples, 1};
  IndexSpace space;
  CHECK_CASE(MakeIndexSpace(indices_shape, {rows, 1}, 0, &space).ok(), "wide");
  CHECK_CASE(!FitsNarrowKey(space), "wide");
  std::vector<int64_t> values(tuples);
  std::vector<std::pair<int64_t, uint32_t>> sums_of_rows;
  for (int64_t& value : values) value = rows - 1 - random.Below(500) * 4097;
  values[1234] = -1;
  std::vector<uint32_t> updates(tuples);
  for (uint32_t& update : updates) {
    update = static_cast<uint32_t>(random.Below(1 << 30));
  }
  std::vector<int64_t> order(values);
  std::sort(order.begin(), order.end());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  for (const int64_t row : order) {
    uint32_t sum = 0;
    for (int64_t t = 0; t < tuples; ++t) {
      if (values[t] == row) sum += updates[t];
    }
    if (row >= 0) sums_of_rows.emplace_back(row, sum);
  }
  const IndexTensor indices(IndexType::kInt64, values);
  GpuRowSums sums;
  CheckOk(sums.Plan(space, SumKind::kInteger32, 1, true), "wide");
  GpuMemory scratch(sums.scratch_bytes());
  GpuMemory report(BadTupleReportBytes(1));
  GpuMemory count(sizeof(uint64_t));
  CheckOk(sums.Sort(stream, indices.indices(), report.as<uint64_t>(),
                    scratch.data()),
          "wide");
  CHECK_CASE(*report.as<int64_t>() == 1234, "wide");
  CheckOk(sums.CountRows(stream, count.as<uint64_t>()), "wide");
  const int64_t merged = *count.as<int64_t>();
  CHECK_CASE(merged == static_cast<int64_t>(sums_of_rows.size()), "wide");
  GpuMemory merged_rows(merged * 8);
  GpuMemory to(merged * 4);
  CheckOk(
      sums.Merge(stream, updates.data(), merged_rows.as<int64_t>(), to.data()),
      "wide");
  for (int64_t i = 0; i < merged; ++i) {
    CHECK_CASE(merged_rows.as<int64_t>()[i] == sums_of_rows[i].first, "wide");
    CHECK_CASE(to.as<uint32_t>()[i] == sums_of_rows[i].second, "wide");
  }
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  using namespace tf_stitch_gather;           // NOLINT: a test's main
  using namespace tf_stitch_gather::testing;  // NOLINT
  for (uint64_t seed = 0; seed < 30; ++seed) {
    TestKinds(MakeProblem(seed, /*with_bad=*/seed % 2 == 1),
              Streams()[seed % Streams().size()]);
  }
  TestKinds(HotRow(40, 5000, 2), Streams()[0]);
  TestKinds(HotRow(1, 1000, 1), Streams()[2]);
  TestKinds(HotRow(7, 30, 3000), Streams()[2]);
  TestDeterminism();
  for (const GpuStream& stream : Streams()) {
    TestWideKeys(int64_t{1} << 55, stream);
    TestWideKeys(INT64_MAX, stream);
  }
  std::puts("scatter on the device: passed");
}
