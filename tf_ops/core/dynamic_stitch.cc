#include "tf_ops/core/dynamic_stitch.h"

namespace tf_stitch_gather {
namespace {

std::string Numbered(const char* list, int part) {
  return std::string(list) + "[" + std::to_string(part) + "]";
}

}  // namespace

Status StitchShapes::Add(const Shape& indices, const Shape& data) {
  const int part = parts_++;
  if (!indices.known_rank() || !data.known_rank()) return {};
  bool starts = data.rank() >= indices.rank();
  for (int i = 0; starts && i < indices.rank(); ++i) {
    starts = Compatible(indices.dim(i), data.dim(i));
  }
  if (!starts) {
    return Status::InvalidArgument(
        Numbered("data", part) + ".shape = " + data.ToString() +
        " does not start with " + Numbered("indices", part) +
        ".shape = " + indices.ToString());
  }
  const int slice_rank = data.rank() - indices.rank();
  if (!slice_.known_rank()) {
    slice_ = Shape();
    for (int i = 0; i < slice_rank; ++i) slice_.Append(kUnknown);
  }
  bool agrees = slice_rank == slice_.rank();
  for (int i = 0; agrees && i < slice_rank; ++i) {
    agrees = Compatible(slice_.dim(i), data.dim(indices.rank() + i));
  }
  if (!agrees) {
    return Status::InvalidArgument(
        Numbered("data", part) + ".shape = " + data.ToString() + " must be " +
        Numbered("indices", part) + ".shape = " + indices.ToString() +
        " followed by " + slice_.ToString() +
        ", the shape of a slice of the parts before it");
  }
  for (int i = 0; i < slice_rank; ++i) {
    slice_.set_dim(i, Merge(slice_.dim(i), data.dim(indices.rank() + i)));
  }
  return {};
}

Shape StitchShapes::Merged(int64_t rows) const {
  if (!slice_.known_rank()) return Shape::UnknownRank();
  Shape merged{rows};
  for (int i = 0; i < slice_.rank(); ++i) merged.Append(slice_.dim(i));
  return merged;
}

Status StitchGradShape(const Shape& indices, const Shape& grad,
                       Shape* data_grad) {
  *data_grad = Shape::UnknownRank();
  if (!grad.known_rank()) return {};
  if (grad.rank() < 1) {
    return Status::InvalidArgument(
        "grad must be at least a vector, got shape " + grad.ToString());
  }
  if (!indices.known_rank()) return {};
  *data_grad = indices;
  for (int i = 1; i < grad.rank(); ++i) data_grad->Append(grad.dim(i));
  return {};
}

Status BadStitchIndex(int part, int64_t position, int64_t value, int64_t size) {
  return Status::InvalidArgument(
      Numbered("indices", part) + "[" + std::to_string(position) +
      "] = " + std::to_string(value) + " is out of range" +
      (size == kUnknown ? "" : " [0, " + std::to_string(size) + ")"));
}

}  // namespace tf_stitch_gather
