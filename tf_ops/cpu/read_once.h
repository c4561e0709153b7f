// Reading memory that another thread may write.

#ifndef TF_OPS_CPU_READ_ONCE_H_
#define TF_OPS_CPU_READ_ONCE_H_

#include <cstdint>
#include <cstring>

namespace tf_stitch_gather {

// Copies `count` indices out of a tensor, each read once. The barrier keeps
// the compiler from going back to the tensor for a value that was checked.
template <typename Index>
void ReadOnce(const Index* from, int64_t count, Index* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(Index));
  asm volatile("" : : "r"(to) : "memory");
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_READ_ONCE_H_
