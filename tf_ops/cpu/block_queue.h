// A loop whose blocks are taken one by one by whoever is free.

#ifndef TF_OPS_CPU_BLOCK_QUEUE_H_
#define TF_OPS_CPU_BLOCK_QUEUE_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "tf_ops/core/checked_math.h"

namespace tf_stitch_gather {

// Helpers that wake when nothing is left find only this, so it is shared with
// them.
class BlockQueue {
 public:
  BlockQueue(int64_t units, int64_t block,
             const std::function<void(int64_t, int64_t)>& work)
      : units_(units),
        block_(block),
        blocks_(CeilDivide(units, block)),
        work_(work) {}

  // Works until no block is left. `work_` is alive whenever a block is taken,
  // since the caller waits for the blocks and not for the helpers. What a
  // block throws is kept for the caller, since a helper's thread is not ours.
  void TakeBlocks() noexcept {
    for (;;) {
      const int64_t number = next_.fetch_add(1, std::memory_order_relaxed);
      if (number >= blocks_) return;
      const int64_t begin = number * block_;
      try {
        work_(begin, std::min(begin + block_, units_));
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!thrown_) thrown_ = std::current_exception();
      }
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks_) {
        const std::lock_guard<std::mutex> lock(mutex_);
        all_done_.notify_all();
      }
    }
  }

  // Returns when the blocks that others took are done, and throws what one of
  // the blocks threw. They are short, so a look at the counter mostly spares
  // the way through the kernel.
  void Wait() {
    for (int spin = 0; spin < kSpins && !Done(); ++spin) {
      __builtin_ia32_pause();
    }
    if (!Done()) {
      std::unique_lock<std::mutex> lock(mutex_);
      all_done_.wait(lock, [&] { return Done(); });
    }
    // Moved, so that no helper that ends late shares what the caller catches.
    if (thrown_) std::rethrow_exception(std::move(thrown_));
  }

 private:
  static constexpr int kSpins = 2000;

  bool Done() const { return done_.load(std::memory_order_acquire) == blocks_; }

  const int64_t units_;
  const int64_t block_;
  const int64_t blocks_;
  const std::function<void(int64_t, int64_t)>& work_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> done_{0};
  std::exception_ptr thrown_;  // read when all blocks are done
  std::mutex mutex_;
  std::condition_variable all_done_;
};

// Calls `work` for the blocks of [0, units) on this thread and on up to
// `helpers` more, which `schedule` starts with the function that it is handed,
// at once or later or never. Throws what a block throws, when all have ended.
template <typename Schedule>
void RunBlocks(int64_t units, int64_t block, int64_t helpers,
               const std::function<void(int64_t, int64_t)>& work,
               const Schedule& schedule) {
  const auto queue = std::make_shared<BlockQueue>(units, block, work);
  try {
    for (int64_t i = 0; i < helpers; ++i) {
      schedule([queue] { queue->TakeBlocks(); });
    }
  } catch (const std::bad_alloc&) {
    // The work gets done with fewer.
  }
  queue->TakeBlocks();
  queue->Wait();
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_BLOCK_QUEUE_H_
