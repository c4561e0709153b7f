#include "tf_ops/xla/lowering.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace tf_stitch_gather {
namespace {

using xla::PrimitiveType;
using xla::Shape;
using xla::XlaBuilder;
using xla::XlaComputation;
using xla::XlaOp;

using Dims = std::vector<int64_t>;

// The callers report the builder's first error; until then an operation on no
// known shape only makes more of them.
Shape ShapeOf(XlaOp op) {
  auto shape = op.builder()->GetShape(op);
  return shape.ok() ? *shape : xla::ShapeUtil::MakeShape(xla::S32, {0});
}

Dims DimsOf(const Shape& shape) {
  return Dims(shape.dimensions().begin(), shape.dimensions().end());
}

Dims Counted(int64_t begin, int64_t end) {
  Dims dims(std::max<int64_t>(end - begin, 0));
  std::iota(dims.begin(), dims.end(), begin);
  return dims;
}

XlaOp Scalar(XlaBuilder* builder, PrimitiveType type, int64_t value) {
  return xla::ConvertElementType(xla::ConstantR0<int64_t>(builder, value),
                                 type);
}

XlaOp Zeros(XlaBuilder* builder, PrimitiveType type,
            absl::Span<const int64_t> dims) {
  return xla::Broadcast(
      xla::ConstantLiteral(builder, xla::LiteralUtil::Zero(type)), dims);
}

using Combine = std::function<XlaOp(XlaOp, XlaOp)>;

XlaComputation MakeComputation(XlaBuilder* parent, PrimitiveType type,
                               const char* name, const Combine& combine) {
  const auto builder = parent->CreateSubBuilder(name);
  const Shape scalar = xla::ShapeUtil::MakeShape(type, {});
  combine(xla::Parameter(builder.get(), 0, scalar, "a"),
          xla::Parameter(builder.get(), 1, scalar, "b"));
  return builder->BuildAndNoteError();
}

XlaOp Sum(XlaOp a, XlaOp b) { return xla::Add(a, b); }
XlaOp Both(XlaOp a, XlaOp b) { return xla::And(a, b); }
XlaOp Either(XlaOp a, XlaOp b) { return xla::Or(a, b); }
XlaOp Greater(XlaOp a, XlaOp b) { return xla::Max(a, b); }

// Index arithmetic is of 32 bits where every index and every size fits.
PrimitiveType AddressType(PrimitiveType index_type,
                          absl::Span<const int64_t> dims) {
  constexpr int64_t kGreatest = std::numeric_limits<int32_t>::max();
  const bool fits = std::all_of(dims.begin(), dims.end(),
                                [](int64_t dim) { return dim <= kGreatest; });
  return fits && index_type != xla::S64 ? xla::S32 : xla::S64;
}

// How `indices` address a tensor of `dims`, which are batch + indexed + slice.
struct Addressing {
  XlaOp indices;  // of shape batch + inner + [depth], depth > 0
  Dims dims;
  int64_t batch_dims;
  int64_t index_rank;
  int64_t depth;

  Addressing(XlaOp given, absl::Span<const int64_t> target, int64_t batch)
      : indices(given),
        dims(target.begin(), target.end()),
        batch_dims(batch),
        index_rank(ShapeOf(given).dimensions().size()),
        depth(ShapeOf(given).dimensions(index_rank - 1)) {
    indices = xla::ConvertElementType(
        indices, AddressType(ShapeOf(given).element_type(), dims));
    if (depth > 0) return;
    // XLA wants an index: the only one into a dimension of size 1.
    const PrimitiveType type = ShapeOf(indices).element_type();
    indices = xla::PadInDim(indices, Scalar(indices.builder(), type, 0),
                            index_rank - 1, 0, 1);
    dims.insert(dims.begin() + batch_dims, 1);
    depth = 1;
  }

  int64_t slice_begin() const { return batch_dims + depth; }

  // The shape of what lies at the indices.
  Dims AddressedDims() const {
    Dims addressed = DimsOf(ShapeOf(indices));
    addressed.pop_back();
    addressed.insert(addressed.end(), dims.begin() + slice_begin(), dims.end());
    return addressed;
  }
};

bool IsEmpty(absl::Span<const int64_t> dims) {
  return std::find(dims.begin(), dims.end(), 0) != dims.end();
}

// The size of a dimension, as a scalar.
XlaOp SizeOf(XlaOp op, int64_t dim, PrimitiveType type) {
  const Shape shape = ShapeOf(op);
  return shape.is_dynamic_dimension(dim)
             ? xla::ConvertElementType(xla::GetDimensionSize(op, dim), type)
             : Scalar(op.builder(), type, shape.dimensions(dim));
}

// Which tuples are in range, in the shape of the indices but for its last
// dimension. `target` is the tensor that they address.
XlaOp InRange(const Addressing& at, XlaOp target) {
  XlaBuilder* builder = target.builder();
  const Shape shape = ShapeOf(at.indices);
  const PrimitiveType type = shape.element_type();
  std::vector<XlaOp> sizes;
  for (int64_t k = at.batch_dims; k < at.slice_begin(); ++k) {
    sizes.push_back(xla::Reshape(SizeOf(target, k, type), {1}));
  }
  const XlaOp bounds = xla::BroadcastInDim(xla::ConcatInDim(builder, sizes, 0),
                                           DimsOf(shape), {at.index_rank - 1});
  const XlaOp fits =
      xla::And(xla::Ge(at.indices, Zeros(builder, type, shape.dimensions())),
               xla::Lt(at.indices, bounds));
  return xla::Reduce(fits, xla::ConstantR0<bool>(builder, true),
                     MakeComputation(builder, xla::PRED, "both", Both),
                     {at.index_rank - 1});
}

bool IsSmallFloat(PrimitiveType type) {
  return xla::primitive_util::IsFloatingPointType(type) &&
         xla::primitive_util::BitWidth(type) < 32;
}

// The type in which values are added.
PrimitiveType SumType(PrimitiveType type) {
  if (type == xla::PRED) return type;
  if (type == xla::S4) return xla::S32;
  if (type == xla::U4) return xla::U32;
  if (IsSmallFloat(type)) return xla::F32;
  return type;
}

// Scatters `updates` onto `base`; what is out of range is left out.
XlaOp Scatter(const Addressing& at, XlaOp base, XlaOp updates,
              const Combine& combine) {
  xla::ScatterDimensionNumbers numbers;
  numbers.set_index_vector_dim(at.index_rank - 1);
  const int64_t updates_rank = ShapeOf(updates).dimensions().size();
  for (int64_t i = at.index_rank - 1; i < updates_rank; ++i) {
    numbers.add_update_window_dims(i);
  }
  for (int64_t i = 0; i < at.batch_dims; ++i) {
    numbers.add_input_batching_dims(i);
    numbers.add_scatter_indices_batching_dims(i);
  }
  for (int64_t k = at.batch_dims; k < at.slice_begin(); ++k) {
    numbers.add_inserted_window_dims(k);
    numbers.add_scatter_dims_to_operand_dims(k);
  }
  return xla::Scatter(
      base, at.indices, updates,
      MakeComputation(base.builder(), ShapeOf(base).element_type(), "combine",
                      combine),
      numbers);
}

int64_t RankOf(XlaOp op) { return ShapeOf(op).dimensions().size(); }

// The same with its first `rank` dimensions as great as they can be; what lies
// beyond their sizes may hold anything.
XlaOp AtBound(XlaOp op, int64_t rank) {
  for (int64_t i = 0; i < rank; ++i) {
    if (ShapeOf(op).is_dynamic_dimension(i)) {
      op = xla::RemoveDynamicDimension(op, i);
    }
  }
  return op;
}

// Gives `op` the dynamic sizes of the first `rank` dimensions of `like`.
XlaOp WithSizesOf(XlaOp like, int64_t rank, XlaOp op) {
  for (int64_t i = 0; i < rank; ++i) {
    if (ShapeOf(like).is_dynamic_dimension(i)) {
      op = xla::SetDimensionSize(op, xla::GetDimensionSize(like, i), i);
    }
  }
  return op;
}

// All indices as one column, [n, 1] without dynamic sizes, in a type of
// addresses; -1 stands beyond the sizes.
XlaOp Column(XlaOp indices) {
  XlaBuilder* builder = indices.builder();
  const Shape shape = ShapeOf(indices);
  const PrimitiveType type =
      AddressType(shape.element_type(), shape.dimensions());
  const Dims dims = DimsOf(shape);
  XlaOp column = xla::ConvertElementType(AtBound(indices, dims.size()), type);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!shape.is_dynamic_dimension(i)) continue;
    const XlaOp position =
        xla::Iota(builder, xla::ShapeUtil::MakeShape(type, dims), i);
    const XlaOp size = xla::Broadcast(SizeOf(indices, i, type), dims);
    column = xla::Select(xla::Lt(position, size), column,
                         xla::Broadcast(Scalar(builder, type, -1), dims));
  }
  return xla::Reshape(column, {xla::Product(dims), 1});
}

// The rows of a part in a row, [n] + slice, without dynamic sizes in n.
XlaOp Rows(XlaOp data, int64_t index_rank) {
  const XlaOp bounded = AtBound(data, index_rank);
  if (index_rank == 1) return bounded;
  const Dims dims = DimsOf(ShapeOf(data));
  Dims rows = {
      xla::Product(absl::Span<const int64_t>(dims).subspan(0, index_rank))};
  rows.insert(rows.end(), dims.begin() + index_rank, dims.end());
  return xla::Reshape(bounded, rows);
}

// The running sum of a vector.
XlaOp RunningSum(XlaOp vector) {
  const Shape shape = ShapeOf(vector);
  const int64_t size = shape.dimensions(0);
  const XlaOp zero = Scalar(vector.builder(), shape.element_type(), 0);
  for (int64_t step = 1; step < size; step *= 2) {
    vector = xla::Add(
        vector, xla::PadInDim(xla::SliceInDim(vector, 0, size - step, 1, 0),
                              zero, 0, step, 0));
  }
  return vector;
}

}  // namespace

XlaOp LowerGatherNd(XlaOp params, XlaOp indices, int batch_dims) {
  XlaBuilder* builder = params.builder();
  const PrimitiveType given = ShapeOf(params).element_type();
  if (IsSmallFloat(given)) {
    // XLA computes with these in float32, which changes the bits of NaNs.
    const XlaOp bits = xla::BitcastConvertType(
        params, xla::primitive_util::BitWidth(given) == 8 ? xla::U8 : xla::U16);
    return xla::BitcastConvertType(LowerGatherNd(bits, indices, batch_dims),
                                   given);
  }
  const Shape shape = ShapeOf(params);
  const Addressing at(indices, shape.dimensions(), batch_dims);
  if (at.dims.size() != shape.dimensions().size()) {
    params = xla::Reshape(params, at.dims);
  }
  const Dims output_dims = at.AddressedDims();
  const XlaOp zeros = Zeros(builder, shape.element_type(), output_dims);
  if (IsEmpty(output_dims) || IsEmpty(at.dims)) return zeros;

  xla::GatherDimensionNumbers numbers;
  numbers.set_index_vector_dim(at.index_rank - 1);
  Dims slice_sizes(at.dims);
  for (int64_t i = 0; i < at.batch_dims; ++i) {
    numbers.add_operand_batching_dims(i);
    numbers.add_start_indices_batching_dims(i);
    slice_sizes[i] = 1;
  }
  for (int64_t k = at.batch_dims; k < at.slice_begin(); ++k) {
    numbers.add_collapsed_slice_dims(k);
    numbers.add_start_index_map(k);
    slice_sizes[k] = 1;
  }
  for (size_t i = at.index_rank - 1; i < output_dims.size(); ++i) {
    numbers.add_offset_dims(i);
  }
  // XLA's gather moves an index out of range to the nearest one in range.
  const XlaOp gathered = xla::Gather(params, at.indices, numbers, slice_sizes);
  const XlaOp in_range = xla::BroadcastInDim(InRange(at, params), output_dims,
                                             Counted(0, at.index_rank - 1));
  return xla::Select(in_range, gathered, zeros);
}

XlaOp LowerScatterNd(XlaOp indices, XlaOp updates,
                     absl::Span<const int64_t> output_dims, int batch_dims) {
  XlaBuilder* builder = updates.builder();
  const PrimitiveType type = ShapeOf(updates).element_type();
  const Addressing at(indices, output_dims, batch_dims);
  if (IsEmpty(output_dims) || IsEmpty(ShapeOf(updates).dimensions())) {
    return Zeros(builder, type, output_dims);
  }
  const PrimitiveType sum_type = SumType(type);
  const XlaOp sums = Scatter(at, Zeros(builder, sum_type, at.dims),
                             xla::ConvertElementType(updates, sum_type),
                             type == xla::PRED ? Either : Sum);
  return xla::ConvertElementType(xla::Reshape(sums, output_dims), type);
}

SparseRows LowerSparseGrad(XlaOp indices, XlaOp grad, XlaOp num_rows) {
  XlaBuilder* builder = indices.builder();
  const XlaOp column = xla::ConvertElementType(Column(indices), xla::S64);
  const int64_t count = ShapeOf(column).dimensions(0);
  const XlaOp updates = Rows(grad, RankOf(indices) - 1);
  if (count == 0) return {xla::Reshape(column, {0}), updates};

  // Sorted by row, and within a row in their own order; what is out of range
  // comes last.
  const XlaOp row = xla::Reshape(column, {count});
  const XlaOp last = xla::Broadcast(
      xla::ConstantR0<int64_t>(builder, std::numeric_limits<int64_t>::max()),
      {count});
  const XlaOp in_range =
      xla::And(xla::Ge(row, Zeros(builder, xla::S64, {count})),
               xla::Lt(row, xla::Broadcast(num_rows, {count})));
  const auto comparator = builder->CreateSubBuilder("before");
  const Shape key_shape = xla::ShapeUtil::MakeShape(xla::S64, {});
  const Shape order_shape = xla::ShapeUtil::MakeShape(xla::S32, {});
  const XlaOp a = xla::Parameter(comparator.get(), 0, key_shape, "a");
  const XlaOp b = xla::Parameter(comparator.get(), 1, key_shape, "b");
  xla::Parameter(comparator.get(), 2, order_shape, "order_a");
  xla::Parameter(comparator.get(), 3, order_shape, "order_b");
  xla::Lt(a, b);
  const XlaOp sorted = xla::Sort(
      {xla::Select(in_range, row, last), xla::Iota(builder, xla::S32, count)},
      comparator->BuildAndNoteError(), 0,
      /*is_stable=*/true);
  const XlaOp keys = xla::GetTupleElement(sorted, 0);
  const XlaOp order = xla::GetTupleElement(sorted, 1);

  // The first of each row, and from them the place of each source.
  const XlaOp differs =
      xla::ConcatInDim(builder,
                       {xla::ConstantR1<bool>(builder, 1, true),
                        xla::Ne(xla::SliceInDim(keys, 1, count, 1, 0),
                                xla::SliceInDim(keys, 0, count - 1, 1, 0))},
                       0);
  const XlaOp valid = xla::Ne(keys, last);
  const XlaOp first =
      xla::ConvertElementType(xla::And(differs, valid), xla::S32);
  const XlaOp none = xla::Broadcast(Scalar(builder, xla::S32, -1), {count});
  const XlaOp places =
      xla::Select(valid, xla::Add(RunningSum(first), none), none);
  const XlaOp unique =
      xla::Reduce(first, Scalar(builder, xla::S32, 0),
                  MakeComputation(builder, xla::S32, "sum", Sum), {0});

  const Addressing by_place(xla::Reshape(places, {count, 1}), {count}, 0);
  const XlaOp rows =
      Scatter(by_place, Zeros(builder, xla::S64, {count}), keys, Greater);
  const Addressing by_order(xla::Reshape(order, {count, 1}), {count}, 0);
  const XlaOp place_of_source = Scatter(by_order, none, places, Greater);
  const XlaOp values =
      LowerScatterNd(xla::Reshape(place_of_source, {count, 1}), updates,
                     ShapeOf(updates).dimensions(), 0);
  return {xla::SetDimensionSize(rows, unique, 0),
          xla::SetDimensionSize(values, unique, 0)};
}

XlaOp StitchWinners(absl::Span<const XlaOp> indices, int64_t rows) {
  XlaBuilder* builder = indices[0].builder();
  std::vector<XlaOp> columns;
  for (const XlaOp part : indices) columns.push_back(Column(part));
  const XlaOp column = xla::ConcatInDim(builder, columns, 0);
  const int64_t sources = ShapeOf(column).dimensions(0);
  const PrimitiveType type = AddressType(xla::S32, {sources});
  const XlaOp none = xla::Broadcast(Scalar(builder, type, -1), {rows});
  if (rows == 0 || sources == 0) return none;
  return Scatter(Addressing(column, {rows}, 0), none,
                 xla::Iota(builder, type, sources), Greater);
}

XlaOp ConstantStitchWinners(XlaBuilder* builder,
                            absl::Span<const std::vector<int64_t>> indices,
                            int64_t rows) {
  Dims winners(rows, -1);
  int64_t source = 0;
  for (const std::vector<int64_t>& part : indices) {
    for (const int64_t row : part) {
      if (row >= 0 && row < rows) winners[row] = source;
      ++source;
    }
  }
  return xla::ConvertElementType(xla::ConstantR1<int64_t>(builder, winners),
                                 AddressType(xla::S32, {source}));
}

XlaOp LowerStitch(XlaOp winners, absl::Span<const XlaOp> indices,
                  absl::Span<const XlaOp> data) {
  std::vector<XlaOp> parts;
  for (size_t m = 0; m < data.size(); ++m) {
    parts.push_back(Rows(data[m], RankOf(indices[m])));
  }
  return LowerGatherNd(xla::ConcatInDim(winners.builder(), parts, 0),
                       Column(winners), 0);
}

std::vector<XlaOp> LowerStitchGrad(XlaOp winners,
                                   absl::Span<const XlaOp> indices,
                                   XlaOp grad) {
  XlaBuilder* builder = grad.builder();
  const PrimitiveType type = ShapeOf(winners).element_type();
  const Dims rows = DimsOf(ShapeOf(winners));
  // Counted from 1, as a gather gives 0 for an index out of range.
  winners = xla::Add(winners, xla::Broadcast(Scalar(builder, type, 1), rows));
  std::vector<XlaOp> grads;
  int64_t first = 1;
  for (const XlaOp part : indices) {
    const XlaOp column = Column(part);
    const Shape shape = ShapeOf(column);
    const int64_t count = shape.dimensions(0);
    const XlaOp sources =
        xla::Add(xla::Iota(builder, type, count),
                 xla::Broadcast(Scalar(builder, type, first), {count}));
    const XlaOp wins = xla::Eq(LowerGatherNd(winners, column, 0), sources);
    const XlaOp none = xla::Broadcast(Scalar(builder, shape.element_type(), -1),
                                      shape.dimensions());
    const XlaOp won = xla::Select(
        xla::BroadcastInDim(wins, shape.dimensions(), {0}), column, none);
    const Dims slice = DimsOf(ShapeOf(grad));
    Dims dims = DimsOf(ShapeOf(part));
    dims.insert(dims.end(), slice.begin() + 1, slice.end());
    const XlaOp taken = LowerGatherNd(grad, won, 0);
    grads.push_back(
        WithSizesOf(part, RankOf(part),
                    RankOf(part) == 1 ? taken : xla::Reshape(taken, dims)));
    first += count;
  }
  return grads;
}

}  // namespace tf_stitch_gather
