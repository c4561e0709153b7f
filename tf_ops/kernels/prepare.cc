#include "tf_ops/kernels/prepare.h"

#include <string>

#include "tensorflow/core/framework/resource_mgr.h"
#include "tf_ops/core/checked_math.h"
#include "tf_ops/core/gather_nd.h"
#include "tf_ops/kernels/glue.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Reads the shape that a scatter is asked for.
absl::Status ReadShape(const Tensor& tensor, Shape* shape) {
  if (tensor.dims() != 1) {
    return absl::InvalidArgumentError("shape must be a vector, got shape " +
                                      tensor.shape().DebugString());
  }
  if (tensor.NumElements() > kMaxRank) {
    return absl::InvalidArgumentError(
        "shape has " + std::to_string(tensor.NumElements()) +
        " dimensions; a tensor has at most " + std::to_string(kMaxRank));
  }
  const Indices dims = ToIndices(tensor);
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    const int64_t dim = dims.at(i);
    if (dim < 0) {
      return absl::InvalidArgumentError("shape[" + std::to_string(i) +
                                        "] = " + std::to_string(dim) +
                                        " must not be negative");
    }
    shape->Append(dim);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareGatherNd(OpKernelContext* ctx, const Tensor& params,
                             int64_t batch_dims, bool ignore_bad,
                             IndexedCall* call, TensorShape* output) {
  call->target = ToShape(params.shape());
  call->indices = ToShape(ctx->input(1).shape());
  Shape output_shape;
  TF_RETURN_IF_ERROR(ToTensorFlow(GatherNdOutputShape(
      call->target, call->indices, batch_dims, &output_shape)));
  TF_RETURN_IF_ERROR(
      ToTensorFlow(MakeIndexSpace(call->indices, call->target,
                                  static_cast<int>(batch_dims), &call->space)));
  if (call->space.tuples() > 0 && call->space.rows_per_batch == 0 &&
      !ignore_bad) {
    return ToTensorFlow(EmptyParams(call->target), ctx->op_kernel());
  }
  return ToTensorShape(output_shape, output);
}

namespace {

absl::Status NotInitialized(absl::string_view why) {
  return absl::FailedPreconditionError(
      "the variable has not been initialized. " + std::string(why));
}

}  // namespace

absl::Status FindVariable(
    OpKernelContext* ctx,
    tensorflow::core::RefCountPtr<tensorflow::Var>* variable) {
  const Tensor& resource = ctx->input(0);
  if (resource.NumElements() != 1) {
    return absl::InvalidArgumentError(
        "resource must be the handle of one variable, got shape " +
        resource.shape().DebugString());
  }
  const absl::Status found = tensorflow::LookupResource(
      ctx, tensorflow::HandleFromInput(ctx, 0), variable);
  if (found.ok()) return found;
  if (absl::IsNotFound(found)) return NotInitialized(found.message());
  return absl::InvalidArgumentError("resource is not a variable: " +
                                    std::string(found.message()));
}

absl::Status CheckVariable(tensorflow::Var& variable,
                           tensorflow::DataType type) {
  if (!variable.is_initialized) return NotInitialized("");
  const tensorflow::DataType held = variable.tensor()->dtype();
  if (held == type) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the variable holds " + tensorflow::DataTypeString(held) + ", not " +
      tensorflow::DataTypeString(type));
}

absl::Status PrepareScatterNd(OpKernelContext* ctx, int64_t batch_dims,
                              IndexedCall* call, TensorShape* output) {
  call->indices = ToShape(ctx->input(0).shape());
  TF_RETURN_IF_ERROR(ReadShape(ctx->input(2), &call->target));
  TF_RETURN_IF_ERROR(ToTensorShape(call->target, output));
  TF_RETURN_IF_ERROR(
      ToTensorFlow(CheckScatterNd(call->indices, ToShape(ctx->input(1).shape()),
                                  call->target, batch_dims)));
  return ToTensorFlow(MakeIndexSpace(
      call->indices, call->target, static_cast<int>(batch_dims), &call->space));
}

absl::Status PrepareSparseGrad(OpKernelContext* ctx, IndexedCall* call) {
  call->indices = ToShape(ctx->input(0).shape());
  TF_RETURN_IF_ERROR(ToTensorFlow(SparseGradShape(
      call->indices, ToShape(ctx->input(1).shape()), &call->target)));
  // The gradient addresses num_rows rows of the slices that `values` holds.
  int64_t num_rows = 0;
  TF_RETURN_IF_ERROR(ScalarIndex(ctx->input(2), "num_rows", &num_rows));
  call->target.set_dim(0, num_rows);
  return ToTensorFlow(
      MakeIndexSpace(call->indices, call->target, 0, &call->space));
}

absl::Status SparseGradValues(const IndexedCall& call, int64_t rows,
                              TensorShape* values) {
  Shape shape = call.target;
  shape.set_dim(0, rows);
  return ToTensorShape(shape, values);
}

absl::Status PrepareStitch(OpKernelContext* ctx, StitchShapes* shapes,
                           StitchParts* parts, int64_t* row_elements) {
  OpInputList indices;
  OpInputList data;
  TF_RETURN_IF_ERROR(ctx->input_list("indices", &indices));
  TF_RETURN_IF_ERROR(ctx->input_list("data", &data));
  if (indices.size() == 0 || indices.size() != data.size()) {
    return absl::InvalidArgumentError(
        "indices and data must be lists of the same length and not empty, "
        "got " +
        std::to_string(indices.size()) + " and " + std::to_string(data.size()));
  }
  *parts = StitchParts(ToIndices(indices[0]).type, indices.size());
  for (int m = 0; m < indices.size(); ++m) {
    TF_RETURN_IF_ERROR(ToTensorFlow(
        shapes->Add(ToShape(indices[m].shape()), ToShape(data[m].shape()))));
    parts->Add(indices[m].data(), data[m].data(), indices[m].NumElements());
  }
  const Shape& slice = shapes->slice();
  if (!slice.Elements(0, slice.rank(), row_elements) ||
      !BytesFit(*row_elements)) {
    return absl::ResourceExhaustedError("a slice of shape " + slice.ToString() +
                                        " has too many elements");
  }
  return absl::OkStatus();
}

absl::Status PrepareStitchGrad(OpKernelContext* ctx, StitchParts* parts,
                               int64_t* row_elements) {
  OpInputList indices;
  OpOutputList data_grads;
  TF_RETURN_IF_ERROR(ctx->input_list("indices", &indices));
  TF_RETURN_IF_ERROR(ctx->output_list("data_grads", &data_grads));
  if (indices.size() == 0) {
    return absl::InvalidArgumentError("indices must not be empty");
  }
  const Shape grad = ToShape(ctx->input(indices.size()).shape());
  *parts = StitchParts(ToIndices(indices[0]).type, indices.size());
  for (int m = 0; m < indices.size(); ++m) {
    Shape data_shape;
    TF_RETURN_IF_ERROR(ToTensorFlow(
        StitchGradShape(ToShape(indices[m].shape()), grad, &data_shape)));
    TensorShape shape;
    TF_RETURN_IF_ERROR(ToTensorShape(data_shape, &shape));
    Tensor* data_grad;
    TF_RETURN_IF_ERROR(data_grads.allocate(m, shape, &data_grad));
    parts->Add(indices[m].data(), data_grad->data(), indices[m].NumElements());
  }
  if (!grad.Elements(1, grad.rank(), row_elements) ||
      !BytesFit(*row_elements)) {
    return absl::ResourceExhaustedError("a slice of grad, whose shape is " +
                                        grad.ToString() +
                                        ", has too many elements");
  }
  return absl::OkStatus();
}

}  // namespace tf_stitch_gather
