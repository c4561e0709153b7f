// Functions for more than one kind of x86-64 processor.

#ifndef TF_OPS_CPU_MULTIVERSION_H_
#define TF_OPS_CPU_MULTIVERSION_H_

// Before a function: compiles it for any x86-64 and for those with AVX2, of
// which the loader picks one. Whatever the function calls must be inlined into
// it to gain. Not under a sanitizer, whose run time is not ready when the
// loader picks.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define TSG_MULTIVERSION __attribute__((target_clones("avx2", "default")))
#else
#define TSG_MULTIVERSION
#endif
#define TSG_INLINE inline __attribute__((always_inline))

#endif  // TF_OPS_CPU_MULTIVERSION_H_
