"""Values of scatter_nd: sums in row-major order, types, shapes and policies, against NumPy."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import call, equal, in_each_mode, in_every_mode, same, tensor

# name: shape of the output, shape of indices
SHAPES = {
    "onto a vector": ((5,), (12, 1)),
    "onto a matrix": ((3, 4), (20, 2)),
    "rows": ((3, 4), (8, 1)),
    "matrix of index vectors": ((3, 4, 5), (2, 6, 2)),
    "rank 5 indices": ((4, 2), (1, 2, 1, 3, 1)),
    "all onto one place": ((1, 3), (9, 1)),
    "no index vectors": ((3, 2), (0, 1)),
    "no index vectors inside": ((3, 2), (4, 0, 2)),
    "nothing onto nothing": ((0, 2), (0, 1)),
    "rank 8, depth 8": ((2,) * 8, (30, 8)),
    "rank 9, depth 2": ((2,) * 9, (5, 2)),
}

# name: shape of the output, shape of indices, batch_dims
BATCHES = {
    "scalars": ((4, 3), (4, 5, 1), 1),
    "rows": ((2, 3, 4), (2, 5, 1), 1),
    "one each": ((2, 3, 4), (2, 2), 1),
    "two batch dims": ((3, 2, 5, 3), (3, 2, 7, 2), 2),
    "no batch": ((0, 3), (0, 1), 1),
}


def draw(rng, shape, indices_shape, dtype, index_type, batch_dims=0, beyond=0):
    """Random indices, up to ``beyond`` outside at each end, and updates that can be added."""
    limits = [max(1, n + 2 * beyond) for n in shape[batch_dims : batch_dims + indices_shape[-1]]]
    indices = support.index_array(rng, limits, indices_shape[:-1], index_type)
    indices = indices - np.array(beyond, indices.dtype)
    updates_shape = indices_shape[:-1] + shape[batch_dims + indices_shape[-1] :]
    return indices, support.numbers_of(rng, updates_shape, dtype)


@support.over(support.ADDABLE, support.GATHER_INDEX_TYPES)
def test_values(dtype, index_type, mode, rng):
    for name, (shape, indices_shape) in SHAPES.items():
        indices, updates = draw(rng, shape, indices_shape, dtype, index_type)
        got = call(
            mode,
            tsg.scatter_nd,
            tensor(indices, index_type),
            tensor(updates, dtype),
            tensor(shape, index_type),
        )
        assert got.dtype == dtype
        same(got, oracle.scatter_nd(indices, updates, shape), name)


@pytest.mark.parametrize("dtype", support.ADDABLE, ids=lambda t: t.name)
def test_rows_of_many_widths(dtype, rng):
    """Usual widths have loops of their own."""
    for width in (2, 3, 4, 5, 8, 15, 16, 17, 32, 33, 64, 65, 150):
        shape = (9, width)
        indices, updates = draw(rng, shape, (20, 1), dtype, tf.int32)
        got = tsg.scatter_nd(tensor(indices, tf.int32), tensor(updates, dtype), shape)
        same(got, oracle.scatter_nd(indices, updates, shape), str(width))


@pytest.mark.parametrize("index_type", support.GATHER_INDEX_TYPES, ids=lambda t: t.name)
def test_values_when_no_shape_is_known(index_type, rng):
    for name, (shape, indices_shape) in SHAPES.items():
        indices, updates = draw(rng, shape, indices_shape, tf.float32, index_type)
        inputs = tensor(indices, index_type), tf.constant(updates), tensor(shape, index_type)
        same(
            call("unknown", tsg.scatter_nd, *inputs),
            oracle.scatter_nd(indices, updates, shape),
            name,
        )


@in_every_mode
@pytest.mark.parametrize("index_type", support.GATHER_INDEX_TYPES, ids=lambda t: t.name)
def test_batch_dims_of_the_raw_op(index_type, mode, rng):
    for name, (shape, indices_shape, batch_dims) in BATCHES.items():
        indices, updates = draw(rng, shape, indices_shape, tf.float32, index_type, batch_dims)
        got = call(
            mode,
            lambda i, u, s, b=batch_dims: tsg.raw_ops.MyScatterNd(
                indices=i, updates=u, shape=s, batch_dims=b
            ),
            tensor(indices, index_type),
            tf.constant(updates),
            tensor(shape, index_type),
        )
        same(got, oracle.scatter_nd(indices, updates, shape, batch_dims), name)


class TestSum:
    @in_each_mode
    @pytest.mark.parametrize("dtype", support.SMALL_FLOATS, ids=lambda t: t.name)
    def test_small_floats_are_rounded_once(self, dtype, mode, rng):
        # Rounding after each addition, 5000 ones come to 2048 in float16 and to 256 in bfloat16.
        count = {"float16": 5000, "bfloat16": 5000}.get(dtype.name, 21)
        updates = np.ones((count, 1), support.element_type(dtype))
        got = call(
            mode, tsg.scatter_nd, tf.zeros([count, 1], tf.int32), tensor(updates, dtype), [2, 1]
        )
        want = np.array([[count], [0]], np.float32).astype(support.element_type(dtype))
        same(got, want)

        indices = rng.integers(0, 3, (400, 1)).astype(np.int32)
        updates = support.numbers_of(rng, (400, 5), dtype)
        got = call(mode, tsg.scatter_nd, tf.constant(indices), tensor(updates, dtype), [3, 5])
        same(got, oracle.scatter_nd(indices, updates, (3, 5)))

    def test_integers_wrap_around(self):
        for dtype in (tf.int8, tf.uint8, tf.int16, tf.int32, tf.int64, tf.uint64):
            top = np.iinfo(dtype.as_numpy_dtype).max
            bottom = np.iinfo(dtype.as_numpy_dtype).min
            got = tsg.scatter_nd([[0], [0]], tf.constant([top, 1], dtype), [1])
            equal(got, [bottom], dtype.name)

    def test_truth_values_are_joined_by_or(self):
        got = tsg.scatter_nd([[0], [0], [1], [1], [2]], [True, True, False, True, False], [4])
        equal(got, [True, True, False, False])

    def test_strings_are_joined_in_order(self):
        got = tsg.scatter_nd([[0], [2], [0]], tf.constant(["a", "b", "c"]), [4])
        equal(got, [b"ac", b"", b"b", b""])

    def test_order_is_row_major(self):
        # In float32 the sum of these depends on the order in which they are added.
        updates = np.array([1e8, 1.0, -1e8, 1.0, 3.0], np.float32)
        for order in ([0, 1, 2, 3, 4], [1, 0, 2, 4, 3], [3, 1, 4, 0, 2]):
            want = np.float32(0)
            for update in updates[order]:
                want = np.float32(want + update)
            equal(tsg.scatter_nd(np.zeros((5, 1), int), updates[order], [1]), [want])

    @pytest.mark.parametrize(
        ("shape", "depth", "count"),
        [
            ((90_000,), 1, 100_000),
            ((300, 300), 2, 100_000),
            ((7, 33), 1, 20_000),
            ((3,), 1, 50_000),
        ],
        ids=["spread", "spread, depth 2", "few rows", "three places"],
    )
    @pytest.mark.parametrize(
        "dtype", [np.float32, np.float64, np.float16], ids=lambda t: t.__name__
    )
    def test_very_many(self, shape, depth, count, dtype, rng):
        indices = support.index_array(rng, shape[:depth], (count,), tf.int32)
        updates = rng.normal(size=(count, *shape[depth:])).astype(dtype)
        # np.add.at adds one after another, as the oracle does, and is fast enough here.
        want = np.zeros(shape, np.float32 if dtype == np.float16 else dtype)
        np.add.at(want, tuple(indices.T), updates.astype(want.dtype))
        first = tsg.scatter_nd(indices, updates, shape)
        same(first, want.astype(dtype))
        for _ in range(3):
            same(tsg.scatter_nd(indices, updates, shape), first.numpy())

    def test_places_without_update_are_zero_whatever_the_memory_held(self, rng):
        for dtype in (tf.int8, tf.float16, tf.float32, tf.complex128):
            updates = support.numbers_of(rng, (1, 7), dtype)
            for rows in (2, 100, 20_000):
                support.soil_memory(rows * 7 * dtype.size)
                want = np.zeros((rows, 7), updates.dtype)
                want[1] = updates
                same(tsg.scatter_nd([[1]], tensor(updates, dtype), [rows, 7]), want, dtype.name)


class TestPolicies:
    @in_every_mode
    @pytest.mark.parametrize("index_type", support.GATHER_INDEX_TYPES, ids=lambda t: t.name)
    def test_ignore_passes_over_bad_indices(self, index_type, mode, rng):
        for name, (shape, indices_shape) in SHAPES.items():
            if "nothing" in name:
                continue
            indices, updates = draw(rng, shape, indices_shape, tf.float32, index_type, beyond=1)
            got = call(
                mode,
                lambda i, u, s: tsg.scatter_nd(i, u, s, bad_indices_policy="IGNORE"),
                tensor(indices, index_type),
                tf.constant(updates),
                tensor(shape, index_type),
            )
            same(got, oracle.scatter_nd(indices, updates, shape, ignore=True), name)

    def test_ignore_when_every_index_is_bad(self):
        got = tsg.scatter_nd([[3], [-1]], [1.0, 2.0], [3], bad_indices_policy="IGNORE")
        equal(got, np.zeros(3))

    @in_each_mode
    @pytest.mark.parametrize("policy", ["", "DEFAULT", "ERROR", "IGNORE"])
    def test_every_policy_takes_good_indices(self, policy, mode):
        got = call(
            mode,
            lambda i, u: tsg.scatter_nd(i, u, [3], bad_indices_policy=policy),
            tf.constant([[2], [0], [2]]),
            tf.constant([1, 2, 3]),
        )
        equal(got, [2, 0, 4])


class TestInputs:
    def test_lists_arrays_and_variables(self):
        want = [0.0, 3.0, 0.0]
        equal(tsg.scatter_nd([[1], [1]], [1.0, 2.0], [3]), want)
        equal(tsg.scatter_nd(np.array([[1], [1]]), np.array([1.0, 2.0]), np.array([3])), want)
        equal(tsg.scatter_nd(tf.Variable([[1], [1]]), tf.Variable([1.0, 2.0]), (3,)), want)
        equal(tsg.scatter_nd(tf.constant([[1], [1]], tf.int64), [1.0, 2.0], [3]), want)

    def test_shape_may_be_a_tensor_shape(self):
        equal(tsg.scatter_nd([[1]], [1.0], tf.TensorShape([2])), [0.0, 1.0])

    @in_each_mode
    @pytest.mark.parametrize("index_type", support.CONVERTED_INDEX_TYPES, ids=lambda t: t.name)
    def test_other_index_types_are_converted(self, index_type, mode):
        got = call(
            mode,
            lambda i, u: tsg.scatter_nd(i, u, [3]),
            tensor([[1], [0]], index_type),
            tf.constant([5.0, 6.0]),
        )
        equal(got, [6.0, 5.0, 0.0])

    def test_name(self):
        with tf.Graph().as_default():
            got = tsg.scatter_nd([[0]], [1.0], [1], name="spread")
        assert "spread" in got.op.name


class TestLarge:
    @pytest.mark.parametrize("count", [32_768, 65_537])
    def test_int16_indices_count_past_int16(self, count):
        got = tsg.scatter_nd(
            tf.ones([count, 1], tf.int16), tf.ones([count]), tf.constant([2], tf.int16)
        )
        equal(got, [0.0, count])

    def test_more_elements_than_int32_counts(self):
        support.need_memory(3.5)
        got = tsg.scatter_nd(
            tf.constant([[2100], [3], [2100]]),
            tf.cast(tf.fill([3, 1 << 20], 2), tf.int8),
            [2101, 1 << 20],
        )
        equal(np.unique(got[2100]), [4])
        equal(np.unique(got[3]), [2])
        # Where the row would be, were its offset taken modulo 2**31.
        assert not got[52].numpy().any()

    @in_each_mode
    def test_what_does_not_fit_in_memory_is_an_error(self, mode):
        with pytest.raises(tf.errors.ResourceExhaustedError):
            call(
                mode,
                lambda i, u: tsg.scatter_nd(i, u, [1 << 30, 1 << 20]),
                tf.constant([[0]]),
                tf.zeros([1, 1 << 20]),
            )
