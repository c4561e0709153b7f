// The device as the kernels' callers see it: a stream, and a few operations on
// memory. Needs no CUDA header.
//
// All functions of this folder take pointers to device memory, enqueue their
// work on the stream and return at once; the status tells whether the work was
// accepted. They may be called from any thread whose current device is that of
// the stream. Nothing here allocates, waits or aborts.
//
// The sources (*.cu.cc) compile in two ways: by nvcc for the device, and by a
// host compiler against Thrust's OMP back end, where device memory is host
// memory and a call has done its work when it returns.

#ifndef TF_OPS_GPU_STREAM_H_
#define TF_OPS_GPU_STREAM_H_

#include <algorithm>
#include <cstdint>

#include "tf_ops/core/status.h"

namespace tf_stitch_gather {

// The greatest x dimension of a grid.
inline constexpr int64_t kMaxGridBlocks = 2147483647;

struct GpuStream {
  void* handle = nullptr;               // a cudaStream_t
  int64_t max_blocks = kMaxGridBlocks;  // of a launch; a test takes fewer
};

// The blocks of a launch that has `tiles` tiles to do; where that is less, a
// block does several.
inline int64_t GridBlocks(const GpuStream& stream, int64_t tiles) {
  return std::clamp<int64_t>(tiles, 0,
                             std::min(stream.max_blocks, kMaxGridBlocks));
}

// Sets each of `bytes` bytes to `value`.
Status GpuFill(const GpuStream& stream, void* to, int value, int64_t bytes);

// Copies to the host. `to` must stay until the stream has come so far, and
// should be page-locked, or the copy waits for it.
Status GpuCopyToHost(const GpuStream& stream, const void* from, int64_t bytes,
                     void* to);

// Offsets into scratch memory keep to this.
inline constexpr int64_t kGpuAlignment = 256;

inline int64_t GpuAligned(int64_t bytes) {
  return (bytes + kGpuAlignment - 1) / kGpuAlignment * kGpuAlignment;
}

// What a search for bad indices starts from: no position is as great. Fill
// the report with bytes of this value.
inline constexpr int kEmptyReportByte = 0xff;
inline constexpr uint64_t kNoBadIndex = ~uint64_t{0};

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_STREAM_H_
