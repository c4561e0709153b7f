// What the supported versions of TensorFlow have in common, and what only some
// have: the one place that asks for the version.
//
// The newest headers do not tell their version, so the build does:
// TSG_TENSORFLOW_VERSION is 1000 * major + minor.

#ifndef TF_OPS_OPS_COMPAT_H_
#define TF_OPS_OPS_COMPAT_H_

#if !defined(TSG_TENSORFLOW_VERSION)
#error "TSG_TENSORFLOW_VERSION is not defined: build with make"
#endif

// The code in brackets, from a version on: the data types
// float8_e4m3fnuz, float8_e4m3b11fnuz and float8_e5m2fnuz ...
#if TSG_TENSORFLOW_VERSION >= 2019
#define TSG_SINCE_2_19(...) __VA_ARGS__
#else
#define TSG_SINCE_2_19(...)
#endif

// ... int2 and uint2 ...
#if TSG_TENSORFLOW_VERSION >= 2020
#define TSG_SINCE_2_20(...) __VA_ARGS__
#else
#define TSG_SINCE_2_20(...)
#endif

// ... and float4_e2m1fn.
#if TSG_TENSORFLOW_VERSION >= 2021
#define TSG_SINCE_2_21(...) __VA_ARGS__
#else
#define TSG_SINCE_2_21(...)
#endif

// Whether a StreamExecutor activates its device itself. Before, that was left
// to stream_executor::gpu::ScopedActivateContext.
#if TSG_TENSORFLOW_VERSION >= 2019
#define TSG_EXECUTOR_ACTIVATES 1
#else
#define TSG_EXECUTOR_ACTIVATES 0
#endif

#endif  // TF_OPS_OPS_COMPAT_H_
