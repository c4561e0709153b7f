"""The gradients of the ops, registered when the package is imported.

Each is linear in what it hands on, and built of these ops alone: it can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import tensorflow as tf

# TensorFlow has no public way to ask whether a tape or an accumulator is recording.
from tensorflow.python.eager import record
from tensorflow.python.framework import auto_control_deps_utils

from tf_stitch_gather import raw_ops
from tf_stitch_gather._eager import attribute
from tf_stitch_gather._registration import Decorator, unless_taken

Gradient: TypeAlias = "tf.Tensor | tf.IndexedSlices | None"

# A function may read a variable by this op as by any other, in no order with other reads.
auto_control_deps_utils.register_read_only_resource_op("MyResourceGatherNd")

# Ops that read a variable, and ops that hand it on unchanged.
_VARIABLE_READS = frozenset({"ReadVariableOp", "Variable", "VariableV2"})
_HANDED_ON = frozenset({"Identity", "ReadVariableXlaSplitND"})


def _register(op_type: str) -> Decorator:
    return unless_taken(tf.RegisterGradient(op_type), KeyError)


def _shape_of(tensor: tf.Tensor, dtype: tf.DType) -> list[int] | tf.Tensor:
    """The shape, as numbers where they are known."""
    if tensor.shape.is_fully_defined():
        return tensor.shape.as_list()
    return tf.shape(tensor, out_type=dtype)


def _dense(grad: tf.Tensor | tf.IndexedSlices, forward: tf.Tensor) -> tf.Tensor:
    """An upstream gradient of the output `forward` as a tensor.

    `tf.convert_to_tensor` would do it too, but warns where the shape is not known.
    """
    if not isinstance(grad, tf.IndexedSlices):
        return grad
    indices = tf.cast(grad.indices, tf.int64)[:, tf.newaxis]
    return raw_ops.MyScatterNd(
        indices=indices, updates=grad.values, shape=_shape_of(forward, tf.int64)
    )


def _may_be_variable(params: tf.Tensor) -> bool:
    """Whether a sparse gradient of `params` may reach a variable as it is.

    In a graph the ops between them tell; an eager tensor has no such record.
    """
    if tf.executing_eagerly():
        return True
    if not hasattr(params, "op"):  # An eager tensor while a graph is built is no variable's read.
        return False
    op = params.op
    while op.type in _HANDED_ON:
        op = op.inputs[0].op
    return op.type in _VARIABLE_READS


def _gather_grad(
    op: tf.Operation, grad: tf.Tensor | tf.IndexedSlices, shape: Any, may_be_sparse: bool
) -> list[Gradient]:
    """The gradient of a gather from params of `shape`, numbers or an int64 tensor.

    In sparse form for one column of indices, if it may be, and while it is not itself being
    recorded: neither an outer tape nor a forward accumulator can follow IndexedSlices.
    """
    indices = op.inputs[1]
    batch_dims = attribute(op, "batch_dims", 0)
    policy = attribute(op, "bad_indices_policy", "")
    grad = _dense(grad, op.outputs[0])
    one_column = indices.shape.rank is not None and indices.shape[-1] == 1
    if may_be_sparse and one_column and batch_dims == 0 and not record.could_possibly_record():
        rows, values = raw_ops.MyGatherNdSparseGrad(
            indices=indices, grad=grad, num_rows=shape[0], bad_indices_policy=policy
        )
        return [tf.IndexedSlices(values, rows, tf.convert_to_tensor(shape, tf.int64)), None]
    # A shape has the type of the indices, but of int16 and int32 a dimension may be too great.
    known = isinstance(shape, list)
    if indices.dtype != tf.int64:
        fits = not known or max(shape, default=0) <= tf.int32.max
        indices = tf.cast(indices, tf.int32 if fits else tf.int64)
    params_grad = raw_ops.MyScatterNd(
        indices=indices,
        updates=grad,
        shape=shape if known else tf.cast(shape, indices.dtype),
        bad_indices_policy=policy,
        batch_dims=batch_dims,
    )
    return [params_grad, None]


@_register("MyGatherNd")
def _gather_nd_grad(op: tf.Operation, grad: tf.Tensor | tf.IndexedSlices) -> list[Gradient]:
    params = op.inputs[0]
    return _gather_grad(op, grad, _shape_of(params, tf.int64), _may_be_variable(params))


@_register("MyResourceGatherNd")
def _resource_gather_nd_grad(
    op: tf.Operation, grad: tf.Tensor | tf.IndexedSlices
) -> list[Gradient]:
    shape = tf.raw_ops.VariableShape(input=op.inputs[0], out_type=tf.int64)
    return _gather_grad(op, grad, shape, may_be_sparse=True)


@_register("MyScatterNd")
def _scatter_nd_grad(op: tf.Operation, grad: tf.Tensor | tf.IndexedSlices) -> list[Gradient]:
    updates_grad = raw_ops.MyGatherNd(
        params=_dense(grad, op.outputs[0]),
        indices=op.inputs[0],
        bad_indices_policy=attribute(op, "bad_indices_policy", ""),
        batch_dims=attribute(op, "batch_dims", 0),
    )
    return [None, updates_grad, None]


@_register("MyGatherNdSparseGrad")
def _sparse_grad_grad(op: tf.Operation, _: Any, values_grad: tf.Tensor) -> list[Gradient]:
    indices = tf.cast(op.inputs[0][..., 0], tf.int64)
    rows = op.outputs[0]
    # The place of each index among the sorted rows, or -1 of one that was ignored.
    flat = tf.reshape(indices, [-1])
    places = tf.searchsorted(rows, flat)
    found = raw_ops.MyGatherNd(
        params=rows, indices=places[:, tf.newaxis], bad_indices_policy="IGNORE"
    )
    places = tf.reshape(tf.where(found == flat, places, -1), tf.shape(indices))
    grad_grad = raw_ops.MyGatherNd(
        params=_dense(values_grad, op.outputs[1]),
        indices=places[..., tf.newaxis],
        bad_indices_policy="IGNORE",
    )
    return [None, grad_grad, None]


def _stitch_grad(
    op: tf.Operation, indices: Sequence[tf.Tensor], grad: Any, policy: Any
) -> list[tf.Tensor]:
    return raw_ops.MyDynamicStitchGrad(
        indices=list(indices), grad=_dense(grad, op.outputs[0]), bad_indices_policy=policy
    )


@_register("MyDynamicStitch")
def _dynamic_stitch_grad(op: tf.Operation, grad: tf.Tensor | tf.IndexedSlices) -> list[Gradient]:
    parts = len(op.inputs) // 2
    return [None] * parts + _stitch_grad(op, op.inputs[:parts], grad, "")


@_register("MyDynamicStitchSized")
def _dynamic_stitch_sized_grad(
    op: tf.Operation, grad: tf.Tensor | tf.IndexedSlices
) -> list[Gradient]:
    parts = (len(op.inputs) - 1) // 2
    policy = op.get_attr("bad_indices_policy")
    return [None] * (1 + parts) + _stitch_grad(op, op.inputs[1 : 1 + parts], grad, policy)


@_register("MyDynamicStitchGrad")
def _dynamic_stitch_grad_grad(op: tf.Operation, *data_grads: Any) -> list[Gradient]:
    indices = list(op.inputs[:-1])
    grad = op.inputs[-1]
    # The stitch with the same winners takes each row back to where it came from.
    grad_grad = raw_ops.MyDynamicStitchSized(
        size=tf.cast(_shape_of(grad, tf.int64)[0], indices[0].dtype),
        indices=indices,
        data=[_dense(g, output) for g, output in zip(data_grads, op.outputs, strict=True)],
        bad_indices_policy=op.get_attr("bad_indices_policy"),
    )
    return [None] * len(indices) + [grad_grad]
