// gather_nd and scatter_nd: which shapes fit together, and what comes out.

#ifndef TF_OPS_CORE_GATHER_ND_H_
#define TF_OPS_CORE_GATHER_ND_H_

#include <cstdint>

#include "tf_ops/core/shape.h"
#include "tf_ops/core/status.h"

namespace tf_stitch_gather {

// output = indices.shape[:-1] + params.shape[batch_dims + indices.shape[-1]:].
Status GatherNdOutputShape(const Shape& params, const Shape& indices,
                           int64_t batch_dims, Shape* output);

// Checks that `updates` is what a gather with `indices` from a tensor of shape
// `output` would give.
Status CheckScatterNd(const Shape& indices, const Shape& updates,
                      const Shape& output, int64_t batch_dims);

// Checks the inputs of the merged sparse gradient of gather_nd: `indices` has
// one column, `grad` is indices.shape[:-1] + slice. Gives the shape of its
// `values`, [unknown] + slice.
Status SparseGradShape(const Shape& indices, const Shape& grad, Shape* values);

// The error of asking for an entry where the indexed dimensions hold none.
Status EmptyParams(const Shape& params);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_GATHER_ND_H_
