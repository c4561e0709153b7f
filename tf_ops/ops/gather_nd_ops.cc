// The definitions of MyGatherNd, MyResourceGatherNd, MyScatterNd and
// MyGatherNdSparseGrad.

#include <cstdint>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tf_ops/core/gather_nd.h"
#include "tf_ops/ops/shape_fn.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::shape_inference::InferenceContext;

absl::Status GatheredShape(InferenceContext* ctx, const Shape& params) {
  TF_RETURN_IF_ERROR(CheckPolicy(ctx));
  int64_t batch_dims;
  TF_RETURN_IF_ERROR(ctx->GetAttr("batch_dims", &batch_dims));
  Shape output;
  TF_RETURN_IF_ERROR(ToTensorFlow(GatherNdOutputShape(
      params, ToShape(ctx, ctx->input(1)), batch_dims, &output)));
  ctx->set_output(0, ToHandle(ctx, output));
  return absl::OkStatus();
}

absl::Status GatherNdShape(InferenceContext* ctx) {
  return GatheredShape(ctx, ToShape(ctx, ctx->input(0)));
}

absl::Status ResourceGatherNdShape(InferenceContext* ctx) {
  const auto* variable = ctx->input_handle_shapes_and_types(0);
  return GatheredShape(ctx, variable == nullptr || variable->empty()
                                ? Shape::UnknownRank()
                                : ToShape(ctx, variable->front().shape));
}

absl::Status ScatterNdShape(InferenceContext* ctx) {
  TF_RETURN_IF_ERROR(CheckPolicy(ctx));
  int64_t batch_dims;
  TF_RETURN_IF_ERROR(ctx->GetAttr("batch_dims", &batch_dims));
  Shape output;
  TF_RETURN_IF_ERROR(ShapeFromInput(ctx, 2, &output));
  TF_RETURN_IF_ERROR(ToTensorFlow(CheckScatterNd(ToShape(ctx, ctx->input(0)),
                                                 ToShape(ctx, ctx->input(1)),
                                                 output, batch_dims)));
  ctx->set_output(0, ToHandle(ctx, output));
  return absl::OkStatus();
}

absl::Status SparseGradShapes(InferenceContext* ctx) {
  TF_RETURN_IF_ERROR(CheckPolicy(ctx));
  tensorflow::shape_inference::ShapeHandle scalar;
  TF_RETURN_IF_ERROR(ctx->WithRank(ctx->input(2), 0, &scalar));
  Shape values;
  TF_RETURN_IF_ERROR(ToTensorFlow(SparseGradShape(
      ToShape(ctx, ctx->input(0)), ToShape(ctx, ctx->input(1)), &values)));
  ctx->set_output(0, ToHandle(ctx, Shape{kUnknown}));
  ctx->set_output(1, ToHandle(ctx, values));
  return absl::OkStatus();
}

REGISTER_OP("MyGatherNd")
    .Input("params: Tparams")
    .Input("indices: Tindices")
    .Output("output: Tparams")
    .Attr("Tparams: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .Attr("batch_dims: int = 0")
    .SetShapeFn(NoThrowShape<GatherNdShape>)
    .Doc(R"doc(
Gathers slices of `params` into a tensor whose shape `indices` gives.

The innermost dimension of `indices` holds tuples, each of which names a slice
of `params`:

    output[i_0, ..., i_n, ...] = params[indices[i_0, ..., i_n], ...]

so that `output.shape` is
`indices.shape[:-1] + params.shape[batch_dims + indices.shape[-1]:]`.
With `batch_dims = b` the leading `b` dimensions of both are walked together.

params: The tensor to gather from, of any type and rank.
indices: Tuples of at most `rank(params) - batch_dims` indices. No dimension of
  it is limited by its own type.
output: The slices, in the order of the tuples.
bad_indices_policy: What an index out of range gives, a negative one included:
  "" and "DEFAULT" an error on CPU and zeros on GPU, "ERROR" an error, "IGNORE"
  zeros.
batch_dims: The number of leading dimensions that `params` and `indices` share.
)doc");

REGISTER_OP("MyResourceGatherNd")
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .Attr("batch_dims: int = 0")
    .SetIsStateful()
    .SetShapeFn(NoThrowShape<ResourceGatherNdShape>)
    .Doc(R"doc(
MyGatherNd from a variable, of which only the rows asked for are read.

Reading a variable first may copy all of it, which it does once rows have been
scattered into it.

resource: The handle of the variable.
indices: Tuples of at most `rank(variable) - batch_dims` indices.
output: The slices, in the order of the tuples.
dtype: The type of the variable.
bad_indices_policy: As of MyGatherNd.
batch_dims: As of MyGatherNd.
)doc");

REGISTER_OP("MyScatterNd")
    .Input("indices: Tindices")
    .Input("updates: T")
    .Input("shape: Tindices")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .Attr("batch_dims: int = 0")
    .SetShapeFn(NoThrowShape<ScatterNdShape>)
    .Doc(R"doc(
Adds `updates` at `indices` to a tensor of zeros; the gradient of MyGatherNd.

Updates at equal indices are added in row-major order of `indices`, so that the
result has the same bits on every run. Types of 16 and 8 bits are summed in
float32 and rounded once.

indices: Tuples that each name a slice of the output.
updates: The slices to add, of shape
  `indices.shape[:-1] + shape[batch_dims + indices.shape[-1]:]`; numbers, truth
  values (added by "or") or strings (put one after the other).
shape: The shape of the output.
output: The sums, and zeros where there are none.
bad_indices_policy: Whether an index out of range is an error ("", "DEFAULT" and
  "ERROR") or its update is left out ("IGNORE").
batch_dims: The number of leading dimensions that `indices` and the output
  share.
)doc");

REGISTER_OP("MyGatherNdSparseGrad")
    .Input("indices: Tindices")
    .Input("grad: T")
    .Input("num_rows: int64")
    .Output("rows: int64")
    .Output("values: T")
    .Attr("T: type")
    .Attr("Tindices: {int16, int32, int64}")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(NoThrowShape<SparseGradShapes>)
    .Doc(R"doc(
The gradient of MyGatherNd in sparse form, for indices of one column.

indices: The indices of the gather, of shape `[..., 1]`.
grad: The gradient of its output, of shape `indices.shape[:-1] + slice`.
num_rows: The number of rows of the params, a scalar.
rows: The rows that any index names, each once, ascending.
values: For each of them the sum of its slices of `grad`, taken in row-major
  order of `indices`, in float32 for narrower types.
bad_indices_policy: Whether an index out of range is an error ("", "DEFAULT" and
  "ERROR") or is left out ("IGNORE").
)doc");

}  // namespace
}  // namespace tf_stitch_gather
