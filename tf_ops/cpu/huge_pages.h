// Fresh large outputs in huge pages.

#ifndef TF_OPS_CPU_HUGE_PAGES_H_
#define TF_OPS_CPU_HUGE_PAGES_H_

#include <cstdint>

namespace tf_stitch_gather {

// Asks the kernel to back the page-aligned inside of a large, not yet written
// buffer with huge pages. A hint: nothing changes where the kernel has none.
// The environment variable TF_STITCH_GATHER_HUGE_PAGES=0 turns it off.
void AdviseHugePages(void* data, int64_t bytes);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_HUGE_PAGES_H_
