// dynamic_stitch and its gradient on the CPU.

#ifndef TF_OPS_CPU_DYNAMIC_STITCH_H_
#define TF_OPS_CPU_DYNAMIC_STITCH_H_

#include <cstdint>

#include "tf_ops/core/stitch_parts.h"
#include "tf_ops/cpu/move_rows.h"
#include "tf_ops/cpu/parallel.h"

namespace tf_stitch_gather {

// The rows of a stitch, which are the greatest index + 1, and 0 without an
// index. `bad` tells of the first negative index.
int64_t StitchRows(const StitchParts& parts, Workers& workers, BadSource* bad);

// How a stitch of such rows is done: straight from the sources into `merged`,
// or by way of a map from the rows of `merged` to their sources.
int64_t StitchScratchBytes(int64_t rows, const RowMover& mover);

// Writes `rows` rows: for each the last source that names it, and zeros where
// there is none. An index outside [0, rows) is left out; `ignore_bad` says
// whether that is right, and if not, the first such index is returned.
// `scratch` holds StitchScratchBytes, 8 bytes a row at most.
BadSource Stitch(const StitchParts& parts, int64_t rows, const RowMover& mover,
                 bool ignore_bad, Workers& workers, void* scratch,
                 char* merged);

// The scratch of StitchGrad: 4 bytes a row, 8 with 2^32 sources or more.
int64_t StitchGradScratchBytes(const StitchParts& parts, int64_t rows,
                               const RowMover& mover);

// Writes the gradient of each source into the parts' rows: the row of `grad`
// (of `rows` rows) that it won, and zeros where a later source or nobody did.
BadSource StitchGrad(const StitchParts& parts, int64_t rows, const char* grad,
                     const RowMover& mover, bool ignore_bad, Workers& workers,
                     void* scratch);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_DYNAMIC_STITCH_H_
