#include "tf_ops/core/gather_nd.h"

#include <string>

#include "tf_ops/core/index_space.h"

namespace tf_stitch_gather {

Status GatherNdOutputShape(const Shape& params, const Shape& indices,
                           int64_t batch_dims, Shape* output) {
  *output = Shape::UnknownRank();
  Status status = CheckIndices(indices, params, "params", batch_dims);
  if (!status.ok() || !indices.known_rank() || !params.known_rank()) {
    return status;
  }
  const int inner_end = indices.rank() - 1;
  if (!indices.known_dim(inner_end)) return {};
  *output = Shape();
  for (int i = 0; i < inner_end; ++i) {
    output->Append(i < batch_dims ? Merge(indices.dim(i), params.dim(i))
                                  : indices.dim(i));
  }
  for (int i = static_cast<int>(batch_dims + indices.dim(inner_end));
       i < params.rank(); ++i) {
    output->Append(params.dim(i));
  }
  return {};
}

Status CheckScatterNd(const Shape& indices, const Shape& updates,
                      const Shape& output, int64_t batch_dims) {
  Shape expected;
  // A scatter's indices address its output as a gather's address its params.
  Status status = CheckIndices(indices, output, "the output", batch_dims);
  if (!status.ok()) return status;
  status = GatherNdOutputShape(output, indices, batch_dims, &expected);
  if (!status.ok() || !expected.known_rank() || !updates.known_rank()) {
    return status;
  }
  bool fits = updates.rank() == expected.rank();
  for (int i = 0; fits && i < updates.rank(); ++i) {
    fits = Compatible(updates.dim(i), expected.dim(i));
  }
  if (fits) return {};
  return Status::InvalidArgument(
      "updates must have shape indices.shape[:-1] + shape[" +
      std::to_string(batch_dims + indices.dim(indices.rank() - 1)) + ":] = " +
      expected.ToString() + ", got updates.shape " + updates.ToString() +
      ", indices.shape " + indices.ToString() + ", shape " + output.ToString());
}

Status SparseGradShape(const Shape& indices, const Shape& grad, Shape* values) {
  *values = Shape::UnknownRank();
  if (!indices.known_rank()) return {};
  const int inner_end = indices.rank() - 1;
  if (inner_end < 0 || !Compatible(indices.dim(inner_end), 1)) {
    return Status::InvalidArgument("indices must have one column, got shape " +
                                   indices.ToString());
  }
  if (!grad.known_rank()) return {};
  bool fits = grad.rank() >= inner_end;
  for (int i = 0; fits && i < inner_end; ++i) {
    fits = Compatible(grad.dim(i), indices.dim(i));
  }
  if (!fits) {
    return Status::InvalidArgument(
        "grad must start with indices.shape[:-1], got grad.shape " +
        grad.ToString() + ", indices.shape " + indices.ToString());
  }
  *values = Shape{kUnknown};
  for (int i = inner_end; i < grad.rank(); ++i) values->Append(grad.dim(i));
  return {};
}

Status EmptyParams(const Shape& params) {
  return Status::InvalidArgument(
      "Requested more than 0 entries, but params is empty.  Params shape: " +
      params.ToString());
}

}  // namespace tf_stitch_gather
