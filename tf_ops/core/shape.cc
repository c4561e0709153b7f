#include "tf_ops/core/shape.h"

#include "tf_ops/core/checked_math.h"

namespace tf_stitch_gather {

void Shape::Append(int64_t dim) {
  if (rank_ < kInline) {
    inline_[rank_] = dim;
  } else {
    more_.push_back(dim);
  }
  ++rank_;
}

void Shape::set_dim(int i, int64_t dim) {
  if (i < kInline) {
    inline_[i] = dim;
  } else {
    more_[i - kInline] = dim;
  }
}

bool Shape::fully_known() const {
  if (!known_rank()) return false;
  for (int i = 0; i < rank_; ++i) {
    if (!known_dim(i)) return false;
  }
  return true;
}

bool Shape::Elements(int begin, int end, int64_t* elements) const {
  // A zero anywhere makes the product zero, however large the rest.
  for (int i = begin; i < end; ++i) {
    if (dim(i) == 0) {
      *elements = 0;
      return true;
    }
  }
  int64_t product = 1;
  for (int i = begin; i < end; ++i) {
    if (!MultiplyFits(product, dim(i), &product)) return false;
  }
  *elements = product;
  return true;
}

std::string Shape::ToString() const {
  if (!known_rank()) return "<unknown>";
  std::string dims = Slice(0, rank_);
  dims.front() = '[';
  dims.back() = ']';
  return dims;
}

std::string Shape::Slice(int begin, int end) const {
  std::string text = "(";
  for (int i = begin; i < end; ++i) {
    if (i > begin) text += ',';
    text += known_dim(i) ? std::to_string(dim(i)) : "?";
  }
  return text + ")";
}

}  // namespace tf_stitch_gather
