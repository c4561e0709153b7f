// Stands in for a header that is not on the include path of TensorFlow's wheel.
// XLA's HighwayHashPrinter has a member of this class, and does not have its
// true size here: nothing in this folder may make one.

#ifndef TF_OPS_XLA_COMPAT_HIGHWAYHASH_HIGHWAYHASH_H_
#define TF_OPS_XLA_COMPAT_HIGHWAYHASH_HIGHWAYHASH_H_

namespace highwayhash {

template <unsigned kTarget>
class HighwayHashCatT {
 public:
  HighwayHashCatT() = delete;
  HighwayHashCatT(const HighwayHashCatT&) = delete;
  HighwayHashCatT& operator=(const HighwayHashCatT&) = delete;
};

}  // namespace highwayhash

#endif  // TF_OPS_XLA_COMPAT_HIGHWAYHASH_HIGHWAYHASH_H_
