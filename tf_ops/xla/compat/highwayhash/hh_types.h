// Stands in for a header that is not on the include path of TensorFlow's wheel.
// XLA includes it for what highwayhash.h declares.

#ifndef TF_OPS_XLA_COMPAT_HIGHWAYHASH_HH_TYPES_H_
#define TF_OPS_XLA_COMPAT_HIGHWAYHASH_HH_TYPES_H_

#endif  // TF_OPS_XLA_COMPAT_HIGHWAYHASH_HH_TYPES_H_
