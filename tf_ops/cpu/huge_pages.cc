#include "tf_ops/cpu/huge_pages.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <cstdint>

#include "tf_ops/cpu/switches.h"

namespace tf_stitch_gather {
namespace {

constexpr uintptr_t kHugePage = uintptr_t{2} << 20;

// Below this the system call costs as much as the faults that it saves.
constexpr int64_t kMinBytes = int64_t{4} << 20;

bool Enabled() {
  static const bool enabled = !IsSwitchedOff("TF_STITCH_GATHER_HUGE_PAGES");
  return enabled;
}

}  // namespace

void AdviseHugePages(void* data, int64_t bytes) {
#ifdef MADV_HUGEPAGE
  if (bytes < kMinBytes || !Enabled()) return;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + kHugePage - 1) & ~(kHugePage - 1);
  const uintptr_t last =
      (begin + static_cast<uintptr_t>(bytes)) & ~(kHugePage - 1);
  // The result is of no use: where the hint is refused, small pages serve.
  if (first < last) {
    madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  }
#else
  static_cast<void>(data);
  static_cast<void>(bytes);
#endif
}

}  // namespace tf_stitch_gather
