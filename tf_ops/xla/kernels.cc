// The kernels that compile the ops for XLA: read shapes and constants, check
// them as the kernels of every device do, and lower.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/compiler/tf2xla/xla_op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tf_ops/core/dynamic_stitch.h"
#include "tf_ops/core/gather_nd.h"
#include "tf_ops/core/index_space.h"
#include "tf_ops/core/policy.h"
#include "tf_ops/core/shape.h"
#include "tf_ops/ops/convert.h"
#include "tf_ops/ops/make_kernel.h"
#include "tf_ops/xla/lowering.h"
#include "tf_ops/xla/registration.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::DataType;
using tensorflow::OpKernelConstruction;
using tensorflow::XlaOpKernel;
using tensorflow::XlaOpKernelContext;
using xla::ValueInferenceMode;
using xla::XlaOp;

// A dynamic dimension is not known before the function runs.
Shape ToShape(const xla::Shape& shape) {
  Shape converted;
  for (size_t i = 0; i < shape.dimensions().size(); ++i) {
    converted.Append(shape.is_dynamic_dimension(i) ? kUnknown
                                                   : shape.dimensions(i));
  }
  return converted;
}

absl::Status ShapeOf(XlaOp op, Shape* shape) {
  const auto xla_shape = op.builder()->GetShape(op);
  TF_RETURN_IF_ERROR(xla_shape.status());
  *shape = ToShape(*xla_shape);
  return absl::OkStatus();
}

// XLA ends the process over a shape whose bytes it cannot count.
absl::Status CheckSize(const Shape& shape) {
  constexpr int64_t kGreatestElements = int64_t{1} << 58;
  int64_t elements;
  if (shape.Elements(0, shape.rank(), &elements) &&
      elements <= kGreatestElements) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError("a tensor of shape " + shape.ToString() +
                                      " does not fit in memory");
}

absl::Status ReadPolicy(OpKernelConstruction* ctx, BadIndicesPolicy* policy) {
  std::string text;
  TF_RETURN_IF_ERROR(ctx->GetAttr("bad_indices_policy", &text));
  return ToTensorFlow(ParseBadIndicesPolicy(text, policy));
}

absl::Status CheckSummable(DataType type) {
  if (!tensorflow::DataTypeIsQuantized(type)) return absl::OkStatus();
  return absl::InvalidArgumentError("values of type " +
                                    tensorflow::DataTypeString(type) +
                                    " cannot be added under XLA");
}

// What MyGatherNd and MyResourceGatherNd share.
class GatherNdXla : public XlaOpKernel {
 public:
  explicit GatherNdXla(OpKernelConstruction* ctx) : XlaOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ReadPolicy(ctx, &policy_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("batch_dims", &batch_dims_));
  }

 protected:
  void Gather(XlaOpKernelContext* ctx, XlaOp params) {
    OP_REQUIRES_OK(ctx, Check(params, ctx->Input(1)));
    ctx->SetOutput(
        0, LowerGatherNd(params, ctx->Input(1), static_cast<int>(batch_dims_)));
  }

 private:
  absl::Status Check(XlaOp params_op, XlaOp indices_op) const {
    Shape params;
    Shape indices;
    TF_RETURN_IF_ERROR(ShapeOf(params_op, &params));
    TF_RETURN_IF_ERROR(ShapeOf(indices_op, &indices));
    Shape output;
    TF_RETURN_IF_ERROR(ToTensorFlow(
        GatherNdOutputShape(params, indices, batch_dims_, &output)));
    if (!params.fully_known() || !indices.fully_known()) {
      return absl::OkStatus();
    }
    TF_RETURN_IF_ERROR(CheckSize(output));
    IndexSpace space;
    TF_RETURN_IF_ERROR(ToTensorFlow(MakeIndexSpace(
        indices, params, static_cast<int>(batch_dims_), &space)));
    if (space.tuples() > 0 && space.rows_per_batch == 0 &&
        policy_ != BadIndicesPolicy::kIgnore) {
      return ToTensorFlow(EmptyParams(params));
    }
    return absl::OkStatus();
  }

  BadIndicesPolicy policy_;
  int64_t batch_dims_;
};

class MyGatherNdXla : public GatherNdXla {
 public:
  using GatherNdXla::GatherNdXla;

  void Compile(XlaOpKernelContext* ctx) override { Gather(ctx, ctx->Input(0)); }
};

class MyResourceGatherNdXla : public GatherNdXla {
 public:
  explicit MyResourceGatherNdXla(OpKernelConstruction* ctx) : GatherNdXla(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("dtype", &dtype_));
  }

  void Compile(XlaOpKernelContext* ctx) override {
    XlaOp params;
    OP_REQUIRES_OK(ctx, ctx->ReadVariableInput(0, dtype_, nullptr, &params));
    Gather(ctx, params);
  }

 private:
  DataType dtype_;
};

class MyScatterNdXla : public XlaOpKernel {
 public:
  explicit MyScatterNdXla(OpKernelConstruction* ctx) : XlaOpKernel(ctx) {
    BadIndicesPolicy policy;
    OP_REQUIRES_OK(ctx, ReadPolicy(ctx, &policy));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("batch_dims", &batch_dims_));
    OP_REQUIRES_OK(ctx, CheckSummable(ctx->input_type(1)));
  }

  void Compile(XlaOpKernelContext* ctx) override {
    std::vector<int64_t> dims;
    bool known = true;
    OP_REQUIRES_OK(ctx, ReadShape(ctx, &dims, &known));
    OP_REQUIRES_OK(ctx, Check(ctx->Input(0), ctx->Input(1), dims));
    XlaOp output = LowerScatterNd(ctx->Input(0), ctx->Input(1), dims,
                                  static_cast<int>(batch_dims_));
    if (!known) {
      std::vector<bool> dynamic;
      OP_REQUIRES_OK(ctx, ctx->ResolveInputDynamismIntoPredVector(2, &dynamic));
      for (size_t i = 0; i < dims.size(); ++i) {
        if (!dynamic[i]) continue;
        const XlaOp size = xla::SliceInDim(ctx->Input(2), i, i + 1, 1, 0);
        output = xla::SetDimensionSize(
            output, xla::ConvertElementType(xla::Reshape(size, {}), xla::S32),
            i);
      }
    }
    ctx->SetOutput(0, output);
  }

 private:
  // The shape, or its bound where it is dynamic.
  static absl::Status ReadShape(XlaOpKernelContext* ctx,
                                std::vector<int64_t>* dims, bool* known) {
    xla::Literal literal;
    *known = ctx->ConstantInput(2, &literal).ok();
    if (!*known) {
      TF_RETURN_IF_ERROR(
          ctx->ConstantInput(2, &literal, ValueInferenceMode::kUpperBound));
    }
    if (literal.shape().dimensions().size() != 1) {
      return absl::InvalidArgumentError("shape must be a vector");
    }
    for (int64_t i = 0; i < literal.shape().dimensions(0); ++i) {
      dims->push_back(*literal.GetIntegralAsS64({i}));
      if (dims->back() < 0) {
        return absl::InvalidArgumentError(
            "shape[" + std::to_string(i) +
            "] = " + std::to_string(dims->back()) + " must not be negative");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Check(XlaOp indices_op, XlaOp updates_op,
                     const std::vector<int64_t>& dims) const {
    Shape indices;
    Shape updates;
    TF_RETURN_IF_ERROR(ShapeOf(indices_op, &indices));
    TF_RETURN_IF_ERROR(ShapeOf(updates_op, &updates));
    Shape output;
    for (const int64_t dim : dims) output.Append(dim);
    TF_RETURN_IF_ERROR(CheckSize(output));
    return ToTensorFlow(CheckScatterNd(indices, updates, output, batch_dims_));
  }

  int64_t batch_dims_;
};

class MyGatherNdSparseGradXla : public XlaOpKernel {
 public:
  explicit MyGatherNdSparseGradXla(OpKernelConstruction* ctx)
      : XlaOpKernel(ctx) {
    BadIndicesPolicy policy;
    OP_REQUIRES_OK(ctx, ReadPolicy(ctx, &policy));
    OP_REQUIRES_OK(ctx, CheckSummable(ctx->input_type(1)));
  }

  void Compile(XlaOpKernelContext* ctx) override {
    Shape indices;
    Shape grad;
    Shape values;
    OP_REQUIRES_OK(ctx, ShapeOf(ctx->Input(0), &indices));
    OP_REQUIRES_OK(ctx, ShapeOf(ctx->Input(1), &grad));
    OP_REQUIRES_OK(ctx, ToTensorFlow(SparseGradShape(indices, grad, &values)));
    const SparseRows sparse =
        LowerSparseGrad(ctx->Input(0), ctx->Input(1), ctx->Input(2));
    ctx->SetOutput(0, sparse.rows);
    ctx->SetOutput(1, sparse.values);
  }
};

// The list input `name`, which begins at input `first`.
struct List {
  List(XlaOpKernelContext* ctx, int first, int size) : ctx(ctx), first(first) {
    for (int m = 0; m < size; ++m) ops.push_back(ctx->Input(first + m));
  }

  // The values of all; an error where XLA cannot know them.
  absl::Status Values(std::vector<std::vector<int64_t>>* values) const {
    values->resize(ops.size());
    for (size_t m = 0; m < ops.size(); ++m) {
      TF_RETURN_IF_ERROR(ctx->ConstantInputReshapedToIntVector(
          first + static_cast<int>(m), &(*values)[m]));
    }
    return absl::OkStatus();
  }

  bool AreConstants() const {
    for (size_t m = 0; m < ops.size(); ++m) {
      if (!ctx->InputExpression(first + static_cast<int>(m))
               .constant_value()
               .has_value()) {
        return false;
      }
    }
    return true;
  }

  // The winners of a stitch with these indices.
  XlaOp Winners(int64_t rows) const {
    std::vector<std::vector<int64_t>> values;
    if (AreConstants() && Values(&values).ok()) return Winners(rows, values);
    return StitchWinners(ops, rows);
  }

  // The same for indices whose values are known.
  XlaOp Winners(int64_t rows,
                const std::vector<std::vector<int64_t>>& values) const {
    // Mostly gaps would only make a great constant.
    constexpr int64_t kFewRows = 1024;
    constexpr int64_t kRowsPerSource = 8;
    int64_t sources = 0;
    bool static_sizes = true;
    for (size_t m = 0; m < ops.size(); ++m) {
      const auto shape = ctx->builder()->GetShape(ops[m]);
      static_sizes = static_sizes && shape.ok() && shape->is_static();
      sources += values[m].size();
    }
    if (!static_sizes || (rows > kFewRows && rows / kRowsPerSource > sources)) {
      return StitchWinners(ops, rows);
    }
    return ConstantStitchWinners(ctx->builder(), values, rows);
  }

  XlaOpKernelContext* ctx;
  int first;
  std::vector<XlaOp> ops;
};

// Checks the parts of a stitch into `rows` rows.
absl::Status CheckStitch(const List& indices, const List& data, int64_t rows) {
  StitchShapes shapes;
  for (size_t m = 0; m < data.ops.size(); ++m) {
    Shape index_shape;
    Shape data_shape;
    TF_RETURN_IF_ERROR(ShapeOf(indices.ops[m], &index_shape));
    TF_RETURN_IF_ERROR(ShapeOf(data.ops[m], &data_shape));
    TF_RETURN_IF_ERROR(ToTensorFlow(shapes.Add(index_shape, data_shape)));
  }
  const Shape merged = shapes.Merged(rows);
  return merged.fully_known() ? CheckSize(merged) : absl::OkStatus();
}

class MyDynamicStitchXla : public XlaOpKernel {
 public:
  using XlaOpKernel::XlaOpKernel;

  void Compile(XlaOpKernelContext* ctx) override {
    const int parts = ctx->num_inputs() / 2;
    const List indices(ctx, 0, parts);
    const List data(ctx, parts, parts);
    std::vector<std::vector<int64_t>> values;
    if (!indices.Values(&values).ok()) {
      ctx->SetStatus(absl::InvalidArgumentError(
          "under XLA the number of rows must be known when the function is "
          "compiled, and these indices are not: pass size= to dynamic_stitch"));
      return;
    }
    int64_t rows = 0;
    OP_REQUIRES_OK(ctx, CountRows(values, &rows));
    OP_REQUIRES_OK(ctx, CheckStitch(indices, data, rows));
    ctx->SetOutput(
        0, LowerStitch(indices.Winners(rows, values), indices.ops, data.ops));
  }

 private:
  static absl::Status CountRows(const std::vector<std::vector<int64_t>>& values,
                                int64_t* rows) {
    for (size_t m = 0; m < values.size(); ++m) {
      for (size_t i = 0; i < values[m].size(); ++i) {
        const int64_t value = values[m][i];
        if (value < 0) {
          return ToTensorFlow(BadStitchIndex(m, i, value));
        }
        if (value >= *rows) *rows = value + 1;
      }
    }
    return absl::OkStatus();
  }
};

class MyDynamicStitchSizedXla : public XlaOpKernel {
 public:
  explicit MyDynamicStitchSizedXla(OpKernelConstruction* ctx)
      : XlaOpKernel(ctx) {
    BadIndicesPolicy policy;
    OP_REQUIRES_OK(ctx, ReadPolicy(ctx, &policy));
  }

  void Compile(XlaOpKernelContext* ctx) override {
    const int parts = (ctx->num_inputs() - 1) / 2;
    const List indices(ctx, 1, parts);
    const List data(ctx, 1 + parts, parts);
    int64_t rows = 0;
    const bool known = ctx->ConstantInputAsIntScalar(0, &rows).ok();
    if (!known) {
      OP_REQUIRES_OK(ctx, ctx->ConstantInputAsIntScalar(
                              0, &rows, ValueInferenceMode::kUpperBound));
    }
    OP_REQUIRES(ctx, rows >= 0,
                absl::InvalidArgumentError("size = " + std::to_string(rows) +
                                           " must not be negative"));
    OP_REQUIRES_OK(ctx, CheckStitch(indices, data, rows));
    const XlaOp merged =
        LowerStitch(indices.Winners(rows), indices.ops, data.ops);
    ctx->SetOutput(
        0, known ? merged
                 : xla::SetDimensionSize(
                       merged, xla::ConvertElementType(ctx->Input(0), xla::S32),
                       0));
  }
};

class MyDynamicStitchGradXla : public XlaOpKernel {
 public:
  explicit MyDynamicStitchGradXla(OpKernelConstruction* ctx)
      : XlaOpKernel(ctx) {
    BadIndicesPolicy policy;
    OP_REQUIRES_OK(ctx, ReadPolicy(ctx, &policy));
  }

  void Compile(XlaOpKernelContext* ctx) override {
    const int parts = ctx->num_inputs() - 1;
    const List indices(ctx, 0, parts);
    const XlaOp grad = ctx->Input(parts);
    Shape grad_shape;
    OP_REQUIRES_OK(ctx, ShapeOf(grad, &grad_shape));
    for (const XlaOp part : indices.ops) {
      Shape index_shape;
      Shape data_grad;
      OP_REQUIRES_OK(ctx, ShapeOf(part, &index_shape));
      OP_REQUIRES_OK(ctx, ToTensorFlow(StitchGradShape(index_shape, grad_shape,
                                                       &data_grad)));
      if (data_grad.fully_known()) OP_REQUIRES_OK(ctx, CheckSize(data_grad));
    }
    const auto xla_shape = ctx->builder()->GetShape(grad);
    OP_REQUIRES_OK(ctx, xla_shape.status());
    const std::vector<XlaOp> grads = LowerStitchGrad(
        indices.Winners(xla_shape->dimensions(0)), indices.ops, grad);
    for (int m = 0; m < parts; ++m) ctx->SetOutput(m, grads[m]);
  }
};

// `Kernel`, whose Compile does not throw.
template <typename Kernel>
class NoThrowXla final : public Kernel {
 public:
  using Kernel::Kernel;

  void Compile(XlaOpKernelContext* ctx) override {
    const absl::Status status = NoThrow([&] {
      Kernel::Compile(ctx);
      return absl::OkStatus();
    });
    if (!status.ok()) ctx->SetStatus(status);
  }
};

template <typename Kernel>
constexpr auto Make = MakeKernel<NoThrowXla<Kernel>>;

[[maybe_unused]] const bool registered = [] {
  RegisterXlaKernels({
      {"MyGatherNd", "Tparams", "", Make<MyGatherNdXla>},
      {"MyResourceGatherNd", "dtype", "", Make<MyResourceGatherNdXla>},
      {"MyScatterNd", "T", "shape", Make<MyScatterNdXla>},
      {"MyGatherNdSparseGrad", "T", "", Make<MyGatherNdSparseGradXla>},
      {"MyDynamicStitch", "T", "indices", Make<MyDynamicStitchXla>},
      {"MyDynamicStitchSized", "T", "size", Make<MyDynamicStitchSizedXla>},
      {"MyDynamicStitchGrad", "T", "", Make<MyDynamicStitchGradXla>},
  });
  return true;
}();

}  // namespace
}  // namespace tf_stitch_gather
