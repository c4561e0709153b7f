"""The gradients of the runtime's functions, which `SymbolicGradient` uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_stitch_gather as sg

# Functions of the runtime, without Python's gradients: only their old wrapper makes them.
from tensorflow.python.framework import function
from tensorflow.python.ops import gen_functional_ops

STITCH_INDEX_TYPES = (tf.int32, tf.int64)
INDEX_TYPES = (tf.int16, *STITCH_INDEX_TYPES)


def symbolic_gradients(
    body: Callable[..., Any], inputs: Sequence[tuple[Any, tf.DType]], upstream: Sequence[Any]
) -> list[np.ndarray]:
    """The gradients of all inputs of `body`, by the op SymbolicGradient."""
    dtypes = [dtype for _, dtype in inputs]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        wrapped = function.Defun(*dtypes, func_name="body")(body)
        tensors = [tf.constant(value, dtype) for value, dtype in inputs]
        wrapped(*tensors)
        grads = gen_functional_ops.symbolic_gradient(
            input=[*tensors, *(tf.constant(grad, tf.float32) for grad in upstream)],
            Tout=dtypes,
            f=wrapped,
        )
        return session.run(grads)


def over(dtypes: Sequence[tf.DType]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("itype", dtypes, ids=lambda dtype: dtype.name)


@over(INDEX_TYPES)
def test_gather_nd(itype: tf.DType) -> None:
    params_grad, indices_grad = symbolic_gradients(
        lambda params, indices: sg.raw_ops.MyGatherNd(params=params, indices=indices),
        [([[1, 2], [3, 4], [5, 6]], tf.float32), ([[2], [0], [2]], itype)],
        [[[1, 2], [10, 20], [100, 200]]],
    )
    np.testing.assert_array_equal(params_grad, [[10, 20], [0, 0], [101, 202]])
    np.testing.assert_array_equal(indices_grad, [[0], [0], [0]])


@over(INDEX_TYPES)
def test_gather_nd_attributes(itype: tf.DType) -> None:
    params_grad, _ = symbolic_gradients(
        lambda params, indices: sg.raw_ops.MyGatherNd(
            params=params, indices=indices, bad_indices_policy="IGNORE", batch_dims=1
        ),
        [([[1, 2], [3, 4]], tf.float32), ([[[1], [1]], [[0], [9]]], itype)],
        [[[1, 10], [100, 1000]]],
    )
    np.testing.assert_array_equal(params_grad, [[0, 11], [100, 0]])


def test_gather_nd_int16_indices_into_more_rows_than_int16_counts() -> None:
    params_grad, _ = symbolic_gradients(
        lambda params, indices: sg.raw_ops.MyGatherNd(params=params, indices=indices),
        [(np.zeros(40_000), tf.float32), ([[32_767], [1], [32_767]], tf.int16)],
        [[1, 2, 4]],
    )
    assert params_grad.shape == (40_000,)
    assert params_grad[32_767] == 5
    assert params_grad[1] == 2
    assert params_grad.sum() == 7


@over(INDEX_TYPES)
def test_scatter_nd(itype: tf.DType) -> None:
    indices_grad, updates_grad, shape_grad = symbolic_gradients(
        lambda indices, updates, shape: sg.raw_ops.MyScatterNd(
            indices=indices, updates=updates, shape=shape
        ),
        [([[1], [3], [1]], itype), ([1, 2, 3], tf.float32), ([4], itype)],
        [[1, 2, 3, 4]],
    )
    np.testing.assert_array_equal(updates_grad, [2, 4, 2])
    np.testing.assert_array_equal(indices_grad, [[0], [0], [0]])
    np.testing.assert_array_equal(shape_grad, [0])


@over(STITCH_INDEX_TYPES)
def test_dynamic_stitch(itype: tf.DType) -> None:
    *indices_grads, first_grad, second_grad = symbolic_gradients(
        lambda i, j, first, second: sg.raw_ops.MyDynamicStitch(
            indices=[i, j], data=[first, second]
        ),
        [([0, 2], itype), ([1, 0], itype), ([1, 2], tf.float32), ([3, 4], tf.float32)],
        [[1, 10, 100]],
    )
    np.testing.assert_array_equal(first_grad, [0, 100])
    np.testing.assert_array_equal(second_grad, [10, 1])
    np.testing.assert_array_equal(indices_grads, [[0, 0], [0, 0]])


@over(STITCH_INDEX_TYPES)
def test_dynamic_stitch_of_one_tensor(itype: tf.DType) -> None:
    indices_grad, data_grad = symbolic_gradients(
        lambda i, data: sg.raw_ops.MyDynamicStitch(indices=[i], data=[data]),
        [([0, 0, 1], itype), ([[1], [2], [3]], tf.float32)],
        [[[5], [7]]],
    )
    np.testing.assert_array_equal(data_grad, [[0], [5], [7]])
    np.testing.assert_array_equal(indices_grad, [0, 0, 0])


@over(STITCH_INDEX_TYPES)
def test_dynamic_stitch_sized(itype: tf.DType) -> None:
    size_grad, *_, first_grad, second_grad = symbolic_gradients(
        lambda size, i, j, first, second: sg.raw_ops.MyDynamicStitchSized(
            size=size, indices=[i, j], data=[first, second], bad_indices_policy="IGNORE"
        ),
        [
            (4, itype),
            ([0, 2], itype),
            ([1, 9], itype),
            ([1, 2], tf.float32),
            ([3, 4], tf.float32),
        ],
        [[1, 10, 100, 7]],
    )
    assert size_grad == 0
    np.testing.assert_array_equal(first_grad, [1, 100])
    np.testing.assert_array_equal(second_grad, [10, 0])


@over(STITCH_INDEX_TYPES)
def test_dynamic_stitch_grad(itype: tf.DType) -> None:
    *indices_grads, grad_grad = symbolic_gradients(
        lambda i, j, grad: tuple(sg.raw_ops.MyDynamicStitchGrad(indices=[i, j], grad=grad)),
        [([0, 2], itype), ([1, 0], itype), ([1, 10, 100], tf.float32)],
        [[5, 6], [7, 8]],
    )
    np.testing.assert_array_equal(grad_grad, [8, 7, 6])
    np.testing.assert_array_equal(indices_grads, [[0, 0], [0, 0]])
