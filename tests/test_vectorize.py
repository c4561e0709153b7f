"""tf.vectorized_map over the ops.

With ``fallback_to_while_loop=True``, TensorFlow's default, a map must give the right values whether
or not an op has a converter.
"""

from __future__ import annotations

import numpy as np
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import equal

X = tf.constant([[1.0, 2.0], [3.0, 4.0]])


def test_stitch():
    got = tf.vectorized_map(lambda row: tsg.dynamic_stitch([[1, 0]], [row]), X)
    equal(got, [[2.0, 1.0], [4.0, 3.0]])


def test_stitch_whose_rows_repeat_and_are_missing():
    got = tf.vectorized_map(lambda row: tsg.dynamic_stitch([[2, 0], [0]], [row, -row[:1]]), X)
    equal(got, [[-1.0, 0.0, 1.0], [-3.0, 0.0, 3.0]])


def test_gather_of_shared_params():
    params = tf.reshape(tf.range(6.0), [3, 2])
    indices = tf.constant([[[0, 1]], [[2, 0]]])
    equal(tf.vectorized_map(lambda i: tsg.gather_nd(params, i), indices), [[1.0], [4.0]])


def test_gather_of_stacked_params():
    params = tf.reshape(tf.range(12.0), [2, 3, 2])
    each = (params, tf.constant([[0, 1], [2, 0]]))
    equal(tf.vectorized_map(lambda a: tsg.gather_nd(a[0], a[1]), each), [1.0, 10.0])
    got = tf.vectorized_map(lambda a: tsg.gather_nd(a, [[2, 1]]), params)
    equal(got, [[5.0], [11.0]])


def test_scatter():
    indices = tf.constant([[[0], [0]], [[2], [1]]])
    got = tf.vectorized_map(lambda a: tsg.scatter_nd(a[0], a[1], [3]), (indices, X))
    equal(got, [[3.0, 0.0, 0.0], [0.0, 4.0, 3.0]])


def test_batch_jacobian():
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = tsg.gather_nd(X * X, [[1], [0]], batch_dims=1)[:, None] * [1.0, 2.0]
    got = support.to_numpy(tape.batch_jacobian(y, X))
    want = np.zeros((2, 2, 2))
    want[0, :, 1], want[1, :, 0] = [4, 8], [6, 12]
    equal(got, want)
