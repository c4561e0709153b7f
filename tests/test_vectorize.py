"""tf.vectorized_map over the ops.

With ``fallback_to_while_loop=True``, TensorFlow's default, a map must give the right values whether
or not an op has a converter.
"""

from __future__ import annotations

import numpy as np
import pytest
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


# Without the fall-back to a loop: each op has a converter, for every combination of inputs that
# differ between the iterations and inputs that they share.


def vectorized(function, elements):
    return tf.vectorized_map(function, elements, fallback_to_while_loop=False)


def each(function, elements):
    """The same by a loop in Python."""
    count = len(tf.nest.flatten(elements)[0])
    return tf.stack(
        [function(tf.nest.map_structure(lambda t, i=i: t[i], elements)) for i in range(count)]
    )


def seen(stacked, element, first_name, first, second_name, second):
    """What an iteration uses: its element of what is stacked, the first one of what is shared."""
    if stacked == "both":
        return element
    return (
        element if stacked == first_name else first[0],
        element if stacked == second_name else second[0],
    )


PARAMS = tf.reshape(tf.range(48.0), [2, 4, 3, 2])  # two iterations
INDICES = tf.constant([[[0, 1], [3, 2]], [[2, 0], [1, 1]]])


@pytest.mark.parametrize("policy", ["", "IGNORE"])
@pytest.mark.parametrize("stacked", ["params", "indices", "both"])
def test_gather_nd_is_vectorized(stacked, policy):
    indices = INDICES if policy == "" else tf.where(INDICES == 3, 7, INDICES)

    def gather(element):
        params = element if stacked == "params" else element[0] if stacked == "both" else PARAMS[0]
        chosen = (
            element if stacked == "indices" else element[1] if stacked == "both" else indices[0]
        )
        return tsg.gather_nd(params, chosen, bad_indices_policy=policy)

    elements = {"params": PARAMS, "indices": indices, "both": (PARAMS, indices)}[stacked]
    equal(vectorized(gather, elements), each(gather, elements))


@pytest.mark.parametrize("stacked", ["params", "indices", "both"])
def test_gather_nd_with_batch_dims_is_vectorized(stacked):
    indices = tf.constant([[[0], [2], [1], [1]], [[2], [2], [0], [0]]])

    def gather(element):
        params = element if stacked == "params" else element[0] if stacked == "both" else PARAMS[0]
        chosen = (
            element if stacked == "indices" else element[1] if stacked == "both" else indices[0]
        )
        return tsg.gather_nd(params, chosen, batch_dims=1)

    elements = {"params": PARAMS, "indices": indices, "both": (PARAMS, indices)}[stacked]
    equal(vectorized(gather, elements), each(gather, elements))


def test_gather_nd_from_a_variable_is_vectorized():
    variable = tf.Variable(PARAMS[0])
    got = vectorized(lambda i: tsg.gather_nd(variable, i), INDICES)
    equal(got, tf.gather_nd(PARAMS[0], INDICES))


@pytest.mark.parametrize("index_dtype", [tf.int16, tf.int32, tf.int64], ids=lambda d: d.name)
@pytest.mark.parametrize("stacked", ["indices", "updates", "both"])
def test_scatter_nd_is_vectorized(stacked, index_dtype):
    indices = tf.cast([[[0], [0]], [[2], [1]]], index_dtype)

    def scatter(element):
        chosen = (
            element if stacked == "indices" else element[0] if stacked == "both" else indices[0]
        )
        updates = element if stacked == "updates" else element[1] if stacked == "both" else X[0]
        return tsg.scatter_nd(chosen, updates, tf.constant([3], index_dtype))

    elements = {"indices": indices, "updates": X, "both": (indices, X)}[stacked]
    equal(vectorized(scatter, elements), each(scatter, elements))


@pytest.mark.parametrize("size", [None, 4], ids=["own-size", "sized"])
@pytest.mark.parametrize("stacked", ["indices", "data", "both"])
def test_dynamic_stitch_is_vectorized(stacked, size):
    indices = tf.constant([[2, 0], [0, 2]])

    def stitch(element):
        chosen = (
            element if stacked == "indices" else element[0] if stacked == "both" else indices[0]
        )
        row = element if stacked == "data" else element[1] if stacked == "both" else X[0]
        return tsg.dynamic_stitch([chosen, [0]], [row, -row[:1]], size=size)

    elements = {"indices": indices, "data": X, "both": (indices, X)}[stacked]
    equal(vectorized(stitch, elements), each(stitch, elements))


@pytest.mark.parametrize("bad", [-1, 5])
def test_an_index_out_of_range_names_no_row_of_another_iteration(bad):
    indices = tf.constant([[0, 1], [bad, 1]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
        vectorized(lambda a: tsg.dynamic_stitch([a[0]], [a[1]], size=3), (indices, X))


def test_jacobians_are_vectorized():
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        gathered = tsg.gather_nd(X * X, [[0, 1], [1, 0], [0, 1]])
        stitched = tsg.dynamic_stitch([[1, 0], [1]], [X * X, X[:1]])
    for target in (gathered, stitched):
        fast = tape.jacobian(target, X, experimental_use_pfor=True)
        slow = tape.jacobian(target, X, experimental_use_pfor=False)
        equal(tf.convert_to_tensor(fast), tf.convert_to_tensor(slow))
