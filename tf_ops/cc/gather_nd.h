// MyGatherNd for graphs that are built in C++.

#ifndef TF_OPS_CC_GATHER_ND_H_
#define TF_OPS_CC_GATHER_ND_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tf_ops/cc/op_builder.h"

namespace tf_stitch_gather {
namespace ops {

/// Gathers slices of `params` into a tensor whose shape `indices` gives.
///
/// The innermost dimension of `indices` holds tuples, each of which names a
/// slice of `params`:
///
///     output[i_0, ..., i_n, ...] = params[indices[i_0, ..., i_n], ...]
///
/// so that with `K = indices.shape[-1]` indices to a tuple the output has shape
///
///     indices.shape[:-1] + params.shape[batch_dims + K:]
///
/// A tuple of `K == rank(params)` indices names an element, a shorter one a
/// slice, and one of none the whole of `params`. With `batch_dims = b` the
/// leading `b` dimensions of `params` and `indices` must agree and are walked
/// together.
///
/// An index out of range, a negative one included, gives what
/// `bad_indices_policy` says:
/// 1. "" or "DEFAULT": an error on CPU, zeros on GPU.
/// 2. "ERROR": an error on both.
/// 3. "IGNORE": zeros on both.
///
/// Simple indexing into a matrix:
///
///     indices = [[0, 0], [1, 1]]
///     params = [['a', 'b'], ['c', 'd']]
///     output = ['a', 'd']
///
/// Slice indexing into a matrix:
///
///     indices = [[1], [0]]
///     params = [['a', 'b'], ['c', 'd']]
///     output = [['c', 'd'], ['a', 'b']]
///
/// Indexing into a 3-tensor:
///
///     indices = [[1]]
///     params = [[['a0', 'b0'], ['c0', 'd0']],
///               [['a1', 'b1'], ['c1', 'd1']]]
///     output = [[['a1', 'b1'], ['c1', 'd1']]]
///
///     indices = [[0, 1], [1, 0]]
///     params = [[['a0', 'b0'], ['c0', 'd0']],
///               [['a1', 'b1'], ['c1', 'd1']]]
///     output = [['c0', 'd0'], ['a1', 'b1']]
///
///     indices = [[0, 0, 1], [1, 0, 1]]
///     params = [[['a0', 'b0'], ['c0', 'd0']],
///               [['a1', 'b1'], ['c1', 'd1']]]
///     output = ['b0', 'b1']
///
/// Batched indexing into a matrix:
///
///     indices = [[[0, 0]], [[0, 1]]]
///     params = [['a', 'b'], ['c', 'd']]
///     output = [['a'], ['b']]
///
/// Batched slice indexing into a matrix:
///
///     indices = [[[1]], [[0]]]
///     params = [['a', 'b'], ['c', 'd']]
///     output = [[['c', 'd']], [['a', 'b']]]
///
/// Batched indexing into a 3-tensor:
///
///     indices = [[[1]], [[0]]]
///     params = [[['a0', 'b0'], ['c0', 'd0']],
///               [['a1', 'b1'], ['c1', 'd1']]]
///     output = [[[['a1', 'b1'], ['c1', 'd1']]],
///               [[['a0', 'b0'], ['c0', 'd0']]]]
///
///     indices = [[[0, 1], [1, 0]], [[0, 0], [1, 1]]]
///     params = [[['a0', 'b0'], ['c0', 'd0']],
///               [['a1', 'b1'], ['c1', 'd1']]]
///     output = [[['c0', 'd0'], ['a1', 'b1']],
///               [['a0', 'b0'], ['c1', 'd1']]]
///
///     indices = [[[0, 0, 1], [1, 0, 1]], [[0, 1, 1], [1, 1, 0]]]
///     params = [[['a0', 'b0'], ['c0', 'd0']],
///               [['a1', 'b1'], ['c1', 'd1']]]
///     output = [['b0', 'b1'], ['d0', 'c1']]
///
/// Arguments:
/// * scope: A Scope object. An error goes to its status: shapes that cannot
///   fit, a policy that does not exist, `batch_dims` out of range.
/// * params: The tensor to gather from, of any type and rank.
/// * indices: Tuples of at most `rank(params) - batch_dims` indices, of type
///   int16, int32 or int64.
///
/// Optional attributes (see `Attrs`):
/// * bad_indices_policy: Defaults to "".
/// * batch_dims: The number of leading dimensions that `params` and `indices`
///   share. Defaults to 0.
///
/// Returns:
/// * `Output`: The slices, in the order of the tuples.
class MyGatherNd {
 public:
  /// Optional attribute setters for MyGatherNd
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

  MyGatherNd(const tensorflow::Scope& scope, const tensorflow::Input& params,
             const tensorflow::Input& indices)
      : MyGatherNd(scope, params, indices, Attrs()) {}

  MyGatherNd(const tensorflow::Scope& scope, const tensorflow::Input& params,
             const tensorflow::Input& indices, const Attrs& attrs)
      : operation(internal::OpBuilder(scope, "MyGatherNd")
                      .Input(params)
                      .Input(indices)
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

#endif  // TF_OPS_CC_GATHER_ND_H_
