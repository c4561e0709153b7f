// MyDynamicStitch, MyDynamicStitchSized and their gradient for graphs that are
// built in C++.

#ifndef TF_OPS_CC_DYNAMIC_STITCH_H_
#define TF_OPS_CC_DYNAMIC_STITCH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tf_ops/cc/op_builder.h"

namespace tf_stitch_gather {
namespace ops {

/// Puts the rows of several tensors into one, at the places that `indices`
/// name.
///
///     merged[indices[m][i, ..., j], ...] = data[m][i, ..., j, ...]
///
/// For example, if each `indices[m]` is a scalar or a vector:
///
///     # Scalar indices:
///     merged[indices[m], ...] = data[m][...]
///
///     # Vector indices:
///     merged[indices[m][i], ...] = data[m][i, ...]
///
/// `data[m].shape` is `indices[m].shape + slice` with the same `slice` for each
/// `m`, and `merged.shape` is `[max(indices) + 1] + slice`, with 0 rows when
/// there is no index at all.
///
/// Where an index comes more than once, the last one in the order of the lists,
/// and row-major within a tensor, wins. Rows that no index names are zero. A
/// negative index is an error when the op runs.
///
/// For example:
///
///     indices[0] = 6
///     indices[1] = [4, 1]
///     indices[2] = [[5, 2], [0, 3]]
///     data[0] = [61, 62]
///     data[1] = [[41, 42], [11, 12]]
///     data[2] = [[[51, 52], [21, 22]], [[1, 2], [31, 32]]]
///     merged = [[1, 2], [11, 12], [21, 22], [31, 32], [41, 42],
///               [51, 52], [61, 62]]
///
/// It merges what `DynamicPartition` has parted:
///
///     // Adds 1 to the elements of x that are not -1.
///     Output x = Const(root, {0.1f, -1.f, 5.2f, 4.3f, -1.f, 7.4f});
///     Output changes = Cast(root, NotEqual(root, x, -1.f), DT_INT32);
///     DynamicPartition rows(root, Range(root, 0, 6, 1), changes, 2);
///     DynamicPartition parts(root, x, changes, 2);
///     MyDynamicStitch stitch(root, rows.outputs,
///                            {parts[0], Add(root, parts[1], 1.f)});
///     // stitch.merged = [1.1, -1, 6.2, 5.3, -1, 8.4]
///
/// Arguments:
/// * scope: A Scope object. An error goes to its status: lists of unequal
///   lengths, shapes that cannot fit.
/// * indices: Where the rows of `data` go; at least one tensor, all of type
///   int32 or all of int64.
/// * data: The rows; as many tensors of one type.
///
/// Returns:
/// * `Output`: The merged tensor.
class MyDynamicStitch {
 public:
  MyDynamicStitch(const tensorflow::Scope& scope,
                  const tensorflow::InputList& indices,
                  const tensorflow::InputList& data) {
    internal::CheckStitchLists(scope, "MyDynamicStitch", indices, data);
    operation = internal::OpBuilder(scope, "MyDynamicStitch")
                    .InputList(indices)
                    .InputList(data)
                    .Finish();
    merged = internal::OutputOf(operation);
  }

  operator tensorflow::Output() const { return merged; }
  operator tensorflow::Input() const { return merged; }
  tensorflow::Node* node() const { return merged.node(); }

  tensorflow::Operation operation;
  tensorflow::Output merged;
};

/// MyDynamicStitch into a given number of rows.
///
/// For example:
///
///     size = 4
///     indices[0] = [0, 2]
///     data[0] = [[1, 2], [5, 6]]
///     merged = [[1, 2], [0, 0], [5, 6], [0, 0]]
///
/// Arguments:
/// * scope: A Scope object. An error goes to its status: lists of unequal
///   lengths, shapes that cannot fit, a policy that does not exist.
/// * size: The number of rows of `merged`, a scalar of the type of `indices`.
/// * indices: Where the rows of `data` go; at least one tensor, all of type
///   int32 or all of int64.
/// * data: The rows; as many tensors of one type, with
///   `data[m].shape == indices[m].shape + slice`.
///
/// Optional attributes (see `Attrs`):
/// * bad_indices_policy: Whether an index outside `[0, size)` is an error ("",
///   "DEFAULT", "ERROR"; the first two leave its row out on GPU) or its row is
///   left out ("IGNORE"). Defaults to "".
///
/// Returns:
/// * `Output`: The merged tensor, of shape `[size] + slice`.
class MyDynamicStitchSized {
 public:
  /// Optional attribute setters for MyDynamicStitchSized
  struct Attrs {
    /// Defaults to ""
    [[nodiscard]] Attrs BadIndicesPolicy(absl::string_view x) const {
      Attrs attrs = *this;
      attrs.bad_indices_policy_ = std::string(x);
      return attrs;
    }

    std::string bad_indices_policy_;
  };

  MyDynamicStitchSized(const tensorflow::Scope& scope,
                       const tensorflow::Input& size,
                       const tensorflow::InputList& indices,
                       const tensorflow::InputList& data)
      : MyDynamicStitchSized(scope, size, indices, data, Attrs()) {}

  MyDynamicStitchSized(const tensorflow::Scope& scope,
                       const tensorflow::Input& size,
                       const tensorflow::InputList& indices,
                       const tensorflow::InputList& data, const Attrs& attrs) {
    internal::CheckStitchLists(scope, "MyDynamicStitchSized", indices, data);
    operation = internal::OpBuilder(scope, "MyDynamicStitchSized")
                    .Input(size)
                    .InputList(indices)
                    .InputList(data)
                    .Attr("bad_indices_policy", attrs.bad_indices_policy_)
                    .Finish();
    merged = internal::OutputOf(operation);
  }

  operator tensorflow::Output() const { return merged; }
  operator tensorflow::Input() const { return merged; }
  tensorflow::Node* node() const { return merged.node(); }

  static Attrs BadIndicesPolicy(absl::string_view x) {
    return Attrs().BadIndicesPolicy(x);
  }

  tensorflow::Operation operation;
  tensorflow::Output merged;
};

/// The gradient of MyDynamicStitch and MyDynamicStitchSized for `data`.
///
/// Arguments:
/// * scope: A Scope object
/// * indices: The indices of the stitch.
/// * grad: The gradient of `merged`.
///
/// Optional attributes (see `Attrs`):
/// * bad_indices_policy: Whether an index outside the rows of `grad` is an
///   error or has a gradient of zeros ("IGNORE"). Defaults to "".
///
/// Returns:
/// * `OutputList`: For each row of data the row of `grad` that it won in the
///   stitch, and zeros for a row that a later one overwrote.
class MyDynamicStitchGrad {
 public:
  /// Optional attribute setters for MyDynamicStitchGrad
  struct Attrs {
    /// Defaults to ""
    [[nodiscard]] Attrs BadIndicesPolicy(absl::string_view x) const {
      Attrs attrs = *this;
      attrs.bad_indices_policy_ = std::string(x);
      return attrs;
    }

    std::string bad_indices_policy_;
  };

  MyDynamicStitchGrad(const tensorflow::Scope& scope,
                      const tensorflow::InputList& indices,
                      const tensorflow::Input& grad)
      : MyDynamicStitchGrad(scope, indices, grad, Attrs()) {}

  MyDynamicStitchGrad(const tensorflow::Scope& scope,
                      const tensorflow::InputList& indices,
                      const tensorflow::Input& grad, const Attrs& attrs)
      : operation(internal::OpBuilder(scope, "MyDynamicStitchGrad")
                      .InputList(indices)
                      .Input(grad)
                      .Attr("bad_indices_policy", attrs.bad_indices_policy_)
                      .Finish()) {
    if (operation.node() == nullptr) return;
    for (int m = 0; m < operation.num_outputs(); ++m) {
      data_grads.push_back(operation.output(m));
    }
  }

  tensorflow::Output operator[](size_t m) const { return data_grads[m]; }

  static Attrs BadIndicesPolicy(absl::string_view x) {
    return Attrs().BadIndicesPolicy(x);
  }

  tensorflow::Operation operation;
  tensorflow::OutputList data_grads;
};

}  // namespace ops
}  // namespace tf_stitch_gather

#endif  // TF_OPS_CC_DYNAMIC_STITCH_H_
