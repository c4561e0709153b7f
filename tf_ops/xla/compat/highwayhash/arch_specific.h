// Stands in for a header that TensorFlow's wheel includes but does not hold.

#ifndef TF_OPS_XLA_COMPAT_HIGHWAYHASH_ARCH_SPECIFIC_H_
#define TF_OPS_XLA_COMPAT_HIGHWAYHASH_ARCH_SPECIFIC_H_

#define HH_TARGET_PREFERRED 0

#endif  // TF_OPS_XLA_COMPAT_HIGHWAYHASH_ARCH_SPECIFIC_H_
