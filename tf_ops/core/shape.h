// A tensor shape in which the rank or any dimension may be unknown, so that
// one check serves a graph under construction and a kernel with real tensors.

#ifndef TF_OPS_CORE_SHAPE_H_
#define TF_OPS_CORE_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tf_ops/core/status.h"

namespace tf_stitch_gather {

inline constexpr int64_t kUnknown = -1;

// The greatest rank of a TensorFlow tensor.
inline constexpr int kMaxRank = 254;

class Shape {
 public:
  // A scalar; Append adds dimensions.
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    for (int64_t dim : dims) Append(dim);
  }
  static Shape UnknownRank() {
    Shape shape;
    shape.rank_ = kUnknown;
    return shape;
  }

  bool known_rank() const { return rank_ != kUnknown; }
  int rank() const { return rank_; }  // kUnknown where it is not known
  int64_t dim(int i) const {
    return i < kInline ? inline_[i] : more_[i - kInline];
  }
  bool known_dim(int i) const { return dim(i) != kUnknown; }

  void Append(int64_t dim);
  void set_dim(int i, int64_t dim);

  // Whether rank and every dimension are known.
  bool fully_known() const;

  // The number of elements of dimensions [begin, end), which must be known.
  // False when the product does not fit.
  bool Elements(int begin, int end, int64_t* elements) const;

  // "[2,?,3]", or "<unknown>" without a rank, as TensorFlow prints shapes.
  std::string ToString() const;

  // "(2,3)": dimensions [begin, end).
  std::string Slice(int begin, int end) const;

 private:
  // Most tensors have at most so many dimensions; they need no allocation.
  static constexpr int kInline = 8;

  int rank_ = 0;
  int64_t inline_[kInline];
  std::vector<int64_t> more_;
};

// Whether two dimensions may be the same one.
inline bool Compatible(int64_t a, int64_t b) {
  return a == b || a == kUnknown || b == kUnknown;
}

// What is known of a dimension after two compatible views of it.
inline int64_t Merge(int64_t a, int64_t b) { return a == kUnknown ? b : a; }

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_SHAPE_H_
