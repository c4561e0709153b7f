// Checks, then times, each kernel of the device code on a GPU, without
// TensorFlow. A result is compared with the CPU's, byte by byte. Times are the
// medians of CUDA events around single calls, with the level-two cache
// overwritten before each. Beside each stands the rate of a copy from device
// memory to device memory of as many bytes as the call must read and write at
// least, and the fraction of that rate which the call reaches.
//
//   make gpu-bench                    build, check and time
//   make gpu-bench ARGS='--check'     build and check only

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tf_ops/core/index_space.h"
#include "tf_ops/cpu/dynamic_stitch.h"
#include "tf_ops/cpu/gather_nd.h"
#include "tf_ops/cpu/scatter_nd.h"
#include "tf_ops/gpu/dynamic_stitch.h"
#include "tf_ops/gpu/gather_nd.h"
#include "tf_ops/gpu/scatter_nd.h"

namespace tf_stitch_gather {
namespace {

constexpr int kRepeats = 21;
constexpr int64_t kFlushBytes = int64_t{256} << 20;

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::exit(1);
}

void Check(cudaError_t error) {
  if (error != cudaSuccess) Fail(cudaGetErrorString(error));
}

void Check(const Status& status) {
  if (!status.ok()) Fail(status.message());
}

// Device memory, filled from the host or with stale bytes.
class Memory {
 public:
  explicit Memory(int64_t bytes) : bytes_(bytes) {
    Check(cudaMalloc(&data_, static_cast<size_t>(std::max<int64_t>(bytes, 1))));
    Check(cudaMemset(data_, 0xa5, static_cast<size_t>(bytes)));
  }
  template <typename T>
  explicit Memory(const std::vector<T>& values)
      : Memory(static_cast<int64_t>(values.size() * sizeof(T))) {
    Check(cudaMemcpy(data_, values.data(), static_cast<size_t>(bytes_),
                     cudaMemcpyHostToDevice));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }

  template <typename T = char>
  T* as() const {
    return static_cast<T*>(data_);
  }
  template <typename T>
  std::vector<T> Read() const {
    std::vector<T> values(static_cast<size_t>(bytes_) / sizeof(T));
    Check(cudaMemcpy(values.data(), data_, values.size() * sizeof(T),
                     cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  void* data_ = nullptr;
  int64_t bytes_;
};

// One thread for all that the CPU computes here.
class OneWorker : public Workers {
 public:
  int count() const override { return 1; }
  void Run(int64_t units, int64_t,
           const std::function<void(int64_t, int64_t)>& work) override {
    work(0, units);
  }
};

class Bench {
 public:
  explicit Bench(bool times) : times_(times), flush_(kFlushBytes) {
    Check(cudaStreamCreate(&stream_));
    Check(cudaEventCreate(&begin_));
    Check(cudaEventCreate(&end_));
  }

  GpuStream stream() const { return {stream_}; }
  void Wait() { Check(cudaStreamSynchronize(stream_)); }

  // Times `call`, which has been checked, and prints a line. `bytes` are
  // those that it must read and write at least.
  void Report(const std::string& name, int64_t bytes,
              const std::function<Status()>& call) {
    if (!times_) {
      std::printf("%-58s checked\n", name.c_str());
      return;
    }
    const double call_ms = MedianMs([&] { Check(call()); });
    const Memory from(bytes / 2);
    const Memory to(bytes / 2);
    const double copy_ms = MedianMs([&] {
      Check(cudaMemcpyAsync(to.as(), from.as(), static_cast<size_t>(bytes / 2),
                            cudaMemcpyDeviceToDevice, stream_));
    });
    std::printf("%-58s %9.1f us %8.1f GB/s %6.2f of the copy's %8.1f GB/s\n",
                name.c_str(), call_ms * 1e3, bytes / call_ms * 1e-6,
                copy_ms / call_ms, bytes / copy_ms * 1e-6);
  }

 private:
  double MedianMs(const std::function<void()>& call) {
    std::vector<float> times;
    for (int i = 0; i < kRepeats; ++i) {
      Check(cudaMemsetAsync(flush_.as(), i, kFlushBytes, stream_));
      Check(cudaEventRecord(begin_, stream_));
      call();
      Check(cudaEventRecord(end_, stream_));
      Wait();
      float ms;
      Check(cudaEventElapsedTime(&ms, begin_, end_));
      times.push_back(ms);
    }
    std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
    return times[kRepeats / 2];
  }

  bool times_;
  Memory flush_;
  cudaStream_t stream_;
  cudaEvent_t begin_;
  cudaEvent_t end_;
};

std::mt19937_64 engine(20240501);

int64_t Below(int64_t bound) {
  return std::uniform_int_distribution<int64_t>(0, bound - 1)(engine);
}

std::vector<char> RandomBytes(int64_t bytes) {
  std::vector<char> values((bytes + 7) / 8 * 8);
  for (size_t i = 0; i < values.size(); i += 8) {
    const uint64_t word = engine();
    std::memcpy(&values[i], &word, 8);
  }
  values.resize(bytes);
  return values;
}

template <typename T>
void Same(const std::string& name, const std::vector<T>& got,
          const std::vector<T>& expected) {
  if (got.size() != expected.size() ||
      std::memcmp(got.data(), expected.data(), got.size() * sizeof(T)) != 0) {
    Fail(name + ": the device's result is not the CPU's");
  }
}

// Random tuples of `depth` indices into dimensions of about equal size, whose
// product is at most `rows`.
template <typename Index>
struct Tuples {
  Tuples(int64_t rows, int64_t tuples, int depth)
      : indices_shape{tuples, depth} {
    for (int k = 0; k < depth; ++k) {
      int64_t dim = 1;
      int64_t power = 1;
      while (power <= rows) {
        power = 1;
        ++dim;
        for (int i = 0; i < depth; ++i) power *= dim;
      }
      target_shape.Append(dim - 1);
    }
    for (int64_t i = 0; i < tuples * depth; ++i) {
      values.push_back(static_cast<Index>(
          Below(target_shape.dim(static_cast<int>(i) % depth))));
    }
  }

  IndexSpace Space(int64_t slice) {
    Shape target = target_shape;
    target.Append(slice);
    IndexSpace space;
    Check(MakeIndexSpace(indices_shape, target, 0, &space));
    return space;
  }

  Shape indices_shape;
  Shape target_shape;
  std::vector<Index> values;
};

std::string Name(const char* op, int64_t rows, int64_t tuples, int depth,
                 int64_t row_bytes) {
  char text[100];
  std::snprintf(text, sizeof(text),
                "%-14s %8lld of %8lld rows, depth %d, %5lld B", op,
                static_cast<long long>(tuples), static_cast<long long>(rows),
                depth, static_cast<long long>(row_bytes));
  return text;
}

void BenchGather(Bench& bench, int64_t rows, int64_t tuples, int depth,
                 int64_t row_bytes) {
  const std::string name = Name("gather_nd", rows, tuples, depth, row_bytes);
  Tuples<int32_t> t(rows, tuples, depth);
  const IndexSpace space = t.Space(row_bytes);
  const std::vector<char> params = RandomBytes(space.rows() * row_bytes);
  std::vector<char> expected(tuples * row_bytes);
  OneWorker worker;
  GatherNd(space, {t.values.data(), IndexType::kInt32}, params.data(),
           ByteRowMover(row_bytes), true, worker, expected.data());

  const Memory device_indices(t.values);
  const Memory device_params(params);
  const Memory output(tuples * row_bytes);
  const Memory report(BadTupleReportBytes(depth));
  const auto call = [&](uint64_t* bad) {
    return GpuGatherNd(bench.stream(), space,
                       {device_indices.as(), IndexType::kInt32},
                       device_params.as(), row_bytes, bad, output.as());
  };
  Check(call(report.as<uint64_t>()));
  bench.Wait();
  Same(name, output.Read<char>(), expected);
  if (report.Read<uint64_t>()[0] != kNoBadIndex) Fail(name + ": a bad index");
  bench.Report(name, tuples * (depth * 4 + 2 * row_bytes),
               [&] { return call(nullptr); });
}

void BenchStitch(Bench& bench, int64_t rows, int part_count,
                 int64_t row_bytes) {
  const int64_t count = rows / part_count;
  std::vector<std::vector<int32_t>> indices(part_count);
  std::vector<std::vector<char>> data(part_count);
  std::vector<std::unique_ptr<Memory>> memory;
  StitchParts parts(IndexType::kInt32, part_count);
  StitchParts device_parts(IndexType::kInt32, part_count);
  StitchParts grad_parts(IndexType::kInt32, part_count);
  StitchParts device_grad_parts(IndexType::kInt32, part_count);
  std::vector<std::vector<char>> grads(part_count);
  std::vector<Memory*> device_grads;
  for (int m = 0; m < part_count; ++m) {
    for (int64_t i = 0; i < count; ++i) {
      indices[m].push_back(static_cast<int32_t>(Below(rows)));
    }
    data[m] = RandomBytes(count * row_bytes);
    grads[m].resize(count * row_bytes);
    parts.Add(indices[m].data(), data[m].data(), count);
    grad_parts.Add(indices[m].data(), grads[m].data(), count);
    memory.push_back(std::make_unique<Memory>(indices[m]));
    const char* device_indices = memory.back()->as();
    memory.push_back(std::make_unique<Memory>(data[m]));
    device_parts.Add(device_indices, memory.back()->as(), count);
    memory.push_back(std::make_unique<Memory>(count * row_bytes));
    device_grads.push_back(memory.back().get());
    device_grad_parts.Add(device_indices, memory.back()->as(), count);
  }
  OneWorker worker;
  BadSource bad;
  const RowMover mover = ByteRowMover(row_bytes);
  const int64_t merged_rows = StitchRows(parts, worker, &bad);
  std::vector<char> scratch(merged_rows * 8 + 8);
  std::vector<char> expected(merged_rows * row_bytes);
  Stitch(parts, merged_rows, mover, true, worker, scratch.data(),
         expected.data());

  const std::string suffix =
      Name("", rows, rows, part_count, row_bytes).substr(15);
  const std::string name = "dynamic_stitch" + (" " + suffix);
  const Memory table(GpuStitchTableBytes(device_parts));
  const Memory report(sizeof(StitchReport));
  const Memory device_scratch(
      GpuStitchScratchBytes(device_parts, merged_rows, row_bytes));
  const Memory merged(merged_rows * row_bytes);
  const auto stitch = [&]() -> Status {
    Status status = GpuUploadParts(bench.stream(), device_parts, table.as());
    if (status.ok()) {
      status = GpuStitchRows(bench.stream(), device_parts, table.as(),
                             report.as<StitchReport>());
    }
    if (!status.ok()) return status;
    return GpuStitch(bench.stream(), device_parts, table.as(), merged_rows,
                     row_bytes, nullptr, device_scratch.as(), merged.as());
  };
  Check(stitch());
  bench.Wait();
  Same(name, merged.Read<char>(), expected);
  if (report.Read<StitchReport>()[0].value != merged_rows - 1) {
    Fail(name + ": the number of rows");
  }
  // Two reads of the indices, the rows that win, and the rows of the result.
  const int64_t bytes = rows * 8 + merged_rows * row_bytes * 2;
  bench.Report(name, bytes, stitch);

  StitchGrad(grad_parts, merged_rows, expected.data(), mover, true, worker,
             scratch.data());
  const auto grad = [&]() -> Status {
    const Status status =
        GpuUploadParts(bench.stream(), device_grad_parts, table.as());
    if (!status.ok()) return status;
    return GpuStitchGrad(bench.stream(), device_grad_parts, table.as(),
                         merged_rows, merged.as(), row_bytes, nullptr,
                         device_scratch.as());
  };
  const std::string grad_name = "stitch grad   " + (" " + suffix);
  Check(grad());
  bench.Wait();
  for (int m = 0; m < part_count; ++m) {
    Same(grad_name, device_grads[m]->Read<char>(), grads[m]);
  }
  bench.Report(grad_name, rows * 8 + 2 * rows * row_bytes, grad);
}

struct FloatSum {
  using Value = float;
  using Wide = float;
  static constexpr bool kPlainBytes = true;
  static void Add(float value, float* sum) { *sum += value; }
};

// Updates are small whole numbers, so that the sums are exact in any order.
void BenchScatter(Bench& bench, int64_t rows, int64_t tuples, int depth,
                  int64_t width) {
  Tuples<int32_t> t(rows, tuples, depth);
  const IndexSpace space = t.Space(width);
  std::vector<float> updates(tuples * width);
  for (float& update : updates) update = static_cast<float>(Below(17)) - 8;
  std::vector<float> expected(space.rows() * width);
  const Indices host_indices = {t.values.data(), IndexType::kInt32};
  OneWorker worker;
  ScatterNd<FloatSum>(space, host_indices, updates.data(), true,
                      ScatterWay::kInOrder, worker, nullptr, expected.data());

  const Memory device_indices(t.values);
  const Memory device_updates(updates);
  const Memory output(static_cast<int64_t>(expected.size()) * 4);
  const Indices indices = {device_indices.as(), IndexType::kInt32};
  const auto atomic = [&] {
    return GpuScatterNdAtomic(bench.stream(), space, indices, SumKind::kFloat,
                              width, device_updates.as(), nullptr, output.as());
  };
  // Indices and updates are read, the output cleared and added to.
  const int64_t bytes = tuples * (depth * 4 + width * 4) +
                        static_cast<int64_t>(expected.size()) * 4;
  std::string name = Name("scatter atomic", rows, tuples, depth, width * 4);
  Check(atomic());
  bench.Wait();
  Same(name, output.Read<float>(), expected);
  bench.Report(name, bytes, atomic);

  GpuRowSums sums;
  Check(sums.Plan(space, SumKind::kFloat, width, false));
  const Memory scratch(sums.scratch_bytes());
  const auto sorted = [&]() -> Status {
    const Status status =
        sums.Sort(bench.stream(), indices, nullptr, scratch.as());
    if (!status.ok()) return status;
    return sums.Scatter(bench.stream(), device_updates.as(), output.as());
  };
  name = Name("scatter sorted", rows, tuples, depth, width * 4);
  Check(sorted());
  bench.Wait();
  Same(name, output.Read<float>(), expected);
  bench.Report(name, bytes, sorted);

  if (depth != 1) return;
  GpuRowSums merging;
  Check(merging.Plan(space, SumKind::kFloat, width, true));
  const Memory merge_scratch(merging.scratch_bytes());
  const Memory count(sizeof(uint64_t));
  const Memory merged_rows(space.rows() * 8);
  const auto merge = [&]() -> Status {
    Status status =
        merging.Sort(bench.stream(), indices, nullptr, merge_scratch.as());
    if (status.ok()) {
      status = merging.CountRows(bench.stream(), count.as<uint64_t>());
    }
    if (!status.ok()) return status;
    return merging.Merge(bench.stream(), device_updates.as(),
                         merged_rows.as<int64_t>(), output.as());
  };
  name = Name("sparse grad", rows, tuples, depth, width * 4);
  std::vector<int64_t> named(t.values.begin(), t.values.end());
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  std::vector<float> merged_sums;
  for (const int64_t row : named) {
    merged_sums.insert(merged_sums.end(), expected.begin() + row * width,
                       expected.begin() + (row + 1) * width);
  }
  Check(merge());
  bench.Wait();
  if (count.Read<uint64_t>()[0] != named.size()) Fail(name + ": the count");
  std::vector<int64_t> got_rows = merged_rows.Read<int64_t>();
  got_rows.resize(named.size());
  Same(name, got_rows, named);
  std::vector<float> got = output.Read<float>();
  got.resize(merged_sums.size());
  Same(name, got, merged_sums);
  bench.Report(
      name,
      tuples * (4 + width * 4) + static_cast<int64_t>(merged_sums.size()) * 4,
      merge);
}

void Run(bool times) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no GPU here: built, but nothing was checked or timed\n");
    return;
  }
  cudaDeviceProp device;
  Check(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, sm_%d%d, %d multiprocessors, %.0f GB\n", device.name,
              device.major, device.minor, device.multiProcessorCount,
              static_cast<double>(device.totalGlobalMem) * 1e-9);
  Bench bench(times);
  for (const int64_t tuples : {1000, 100000, 1000000}) {
    for (const int64_t row_bytes : {1, 4, 12, 16, 64, 256, 1024}) {
      BenchGather(bench, 1000000, tuples, 1, row_bytes);
    }
  }
  BenchGather(bench, 1000000, 1000000, 3, 4);
  BenchGather(bench, 1000000, 1000000, 3, 64);
  BenchGather(bench, 64, 1000, 1, int64_t{1} << 20);
  for (const int64_t rows : {1000, 100000, 1000000}) {
    for (const int64_t row_bytes : {4, 64, 512}) {
      BenchStitch(bench, rows, 2, row_bytes);
    }
  }
  BenchStitch(bench, 100000, 1000, 64);
  for (const int64_t tuples : {1000, 100000, 1000000}) {
    for (const int64_t width : {1, 16, 128}) {
      BenchScatter(bench, 100000, tuples, 1, width);
    }
  }
  BenchScatter(bench, 100, 1000000, 1, 16);
  BenchScatter(bench, 100000, 1000000, 3, 1);
}

}  // namespace
}  // namespace tf_stitch_gather

int main(int argc, char** argv) {
  const bool check_only = argc == 2 && std::strcmp(argv[1], "--check") == 0;
  if (argc > 1 && !check_only) {
    std::fprintf(stderr, "usage: gpu_bench [--check]\n");
    return 2;
  }
  tf_stitch_gather::Run(!check_only);
}
