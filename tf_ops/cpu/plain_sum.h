// The sum of a type that is summed as it is.

#ifndef TF_OPS_CPU_PLAIN_SUM_H_
#define TF_OPS_CPU_PLAIN_SUM_H_

#include <type_traits>

namespace tf_stitch_gather {

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

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_PLAIN_SUM_H_
