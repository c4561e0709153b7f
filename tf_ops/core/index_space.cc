#include "tf_ops/core/index_space.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tf_ops/core/checked_math.h"

namespace tf_stitch_gather {
namespace {

Status DoesNotFit(const Shape& shape) {
  return Status::ResourceExhausted(
      "the number of elements of a tensor of shape " + shape.ToString() +
      " does not fit 64 bits");
}

}  // namespace

Status CheckIndices(const Shape& indices, const Shape& target,
                    const char* target_name, int64_t batch_dims) {
  const std::string name = target_name;
  if (batch_dims < 0) {
    return Status::InvalidArgument(
        "batch_dims = " + std::to_string(batch_dims) + " must not be negative");
  }
  if (indices.known_rank()) {
    if (indices.rank() < 1) {
      return Status::InvalidArgument(
          "indices must be at least a vector, got shape " + indices.ToString());
    }
    if (batch_dims >= indices.rank()) {
      return Status::InvalidArgument(
          "batch_dims = " + std::to_string(batch_dims) +
          " must be less than the rank of indices, whose shape is " +
          indices.ToString());
    }
  }
  if (target.known_rank() && batch_dims > target.rank()) {
    return Status::InvalidArgument(
        "batch_dims = " + std::to_string(batch_dims) +
        " must be at most the rank of " + name + ", whose shape is " +
        target.ToString());
  }
  if (!indices.known_rank() || !target.known_rank()) return {};

  const int batch = static_cast<int>(batch_dims);
  for (int i = 0; i < batch; ++i) {
    if (!Compatible(indices.dim(i), target.dim(i))) {
      return Status::InvalidArgument(
          name + " and indices must agree in their batch_dims = " +
          std::to_string(batch) + " leading dimensions, got batch shape " +
          target.Slice(0, batch) + " of " + name + " and " +
          indices.Slice(0, batch) + " of indices");
    }
  }
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > target.rank() - batch) {
    return Status::InvalidArgument(
        "index innermost dimension length must be <= " + name + " rank" +
        (batch > 0 ? " - batch_dims" : "") + "; saw: " + std::to_string(depth) +
        " vs. " + std::to_string(target.rank() - batch));
  }
  return {};
}

Status MakeIndexSpace(const Shape& indices, const Shape& target, int batch_dims,
                      IndexSpace* space) {
  const int inner_end = indices.rank() - 1;
  const int depth = static_cast<int>(indices.dim(inner_end));
  const int slice_begin = batch_dims + depth;
  if (!indices.Elements(0, batch_dims, &space->batches) ||
      !indices.Elements(batch_dims, inner_end, &space->tuples_per_batch) ||
      !target.Elements(batch_dims, slice_begin, &space->rows_per_batch) ||
      !target.Elements(slice_begin, target.rank(), &space->slice_elements) ||
      !BytesFit(space->slice_elements)) {
    return DoesNotFit(target);
  }
  int64_t total;
  if (!MultiplyFits(space->batches, space->tuples_per_batch, &total)) {
    return DoesNotFit(indices);
  }
  if (!MultiplyFits(space->batches, space->rows_per_batch, &total) ||
      !MultiplyFits(total, space->slice_elements, &total)) {
    return DoesNotFit(target);
  }
  space->depth = depth;
  // With no index to check and no element to move there is nothing to walk,
  // however many tuples there are: a [2^40, 0] tensor holds 0 bytes.
  if (depth == 0 && space->slice_elements == 0) space->tuples_per_batch = 0;
  // With no row at all any index is out of range, and no stride is used; the
  // products of the other dimensions need not fit.
  int64_t stride = space->rows_per_batch == 0 ? 0 : 1;
  for (int k = depth - 1; k >= 0; --k) {
    space->dims[k] = target.dim(batch_dims + k);
    space->strides[k] = stride;
    stride *= space->dims[k];
  }
  return {};
}

std::string BadTupleValuesMessage(const Indices& values,
                                  const Shape& indices_shape, int64_t tuple,
                                  const char* what, const Shape& target) {
  const int rank = indices_shape.rank();
  const int64_t depth = indices_shape.dim(rank - 1);
  std::vector<int64_t> position(rank - 1);
  int64_t rest = tuple;
  for (int i = rank - 2; i >= 0; --i) {
    position[i] = rest % indices_shape.dim(i);
    rest /= indices_shape.dim(i);
  }
  std::string text = "indices";
  for (size_t i = 0; i < position.size(); ++i) {
    text += (i == 0 ? "[" : ",") + std::to_string(position[i]);
  }
  text += position.empty() ? " = [" : "] = [";
  for (int64_t k = 0; k < depth; ++k) {
    if (k > 0) text += ", ";
    text += std::to_string(values.at(k));
  }
  return text + "] does not index into " + what + " " + target.ToString();
}

std::string BadTupleMessage(const Indices& indices, const Shape& indices_shape,
                            int64_t tuple, const char* what,
                            const Shape& target) {
  const int64_t depth = indices_shape.dim(indices_shape.rank() - 1);
  const Indices values = VisitIndexType(indices.type, [&](auto zero) {
    const auto* data = static_cast<const decltype(zero)*>(indices.data);
    return Indices{data + tuple * depth, indices.type};
  });
  return BadTupleValuesMessage(values, indices_shape, tuple, what, target);
}

}  // namespace tf_stitch_gather
