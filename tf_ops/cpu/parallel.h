// How the loops use threads. The caller owns the threads; a loop states its
// work, and the rule for splitting it stands here.

#ifndef TF_OPS_CPU_PARALLEL_H_
#define TF_OPS_CPU_PARALLEL_H_

#include <algorithm>
#include <cstdint>
#include <functional>

namespace tf_stitch_gather {

class Workers {
 public:
  virtual ~Workers() = default;

  virtual int count() const = 0;

  // Calls `work(begin, end)` for consecutive ranges of at most `block` units
  // that cover [0, units), on any threads, and returns when all are done.
  virtual void Run(int64_t units, int64_t block,
                   const std::function<void(int64_t, int64_t)>& work) = 0;
};

// Handing a block to another thread and waiting for it took 5 to 12 us; work
// under this stays on the calling thread.
inline constexpr double kMinParallelNs = 30'000;

// Blocks per thread: enough to even out threads that are slowed by others.
inline constexpr int64_t kBlocksPerThread = 4;

// Splits `units` of about `ns_per_unit` each. The ranges that `work` sees
// depend on the number of threads; what it computes must not.
template <typename Work>
void ParallelFor(Workers& workers, int64_t units, double ns_per_unit,
                 const Work& work) {
  if (units <= 0) return;
  const double total_ns = static_cast<double>(units) * ns_per_unit;
  if (units == 1 || workers.count() <= 1 || total_ns < kMinParallelNs) {
    work(int64_t{0}, units);
    return;
  }
  const double blocks =
      std::min(total_ns / (kMinParallelNs / 2),
               static_cast<double>(workers.count() * kBlocksPerThread));
  const int64_t block =
      static_cast<int64_t>(static_cast<double>(units) / blocks) + 1;
  workers.Run(units, block, work);
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_PARALLEL_H_
