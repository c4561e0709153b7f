"""The ops themselves, in the form of `tf.raw_ops`: every argument is passed by keyword."""

from __future__ import annotations

import inspect
from typing import Any

import tensorflow as tf

from tf_stitch_gather import _loader
from tf_stitch_gather._eager import eager_context, execute, raise_if_failed

__all__ = list(_loader.OP_NAMES)

_ops = _loader.load()
_dynamic_stitch = _ops.my_dynamic_stitch
_dynamic_stitch_grad = _ops.my_dynamic_stitch_grad
_dynamic_stitch_sized = _ops.my_dynamic_stitch_sized
_gather_nd = _ops.my_gather_nd
_gather_nd_sparse_grad = _ops.my_gather_nd_sparse_grad
_resource_gather_nd = _ops.my_resource_gather_nd
_scatter_nd = _ops.my_scatter_nd

# The defaults of attributes. What is passed is compared by identity: another type's zero or empty
# value may be an error.
_NO_POLICY = ""
_NO_BATCH_DIMS = 0


def MyDynamicStitch(*, indices: Any, data: Any, name: str | None = None) -> tf.Tensor:
    """Interleaves the slices of the `data` tensors into one tensor.

    `merged[indices[m][i, ..., j], ...] = data[m][i, ..., j, ...]`. Where an index occurs again, the
    last one in list order, then in row-major order, wins. A row that no index names is zero.

    >>> import tf_stitch_gather as sg
    >>> merged = sg.raw_ops.MyDynamicStitch(
    ...     indices=[[0, 2], [1, 0]], data=[[10.0, 12.0], [11.0, 20.0]])
    >>> merged.numpy().tolist()
    [20.0, 11.0, 12.0]

    Args:
      indices: A list of at least 1 `Tensor` of one type, `int32` or `int64`.
      data: A list of as many `Tensor` of one type. `data[m].shape` is `indices[m].shape` followed
        by the same slice shape for every `m`.
      name: A name for the operation (optional).

    Returns:
      A `Tensor` of the type of `data` and of shape `[max(indices) + 1] + slice shape`.

    Raises:
      tf.errors.InvalidArgumentError: if an index is negative, or shapes do not match.
    """
    if name is None and (eager := eager_context()):
        try:
            return execute(eager, "MyDynamicStitch", None, indices, data)
        except Exception as error:
            raise_if_failed(error)
    return _dynamic_stitch(indices, data, name)


def MyDynamicStitchSized(
    *, size: Any, indices: Any, data: Any, bad_indices_policy: str = "", name: str | None = None
) -> tf.Tensor:
    """Interleaves the slices of the `data` tensors into a tensor of `size` rows.

    As `MyDynamicStitch`, but the number of rows is given.

    >>> import tf_stitch_gather as sg
    >>> merged = sg.raw_ops.MyDynamicStitchSized(size=4, indices=[[0, 2]], data=[[10.0, 12.0]])
    >>> merged.numpy().tolist()
    [10.0, 0.0, 12.0, 0.0]

    Args:
      size: A scalar `Tensor` of the type of `indices`.
      indices: A list of at least 1 `Tensor` of one type, `int32` or `int64`.
      data: A list of as many `Tensor` of one type. `data[m].shape` is `indices[m].shape` followed
        by the same slice shape for every `m`.
      bad_indices_policy: A `str`: `""` or `"DEFAULT"` (an error on CPU, left out on GPU), `"ERROR"`
        (an error) or `"IGNORE"` (left out).
      name: A name for the operation (optional).

    Returns:
      A `Tensor` of the type of `data` and of shape `[size] + slice shape`.

    Raises:
      tf.errors.InvalidArgumentError: if an index is out of range and the policy says so, if `size`
        is negative, or if shapes do not match.
    """
    return _dynamic_stitch_sized(size, indices, data, bad_indices_policy, name)


def MyDynamicStitchGrad(
    *, indices: Any, grad: Any, bad_indices_policy: str = "", name: str | None = None
) -> list[tf.Tensor]:
    """The gradient of `MyDynamicStitch` and `MyDynamicStitchSized` with respect to `data`.

    A row of `data` that is in the result receives its row of `grad`. One that a later row overwrote
    receives zero.

    >>> import tf_stitch_gather as sg
    >>> grads = sg.raw_ops.MyDynamicStitchGrad(indices=[[0, 2], [1, 0]], grad=[1.0, 2.0, 3.0])
    >>> [g.numpy().tolist() for g in grads]
    [[0.0, 3.0], [2.0, 1.0]]

    Args:
      indices: The `indices` of the stitch: a list of at least 1 `Tensor` of one type, `int32` or
        `int64`.
      grad: A `Tensor` of the shape of the stitch's result.
      bad_indices_policy: A `str`, as in `MyDynamicStitchSized`.
      name: A name for the operation (optional).

    Returns:
      A list of as many `Tensor` as `indices`, of the type of `grad`, of shape
      `indices[m].shape + grad.shape[1:]`.

    Raises:
      tf.errors.InvalidArgumentError: if an index is out of range and the policy says so.
    """
    grads: list[tf.Tensor] = _dynamic_stitch_grad(indices, grad, bad_indices_policy, name)
    return grads


def MyGatherNd(
    *,
    params: Any,
    indices: Any,
    bad_indices_policy: str = "",
    batch_dims: int = 0,
    name: str | None = None,
) -> tf.Tensor:
    """Gathers slices of `params` at the places that the last dimension of `indices` names.

    >>> import tf_stitch_gather as sg
    >>> slices = sg.raw_ops.MyGatherNd(params=[[1, 2], [3, 4]], indices=[[1], [0]])
    >>> slices.numpy().tolist()
    [[3, 4], [1, 2]]

    Args:
      params: A `Tensor` of any type.
      indices: A `Tensor` of type `int16`, `int32` or `int64`. Its last dimension, the depth, is at
        most the rank of `params` less `batch_dims`.
      bad_indices_policy: A `str`: `""` or `"DEFAULT"` (an error on CPU, zeros on GPU), `"ERROR"`
        (an error) or `"IGNORE"` (zeros).
      batch_dims: An `int`, the number of leading dimensions that `params` and `indices` share.
      name: A name for the operation (optional).

    Returns:
      A `Tensor` of the type of `params` and of shape
      `indices.shape[:-1] + params.shape[batch_dims + depth:]`.

    Raises:
      tf.errors.InvalidArgumentError: if an index is out of range and the policy says so, or shapes
        do not match.
    """
    is_plain = bad_indices_policy is _NO_POLICY and batch_dims is _NO_BATCH_DIMS
    if is_plain and name is None and (eager := eager_context()):
        try:
            return execute(eager, "MyGatherNd", None, params, indices)
        except Exception as error:
            raise_if_failed(error)
    return _gather_nd(params, indices, bad_indices_policy, batch_dims, name)


def MyGatherNdSparseGrad(
    *,
    indices: Any,
    grad: Any,
    num_rows: Any,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The gradient of `MyGatherNd` with respect to `params`, at depth 1, as a sparse set of rows.

    >>> import tf_stitch_gather as sg
    >>> rows, values = sg.raw_ops.MyGatherNdSparseGrad(
    ...     indices=[[3], [0], [3]], grad=[[1.0], [2.0], [4.0]], num_rows=5)
    >>> rows.numpy().tolist(), values.numpy().tolist()
    ([0, 3], [[2.0], [5.0]])

    Args:
      indices: The `indices` of the gather: a `Tensor` of type `int16`, `int32` or `int64` whose
        last dimension is 1.
      grad: A `Tensor` of shape `indices.shape[:-1] + params.shape[1:]`.
      num_rows: A scalar `int64` `Tensor`, `params.shape[0]`.
      bad_indices_policy: A `str`, as in `MyGatherNd`. An index that is ignored adds no row.
      name: A name for the operation (optional).

    Returns:
      A named tuple `(rows, values)`: `rows` is an `int64` `Tensor` of shape `[K]`, unique and
      ascending; `values` has the type of `grad` and shape `[K] + params.shape[1:]`, and holds for
      each row the sum of what `grad` has for it.

    Raises:
      tf.errors.InvalidArgumentError: if an index is out of range and the policy says so, or shapes
        do not match.
    """
    merged: tuple[tf.Tensor, tf.Tensor] = _gather_nd_sparse_grad(
        indices, grad, num_rows, bad_indices_policy, name
    )
    return merged


def MyResourceGatherNd(
    *,
    resource: Any,
    indices: Any,
    dtype: Any,
    bad_indices_policy: str = "",
    batch_dims: int = 0,
    name: str | None = None,
) -> tf.Tensor:
    """`MyGatherNd` from a variable, of which only the rows asked for are read.

    >>> import tensorflow as tf
    >>> import tf_stitch_gather as sg
    >>> table = tf.Variable([[1, 2], [3, 4]])
    >>> rows = sg.raw_ops.MyResourceGatherNd(
    ...     resource=table.handle, indices=[[1], [0]], dtype=tf.int32)
    >>> rows.numpy().tolist()
    [[3, 4], [1, 2]]

    Args:
      resource: The handle of a variable, a `Tensor` of type `resource`.
      indices: As in `MyGatherNd`.
      dtype: The `tf.DType` of the variable.
      bad_indices_policy: As in `MyGatherNd`.
      batch_dims: As in `MyGatherNd`.
      name: A name for the operation (optional).

    Returns:
      A `Tensor` of type `dtype`, as from `MyGatherNd`.

    Raises:
      tf.errors.FailedPreconditionError: if the variable has not been initialized.
      tf.errors.InvalidArgumentError: as from `MyGatherNd`, or if the variable has another type.
    """
    return _resource_gather_nd(resource, indices, dtype, bad_indices_policy, batch_dims, name)


def MyScatterNd(
    *,
    indices: Any,
    updates: Any,
    shape: Any,
    bad_indices_policy: str = "",
    batch_dims: int = 0,
    name: str | None = None,
) -> tf.Tensor:
    """Adds `updates` into a tensor of zeros at the places that `indices` names.

    Updates at equal indices are added in row-major order of `indices`.

    >>> import tf_stitch_gather as sg
    >>> sums = sg.raw_ops.MyScatterNd(indices=[[1], [3], [1]], updates=[1, 2, 3], shape=[4])
    >>> sums.numpy().tolist()
    [0, 4, 0, 2]

    Args:
      indices: A `Tensor` of an integer type. Its last dimension, the depth, is at most the length
        of `shape` less `batch_dims`.
      updates: A `Tensor` of shape `indices.shape[:-1] + shape[batch_dims + depth:]`.
      shape: A `Tensor` of rank 1 and of the type of `indices`.
      bad_indices_policy: A `str`: `""` or `"DEFAULT"` (an error on CPU, left out on GPU), `"ERROR"`
        (an error) or `"IGNORE"` (left out).
      batch_dims: An `int`, the number of leading dimensions that `indices` and the result share.
      name: A name for the operation (optional).

    Returns:
      A `Tensor` of the type of `updates` and of shape `shape`.

    Raises:
      tf.errors.InvalidArgumentError: if an index is out of range and the policy says so, or shapes
        do not match.
    """
    is_plain = bad_indices_policy is _NO_POLICY and batch_dims is _NO_BATCH_DIMS
    if is_plain and name is None and (eager := eager_context()):
        try:
            return execute(eager, "MyScatterNd", None, indices, updates, shape)
        except Exception as error:
            raise_if_failed(error)
    return _scatter_nd(indices, updates, shape, bad_indices_policy, batch_dims, name)


def _check_signatures() -> None:
    """Refuses a library of another version, whose ops take other arguments than the calls above."""
    for name in __all__:
        expected = list(inspect.signature(globals()[name]).parameters)
        loaded = list(inspect.signature(getattr(_ops, name)).parameters)
        if loaded != expected:
            raise ImportError(
                f"the op library that is loaded is not the one of this package: its {name} takes "
                f"{loaded}, not {expected}. Build it again: {_loader.build_command()}"
            )


_check_signatures()
