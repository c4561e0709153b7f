// How often the steps of the loop that follows are written out.

#ifndef TF_OPS_CPU_UNROLL_H_
#define TF_OPS_CPU_UNROLL_H_

#define TSG_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define TSG_UNROLL(times) TSG_PRAGMA(unroll times)
#else
#define TSG_UNROLL(times) TSG_PRAGMA(GCC unroll times)
#endif

#endif  // TF_OPS_CPU_UNROLL_H_
