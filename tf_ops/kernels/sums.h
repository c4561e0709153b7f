// The arithmetic of the types that can be added, as scatter_nd.h asks for it:
// the one list of them.

#ifndef TF_OPS_KERNELS_SUMS_H_
#define TF_OPS_KERNELS_SUMS_H_

#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/tstring.h"
#include "tf_ops/cpu/plain_sum.h"
#include "tf_ops/ops/compat.h"

namespace tf_stitch_gather {

// Types of at most 16 bits, whose sums of many small terms would stand still:
// summed in float32 and rounded once.
template <typename T>
struct FloatSum {
  using Value = T;
  using Wide = float;
  static constexpr bool kPlainBytes = true;
  static void Add(const T& value, float* sum) {
    *sum += static_cast<float>(value);
  }
  static T Round(float sum) { return static_cast<T>(sum); }
};

// Truth values, whose sum is true where one of them is.
template <typename T>
struct OrSum {
  using Value = T;
  using Wide = T;
  static constexpr bool kPlainBytes = true;
  static void Add(const T& value, T* sum) { *sum = *sum || value; }
};

// Strings, whose sum is one after the other.
template <typename T>
struct JoinSum {
  using Value = T;
  using Wide = T;
  static constexpr bool kPlainBytes = false;
  static void Add(const T& value, T* sum) { sum->append(value); }
};

// The types that can be added: X(type, sum on the CPU, kind of the sum on the
// device, elements of that kind in one of the type). Strings are on the CPU
// alone.
// clang-format off
#define TSG_DEVICE_SUMS(X)                                  \
  X(FLOAT, PlainSum, kFloat, 1)                             \
  X(DOUBLE, PlainSum, kDouble, 1)                           \
  X(COMPLEX64, PlainSum, kFloat, 2)                         \
  X(COMPLEX128, PlainSum, kDouble, 2)                       \
  X(INT8, PlainSum, kInteger8, 1)                           \
  X(UINT8, PlainSum, kInteger8, 1)                          \
  X(INT16, PlainSum, kInteger16, 1)                         \
  X(UINT16, PlainSum, kInteger16, 1)                        \
  X(INT32, PlainSum, kInteger32, 1)                         \
  X(UINT32, PlainSum, kInteger32, 1)                        \
  X(INT64, PlainSum, kInteger64, 1)                         \
  X(UINT64, PlainSum, kInteger64, 1)                        \
  X(INT4, PlainSum, kNibble, 1)                             \
  X(UINT4, PlainSum, kNibble, 1)                            \
  X(BOOL, OrSum, kOr, 1)                                    \
  X(HALF, FloatSum, kHalf, 1)                               \
  X(BFLOAT16, FloatSum, kBfloat16, 1)                       \
  X(FLOAT8_E5M2, FloatSum, kFloat8E5M2, 1)                  \
  X(FLOAT8_E4M3FN, FloatSum, kFloat8E4M3Fn, 1)              \
  TSG_SINCE_2_19(                                           \
  X(FLOAT8_E4M3FNUZ, FloatSum, kFloat8E4M3Fnuz, 1)          \
  X(FLOAT8_E4M3B11FNUZ, FloatSum, kFloat8E4M3B11Fnuz, 1)    \
  X(FLOAT8_E5M2FNUZ, FloatSum, kFloat8E5M2Fnuz, 1))         \
  TSG_SINCE_2_20(                                           \
  X(INT2, PlainSum, kCrumb, 1)                              \
  X(UINT2, PlainSum, kCrumb, 1))                            \
  TSG_SINCE_2_21(                                           \
  X(FLOAT4_E2M1FN, FloatSum, kFloat4E2M1Fn, 1))
// clang-format on

// Calls `visit` with the Sum of `type`; false when the type cannot be added.
template <typename Visitor>
bool VisitSum(tensorflow::DataType type, const Visitor& visit) {
  switch (type) {
#define TSG_CASE(TYPE, SUM, KIND, PARTS)                                   \
  case tensorflow::DT_##TYPE:                                              \
    visit(SUM<tensorflow::EnumToDataType<tensorflow::DT_##TYPE>::Type>()); \
    return true;
    TSG_DEVICE_SUMS(TSG_CASE)
#undef TSG_CASE
    case tensorflow::DT_STRING:
      visit(JoinSum<tensorflow::tstring>());
      return true;
    default:
      return false;
  }
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_KERNELS_SUMS_H_
