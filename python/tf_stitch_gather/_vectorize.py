"""Converters for `tf.vectorized_map`, `jacobian` and `batch_jacobian`, registered on import.

A loop over an op becomes one call of it: native batch dimensions walk the iterations of a gather or
a scatter; the rows of the iterations of a stitch lie one behind the other.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

# TensorFlow has no public way to register a converter.
from tensorflow.python.ops.parallel_for import pfor

from tf_stitch_gather import raw_ops
from tf_stitch_gather._registration import Decorator, unless_taken


def _register(op_type: str) -> Decorator:
    return unless_taken(pfor.RegisterPFor(op_type), AssertionError)


def _stacked(tensor: tf.Tensor) -> Any:
    return pfor.wrap(tensor, True)


@_register("MyGatherNd")
def _gather_nd(call: Any) -> Any:
    batch_dims = call.get_attr("batch_dims")
    policy = call.get_attr("bad_indices_policy")
    params, indices = call.inputs
    if params.is_stacked or batch_dims > 0:
        call.stack_inputs()
        params, indices = call.inputs
        batch_dims += 1
    # Else more iterations are but more indices into the same params.
    return _stacked(
        raw_ops.MyGatherNd(
            params=params.t,
            indices=indices.t,
            bad_indices_policy=policy,
            batch_dims=batch_dims,
        )
    )


@_register("MyScatterNd")
def _scatter_nd(call: Any) -> Any:
    call.stack_inputs([0, 1])
    indices, updates = call.stacked_input(0), call.stacked_input(1)
    shape = call.unstacked_input(2)
    if indices.dtype == tf.int16:  # May not hold the number of iterations.
        indices, shape = tf.cast(indices, tf.int32), tf.cast(shape, tf.int32)
    iterations = tf.cast(call.pfor.loop_len_vector, shape.dtype)
    return _stacked(
        raw_ops.MyScatterNd(
            indices=indices,
            updates=updates,
            shape=tf.concat([iterations, shape], 0),
            bad_indices_policy=call.get_attr("bad_indices_policy"),
            batch_dims=call.get_attr("batch_dims") + 1,
        )
    )


def _behind_each_other(indices: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Stacked indices into `rows` rows an iteration as indices into the rows of all of them.

    An index out of range stays so: it must not name a row of another iteration.
    """
    indices = tf.cast(indices, tf.int64)
    iterations = tf.shape(indices, out_type=tf.int64)[0]
    ones = tf.ones_like(tf.shape(indices)[1:])
    first_rows = tf.reshape(
        tf.range(iterations) * rows, tf.concat([[tf.cast(iterations, tf.int32)], ones], 0)
    )
    in_range = (indices >= 0) & (indices < rows)
    return tf.where(in_range, indices + first_rows, tf.constant(-1, tf.int64))


def _stitch(call: Any, first: int, parts: int, rows: tf.Tensor, policy: Any) -> Any:
    """A stitch of stacked parts into `rows` rows an iteration."""
    call.stack_inputs(range(first, first + 2 * parts))
    inputs = [wrapped.t for wrapped in call.inputs[first:]]
    iterations = tf.cast(call.pfor.loop_len_vector[0], tf.int64)
    merged = raw_ops.MyDynamicStitchSized(
        size=iterations * rows,
        indices=[_behind_each_other(indices, rows) for indices in inputs[:parts]],
        data=inputs[parts:],
        bad_indices_policy=policy,
    )
    slice_shape = tf.shape(merged, out_type=tf.int64)[1:]
    return _stacked(tf.reshape(merged, tf.concat([[iterations, rows], slice_shape], 0)))


@_register("MyDynamicStitch")
def _dynamic_stitch(call: Any) -> Any:
    parts = call.num_inputs // 2
    # All iterations have as many rows as the one with the greatest index.
    flat = [tf.reshape(tf.cast(wrapped.t, tf.int64), [-1]) for wrapped in call.inputs[:parts]]
    rows = tf.maximum(tf.reduce_max(tf.concat([*flat, [-1]], 0)) + 1, 0)
    return _stitch(call, 0, parts, rows, "")


@_register("MyDynamicStitchSized")
def _dynamic_stitch_sized(call: Any) -> Any:
    rows = tf.cast(call.unstacked_input(0), tf.int64)
    return _stitch(call, 1, (call.num_inputs - 1) // 2, rows, call.get_attr("bad_indices_policy"))


@_register("MyDynamicStitchGrad")
def _dynamic_stitch_grad(call: Any) -> Any:
    call.stack_inputs()
    *indices, grad = (wrapped.t for wrapped in call.inputs)
    shape = tf.shape(grad, out_type=tf.int64)
    grads = raw_ops.MyDynamicStitchGrad(
        indices=[_behind_each_other(part, shape[1]) for part in indices],
        grad=tf.reshape(grad, tf.concat([[shape[0] * shape[1]], shape[2:]], 0)),
        bad_indices_policy=call.get_attr("bad_indices_policy"),
    )
    return [_stacked(data_grad) for data_grad in grads]


@_register("MyResourceGatherNd")
def _resource_gather_nd(call: Any) -> Any:
    resource = call.unstacked_input(0)
    batch_dims = call.get_attr("batch_dims")
    if batch_dims > 0:
        raise ValueError("a lookup in a variable with batch_dims is not vectorized")
    return _stacked(
        raw_ops.MyResourceGatherNd(
            resource=resource,
            indices=call.stacked_input(1),
            dtype=call.get_attr("dtype"),
            bad_indices_policy=call.get_attr("bad_indices_policy"),
        )
    )
