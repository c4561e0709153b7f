// XLA's builder, wherever the version of TensorFlow has it.

#ifndef TF_OPS_XLA_BUILDER_H_
#define TF_OPS_XLA_BUILDER_H_

#if __has_include("xla/hlo/builder/xla_builder.h")
#include "xla/hlo/builder/xla_builder.h"
#else
#include "xla/client/xla_builder.h"
#endif

#endif  // TF_OPS_XLA_BUILDER_H_
