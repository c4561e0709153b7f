// Index tensors: their three types, and the one way to read them.

#ifndef TF_OPS_CORE_INDICES_H_
#define TF_OPS_CORE_INDICES_H_

#include <cstdint>
#include <type_traits>

#include "tf_ops/core/host_device.h"

namespace tf_stitch_gather {

enum class IndexType { kInt16, kInt32, kInt64 };

// Calls `visit` with a value of the C++ type of `type`.
template <typename Visitor>
auto VisitIndexType(IndexType type, const Visitor& visit) {
  switch (type) {
    case IndexType::kInt16:
      return visit(int16_t{});
    case IndexType::kInt32:
      return visit(int32_t{});
    default:
      return visit(int64_t{});
  }
}

inline int64_t IndexBytes(IndexType type) {
  return VisitIndexType(
      type, [](auto zero) { return static_cast<int64_t>(sizeof(zero)); });
}

// The elements of an index tensor. Another thread may write the tensor while
// an op runs, so whoever reads an element copies it first and checks the copy.
struct Indices {
  const void* data;
  IndexType type;

  // One element, for error messages and other rare reads.
  int64_t at(int64_t i) const {
    return VisitIndexType(type, [&](auto zero) -> int64_t {
      return static_cast<const volatile decltype(zero)*>(data)[i];
    });
  }
};

// A bound of a dimension in the unsigned type of its index: `Unsigned(v) <
// bound` holds just for an index v in [0, dim), a negative one being greater
// than any bound.
template <typename Index>
TSG_HOST_DEVICE constexpr std::make_unsigned_t<Index> IndexBound(int64_t dim) {
  using Unsigned = std::make_unsigned_t<Index>;
  // std::numeric_limits is not for device code.
  constexpr int64_t kGreatest = static_cast<Unsigned>(-1) >> 1;
  return dim > kGreatest ? static_cast<Unsigned>(kGreatest) + Unsigned{1}
                         : static_cast<Unsigned>(dim);
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_INDICES_H_
