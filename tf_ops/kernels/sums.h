// The arithmetic of the types that can be added, as scatter_nd.h asks for it:
// the one list of them.

#ifndef TF_OPS_KERNELS_SUMS_H_
#define TF_OPS_KERNELS_SUMS_H_

#include <type_traits>

#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/types.h"

namespace tf_stitch_gather {

// Types that are summed as they are.
template <typename T>
struct PlainSum {
  using Value = T;
  using Wide = T;
  static constexpr bool kPlainBytes = true;
  // Integers wrap around, which C++ defines for unsigned ones only.
  static void Add(const T& value, T* sum) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      *sum = static_cast<T>(static_cast<Unsigned>(*sum) +
                            static_cast<Unsigned>(value));
    } else {
      *sum = *sum + value;
    }
  }
};

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

// Calls `visit` with the Sum of `type`; false when the type cannot be added.
template <typename Visitor>
bool VisitSum(tensorflow::DataType type, const Visitor& visit) {
  switch (type) {
#define TSG_CASE(TYPE, SUM)                                                \
  case tensorflow::DT_##TYPE:                                              \
    visit(SUM<tensorflow::EnumToDataType<tensorflow::DT_##TYPE>::Type>()); \
    return true
    TSG_CASE(FLOAT, PlainSum);
    TSG_CASE(DOUBLE, PlainSum);
    TSG_CASE(INT8, PlainSum);
    TSG_CASE(UINT8, PlainSum);
    TSG_CASE(INT16, PlainSum);
    TSG_CASE(UINT16, PlainSum);
    TSG_CASE(INT32, PlainSum);
    TSG_CASE(UINT32, PlainSum);
    TSG_CASE(INT64, PlainSum);
    TSG_CASE(UINT64, PlainSum);
    TSG_CASE(INT4, PlainSum);
    TSG_CASE(UINT4, PlainSum);
    TSG_CASE(COMPLEX64, PlainSum);
    TSG_CASE(COMPLEX128, PlainSum);
    TSG_CASE(HALF, FloatSum);
    TSG_CASE(BFLOAT16, FloatSum);
    TSG_CASE(FLOAT8_E5M2, FloatSum);
    TSG_CASE(FLOAT8_E4M3FN, FloatSum);
    TSG_CASE(FLOAT8_E4M3FNUZ, FloatSum);
    TSG_CASE(FLOAT8_E4M3B11FNUZ, FloatSum);
    TSG_CASE(FLOAT8_E5M2FNUZ, FloatSum);
    TSG_CASE(BOOL, OrSum);
    TSG_CASE(STRING, JoinSum);
#undef TSG_CASE
    default:
      return false;
  }
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_KERNELS_SUMS_H_
