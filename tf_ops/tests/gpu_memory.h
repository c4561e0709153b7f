// Device memory for the tests of device code on the host.

#ifndef TF_OPS_TESTS_GPU_MEMORY_H_
#define TF_OPS_TESTS_GPU_MEMORY_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tf_ops/core/status.h"
#include "tf_ops/gpu/stream.h"
#include "tf_ops/tests/check.h"

namespace tf_stitch_gather::testing {

// A buffer of just `bytes` bytes, `offset` behind an address of the alignment
// that a device's allocator keeps to. It starts out as stale bytes, and knows
// whether anything wrote around it.
class GpuMemory {
 public:
  explicit GpuMemory(int64_t bytes, int64_t offset = 0)
      : bytes_(bytes),
        memory_(static_cast<char*>(std::aligned_alloc(
                    kGpuAlignment, GpuAligned(bytes + offset + kGuard * 2))),
                &std::free),
        data_(memory_.get() + kGuard + offset) {
    std::memset(memory_.get(), kStale, kGuard + offset + bytes + kGuard);
  }

  template <typename T>
  explicit GpuMemory(const std::vector<T>& values, int64_t offset = 0)
      : GpuMemory(static_cast<int64_t>(values.size() * sizeof(T)), offset) {
    if (bytes_ > 0) std::memcpy(data_, values.data(), bytes_);
  }

  char* data() { return data_; }
  const char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  std::vector<T> values() const {
    std::vector<T> copy(bytes_ / sizeof(T));
    if (bytes_ > 0) std::memcpy(copy.data(), data_, bytes_);
    return copy;
  }

  bool Intact() const {
    for (int64_t i = 0; i < kGuard; ++i) {
      if (data_[-1 - i] != kStale || data_[bytes_ + i] != kStale) return false;
    }
    return true;
  }

 private:
  static constexpr char kStale = 'x';
  static constexpr int64_t kGuard = kGpuAlignment;

  int64_t bytes_;
  std::unique_ptr<char, decltype(&std::free)> memory_;
  char* data_;
};

// Grids of the device's size, and small ones, in which blocks do several tiles.
inline const std::vector<GpuStream>& Streams() {
  static const std::vector<GpuStream> streams = {
      {nullptr, kMaxGridBlocks}, {nullptr, 1}, {nullptr, 3}};
  return streams;
}

inline void CheckOk(const Status& status, const std::string& name) {
  CHECK_CASE(status.ok(), name + ": " + status.message());
}

}  // namespace tf_stitch_gather::testing

#endif  // TF_OPS_TESTS_GPU_MEMORY_H_
