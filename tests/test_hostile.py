"""Inputs of no bytes and of the greatest index: each comes to an end at once."""

from __future__ import annotations

import pytest
import tensorflow as tf
import tf_stitch_gather as tsg

# Walked one by one, so many tuples take hours.
MANY = 2**40


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16, tf.string], ids=lambda d: d.name)
def test_gather_of_many_tuples_that_hold_nothing(dtype):
    params = tf.reshape(tf.constant([], dtype), [MANY, 0])
    indices = tf.zeros([MANY, 0], tf.int32)
    assert tsg.gather_nd(params, indices, batch_dims=1).shape == (MANY, 0)
    assert tsg.gather_nd(tf.reshape(params, [0]), indices).shape == (MANY, 0)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16], ids=lambda d: d.name)
def test_scatter_of_many_tuples_that_hold_nothing(dtype):
    indices, updates = tf.zeros([MANY, 0], tf.int64), tf.zeros([MANY, 0], dtype)
    assert tsg.scatter_nd(indices, updates, [0]).shape == (0,)
    scattered = tsg.raw_ops.MyScatterNd(
        indices=indices, updates=updates, shape=tf.constant([MANY, 0], tf.int64), batch_dims=1
    )
    assert scattered.shape == (MANY, 0)


def test_gradient_of_many_tuples_that_hold_nothing():
    params = tf.zeros([MANY, 0])
    with tf.GradientTape() as tape:
        tape.watch(params)
        rows = tsg.gather_nd(params, tf.zeros([MANY, 0], tf.int32), batch_dims=1)
    # The ones that an eager tape starts from would have the shape [0, 0], whatever the op.
    assert tape.gradient(rows, params, output_gradients=rows).shape == (MANY, 0)


@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_the_greatest_index_is_never_a_negative_size(in_function):
    def stitch():
        return tsg.dynamic_stitch([tf.constant([tf.int64.max], tf.int64)], [[1.0]])

    with pytest.raises((tf.errors.OpError, ValueError)) as raised:
        (tf.function(stitch) if in_function else stitch)()
    assert "Dimension -" not in str(raised.value)
    assert isinstance(
        raised.value, (tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError)
    )
