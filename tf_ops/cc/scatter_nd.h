// MyScatterNd for graphs that are built in C++.

#ifndef TF_OPS_CC_SCATTER_ND_H_
#define TF_OPS_CC_SCATTER_ND_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tf_ops/cc/op_builder.h"

namespace tf_stitch_gather {
namespace ops {

/// Adds `updates` at `indices` to a tensor of zeros; the gradient of
/// MyGatherNd.
///
/// Updates at equal indices are added in row-major order of `indices`. Types of
/// 16 and 8 bits are summed in float32 and rounded once.
///
/// For example:
///
///     indices = [[4], [3], [1], [7], [1]]
///     updates = [9, 10, 11, 12, 100]
///     shape = [8]
///     output = [0, 111, 0, 10, 9, 0, 0, 12]
///
/// Arguments:
/// * scope: A Scope object. An error goes to its status: shapes that cannot
///   fit, a policy that does not exist, `batch_dims` out of range.
/// * indices: Tuples that each name a slice of the output, of type int16, int32
///   or int64.
/// * updates: The slices to add, of shape
///   `indices.shape[:-1] + shape[batch_dims + indices.shape[-1]:]`.
/// * shape: The shape of the output, of rank 1 and the type of `indices`.
///
/// Optional attributes (see `Attrs`):
/// * bad_indices_policy: Whether an index out of range is an error ("",
///   "DEFAULT", "ERROR"; the first two leave its update out on GPU) or its
///   update is left out ("IGNORE"). Defaults to "".
/// * batch_dims: The number of leading dimensions that `indices` and the output
///   share. Defaults to 0.
///
/// Returns:
/// * `Output`: The sums, and zeros where there are none.
class MyScatterNd {
 public:
  /// Optional attribute setters for MyScatterNd
  struct Attrs {
    /// Defaults to ""
    [[nodiscard]] Attrs BadIndicesPolicy(absl::string_view x) const {
      Attrs attrs = *this;
      attrs.bad_indices_policy_ = std::string(x);
      return attrs;
    }

    /// Defaults to 0
    [[nodiscard]] Attrs BatchDims(int64_t x) const {
      Attrs attrs = *this;
      attrs.batch_dims_ = x;
      return attrs;
    }

    std::string bad_indices_policy_;
    int64_t batch_dims_ = 0;
  };

  MyScatterNd(const tensorflow::Scope& scope, const tensorflow::Input& indices,
              const tensorflow::Input& updates, const tensorflow::Input& shape)
      : MyScatterNd(scope, indices, updates, shape, Attrs()) {}

  MyScatterNd(const tensorflow::Scope& scope, const tensorflow::Input& indices,
              const tensorflow::Input& updates, const tensorflow::Input& shape,
              const Attrs& attrs)
      : operation(internal::OpBuilder(scope, "MyScatterNd")
                      .Input(indices)
                      .Input(updates)
                      .Input(shape)
                      .Attr("bad_indices_policy", attrs.bad_indices_policy_)
                      .Attr("batch_dims", attrs.batch_dims_)
                      .Finish()),
        output(internal::OutputOf(operation)) {}

  operator tensorflow::Output() const { return output; }
  operator tensorflow::Input() const { return output; }
  tensorflow::Node* node() const { return output.node(); }

  static Attrs BadIndicesPolicy(absl::string_view x) {
    return Attrs().BadIndicesPolicy(x);
  }
  static Attrs BatchDims(int64_t x) { return Attrs().BatchDims(x); }

  tensorflow::Operation operation;
  tensorflow::Output output;
};

}  // namespace ops
}  // namespace tf_stitch_gather

#endif  // TF_OPS_CC_SCATTER_ND_H_
