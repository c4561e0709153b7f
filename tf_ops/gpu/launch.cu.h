// The one launcher of device code, and what a kernel is here.
//
// A kernel is a `Work`: a copyable struct with
//   struct Shared;  // trivial; what the threads of a block share
//   void operator()(const Block& block, int64_t tile, Shared& shared) const;
// that does one tile of a problem. It consists of phases, calls of
// block.ForEachThread, each of which ends with a barrier; what stands between
// them is the same for all threads of a block. Within a phase no thread may
// read what another one writes. A grid has one block for each tile, or fewer
// that go on in steps of the grid, so that any number of tiles fits.

#ifndef TF_OPS_GPU_LAUNCH_CU_H_
#define TF_OPS_GPU_LAUNCH_CU_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "tf_ops/core/status.h"
#include "tf_ops/gpu/stream.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define TSG_DEVICE __device__
#else
#define TSG_DEVICE
#if defined(__SANITIZE_THREAD__)
#include <thread>
#include <vector>
#else
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/omp/execution_policy.h>
#endif
#endif

namespace tf_stitch_gather {

// The threads of a block. Eight warps: enough to fill a multiprocessor of any
// architecture with several blocks, whose phases then overlap.
inline constexpr int kThreads = 256;

class Block {
 public:
  // Calls visit(thread) for the numbers [0, kThreads), all at once, and then
  // waits for all. On the host they come one by one, in an order that differs
  // from tile to tile, so that a test finds a result which depends on it.
  template <typename Visit>
  TSG_DEVICE void ForEachThread(const Visit& visit) const {
#if defined(__CUDACC__)
    visit(static_cast<int>(threadIdx.x));
    __syncthreads();
#else
    if (backwards) {
      for (int thread = kThreads - 1; thread >= 0; --thread) visit(thread);
    } else {
      for (int thread = 0; thread < kThreads; ++thread) visit(thread);
    }
#endif
  }

  // Calls visit(i) for [0, count), a phase too: neighbours on neighbouring
  // threads.
  template <typename Visit>
  TSG_DEVICE void ForEach(int count, const Visit& visit) const {
    ForEachThread([&](int thread) {
      for (int i = thread; i < count; i += kThreads) visit(i);
    });
  }

#if !defined(__CUDACC__)
  bool backwards;
#endif
};

#if defined(__CUDACC__)

// Reads the outcome of a call of the CUDA runtime.
inline Status DeviceStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // this call's error; nobody else shall meet it
  const std::string message =
      std::string(what) + " failed on the GPU: " + cudaGetErrorString(error);
  return error == cudaErrorMemoryAllocation ? Status::ResourceExhausted(message)
                                            : Status::Internal(message);
}

template <typename Work>
__global__ void __launch_bounds__(kThreads)
    DoTiles(const __grid_constant__ Work work, int64_t tiles) {
  __shared__ typename Work::Shared shared;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    work(Block(), tile, shared);
  }
}

#else

// What blocks on the host share is filled with this, as on a device it holds
// whatever was there before.
inline constexpr int kStaleByte = 0xa5;

template <typename Work>
void DoTilesOfBlock(const Work& work, int64_t block, int64_t blocks,
                    int64_t tiles) {
  typename Work::Shared shared;
  std::memset(static_cast<void*>(&shared), kStaleByte, sizeof(shared));
  for (int64_t tile = block; tile < tiles; tile += blocks) {
    Block threads;
    threads.backwards = tile % 2 != 0;
    work(threads, tile, shared);
  }
}

#endif

// Does `tiles` tiles. No work is no launch. An error of the launch is returned,
// one that the device meets later comes with the next wait for the stream.
template <typename Work>
Status LaunchTiles(const GpuStream& stream, int64_t tiles, const Work& work) {
  const int64_t blocks = GridBlocks(stream, tiles);
  if (blocks == 0) return {};
#if defined(__CUDACC__)
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.stream = static_cast<cudaStream_t>(stream.handle);
  return DeviceStatus(cudaLaunchKernelEx(&config, DoTiles<Work>, work, tiles),
                      "the launch of a kernel");
#elif defined(__SANITIZE_THREAD__)
  // ThreadSanitizer knows std::thread, but not the threads of OpenMP.
  constexpr int64_t kHostThreads = 4;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < std::min(kHostThreads, blocks); ++t) {
    threads.emplace_back([=, &work] {
      for (int64_t block = t; block < blocks; block += kHostThreads) {
        DoTilesOfBlock(work, block, blocks, tiles);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return {};
#else
  thrust::for_each_n(
      thrust::omp::par, thrust::counting_iterator<int64_t>(0), blocks,
      [&](int64_t block) { DoTilesOfBlock(work, block, blocks, tiles); });
  return {};
#endif
}

// A kernel that calls visit(i) for each i of [0, items): one thread an item.
template <typename Visit>
struct ItemWork {
  struct Shared {};

  TSG_DEVICE void operator()(const Block& block, int64_t tile, Shared&) const {
    block.ForEachThread([&](int thread) {
      const int64_t item = tile * kThreads + thread;
      if (item < items) visit(item);
    });
  }

  Visit visit;
  int64_t items;
};

template <typename Visit>
Status LaunchItems(const GpuStream& stream, int64_t items, const Visit& visit) {
  return LaunchTiles(stream, (items + kThreads - 1) / kThreads,
                     ItemWork<Visit>{visit, items});
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_LAUNCH_CU_H_
