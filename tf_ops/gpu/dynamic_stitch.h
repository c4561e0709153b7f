// dynamic_stitch and its gradient on the device.
//
// Each call takes the parts twice: as StitchParts, whose pointers are device
// memory, and as the table of them in device memory that GpuUploadParts makes.

#ifndef TF_OPS_GPU_DYNAMIC_STITCH_H_
#define TF_OPS_GPU_DYNAMIC_STITCH_H_

#include <cstdint>

#include "tf_ops/core/status.h"
#include "tf_ops/core/stitch_parts.h"
#include "tf_ops/gpu/stream.h"

namespace tf_stitch_gather {

// What is known of the indices, in device memory and after a copy on the host.
struct StitchReport {
  uint64_t bad_source;  // the first one out of range, or kNoBadIndex
  int64_t value;        // its index; without one, the greatest index, or -1
};

// The bad source that a report tells of.
BadSource ToBadSource(const StitchParts& parts, const StitchReport& report);

int64_t GpuStitchTableBytes(const StitchParts& parts);
Status GpuUploadParts(const GpuStream& stream, const StitchParts& parts,
                      void* table);

// Fills `report` with the greatest index, or the first negative one.
Status GpuStitchRows(const GpuStream& stream, const StitchParts& parts,
                     const void* table, StitchReport* report);

// The scratch of GpuStitch and GpuStitchGrad: 4 bytes a row, 8 with 2^32 - 1
// sources or more.
int64_t GpuStitchScratchBytes(const StitchParts& parts, int64_t rows,
                              int64_t row_bytes);

// Writes `rows` rows: for each the last source that names it, and zeros where
// there is none. An index outside [0, rows) is left out. `report` may be null;
// else it receives the first such index.
Status GpuStitch(const GpuStream& stream, const StitchParts& parts,
                 const void* table, int64_t rows, int64_t row_bytes,
                 StitchReport* report, void* scratch, char* merged);

// Writes the gradient of each source into the parts' rows: the row of `grad`
// (of `rows` rows) that it won, and zeros where a later source or nobody did.
Status GpuStitchGrad(const GpuStream& stream, const StitchParts& parts,
                     const void* table, int64_t rows, const char* grad,
                     int64_t row_bytes, StitchReport* report, void* scratch);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_DYNAMIC_STITCH_H_
