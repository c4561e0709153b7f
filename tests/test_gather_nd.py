"""Values of gather_nd: types, index types, depths, batches and policies, against NumPy."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import call, equal, in_each_mode, same, tensor

# name: shape of params, shape of indices
SHAPES = {
    "scalars of a vector": ((5,), (7, 1)),
    "scalars of a matrix": ((3, 4), (5, 2)),
    "rows of a matrix": ((3, 4), (5, 1)),
    "depth 0": ((3, 4), (3, 0)),
    "depth 0, scalar params": ((), (3, 0)),
    "vector of indices, one scalar": ((3, 4), (2,)),
    "vector of indices, one row": ((3, 4), (1,)),
    "vector of indices, depth 0": ((3, 4), (0,)),
    "matrix of index vectors": ((3, 4, 5), (2, 3, 2)),
    "rank 5 indices": ((4, 2), (1, 2, 1, 3, 1)),
    "depth 3 of rank 4": ((2, 3, 2, 5), (6, 3)),
    "no index vectors": ((3, 2), (0, 1)),
    "no index vectors inside": ((3, 2), (4, 0, 2)),
    "nothing asked of nothing": ((0, 5), (0, 1)),
    "nothing asked of nothing, depth 2": ((0, 5), (0, 2)),
    "empty slices": ((2, 0, 5), (1, 1)),
    "empty slices at the end": ((2, 3, 0), (2, 2)),
    "rank 9, depth 8": ((2,) * 9, (5, 8)),
    "rank 10, depth 10": ((2,) * 10, (6, 10)),
    "rank 10, depth 2": ((2,) * 10, (2, 2)),
}

# name: shape of params, shape of indices, batch_dims
BATCHES = {
    "one scalar each": ((4, 3), (4, 1), 1),
    "rows": ((2, 3, 4), (2, 5, 1), 1),
    "scalars, depth 2": ((2, 3, 4), (2, 2), 1),
    "two batch dims": ((3, 4, 5, 6), (3, 4, 7, 2), 2),
    "two batch dims, slices": ((2, 3, 4, 2), (2, 3, 1, 2, 1), 2),
    "depth 0": ((2, 3), (2, 2, 0), 1),
    "depth 0, all batch": ((2, 3), (2, 3, 0), 2),
    "rank 9, 7 batch dims": ((2,) * 9, ((2,) * 7) + (1,), 7),
    "rank 10, 3 batch dims, depth 6": ((2,) * 10, (2, 2, 2, 4, 6), 3),
    "no batch": ((0, 3), (0, 1), 1),
    "empty slices": ((2, 3, 0), (2, 4, 1), 1),
    "no indices": ((2, 3), (2, 0, 1), 1),
    "nothing asked of nothing": ((2, 0), (2, 0, 1), 1),
}


def draw(rng, params_shape, indices_shape, dtype, index_type, batch_dims=0):
    """Random params and, in range, indices."""
    limits = params_shape[batch_dims : batch_dims + indices_shape[-1]]
    outer = indices_shape[:-1]
    # With no vectors asked for, a limit of 0 is not an obstacle.
    limits = [max(1, n) for n in limits] if 0 in outer else limits
    indices = support.index_array(rng, limits, outer, index_type)
    return support.array_of(rng, params_shape, dtype), indices


@support.over(support.ALL_TYPES, support.GATHER_INDEX_TYPES)
def test_values(dtype, index_type, mode, rng):
    for name, (params_shape, indices_shape) in SHAPES.items():
        params, indices = draw(rng, params_shape, indices_shape, dtype, index_type)
        got = call(mode, tsg.gather_nd, tensor(params, dtype), tensor(indices, index_type))
        assert got.dtype == dtype
        same(got, oracle.gather_nd(params, indices), name)


@support.over(
    (tf.int8, tf.float16, tf.float32, tf.float64, tf.complex128, tf.string),
    support.GATHER_INDEX_TYPES,
    (*support.MODES, "unknown"),
)
def test_batch_dims(dtype, index_type, mode, rng):
    for name, (params_shape, indices_shape, batch_dims) in BATCHES.items():
        params, indices = draw(rng, params_shape, indices_shape, dtype, index_type, batch_dims)
        got = call(
            mode,
            lambda p, i, b=batch_dims: tsg.gather_nd(p, i, batch_dims=b),
            tensor(params, dtype),
            tensor(indices, index_type),
        )
        same(got, oracle.gather_nd(params, indices, batch_dims), name)


@pytest.mark.parametrize("index_type", support.GATHER_INDEX_TYPES, ids=lambda t: t.name)
def test_values_when_no_shape_is_known(index_type, rng):
    for name, (params_shape, indices_shape) in SHAPES.items():
        params, indices = draw(rng, params_shape, indices_shape, tf.float32, index_type)
        got = call(
            "unknown", tsg.gather_nd, tensor(params, tf.float32), tensor(indices, index_type)
        )
        same(got, oracle.gather_nd(params, indices), name)


# Every example of the reference pages: params, indices, batch_dims, output.
MATRIX = (("a", "b"), ("c", "d"))
CUBE = ((("a0", "b0"), ("c0", "d0")), (("a1", "b1"), ("c1", "d1")))
EXAMPLES = {
    "scalars": (MATRIX, [[0, 0], [1, 1]], 0, ["a", "d"]),
    "slices": (MATRIX, [[1], [0]], 0, [["c", "d"], ["a", "b"]]),
    "slices of width 3": (
        (("a", "b", "c"), ("d", "e", "f")),
        [[1], [0]],
        0,
        [["d", "e", "f"], ["a", "b", "c"]],
    ),
    "3-tensor, matrix": (CUBE, [[1]], 0, [[["a1", "b1"], ["c1", "d1"]]]),
    "3-tensor, rows": (CUBE, [[0, 1], [1, 0]], 0, [["c0", "d0"], ["a1", "b1"]]),
    "3-tensor, scalars": (CUBE, [[0, 0, 1], [1, 0, 1]], 0, ["b0", "b1"]),
    "batched, matrix": (MATRIX, [[[0, 0]], [[0, 1]]], 0, [["a"], ["b"]]),
    "batched slices, matrix": (MATRIX, [[[1]], [[0]]], 0, [[["c", "d"]], [["a", "b"]]]),
    "batched, 3-tensor, matrices": (
        CUBE,
        [[[1]], [[0]]],
        0,
        [[[["a1", "b1"], ["c1", "d1"]]], [[["a0", "b0"], ["c0", "d0"]]]],
    ),
    "batched, 3-tensor, rows": (
        CUBE,
        [[[0, 1], [1, 0]], [[0, 0], [1, 1]]],
        0,
        [[["c0", "d0"], ["a1", "b1"]], [["a0", "b0"], ["c1", "d1"]]],
    ),
    "batched, 3-tensor, scalars": (
        CUBE,
        [[[0, 0, 1], [1, 0, 1]], [[0, 1, 1], [1, 1, 0]]],
        0,
        [["b0", "b1"], ["d0", "c1"]],
    ),
    "batch_dims 1, rows": (CUBE, [[1], [0]], 1, [["c0", "d0"], ["a1", "b1"]]),
    "batch_dims 1, one row each": (CUBE, [[[1]], [[0]]], 1, [[["c0", "d0"]], [["a1", "b1"]]]),
    "batch_dims 1, scalars": (CUBE, [[[1, 0]], [[0, 1]]], 1, [["c0"], ["b1"]]),
}


class TestReferencePages:
    """Every example of tf.gather_nd and of the C++ class ops::GatherNd."""

    @in_each_mode
    @pytest.mark.parametrize("example", EXAMPLES)
    def test_example(self, example, mode):
        params, indices, batch_dims, output = EXAMPLES[example]
        got = call(
            mode,
            lambda p, i: tsg.gather_nd(p, i, batch_dims=batch_dims),
            tf.constant(params),
            tf.constant(indices),
        )
        equal(got, np.array(output))

    def test_location_in_the_batch_by_hand(self):
        indices = [[0, 1], [1, 0], [2, 4], [3, 2], [4, 1]]
        assert tsg.gather_nd(tf.zeros([5, 7, 3]), indices).shape == (5, 3)

    def test_location_in_the_batch_by_batch_dims(self):
        params = tf.random.stateless_normal([5, 7, 3], seed=(1, 2))
        indices = [[1], [0], [4], [2], [1]]
        by_hand = [[0, 1], [1, 0], [2, 4], [3, 2], [4, 1]]
        got = tsg.gather_nd(params, indices, batch_dims=1)
        assert got.shape == (5, 3)
        same(got, tsg.gather_nd(params, by_hand).numpy())

    def test_shape_formula_of_batches(self):
        params, indices, batch_dims = tf.zeros([5, 7, 3]), tf.zeros([5, 1], tf.int32), 1
        batch, outer = indices.shape[:batch_dims], indices.shape[batch_dims:-1]
        inner = params.shape[batch_dims + indices.shape[-1] :]
        got = tsg.gather_nd(params, indices, batch_dims=batch_dims)
        assert got.shape == batch + outer + inner == (5, 3)


class TestOtherTypes:
    @in_each_mode
    def test_variant(self, mode):
        def lengths(values):
            lists = tf.stack(
                [
                    tf.raw_ops.TensorListFromTensor(
                        tensor=values[:k], element_shape=tf.constant([], tf.int32)
                    )
                    for k in (1, 2, 3)
                ]
            )
            picked = tsg.gather_nd(lists, [[2], [0]])
            return [tf.raw_ops.TensorListLength(input_handle=picked[k]) for k in (0, 1)]

        equal(tf.stack(call(mode, lengths, tf.constant([1.0, 2.0, 3.0]))), [3, 1])

    @in_each_mode
    def test_resource(self, mode):
        variables = [tf.Variable(float(k)) for k in range(3)]

        def read(index):
            handles = tf.stack([v.handle for v in variables])
            picked = tsg.raw_ops.MyGatherNd(params=handles, indices=index)
            return tf.raw_ops.ReadVariableOp(resource=picked, dtype=tf.float32)

        equal(call(mode, read, tf.constant([2])), 2.0)


class TestInputs:
    def test_lists_and_arrays(self):
        params = np.arange(24).reshape(2, 3, 4)
        indices = np.array([[1, 2, 3], [0, 0, 1]])
        want = params[tuple(indices.T)]
        same(tsg.gather_nd(params, indices), want)
        equal(tsg.gather_nd(params.tolist(), indices.tolist(), name="lookup"), want)

    def test_variables(self):
        table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        equal(tsg.gather_nd(table, tf.Variable([[1, 0]])), [3.0])
        equal(tf.function(lambda: tsg.gather_nd(table, [[1]]))(), [[3.0, 4.0]])

    @in_each_mode
    @pytest.mark.parametrize("index_type", support.CONVERTED_INDEX_TYPES, ids=lambda t: t.name)
    def test_other_index_types_are_converted(self, index_type, mode):
        indices = tensor([[1], [0]], index_type)
        equal(call(mode, tsg.gather_nd, tf.constant([5.0, 6.0]), indices), [6.0, 5.0])

    def test_large_unsigned_indices_keep_their_value(self):
        params = tf.range(60_000)
        for index_type in (tf.uint16, tf.uint32, tf.uint64):
            equal(tsg.gather_nd(params, tensor([[50_000]], index_type)), [50_000])
        # 2**32 is 0 in 32 bits, 2**64 - 1 is -1 in 64 bits: neither may wrap into range.
        for index_type, value in ((tf.uint64, 2**32), (tf.uint64, 2**64 - 1), (tf.uint32, 2**31)):
            with pytest.raises(support.ARGUMENT_ERRORS):
                tsg.gather_nd(params, tf.constant([[value]], index_type))

    def test_ragged_params(self):
        ragged = tf.ragged.constant([[1, 2], [3]])
        equal(tsg.gather_nd(ragged, [[0, 1], [1, 0]]), [2, 3])
        assert tsg.gather_nd(ragged, [[1], [0]]).to_list() == [[3], [1, 2]]

    @pytest.mark.parametrize(
        "batch_dims",
        [1, np.int64(1), np.int32(1), tf.constant(1), tf.constant(1, tf.int64), np.array(1)],
        ids=["int", "int64", "int32", "tensor", "int64 tensor", "array"],
    )
    def test_batch_dims_may_be_any_integer_scalar(self, batch_dims):
        params, indices = tf.constant([[1, 2], [3, 4]]), tf.constant([[1], [0]])
        equal(tsg.gather_nd(params, indices, batch_dims=batch_dims), [2, 3])

    def test_name(self):
        with tf.Graph().as_default():
            got = tsg.gather_nd([1.0], [[0]], name="lookup")
        assert "lookup" in got.op.name


class TestPolicies:
    PARAMS = ((1, 2), (3, 4), (5, 6))

    @support.over(
        (tf.int8, tf.float32, tf.complex128, tf.string),
        support.GATHER_INDEX_TYPES,
        (*support.MODES, "unknown"),
    )
    def test_ignore_gives_zeros(self, dtype, index_type, mode, rng):
        for params_shape, depth, batch_dims in (
            ((4, 3), 1, 0),
            ((4, 3), 2, 0),
            ((5, 4, 3), 2, 0),
            ((6, 4, 3), 1, 1),
            ((2,) * 9, 9, 0),
        ):
            outer = (*params_shape[:batch_dims], 40)
            limits = params_shape[batch_dims : batch_dims + depth]
            indices = support.index_array(rng, [n + 2 for n in limits], outer, index_type) - 1
            params = support.array_of(rng, params_shape, dtype)
            got = call(
                mode,
                lambda p, i, b=batch_dims: tsg.gather_nd(
                    p, i, batch_dims=b, bad_indices_policy="IGNORE"
                ),
                tensor(params, dtype),
                tensor(indices, index_type),
            )
            same(got, oracle.gather_nd(params, indices, batch_dims, ignore=True), f"depth {depth}")

    def test_ignore_gives_zeros_whatever_the_memory_held(self, rng):
        params = rng.random((50, 16), np.float32) + 1
        indices = rng.integers(-50, 100, (20_000, 1))
        for _ in range(3):
            support.soil_memory(20_000 * 64)
            got = tsg.gather_nd(params, indices, bad_indices_policy="IGNORE")
            same(got, oracle.gather_nd(params, indices, ignore=True))

    def test_ignore_when_every_index_is_bad(self):
        got = tsg.gather_nd(tf.ones([3, 2]), [[3], [-1]], bad_indices_policy="IGNORE")
        equal(got, np.zeros((2, 2)))
        got = tsg.gather_nd(tf.constant(["a", "b"]), [[1], [7]], bad_indices_policy="IGNORE")
        equal(got, [b"b", b""])

    def test_ignore_when_params_are_empty(self):
        got = tsg.gather_nd(tf.zeros([0, 2]), [[0], [1]], bad_indices_policy="IGNORE")
        equal(got, np.zeros((2, 2)))

    @in_each_mode
    @pytest.mark.parametrize("policy", ["", "DEFAULT", "ERROR", "IGNORE"])
    def test_every_policy_takes_good_indices(self, policy, mode):
        got = call(
            mode,
            lambda p, i: tsg.gather_nd(p, i, bad_indices_policy=policy),
            tf.constant(self.PARAMS),
            tf.constant([[2, 1], [0, 0]]),
        )
        equal(got, [6, 1])


class TestLarge:
    """Sizes and offsets are 64-bit whatever the index type."""

    @pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 12, 16, 17, 31, 64, 100, 256, 1000, 4096])
    def test_many_rows_of_each_width(self, width, rng):
        rows = 30_000 if width <= 256 else 3000
        params = support.array_of(rng, (1000, width), tf.uint8)
        index = rng.integers(0, 1000, (rows, 1)).astype(np.int32)
        same(tsg.gather_nd(params, index), params[index[:, 0]])

    @pytest.mark.parametrize("depth", range(1, 11))
    def test_many_rows_of_each_depth(self, depth, rng):
        params = support.array_of(rng, (3,) * 10, tf.int32)
        index = rng.integers(0, 3, (20_000 if depth > 4 else 200, depth)).astype(np.int32)
        same(tsg.gather_nd(params, index), params[tuple(index.T)])

    def test_many_strings(self, rng):
        params = support.array_of(rng, (300, 2), tf.string)
        index = rng.integers(0, 300, (6000, 1))
        same(tsg.gather_nd(tf.constant(params), index), params[index[:, 0]])

    def test_many_batches(self, rng):
        params = rng.random((500, 40, 3), np.float32)
        index = rng.integers(0, 40, (500, 30, 1)).astype(np.int32)
        want = np.take_along_axis(params, index, axis=1)
        same(tsg.gather_nd(params, index, batch_dims=1), want)

    @pytest.mark.parametrize("count", [32_767, 32_768, 40_000, 65_535, 65_536, 65_537, 200_000])
    def test_int16_indices_count_past_int16(self, count):
        support.soil_memory(4 * count)
        got = tsg.gather_nd(tf.constant([5.0, 6.0]), tf.ones([count, 1], tf.int16))
        assert got.shape == (count,)
        equal(np.unique(got), [6.0])

    def test_int16_indices_into_more_rows_than_int16(self):
        params = tf.range(40_000)
        index = tf.constant([[0], [32_767]], tf.int16)
        equal(tsg.gather_nd(params, index), [0, 32_767])
        with support.fails("[-1]"):
            tsg.gather_nd(params, tf.constant([[-1]], tf.int16))

    def test_int32_indices_into_more_elements_than_int32(self):
        array, params = support.zeros_untouched([3, 32_768, 32_769])
        array[2, 32_767, 32_768], array[1, 32_767], array[0, 0, 0] = 5, 7, 3
        index = tf.constant([[2, 32_767, 32_768], [0, 0, 0], [2, 0, 0], [1, 32_767, 3]])
        equal(tsg.gather_nd(params, index), [5, 3, 0, 7])
        row = tsg.gather_nd(params, tf.constant([[1, 32_767]]))
        same(row, np.full((1, 32_769), 7, np.int8))

    def test_more_elements_than_int32_counts(self):
        support.need_memory(4)
        params = tf.reshape(tf.cast(tf.range(70_000) % 100, tf.int8), [1, 70_000])
        got = tsg.gather_nd(params, tf.zeros([32_768, 1], tf.int32))
        assert got.shape == (32_768, 70_000)
        for row in (0, 30_678, 30_679, 32_767):
            same(got[row], params[0].numpy(), f"row {row}")

    @in_each_mode
    def test_what_does_not_fit_in_memory_is_an_error(self, mode):
        params, index = tf.zeros([1, 1 << 20]), tf.zeros([1 << 20, 1], tf.int32)
        with pytest.raises(tf.errors.ResourceExhaustedError):
            call(mode, tsg.gather_nd, params, index)
