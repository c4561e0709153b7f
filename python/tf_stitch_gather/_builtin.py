"""Each op as built-in ones, for the nodes that no built-in op can replace by its name alone.

The functions take the inputs of a node and are traced with its attributes; the nodes of the trace
then take its place. With `lite` they use only ops that TensorFlow Lite has, which say nothing of a
bad index of a stitch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

_IGNORE = "IGNORE"


def _in_range(indices: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """Which of the index tuples name a place in a tensor of `shape`."""
    limits = tf.cast(shape[: tf.shape(indices)[-1]], indices.dtype)
    return tf.reduce_all((indices >= 0) & (indices < limits), -1)


def _or_zero(good: tf.Tensor, slices: tf.Tensor) -> tf.Tensor:
    """The slices of the good tuples, and zeros for the others."""
    ones = tf.ones_like(tf.shape(slices)[tf.rank(good) :])
    good = tf.reshape(good, tf.concat([tf.shape(good), ones], 0))
    return tf.where(good, slices, tf.zeros([], slices.dtype))


def _gather_nd(params: tf.Tensor, indices: tf.Tensor, policy: str, lite: bool) -> tf.Tensor:
    if policy != _IGNORE:
        return tf.raw_ops.GatherNd(params=params, indices=indices)
    if not lite:
        return tf.raw_ops.GatherNd(params=params, indices=indices, bad_indices_policy=policy)
    good = _in_range(indices, tf.shape(params))
    safe = tf.where(good[..., tf.newaxis], indices, 0)
    return _or_zero(good, tf.raw_ops.GatherNd(params=params, indices=safe))


def _scatter_nd(
    indices: tf.Tensor, updates: tf.Tensor, shape: tf.Tensor, policy: str, lite: bool
) -> tf.Tensor:
    if policy == _IGNORE and not lite:
        return tf.raw_ops.ScatterNd(
            indices=indices, updates=updates, shape=shape, bad_indices_policy=policy
        )
    if policy == _IGNORE:
        good = _in_range(indices, shape)
        updates = _or_zero(good, updates)
        indices = tf.where(good[..., tf.newaxis], indices, 0)
    return tf.raw_ops.ScatterNd(indices=indices, updates=updates, shape=shape)


def _flat_batch(tensor: tf.Tensor, batch_dims: int) -> tf.Tensor:
    """The tensor with its batch dimensions made one."""
    return tf.reshape(tensor, _flat_shape(tf.shape(tensor), batch_dims))


def _flat_shape(shape: tf.Tensor, batch_dims: int) -> tf.Tensor:
    size = tf.reduce_prod(shape[:batch_dims], keepdims=True)
    return tf.concat([size, shape[batch_dims:]], 0)


def _with_positions(indices: tf.Tensor, batch_dims: int) -> tf.Tensor:
    """Indices that name the position in the batch, too: `[batch, ..., 1 + depth]`."""
    if indices.dtype == tf.int16:  # May not hold the number of positions.
        indices = tf.cast(indices, tf.int32)
    indices = _flat_batch(indices, batch_dims)
    shape = tf.shape(indices)
    positions = tf.cast(tf.range(shape[0]), indices.dtype)
    ones = tf.ones_like(shape[1:])
    positions = tf.reshape(positions, tf.concat([shape[:1], ones], 0))
    return tf.concat([tf.broadcast_to(positions, tf.concat([shape[:-1], [1]], 0)), indices], -1)


def gather_nd(
    params: tf.Tensor, indices: tf.Tensor, *, batch_dims: int, bad_indices_policy: str, lite: bool
) -> tf.Tensor:
    if batch_dims == 0:
        return _gather_nd(params, indices, bad_indices_policy, lite)
    slices = _gather_nd(
        _flat_batch(params, batch_dims),
        _with_positions(indices, batch_dims),
        bad_indices_policy,
        lite,
    )
    batch = tf.shape(params)[:batch_dims]
    return tf.reshape(slices, tf.concat([batch, tf.shape(slices)[1:]], 0))


def resource_gather_nd(
    resource: tf.Tensor,
    indices: tf.Tensor,
    *,
    dtype: tf.DType,
    batch_dims: int,
    bad_indices_policy: str,
    lite: bool,
) -> tf.Tensor:
    params = tf.raw_ops.ReadVariableOp(resource=resource, dtype=dtype)
    return gather_nd(
        params, indices, batch_dims=batch_dims, bad_indices_policy=bad_indices_policy, lite=lite
    )


def scatter_nd(
    indices: tf.Tensor,
    updates: tf.Tensor,
    shape: tf.Tensor,
    *,
    batch_dims: int,
    bad_indices_policy: str,
    lite: bool,
) -> tf.Tensor:
    if batch_dims == 0:
        return _scatter_nd(indices, updates, shape, bad_indices_policy, lite)
    indices = _with_positions(indices, batch_dims)
    shape = tf.cast(shape, tf.int32)
    sums = _scatter_nd(
        indices,
        _flat_batch(updates, batch_dims),
        tf.cast(_flat_shape(shape, batch_dims), indices.dtype),
        bad_indices_policy,
        lite,
    )
    return tf.reshape(sums, shape)


def _flat_parts(
    indices: Sequence[tf.Tensor], data: Sequence[tf.Tensor]
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """All indices of a stitch in one vector, all rows in one tensor, and the shape of a row."""
    row = tf.shape(data[0])[tf.rank(indices[0]) :]
    rows = [tf.reshape(part, tf.concat([[-1], row], 0)) for part in data]
    places = [tf.reshape(part, [-1]) for part in indices]
    return tf.cast(tf.concat(places, 0), tf.int32), tf.concat(rows, 0), row


def _last_sources(places: tf.Tensor, size: tf.Tensor, lite: bool) -> tf.Tensor:
    """Of each of `size` rows, one more than its last source; 0 or less of a row without one."""
    sources = tf.range(1, tf.size(places) + 1)
    if lite:
        return tf.math.unsorted_segment_max(sources, places, size)
    # An error where an index is out of range. A DynamicStitch made to fit by Reshape is none:
    # TensorFlow's own optimizations remove that Reshape.
    nothing = tf.zeros(tf.reshape(size, [1]), tf.int32)
    return tf.tensor_scatter_nd_max(nothing, places[:, tf.newaxis], sources)


def _stitch(
    places: tf.Tensor, rows: tf.Tensor, row: tf.Tensor, size: tf.Tensor, lite: bool
) -> tf.Tensor:
    nothing = tf.zeros(tf.concat([[1], row], 0), rows.dtype)
    sources = tf.maximum(_last_sources(places, size, lite), 0)
    return tf.gather(tf.concat([nothing, rows], 0), sources)


def dynamic_stitch(
    indices: Sequence[tf.Tensor], data: Sequence[tf.Tensor], *, lite: bool
) -> tf.Tensor:
    if not lite:
        indices = [tf.cast(part, tf.int32) for part in indices]
        return tf.raw_ops.DynamicStitch(indices=indices, data=data)
    places, rows, row = _flat_parts(indices, data)
    return _stitch(places, rows, row, tf.reduce_max(tf.concat([places, [-1]], 0)) + 1, lite)


def dynamic_stitch_sized(
    size: tf.Tensor,
    indices: Sequence[tf.Tensor],
    data: Sequence[tf.Tensor],
    *,
    bad_indices_policy: str,
    lite: bool,
) -> tf.Tensor:
    size = tf.reshape(tf.cast(size, tf.int32), [])
    places, rows, row = _flat_parts(indices, data)
    if bad_indices_policy == _IGNORE:
        good = (places >= 0) & (places < size)
        places, rows = tf.boolean_mask(places, good), tf.boolean_mask(rows, good)
    return _stitch(places, rows, row, size, lite)


def dynamic_stitch_grad(
    indices: Sequence[tf.Tensor], grad: tf.Tensor, *, bad_indices_policy: str, lite: bool
) -> list[tf.Tensor]:
    size = tf.shape(grad)[0]
    places = tf.cast(tf.concat([tf.reshape(part, [-1]) for part in indices], 0), tf.int32)
    own = tf.range(1, tf.size(places) + 1)
    if bad_indices_policy == _IGNORE:
        good = (places >= 0) & (places < size)
        last = _last_sources(tf.boolean_mask(places, good), size, lite)
        # Positions among the good ones.
        own = tf.where(good, tf.cumsum(tf.cast(good, tf.int32)), -1)
        places = tf.where(good, places, size)
    else:
        last = _last_sources(places, size, lite)
    won = tf.gather(tf.concat([last, [0]], 0), places) == own
    # A row that lost takes the zeros behind the last row.
    zeros = tf.zeros(tf.concat([[1], tf.shape(grad)[1:]], 0), grad.dtype)
    rows = tf.gather(tf.concat([grad, zeros], 0), tf.where(won, places, size))
    grads = []
    begin = tf.constant(0)
    for part in indices:
        end = begin + tf.size(part)
        shape = tf.concat([tf.shape(part), tf.shape(grad)[1:]], 0)
        grads.append(tf.reshape(rows[begin:end], shape))
        begin = end
    return grads


def gather_nd_sparse_grad(
    indices: tf.Tensor,
    grad: tf.Tensor,
    num_rows: tf.Tensor,
    *,
    bad_indices_policy: str,
    lite: bool,
) -> list[tf.Tensor]:
    dtype = tf.int32 if lite else tf.int64
    num_rows = tf.reshape(tf.cast(num_rows, dtype), [])
    places = tf.reshape(tf.cast(indices, dtype), [-1])
    slices = tf.reshape(grad, tf.concat([[-1], tf.shape(grad)[tf.rank(indices) - 1 :]], 0))
    if bad_indices_policy == _IGNORE:
        good = (places >= 0) & (places < num_rows)
        places, slices = tf.boolean_mask(places, good), tf.boolean_mask(slices, good)
    named = tf.math.unsorted_segment_sum(tf.ones_like(places), places, num_rows) > 0
    rows = tf.reshape(tf.where(named), [-1])
    order = tf.cumsum(tf.cast(named, dtype)) - 1
    sums = tf.math.unsorted_segment_sum(slices, tf.gather(order, places), tf.size(rows))
    return [rows, sums]


#: What makes the nodes for each op. The first argument of `dynamic_stitch` and of those like it are
#: lists of as many tensors as the attribute N says.
COMPOSITES: dict[str, Callable[..., Any]] = {
    "MyDynamicStitch": dynamic_stitch,
    "MyDynamicStitchGrad": dynamic_stitch_grad,
    "MyDynamicStitchSized": dynamic_stitch_sized,
    "MyGatherNd": gather_nd,
    "MyGatherNdSparseGrad": gather_nd_sparse_grad,
    "MyResourceGatherNd": resource_gather_nd,
    "MyScatterNd": scatter_nd,
}

# Built-in ops that TensorFlow Lite lacks, and the op above that is their composite.
_NOT_IN_TFLITE = {
    "DynamicStitch": "MyDynamicStitch",
    "ParallelDynamicStitch": "MyDynamicStitch",
    "ResourceGatherNd": "MyResourceGatherNd",
}
# Those that it has, but for their policy.
_WITHOUT_POLICY = {"GatherNd": "MyGatherNd", "ScatterNd": "MyScatterNd"}


def composite_of(op: str, policy: str, lite: bool) -> str:
    """The op above that has to stand in for a node; empty if the node can stay."""
    if op in COMPOSITES:
        return op
    if not lite:
        return ""
    if policy == _IGNORE and op in _WITHOUT_POLICY:
        return _WITHOUT_POLICY[op]
    return _NOT_IN_TFLITE.get(op, "")
