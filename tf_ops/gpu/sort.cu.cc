#include "tf_ops/gpu/sort.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tf_ops/gpu/launch.cu.h"

#if defined(__CUDACC__)
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#else
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system/omp/execution_policy.h>
#endif

namespace tf_stitch_gather {

#if defined(__CUDACC__)

namespace {

// Sorts, or with a null `temp` tells the bytes that it needs.
cudaError_t Sort(cudaStream_t stream, int64_t count, int begin_bit, int end_bit,
                 void* temp, size_t* temp_bytes,
                 cub::DoubleBuffer<uint64_t>* keys,
                 cub::DoubleBuffer<uint64_t>* values) {
  if (values == nullptr) {
    return cub::DeviceRadixSort::SortKeys(temp, *temp_bytes, *keys, count,
                                          begin_bit, end_bit, stream);
  }
  return cub::DeviceRadixSort::SortPairs(temp, *temp_bytes, *keys, *values,
                                         count, begin_bit, end_bit, stream);
}

}  // namespace

Status GpuSortTempBytes(int64_t count, bool with_values, int64_t* bytes) {
  cub::DoubleBuffer<uint64_t> keys;
  cub::DoubleBuffer<uint64_t> values;
  size_t sort_bytes = 0;
  size_t sums_bytes = 0;
  cudaError_t error = Sort(nullptr, count, 0, 64, nullptr, &sort_bytes, &keys,
                           with_values ? &values : nullptr);
  if (error == cudaSuccess) {
    int64_t* numbers = nullptr;
    error = cub::DeviceScan::ExclusiveSum(nullptr, sums_bytes, numbers, numbers,
                                          count);
  }
  *bytes = static_cast<int64_t>(std::max<size_t>(
      {sort_bytes, sums_bytes, static_cast<size_t>(kGpuAlignment)}));
  return DeviceStatus(error, "planning a sort");
}

Status GpuSort(const GpuStream& stream, int64_t count, int begin_bit,
               int end_bit, void* temp, int64_t temp_bytes,
               SortBuffers* buffers) {
  if (count == 0) return {};
  cub::DoubleBuffer<uint64_t> keys(buffers->keys, buffers->other_keys);
  cub::DoubleBuffer<uint64_t> values(buffers->values, buffers->other_values);
  size_t bytes = static_cast<size_t>(temp_bytes);
  const cudaError_t error =
      Sort(static_cast<cudaStream_t>(stream.handle), count, begin_bit, end_bit,
           temp, &bytes, &keys, buffers->values != nullptr ? &values : nullptr);
  *buffers = {keys.Current(), keys.Alternate(), values.Current(),
              values.Alternate()};
  return DeviceStatus(error, "sorting");
}

Status GpuPrefixSums(const GpuStream& stream, int64_t count, void* temp,
                     int64_t temp_bytes, int64_t* numbers) {
  if (count == 0) return {};
  size_t bytes = static_cast<size_t>(temp_bytes);
  return DeviceStatus(
      cub::DeviceScan::ExclusiveSum(temp, bytes, numbers, numbers, count,
                                    static_cast<cudaStream_t>(stream.handle)),
      "prefix sums");
}

#else

namespace {

// ThreadSanitizer does not see how OpenMP's threads wait for each other.
#if defined(__SANITIZE_THREAD__)
const auto& kPolicy = thrust::cpp::par;
#else
const auto& kPolicy = thrust::omp::par;
#endif

}  // namespace

Status GpuSortTempBytes(int64_t, bool, int64_t* bytes) {
  *bytes = kGpuAlignment;
  return {};
}

Status GpuSort(const GpuStream&, int64_t count, int begin_bit, int end_bit,
               void*, int64_t, SortBuffers* buffers) {
  const auto before = [=](uint64_t a, uint64_t b) {
    const int above = 64 - end_bit;
    return (a << above) >> (above + begin_bit) < (b << above) >>
           (above + begin_bit);
  };
  if (begin_bit >= end_bit) return {};
  if (buffers->values == nullptr) {
    thrust::stable_sort(kPolicy, buffers->keys, buffers->keys + count, before);
  } else {
    thrust::stable_sort_by_key(kPolicy, buffers->keys, buffers->keys + count,
                               buffers->values, before);
  }
  // As on the device, the result is not where the keys were.
  std::copy_n(buffers->keys, count, buffers->other_keys);
  std::swap(buffers->keys, buffers->other_keys);
  if (buffers->values != nullptr) {
    std::copy_n(buffers->values, count, buffers->other_values);
    std::swap(buffers->values, buffers->other_values);
  }
  return {};
}

Status GpuPrefixSums(const GpuStream&, int64_t count, void*, int64_t,
                     int64_t* numbers) {
  thrust::exclusive_scan(kPolicy, numbers, numbers + count, numbers);
  return {};
}

#endif

}  // namespace tf_stitch_gather
