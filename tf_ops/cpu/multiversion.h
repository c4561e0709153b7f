// One loop for more than one kind of processor.

#ifndef TF_OPS_CPU_MULTIVERSION_H_
#define TF_OPS_CPU_MULTIVERSION_H_

#include "tf_ops/cpu/switches.h"

namespace tf_stitch_gather {

#ifdef __x86_64__

// The processors that TensorFlow's wheels run on may lack AVX2. The environment
// variable TF_STITCH_GATHER_AVX2=0 has it left alone where it is.
inline bool UsesAvx2() {
  static const bool uses = __builtin_cpu_supports("avx2") != 0 &&
                           !IsSwitchedOff("TF_STITCH_GATHER_AVX2");
  return uses;
}

// Everything that `loop` calls is inlined here, and so compiled for AVX2. That
// has no fused multiply-add: sums keep their bits.
template <typename Loop>
__attribute__((target("avx2"), flatten)) void RunWithAvx2(const Loop& loop) {
  loop();
}

// Calls `loop`, in the version for this processor.
template <typename Loop>
void RunBestVersion(const Loop& loop) {
  if (UsesAvx2()) {
    RunWithAvx2(loop);
  } else {
    loop();
  }
}

#else

template <typename Loop>
void RunBestVersion(const Loop& loop) {
  loop();
}

#endif

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_MULTIVERSION_H_
