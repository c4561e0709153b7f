// The sums that tests of scatter_nd.h take, without TensorFlow.

#ifndef TF_OPS_TESTS_SUMS_H_
#define TF_OPS_TESTS_SUMS_H_

#include "tf_ops/cpu/plain_sum.h"

namespace tf_stitch_gather::testing {

// Kept in a wider type, so that the tuples are sorted.
template <typename T, typename W>
struct WideSum {
  using Value = T;
  using Wide = W;
  static constexpr bool kPlainBytes = true;
  static void Add(const T& value, W* sum) { *sum += value; }
  static T Round(const W& sum) { return static_cast<T>(sum); }
};

}  // namespace tf_stitch_gather::testing

#endif  // TF_OPS_TESTS_SUMS_H_
