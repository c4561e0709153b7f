#include "tf_ops/gpu/stream.h"

#include <cstring>

#include "tf_ops/gpu/launch.cu.h"

namespace tf_stitch_gather {

Status GpuFill(const GpuStream& stream, void* to, int value, int64_t bytes) {
  if (bytes == 0) return {};
#if defined(__CUDACC__)
  return DeviceStatus(cudaMemsetAsync(to, value, static_cast<size_t>(bytes),
                                      static_cast<cudaStream_t>(stream.handle)),
                      "filling memory");
#else
  static_cast<void>(stream);
  std::memset(to, value, static_cast<size_t>(bytes));
  return {};
#endif
}

Status GpuCopyToHost(const GpuStream& stream, const void* from, int64_t bytes,
                     void* to) {
  if (bytes == 0) return {};
#if defined(__CUDACC__)
  return DeviceStatus(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes),
                                      cudaMemcpyDeviceToHost,
                                      static_cast<cudaStream_t>(stream.handle)),
                      "a copy to the host");
#else
  static_cast<void>(stream);
  std::memcpy(to, from, static_cast<size_t>(bytes));
  return {};
#endif
}

}  // namespace tf_stitch_gather
