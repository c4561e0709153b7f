// dynamic_stitch: which shapes fit together, and what comes out.

#ifndef TF_OPS_CORE_DYNAMIC_STITCH_H_
#define TF_OPS_CORE_DYNAMIC_STITCH_H_

#include <cstdint>
#include <string>

#include "tf_ops/core/shape.h"
#include "tf_ops/core/status.h"

namespace tf_stitch_gather {

// Takes the shapes of a stitch's parts one by one, and tells the shape of the
// merged tensor. Holds no list, so that 10,000 parts cost no allocation.
class StitchShapes {
 public:
  // Checks that data.shape == indices.shape + slice, where `slice` is the same
  // for all parts added so far.
  Status Add(const Shape& indices, const Shape& data);

  // [rows] + slice; `rows` may be kUnknown.
  Shape Merged(int64_t rows) const;

  // What is known of the slice; its rank may be unknown.
  const Shape& slice() const { return slice_; }

 private:
  Shape slice_ = Shape::UnknownRank();
  int parts_ = 0;
};

// The inverse, for the gradient: checks that `grad` has a first dimension and
// gives the shape of the gradient of a data tensor, indices.shape + slice.
Status StitchGradShape(const Shape& indices, const Shape& grad,
                       Shape* data_grad);

// "indices[m][i] = v is out of range", with the bound where there is one.
Status BadStitchIndex(int part, int64_t position, int64_t value,
                      int64_t size = kUnknown);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_DYNAMIC_STITCH_H_
