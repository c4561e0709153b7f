// Between the shape functions of TensorFlow and the checks of the core.

#ifndef TF_OPS_OPS_SHAPE_FN_H_
#define TF_OPS_OPS_SHAPE_FN_H_

#include <cstdint>

#include "tensorflow/core/framework/shape_inference.h"
#include "tf_ops/core/shape.h"
#include "tf_ops/ops/convert.h"

namespace tf_stitch_gather {

Shape ToShape(tensorflow::shape_inference::InferenceContext* ctx,
              tensorflow::shape_inference::ShapeHandle handle);

tensorflow::shape_inference::ShapeHandle ToHandle(
    tensorflow::shape_inference::InferenceContext* ctx, const Shape& shape);

// The greatest element of index input `input` if it is a constant that has one.
// Returns whether the input is a constant.
bool GreatestConstant(tensorflow::shape_inference::InferenceContext* ctx,
                      int input, int64_t* greatest);

// The shape that index input `input` spells, as far as it is known; negative
// elements are unknown dimensions here and an error when the op runs.
absl::Status ShapeFromInput(tensorflow::shape_inference::InferenceContext* ctx,
                            int input, Shape* shape);

// The shape function `fn`, which no exception leaves.
template <absl::Status (*fn)(tensorflow::shape_inference::InferenceContext*)>
absl::Status NoThrowShape(tensorflow::shape_inference::InferenceContext* ctx) {
  return NoThrow([ctx] { return fn(ctx); });
}

// Refuses a bad_indices_policy that does not exist while the graph is built.
absl::Status CheckPolicy(tensorflow::shape_inference::InferenceContext* ctx);

}  // namespace tf_stitch_gather

#endif  // TF_OPS_OPS_SHAPE_FN_H_
