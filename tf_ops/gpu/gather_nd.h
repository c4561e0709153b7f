// gather_nd on the device.

#ifndef TF_OPS_GPU_GATHER_ND_H_
#define TF_OPS_GPU_GATHER_ND_H_

#include <cstdint>

#include "tf_ops/core/index_space.h"
#include "tf_ops/core/indices.h"
#include "tf_ops/core/status.h"
#include "tf_ops/gpu/stream.h"

namespace tf_stitch_gather {

// What is known of the tuples out of range, in device memory: the number of
// the first one, or kNoBadIndex, and then its `depth` indices as int64.
inline int64_t BadTupleReportBytes(int depth) {
  return static_cast<int64_t>(sizeof(uint64_t)) * (1 + depth);
}

// Writes to `output` the row of `params` that each tuple of `indices` names,
// and zeros for a tuple out of range. `report` may be null; else it receives
// a BadTupleReport.
Status GpuGatherNd(const GpuStream& stream, const IndexSpace& space,
                   const Indices& indices, const char* params,
                   int64_t row_bytes, uint64_t* report, char* output);

// Adds to a report that holds the number of a tuple the indices of it.
Status GpuDescribeBadTuple(const GpuStream& stream, const Indices& indices,
                           int depth, uint64_t* report);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_GATHER_ND_H_
