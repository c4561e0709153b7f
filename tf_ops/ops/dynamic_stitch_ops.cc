// The definitions of MyDynamicStitch, MyDynamicStitchSized and
// MyDynamicStitchGrad.

#include <cstdint>
#include <limits>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tf_ops/core/dynamic_stitch.h"
#include "tf_ops/ops/shape_fn.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// The merged shape of inputs [first, first + N) indices and [first + N, first
// + 2 N) data, with `rows` rows.
absl::Status MergedShape(InferenceContext* ctx, int first, int64_t rows) {
  int64_t parts;
  TF_RETURN_IF_ERROR(ctx->GetAttr("N", &parts));
  const int n = static_cast<int>(parts);
  StitchShapes shapes;
  for (int m = first; m < first + n; ++m) {
    TF_RETURN_IF_ERROR(ToTensorFlow(shapes.Add(
        ToShape(ctx, ctx->input(m)), ToShape(ctx, ctx->input(m + n)))));
  }
  ctx->set_output(0, ToHandle(ctx, shapes.Merged(rows)));
  return absl::OkStatus();
}

absl::Status StitchShape(InferenceContext* ctx) {
  int64_t parts;
  TF_RETURN_IF_ERROR(ctx->GetAttr("N", &parts));
  int64_t greatest = -1;
  bool constant = true;
  for (int m = 0; m < parts; ++m) {
    constant = GreatestConstant(ctx, m, &greatest) && constant;
  }
  // No tensor has 2^63 rows: that index is an error when the op runs.
  const bool known = constant && greatest < std::numeric_limits<int64_t>::max();
  return MergedShape(ctx, 0, known ? greatest + 1 : kUnknown);
}

absl::Status SizedStitchShape(InferenceContext* ctx) {
  TF_RETURN_IF_ERROR(CheckPolicy(ctx));
  ShapeHandle scalar;
  TF_RETURN_IF_ERROR(ctx->WithRank(ctx->input(0), 0, &scalar));
  DimensionHandle rows;
  TF_RETURN_IF_ERROR(ctx->MakeDimForScalarInput(0, &rows));
  return MergedShape(ctx, 1,
                     ctx->ValueKnown(rows) ? ctx->Value(rows) : kUnknown);
}

absl::Status StitchGradShapes(InferenceContext* ctx) {
  TF_RETURN_IF_ERROR(CheckPolicy(ctx));
  int64_t parts;
  TF_RETURN_IF_ERROR(ctx->GetAttr("N", &parts));
  const Shape grad = ToShape(ctx, ctx->input(static_cast<int>(parts)));
  for (int m = 0; m < parts; ++m) {
    Shape data_grad;
    TF_RETURN_IF_ERROR(ToTensorFlow(
        StitchGradShape(ToShape(ctx, ctx->input(m)), grad, &data_grad)));
    ctx->set_output(m, ToHandle(ctx, data_grad));
  }
  return absl::OkStatus();
}

REGISTER_OP("MyDynamicStitch")
    .Input("indices: N * Tindices")
    .Input("data: N * T")
    .Output("merged: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64} = DT_INT32")
    .SetShapeFn(NoThrowShape<StitchShape>)
    .Doc(R"doc(
Puts the rows of several tensors into one, at the places that `indices` name:

    merged[indices[m][i, ..., j], ...] = data[m][i, ..., j, ...]

`merged.shape` is `[max(indices) + 1] + slice`, with 0 rows when there is no
index at all. Where an index comes more than once, the last one in the order of
the lists, and row-major within a tensor, wins. Rows that no index names are
zero, empty strings or default variants. A negative index is an error.

indices: Where the rows of `data` go; tensors of any shapes.
data: The rows, with `data[m].shape == indices[m].shape + slice` and the same
  `slice` for each m.
merged: The rows in their places.
)doc");

REGISTER_OP("MyDynamicStitchSized")
    .Input("size: Tindices")
    .Input("indices: N * Tindices")
    .Input("data: N * T")
    .Output("merged: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64} = DT_INT32")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(NoThrowShape<SizedStitchShape>)
    .Doc(R"doc(
MyDynamicStitch into a given number of rows, which needs no look at the indices
to know the shape of its output.

size: The number of rows of `merged`, a scalar.
indices: Where the rows of `data` go.
data: The rows, with `data[m].shape == indices[m].shape + slice`.
merged: The rows in their places, of shape `[size] + slice`.
bad_indices_policy: Whether an index outside `[0, size)` is an error ("" and
  "DEFAULT" on CPU, "ERROR" everywhere) or its row is left out ("IGNORE").
)doc");

REGISTER_OP("MyDynamicStitchGrad")
    .Input("indices: N * Tindices")
    .Input("grad: T")
    .Output("data_grads: N * T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64} = DT_INT32")
    .Attr("bad_indices_policy: string = ''")
    .SetShapeFn(NoThrowShape<StitchGradShapes>)
    .Doc(R"doc(
The gradient of MyDynamicStitch and MyDynamicStitchSized for `data`.

indices: The indices of the stitch.
grad: The gradient of `merged`.
data_grads: For each row of data the row of `grad` that it won in the stitch,
  and zeros for a row that a later one overwrote.
bad_indices_policy: Whether an index outside the rows of `grad` is an error or
  has a gradient of zeros ("IGNORE").
)doc");

}  // namespace
}  // namespace tf_stitch_gather
