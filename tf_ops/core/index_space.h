// How a tuple of indices names a row (a slice) of a tensor: the arithmetic
// that gather_nd and scatter_nd share.

#ifndef TF_OPS_CORE_INDEX_SPACE_H_
#define TF_OPS_CORE_INDEX_SPACE_H_

#include <cstdint>
#include <string>

#include "tf_ops/core/indices.h"
#include "tf_ops/core/shape.h"
#include "tf_ops/core/status.h"

namespace tf_stitch_gather {

// `indices` of shape batch + inner + [depth] address a tensor of shape
// batch + dims[0..depth) + slice. Its rows are numbered in row-major order:
// tuple t of batch b names row b * rows_per_batch + sum(t[k] * strides[k]).
struct IndexSpace {
  int64_t batches;
  int64_t tuples_per_batch;  // 0 where a tuple holds no index and no element
  int64_t rows_per_batch;
  int64_t slice_elements;
  int depth;
  int64_t dims[kMaxRank];
  int64_t strides[kMaxRank];  // in rows; all 0 where a dimension is 0

  int64_t tuples() const { return batches * tuples_per_batch; }
  int64_t rows() const { return batches * rows_per_batch; }
};

// Checks that `indices` can address `target` (named `target_name` in messages)
// with `batch_dims` leading dimensions in common. Unknown dimensions pass.
Status CheckIndices(const Shape& indices, const Shape& target,
                    const char* target_name, int64_t batch_dims);

// Fills `space` from shapes that are fully known and passed CheckIndices.
Status MakeIndexSpace(const Shape& indices, const Shape& target, int batch_dims,
                      IndexSpace* space);

// "indices[0,1] = [7] does not index into param shape [3]" for tuple number
// `tuple`, whose indices are values.at(0), values.at(1), ...; `what` is "param
// shape" or "shape".
std::string BadTupleValuesMessage(const Indices& values,
                                  const Shape& indices_shape, int64_t tuple,
                                  const char* what, const Shape& target);

// The same, with the values of that tuple read from all of `indices`.
std::string BadTupleMessage(const Indices& indices, const Shape& indices_shape,
                            int64_t tuple, const char* what,
                            const Shape& target);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_INDEX_SPACE_H_
