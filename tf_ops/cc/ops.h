// All of the C++ client API: the ops and their gradients.

#ifndef TF_OPS_CC_OPS_H_
#define TF_OPS_CC_OPS_H_

#include "tf_ops/cc/dynamic_stitch.h"
#include "tf_ops/cc/gather_nd.h"
#include "tf_ops/cc/gradients.h"
#include "tf_ops/cc/scatter_nd.h"

#endif  // TF_OPS_CC_OPS_H_
