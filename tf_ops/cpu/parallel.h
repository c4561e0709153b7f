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

// An idle thread took 20 to 100 us to wake and take a block; work under this
// is done sooner by the calling thread alone: 25,000 scalars in 57 us, not 90.
inline constexpr double kMinParallelNs = 120'000;

// Blocks are this long at least, so that taking them costs little, and so
// many for each thread, so that one that was slowed holds up no other.
inline constexpr double kMinBlockNs = 10'000;
inline constexpr double kBlocksPerThread = 8;

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
      std::min(total_ns / kMinBlockNs, workers.count() * kBlocksPerThread);
  const int64_t block =
      static_cast<int64_t>(static_cast<double>(units) / blocks) + 1;
  workers.Run(units, block, work);
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_PARALLEL_H_
