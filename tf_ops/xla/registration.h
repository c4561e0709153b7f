// Registers kernels with TensorFlow's XLA bridge.

#ifndef TF_OPS_XLA_REGISTRATION_H_
#define TF_OPS_XLA_REGISTRATION_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_stitch_gather {

// An op as XLA compiles it.
struct XlaKernel {
  std::string op;
  std::string type_attr;  // the attribute that XLA's types limit
  // The name of an input that must be known when XLA compiles; may be empty.
  std::string constant_input;
  tensorflow::OpKernel* (*make)(tensorflow::OpKernelConstruction*);
};

// Registers the kernels, for functions that have been compiled before too. Does
// nothing where another copy of this library has registered them, or where the
// ops are not: TensorFlow would end the process.
void RegisterXlaKernels(const std::vector<XlaKernel>& kernels);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_XLA_REGISTRATION_H_
