// Sorting and prefix sums on the device: CUB, or Thrust on the host.

#ifndef TF_OPS_GPU_SORT_H_
#define TF_OPS_GPU_SORT_H_

#include <cstdint>

#include "tf_ops/core/status.h"
#include "tf_ops/gpu/stream.h"

namespace tf_stitch_gather {

// Keys, with values that follow them or none (null). Sorting goes to and fro
// between two buffers of each; afterwards the first ones hold the result.
struct SortBuffers {
  uint64_t* keys;
  uint64_t* other_keys;
  uint64_t* values;
  uint64_t* other_values;
};

// The temporary memory of either function below for `count` items, never 0.
Status GpuSortTempBytes(int64_t count, bool with_values, int64_t* bytes);

// Sorts by bits [begin_bit, end_bit) of the keys; what is equal there keeps
// its order.
Status GpuSort(const GpuStream& stream, int64_t count, int begin_bit,
               int end_bit, void* temp, int64_t temp_bytes,
               SortBuffers* buffers);

// Replaces each number by the sum of those before it.
Status GpuPrefixSums(const GpuStream& stream, int64_t count, void* temp,
                     int64_t temp_bytes, int64_t* numbers);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_SORT_H_
