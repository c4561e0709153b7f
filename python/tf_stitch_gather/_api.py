"""The functions that take the place of TensorFlow's of the same names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

# TensorFlow has no public names for what its variables have in common, and for who follows their
# reads.
from tensorflow.python.distribute.values import MirroredVariable
from tensorflow.python.eager import forwardprop_util
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, variable_accessed

from tf_stitch_gather import raw_ops

_INDEX_TYPES = frozenset({tf.int16, tf.int32, tf.int64})
# Index types that no op has, and the type that holds all their values.
_WIDER = {
    tf.int8: tf.int32,
    tf.uint8: tf.int32,
    tf.uint16: tf.int32,
    tf.uint32: tf.int64,
}

# Kept here, since `drop_in` puts the functions below in the place of TensorFlow's.
_builtin_gather_nd = tf.gather_nd


def gather_nd(
    params: Any,
    indices: Any,
    batch_dims: Any = 0,
    name: str | None = None,
    bad_indices_policy: str = "",
) -> tf.Tensor:
    """Gathers slices of `params` into a tensor of the shape that `indices` gives.

    The innermost dimension of `indices` holds tuples, each of which names a slice of `params`:
    `output[i, ..., j, ...] = params[indices[i, ..., j], ...]`. Takes the arguments of
    `tf.gather_nd`.

    >>> import tf_stitch_gather as sg
    >>> params = [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    >>> sg.gather_nd(params, [[0, 1], [1, 0]]).numpy().tolist()
    [[2, 3], [4, 5]]

    With `batch_dims` the leading dimensions of both are walked together:

    >>> sg.gather_nd(params, [[1], [0]], batch_dims=1).numpy().tolist()
    [[2, 3], [4, 5]]

    The gradient adds up where an index comes more than once. It is `tf.IndexedSlices` with unique,
    ascending rows when `indices` has one column and `params` is a variable, or an eager tensor
    that may have been one, and a tensor otherwise.

    Args:
      params: A `Tensor` of any type and rank, or a `RaggedTensor`.
      indices: A `Tensor` of any integer type and of shape `[..., depth]`, with
        `0 <= depth <= rank(params) - batch_dims`.
      batch_dims: An `int` or integer scalar known when the graph is built; the number of leading
        dimensions that `params` and `indices` share.
      name: A name for the operation (optional).
      bad_indices_policy: What an index out of range gives, a negative one included. `""` or
        `"DEFAULT"`: an error on CPU, zeros on GPU; `"ERROR"`: an error; `"IGNORE"`: zeros, and no
        part in the gradient. A function that XLA compiles raises no error: zeros.

    Returns:
      A `Tensor` of the type of `params` and of shape
      `indices.shape[:-1] + params.shape[batch_dims + depth:]`.

    Raises:
      tf.errors.InvalidArgumentError: if an index is out of range and the policy says so, if the
        shapes do not fit, or if the policy does not exist. A `ValueError` while a graph is built.
      TypeError: if `indices` or `batch_dims` is not of an integer type.
      ValueError: if `batch_dims` is negative or not less than the rank of `indices`.
    """
    if is_symbolic(params, indices):
        layer = _layers().GatherNd(batch_dims, bad_indices_policy, name=name, autocast=False)
        return layer(params, indices)
    if isinstance(params, _keras_type("Variable")):
        return _layers().gather_from_variable(
            params, lambda value: gather_nd(value, indices, batch_dims, name, bad_indices_policy)
        )
    if isinstance(params, tf.RaggedTensor) or isinstance(indices, tf.RaggedTensor):
        return _builtin_gather_nd(
            params, indices, batch_dims=batch_dims, name=name, bad_indices_policy=bad_indices_policy
        )
    params = _local_copy(params)
    indices = _as_indices(indices, "indices")
    batch_dims = _as_batch_dims(batch_dims)
    rank = indices.shape.rank if batch_dims > 0 else None
    if rank is not None and batch_dims >= rank:
        raise ValueError(f"batch_dims = {batch_dims} must be less than the rank {rank} of indices")
    if isinstance(params, BaseResourceVariable) and _reads_rows(params):
        return raw_ops.MyResourceGatherNd(
            resource=params.handle,
            indices=indices,
            dtype=params.dtype,
            bad_indices_policy=bad_indices_policy,
            batch_dims=batch_dims,
            name=name,
        )
    return raw_ops.MyGatherNd(
        params=params,
        indices=indices,
        bad_indices_policy=bad_indices_policy,
        batch_dims=batch_dims,
        name=name,
    )


def scatter_nd(
    indices: Any,
    updates: Any,
    shape: Any,
    name: str | None = None,
    bad_indices_policy: str = "",
) -> tf.Tensor:
    """Adds `updates` at `indices` to a tensor of zeros.

    Takes the arguments of `tf.scatter_nd`. Updates at equal indices are added in row-major order of
    `indices`, so that the result has the same bits on every run; types of 16 and 8 bits are
    summed in float32 and rounded once.

    >>> import tf_stitch_gather as sg
    >>> sg.scatter_nd([[1], [3], [1]], [10, 20, 5], [4]).numpy().tolist()
    [0, 15, 0, 20]

    Args:
      indices: A `Tensor` of any integer type and of shape `[..., depth]`, with
        `0 <= depth <= len(shape)`.
      updates: A `Tensor` of a numeric type, `bool` (added by "or") or `string` (put one after the
        other), and of shape `indices.shape[:-1] + shape[depth:]`.
      shape: A `Tensor` of rank 1 of an integer type: the shape of the result.
      name: A name for the operation (optional).
      bad_indices_policy: `""`, `"DEFAULT"` or `"ERROR"`: an index out of range is an error (with
        the first two, its update is left out on GPU); `"IGNORE"`: its update is left out. A
        function that XLA compiles raises no error: its update is left out.

    Returns:
      A `Tensor` of the type of `updates` and of shape `shape`.

    Raises:
      tf.errors.InvalidArgumentError: if an index is out of range and the policy says so, or if the
        shapes do not fit. A `ValueError` while a graph is built.
      TypeError: if `indices` or `shape` is not of an integer type.
    """
    if is_symbolic(indices, updates, shape):
        if not is_symbolic(shape):
            static = tf.get_static_value(_as_indices(shape, "shape"))
            shape = shape if static is None else static.tolist()
        at_construction = isinstance(shape, list)
        layer = _layers().ScatterNd(
            shape if at_construction else None,
            bad_indices_policy=bad_indices_policy,
            name=name,
            autocast=False,
        )
        return layer(indices, updates, None if at_construction else shape)
    indices, shape = _as_indices(indices, "indices"), _as_indices(shape, "shape")
    if indices.dtype != shape.dtype:
        indices, shape = _as_one_type([indices, shape])
    return raw_ops.MyScatterNd(
        indices=indices,
        updates=updates,
        shape=shape,
        bad_indices_policy=bad_indices_policy,
        name=name,
    )


def dynamic_stitch(
    indices: Sequence[Any], data: Sequence[Any], size: Any = None, name: str | None = None
) -> tf.Tensor:
    """Puts the rows of several tensors into one, at the places that `indices` name.

    `merged[indices[m][i, ..., j], ...] = data[m][i, ..., j, ...]`. Takes the arguments of
    `tf.dynamic_stitch`, and the number of rows where it is known. Where an index comes more than
    once, the last one in the order of the lists, and row-major within a tensor, wins. Rows that
    no index names are zero.

    >>> import tf_stitch_gather as sg
    >>> sg.dynamic_stitch([[0, 3], [1, 0]], [[10, 40], [20, 11]]).numpy().tolist()
    [11, 20, 0, 40]

    With `size` the shape of the result is known when the graph is built, which XLA needs where the
    indices are not constants:

    >>> sg.dynamic_stitch([[0, 1]], [[1.5, 2.5]], size=3).numpy().tolist()
    [1.5, 2.5, 0.0]

    The gradient is exact: a row that was overwritten has a gradient of zero.

    Args:
      indices: A list of at least 1 `Tensor` of any integer types and shapes. An array or an eager
        tensor is taken as the list of its rows, as by `tf.dynamic_stitch`.
      data: As `indices`, a list of as many `Tensor` of one type, with `data[m].shape ==
        indices[m].shape + slice` and the same `slice` for each `m`.
      size: An integer scalar, the number of rows of the result; by default `max(indices) + 1`.
      name: A name for the operation (optional).

    Returns:
      A `Tensor` of the type of `data` and of shape `[size] + slice`.

    Raises:
      tf.errors.InvalidArgumentError: if an index is negative or not less than `size`, or if the
        shapes do not fit. A `ValueError` while a graph is built.
      TypeError: if `indices` or `data` is not a list or tuple, or `size` or `indices` not of an
        integer type.
      ValueError: if they are of different lengths or empty.
    """
    indices, data = as_list(indices, "indices"), as_list(data, "data")
    if len(indices) != len(data):
        raise ValueError(
            f"indices and data must be lists of the same length, got {len(indices)} and {len(data)}"
        )
    if is_symbolic(*indices, *data, size):
        return _layers().DynamicStitch(name=name, autocast=False)(indices, data, size)
    names = [f"indices[{m}]" for m in range(len(indices))]
    if size is None:
        indices = _as_stitch_indices(indices, names)
        return raw_ops.MyDynamicStitch(indices=indices, data=data, name=name)
    size, *indices = _as_stitch_indices([size, *indices], ["size", *names])
    return raw_ops.MyDynamicStitchSized(size=size, indices=indices, data=data, name=name)


def is_symbolic(*values: Any) -> bool:
    """Whether one of `values` is an input of a functional Keras model, or made from one."""
    symbolic = _keras_type("KerasTensor")
    return any(isinstance(value, symbolic) for value in values)


def _keras_type(name: str) -> Any:
    """A class of Keras for `isinstance`; where Keras is not imported, nothing is one of its own."""
    return getattr(sys.modules.get("keras"), name, ())


def _layers() -> Any:
    """The module of the layers, which imports Keras."""
    from tf_stitch_gather import keras

    return keras


def _local_copy(params: Any) -> Any:
    """Of a variable that `tf.distribute` mirrors, the copy of this replica; others as they are."""
    return params._get() if isinstance(params, MirroredVariable) else params


def _reads_rows(variable: BaseResourceVariable) -> bool:
    """Tells the tapes that `variable` is read, and whether its rows can be read without the rest.

    They can on the CPU. A forward accumulator follows only a variable that is read as a whole.
    """
    if "GPU" in variable.device or "TPU" in variable.device:
        return False
    if variable.trainable:
        variable_accessed(variable)
    return not forwardprop_util.pack_tangents([variable.handle]).tangents


def _converted(value: Any) -> tf.Tensor:
    """A list, array or variable as a tensor, its values whole: a hint of int32 would wrap them."""
    tensor = tf.convert_to_tensor(value)
    # An empty list has no type of its own.
    if tensor.dtype == tf.float32 and isinstance(value, list | tuple) and 0 in tensor.shape:
        return tf.zeros(tensor.shape, tf.int32)
    return tensor


def _as_indices(value: Any, argument: str) -> tf.Tensor:
    """A tensor of an index type that gather and scatter have."""
    if not isinstance(value, tf.Tensor):
        value = _converted(value)
    dtype = value.dtype.base_dtype
    if dtype in _INDEX_TYPES:
        return value
    if dtype == tf.uint64:
        # What int64 cannot hold is beyond every tensor, and must not turn negative.
        signed = tf.bitcast(value, tf.int64)
        return tf.where(signed < 0, tf.constant(tf.int64.max, tf.int64), signed)
    if dtype not in _WIDER:
        raise TypeError(f"{argument} must be integers of 8 to 64 bits, got {dtype.name}")
    return tf.cast(value, _WIDER[dtype])


def as_list(value: Any, argument: str) -> Sequence[Any]:
    """The parts of a stitch, which the built-in op also takes as the rows of an eager tensor."""
    eager = isinstance(value, tf.Tensor) and hasattr(value, "numpy")
    if (eager or isinstance(value, np.ndarray)) and len(value.shape) > 0:
        value = list(value)
    if not isinstance(value, list | tuple):
        raise TypeError(
            f"{argument} must be a list or tuple of tensors, got {type(value).__name__}"
        )
    if not value:
        raise ValueError(f"{argument} must hold at least 1 tensor, got an empty list")
    return value


def _as_stitch_indices(values: Sequence[Any], arguments: Sequence[str]) -> list[tf.Tensor]:
    """Tensors of one index type that the stitch has."""
    tensors = [_as_indices(*pair) for pair in zip(values, arguments, strict=True)]
    dtypes = {tensor.dtype for tensor in tensors}
    if tf.int16 in dtypes or len(dtypes) > 1:
        return _as_one_type(tensors)
    return tensors


def _as_one_type(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Index tensors in the narrower of int32 and int64 that holds all."""
    dtype = tf.int64 if any(tensor.dtype == tf.int64 for tensor in tensors) else tf.int32
    return [tf.cast(tensor, dtype) for tensor in tensors]


def _as_batch_dims(value: Any) -> int:
    if type(value) is not int:
        if isinstance(value, tf.Tensor | tf.Variable):
            static = tf.get_static_value(value)
            if static is None:
                raise TypeError("batch_dims must be known when the graph is built")
            value = static
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"batch_dims must be an integer, got {value!r}")
    number = int(value)
    if number < 0:
        raise ValueError(f"batch_dims must not be negative, got {number}")
    return number
