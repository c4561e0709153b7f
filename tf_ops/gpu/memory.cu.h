// How device code touches memory that others touch too.

#ifndef TF_OPS_GPU_MEMORY_CU_H_
#define TF_OPS_GPU_MEMORY_CU_H_

#include <cstdint>
#include <cuda/atomic>

#include "tf_ops/gpu/launch.cu.h"

namespace tf_stitch_gather {

// Reads an index of a tensor once: the compiler can see no relation between
// the value and the memory, and so never goes back for it after the check.
template <typename Index>
TSG_DEVICE Index ReadIndex(const void* indices, int64_t i) {
  int64_t value = static_cast<const Index*>(indices)[i];
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+l"(value));
#else
  asm volatile("" : "+r"(value));
#endif
  return static_cast<Index>(value);
}

template <typename T>
using DeviceAtomic = cuda::atomic_ref<T, cuda::thread_scope_device>;

// The plain load first spares most of the atomic operations, which queue up
// where many threads share a word.
template <typename T>
TSG_DEVICE void AtomicMin(T* word, T value) {
  const DeviceAtomic<T> atomic(*word);
  if (value < atomic.load(cuda::memory_order_relaxed)) {
    atomic.fetch_min(value, cuda::memory_order_relaxed);
  }
}

template <typename T>
TSG_DEVICE void AtomicMax(T* word, T value) {
  const DeviceAtomic<T> atomic(*word);
  if (value > atomic.load(cuda::memory_order_relaxed)) {
    atomic.fetch_max(value, cuda::memory_order_relaxed);
  }
}

template <typename T>
TSG_DEVICE void AtomicAdd(T* word, T value) {
  DeviceAtomic<T>(*word).fetch_add(value, cuda::memory_order_relaxed);
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_MEMORY_CU_H_
