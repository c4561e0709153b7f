// Removes from a function what an index grid was made of.

#ifndef TF_OPS_GRAPPLER_PRUNE_H_
#define TF_OPS_GRAPPLER_PRUNE_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/function.pb.h"

namespace tf_stitch_gather {

// Removes the nodes that make `tensors`, and then what only they used, as far
// as nothing uses them and they have no effect but their output.
void Prune(const std::vector<std::string>& tensors,
           tensorflow::FunctionDef* function);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GRAPPLER_PRUNE_H_
