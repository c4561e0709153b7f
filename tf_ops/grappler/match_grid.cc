#include "tf_ops/grappler/match_grid.h"

#include <optional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace tf_stitch_gather {
namespace {

using tensorflow::NodeDef;

// Of a grid that constant folding has left as its numbers.
template <typename T>
std::optional<Sizes> MatchNumbers(const tensorflow::Tensor& grid) {
  const int columns = static_cast<int>(grid.dim_size(grid.dims() - 1));
  const auto flat = grid.flat_inner_dims<T, 2>();
  const int64_t tuples = flat.dimension(0);
  if (tuples == 0 || columns == 0) return std::nullopt;
  // The last position in the batch tells its shape.
  std::vector<int64_t> shape(columns);
  int64_t positions = 1;
  for (int k = 0; k < columns; ++k) {
    shape[k] = static_cast<int64_t>(flat(tuples - 1, k)) + 1;
    if (shape[k] <= 0 ||
        __builtin_mul_overflow(positions, shape[k], &positions)) {
      return std::nullopt;
    }
  }
  if (positions != grid.dim_size(0)) return std::nullopt;
  const int64_t repeats = tuples / positions;
  for (int64_t i = 0; i < tuples; ++i) {
    int64_t rest = i / repeats;
    for (int k = columns - 1; k >= 0; --k) {
      if (flat(i, k) != rest % shape[k]) return std::nullopt;
      rest /= shape[k];
    }
  }
  Sizes sizes;
  for (const int64_t size : shape) sizes.push_back(Size::Of(size));
  return sizes;
}

std::optional<Sizes> MatchConstant(const tensorflow::Tensor& grid) {
  if (grid.dims() < 2) return std::nullopt;
  switch (grid.dtype()) {
    case tensorflow::DT_INT16:
      return MatchNumbers<int16_t>(grid);
    case tensorflow::DT_INT32:
      return MatchNumbers<int32_t>(grid);
    case tensorflow::DT_INT64:
      return MatchNumbers<int64_t>(grid);
    default:
      return std::nullopt;
  }
}

// Whether `shape` is [1, ..., 1, -1, 1, ..., 1] of `count` numbers, with -1 at
// k.
bool IsAxisShape(const std::optional<Sizes>& shape, int k, int count) {
  if (!shape || static_cast<int>(shape->size()) != count) return false;
  for (int n = 0; n < count; ++n) {
    if (!(*shape)[n].is(n == k ? -1 : 1)) return false;
  }
  return true;
}

// Of numbers 0, 1, ... along axis k of `count`, how many they are.
Size AlongAxis(const GraphView& view, const std::string& input, int k,
               int count) {
  const NodeDef* reshape = view.Producer(input, "Reshape", 2);
  if (reshape == nullptr) {
    return count == 1 ? view.Iota(input) : Size();
  }
  if (!IsAxisShape(view.Values(reshape->input(1)), k, count)) return {};
  return view.Iota(reshape->input(0));
}

// Whether `input` is all ones, of this shape.
bool IsOnes(const GraphView& view, const std::string& input,
            const Sizes& shape) {
  if (!view.AllOnes(input)) return false;
  const NodeDef* fill = view.Producer(input, "Fill", 2);
  if (fill == nullptr &&
      view.Rank(input) != static_cast<int64_t>(shape.size())) {
    return false;
  }
  for (size_t k = 0; k < shape.size(); ++k) {
    Size size;
    if (fill == nullptr) {
      size = view.Dimension(input, static_cast<int64_t>(k));
    } else {
      const std::optional<Sizes> sizes = view.Values(fill->input(0));
      if (!sizes || sizes->size() != shape.size()) return false;
      size = (*sizes)[k];
    }
    if (!Same(size, shape[k])) return false;
  }
  return true;
}

// A column of the grid is reshape(along_axis_k * ones, [-1]). Returns which of
// the factors is the ones in `ones`.
Size MatchColumn(const GraphView& view, const std::string& input, int k,
                 int count, std::string* ones) {
  std::string flat = input;
  if (const NodeDef* reshape = view.Producer(input, "Reshape", 2)) {
    const NodeDef* inner = view.Producer(reshape->input(0), "Mul", 2);
    if (inner != nullptr) {
      if (!view.Scalar(reshape->input(1)).is(-1)) return {};
      flat = reshape->input(0);
    }
  }
  const NodeDef* mul = view.Producer(flat, "Mul", 2);
  if (mul == nullptr) return count == 1 ? view.Iota(flat) : Size();
  for (const int side : {0, 1}) {
    const Size size = AlongAxis(view, mul->input(side), k, count);
    if (size.kind == Size::Kind::kUnknown) continue;
    *ones = mul->input(1 - side);
    return size;
  }
  return {};
}

// Of transpose(stack(columns)), the shape of the batch.
std::optional<Sizes> MatchTransposed(const GraphView& view,
                                     const std::string& input) {
  const NodeDef* transpose = view.Producer(input, "Transpose", 2);
  if (transpose == nullptr) return std::nullopt;
  const std::optional<Sizes> order = view.Values(transpose->input(1));
  if (!order || order->size() != 2 || !(*order)[0].is(1) ||
      !(*order)[1].is(0)) {
    return std::nullopt;
  }
  const NodeDef* stack = view.Producer(transpose->input(0));
  if (stack == nullptr) return std::nullopt;
  int count = 1;
  if (stack->op() == "Pack") {
    const auto axis = stack->attr().find("axis");
    if (axis != stack->attr().end() && axis->second.i() != 0) {
      return std::nullopt;
    }
    count = DataInputs(*stack);
  } else if (stack->op() != "ExpandDims" || DataInputs(*stack) != 2 ||
             !view.Scalar(stack->input(1)).is(0)) {
    return std::nullopt;
  }
  Sizes batch;
  std::vector<std::string> ones(count);
  for (int k = 0; k < count; ++k) {
    batch.push_back(MatchColumn(view, stack->input(k), k, count, &ones[k]));
    if (batch.back().kind == Size::Kind::kUnknown) return std::nullopt;
  }
  for (const std::string& factor : ones) {
    if (factor.empty() ? count > 1 : !IsOnes(view, factor, batch)) {
      return std::nullopt;
    }
  }
  return batch;
}

// Whether `shape` is [rows of the table, 1, ..., 1, its columns].
bool KeepsRows(const GraphView& view, const std::string& shape,
               const std::string& table, const Sizes& batch) {
  const auto is_rows = [&](const Size& size) {
    return Same(size, Product(batch)) || Same(size, view.Dimension(table, 0));
  };
  const auto is_columns = [&](const Size& size) {
    return size.is(static_cast<int64_t>(batch.size())) ||
           Same(size, view.Dimension(table, 1));
  };
  if (const std::optional<Sizes> sizes = view.Values(shape)) {
    if (sizes->size() < 2 || !is_rows(sizes->front()) ||
        !is_columns(sizes->back())) {
      return false;
    }
    for (size_t k = 1; k + 1 < sizes->size(); ++k) {
      if (!(*sizes)[k].is(1)) return false;
    }
    return true;
  }
  const NodeDef* concat = view.Producer(shape, "ConcatV2", 4);
  return concat != nullptr && view.Scalar(concat->input(3)).is(0) &&
         is_rows(view.Scalar(concat->input(0))) &&
         view.AllOnes(concat->input(1)) &&
         is_columns(view.Scalar(concat->input(2)));
}

// Whether repeating by `multiples` repeats neither rows nor columns.
bool RepeatsBetween(const GraphView& view, const std::string& multiples) {
  if (const std::optional<Sizes> sizes = view.Values(multiples)) {
    return sizes->size() >= 2 && sizes->front().is(1) && sizes->back().is(1);
  }
  const NodeDef* concat = view.Producer(multiples, "ConcatV2", 4);
  return concat != nullptr && view.Scalar(concat->input(3)).is(0) &&
         view.Scalar(concat->input(0)).is(1) &&
         view.Scalar(concat->input(2)).is(1);
}

}  // namespace

std::optional<Sizes> MatchGrid(const GraphView& view, const std::string& grid) {
  view.NewQuestion();
  if (const auto tensor = view.Constant(grid)) return MatchConstant(*tensor);
  std::string table = grid;
  if (const NodeDef* tile = view.Producer(table, "Tile", 2)) {
    if (!RepeatsBetween(view, tile->input(1))) return std::nullopt;
    table = tile->input(0);
  }
  const NodeDef* reshape = view.Producer(table, "Reshape", 2);
  if (reshape != nullptr) table = reshape->input(0);
  const std::optional<Sizes> batch = MatchTransposed(view, table);
  if (!batch || (reshape != nullptr &&
                 !KeepsRows(view, reshape->input(1), table, *batch))) {
    return std::nullopt;
  }
  return batch;
}

}  // namespace tf_stitch_gather
