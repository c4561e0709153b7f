// gather_nd on the CPU.

#ifndef TF_OPS_CPU_GATHER_ND_H_
#define TF_OPS_CPU_GATHER_ND_H_

#include <cstdint>

#include "tf_ops/core/index_space.h"
#include "tf_ops/core/indices.h"
#include "tf_ops/cpu/move_rows.h"
#include "tf_ops/cpu/parallel.h"

namespace tf_stitch_gather {

// Writes to `output` the row of `params` that each tuple of `indices` names,
// in the order of the tuples; a zero row for a tuple out of range. Every row
// of `output` is written, unless a bad tuple is met and `ignore_bad` is false:
// then the number of the first one is returned, and else FirstBad::kNone.
// Takes time in proportion to the tuples and the output; no memory.
int64_t GatherNd(const IndexSpace& space, const Indices& indices,
                 const char* params, const RowMover& mover, bool ignore_bad,
                 Workers& workers, char* output);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_GATHER_ND_H_
