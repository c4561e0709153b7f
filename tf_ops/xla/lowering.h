// What the ops are in XLA's operations. The callers have checked that the
// shapes fit together. Dimensions may be dynamic, with a static bound.
//
// Nothing can fail when a compiled function runs, so an index out of range, a
// negative one included, has no effect: it takes zeros and leaves nothing.

#ifndef TF_OPS_XLA_LOWERING_H_
#define TF_OPS_XLA_LOWERING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tf_ops/xla/builder.h"

namespace tf_stitch_gather {

// MyGatherNd.
xla::XlaOp LowerGatherNd(xla::XlaOp params, xla::XlaOp indices, int batch_dims);

// MyScatterNd. Updates at equal indices are added one after the other where
// XLA's scatter does so, as on the CPU; floats of at most 16 bits are added in
// float32 and rounded once.
xla::XlaOp LowerScatterNd(xla::XlaOp indices, xla::XlaOp updates,
                          absl::Span<const int64_t> output_dims,
                          int batch_dims);

// MyGatherNdSparseGrad. The first dimension of both is dynamic, bounded by the
// number of indices.
struct SparseRows {
  xla::XlaOp rows;
  xla::XlaOp values;
};
SparseRows LowerSparseGrad(xla::XlaOp indices, xla::XlaOp grad,
                           xla::XlaOp num_rows);

// The sources of a stitch are numbered in the order in which they write. For
// each of `rows` rows this is the number of the last one that names it, -1
// where there is none, as a vector.
xla::XlaOp StitchWinners(absl::Span<const xla::XlaOp> indices, int64_t rows);

// The same for indices that are known, part by part.
xla::XlaOp ConstantStitchWinners(xla::XlaBuilder* builder,
                                 absl::Span<const std::vector<int64_t>> indices,
                                 int64_t rows);

// Both stitches: the rows that `winners` names. `indices` tell where the slices
// of `data` begin.
xla::XlaOp LowerStitch(xla::XlaOp winners, absl::Span<const xla::XlaOp> indices,
                       absl::Span<const xla::XlaOp> data);

// MyDynamicStitchGrad: one gradient for each of the indices.
std::vector<xla::XlaOp> LowerStitchGrad(xla::XlaOp winners,
                                        absl::Span<const xla::XlaOp> indices,
                                        xla::XlaOp grad);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_XLA_LOWERING_H_
