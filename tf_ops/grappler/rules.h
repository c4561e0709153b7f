// How a node of a built-in op becomes one of ours, and back. The graph pass and
// the rewriting of saved models share this.

#ifndef TF_OPS_GRAPPLER_RULES_H_
#define TF_OPS_GRAPPLER_RULES_H_

#include <set>
#include <string>

#include "tensorflow/core/framework/node_def.pb.h"

namespace tf_stitch_gather {

enum class Direction { kToOurs, kToBuiltin };

// The op that takes the place of `op`, or null if none does.
const char* Counterpart(const std::string& op, Direction direction);

// Makes `node` one of its counterpart. Its name, inputs, device and attributes
// stay; an attribute that only one of the two ops has is added with its
// default, or dropped if it has that.
//
// `device_types` are those of the devices that may be chosen for a node that
// names none; if empty, nothing is known of them.
//
// Returns an empty text, or why the node would not mean the same; it is then
// unchanged.
std::string Convert(Direction direction,
                    const std::set<std::string>& device_types,
                    tensorflow::NodeDef* node);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GRAPPLER_RULES_H_
