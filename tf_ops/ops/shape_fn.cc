#include "tf_ops/ops/shape_fn.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tf_ops/core/policy.h"

namespace tf_stitch_gather {

using tensorflow::Tensor;
using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

Shape ToShape(InferenceContext* ctx, ShapeHandle handle) {
  if (!ctx->RankKnown(handle)) return Shape::UnknownRank();
  Shape shape;
  for (int i = 0; i < ctx->Rank(handle); ++i) {
    const int64_t dim = ctx->Value(ctx->Dim(handle, i));
    shape.Append(dim < 0 ? kUnknown : dim);
  }
  return shape;
}

ShapeHandle ToHandle(InferenceContext* ctx, const Shape& shape) {
  if (!shape.known_rank()) return ctx->UnknownShape();
  std::vector<DimensionHandle> dims;
  for (int i = 0; i < shape.rank(); ++i) {
    dims.push_back(shape.known_dim(i) ? ctx->MakeDim(shape.dim(i))
                                      : ctx->UnknownDim());
  }
  return ctx->MakeShape(dims);
}

bool GreatestConstant(InferenceContext* ctx, int input, int64_t* greatest) {
  const Tensor* tensor = ctx->input_tensor(input);
  if (tensor == nullptr) return false;
  const Indices indices = ToIndices(*tensor);
  for (int64_t i = 0; i < tensor->NumElements(); ++i) {
    *greatest = std::max(*greatest, indices.at(i));
  }
  return true;
}

absl::Status ShapeFromInput(InferenceContext* ctx, int input, Shape* shape) {
  tensorflow::DataType type;
  TF_RETURN_IF_ERROR(ctx->GetAttr("Tindices", &type));
  ShapeHandle handle;
  if (type != tensorflow::DT_INT16) {
    // Also reads shapes that other ops of the graph have built.
    TF_RETURN_IF_ERROR(ctx->MakeShapeFromShapeTensor(input, &handle));
    *shape = ToShape(ctx, handle);
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(ctx->WithRank(ctx->input(input), 1, &handle));
  const Tensor* tensor = ctx->input_tensor(input);
  const int64_t rank = ctx->Value(ctx->Dim(handle, 0));
  *shape = rank < 0 ? Shape::UnknownRank() : Shape();
  for (int64_t i = 0; i < std::min<int64_t>(rank, kMaxRank); ++i) {
    shape->Append(tensor == nullptr
                      ? kUnknown
                      : std::max(ToIndices(*tensor).at(i), kUnknown));
  }
  return absl::OkStatus();
}

absl::Status CheckPolicy(InferenceContext* ctx) {
  std::string text;
  const absl::Status status = ctx->GetAttr("bad_indices_policy", &text);
  if (!status.ok()) return status;
  BadIndicesPolicy policy;
  return ToTensorFlow(ParseBadIndicesPolicy(text, &policy));
}

}  // namespace tf_stitch_gather
