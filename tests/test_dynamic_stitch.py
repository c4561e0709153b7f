"""Values of dynamic_stitch: every type, index type and shape, against the plain NumPy loop."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import call, equal, in_each_mode, in_every_mode, same, tensor

# name: shapes of the index tensors, shape of a row
SHAPES = {
    "one scalar": ([()], ()),
    "scalars": ([(), ()], ()),
    "vector of scalars": ([(7,)], ()),
    "two vectors": ([(4,), (3,)], (3,)),
    "unequal ranks": ([(), (2,), (2, 2)], (2,)),
    "rank 3 indices": ([(2, 1, 3), (2,)], (2, 1)),
    "wide rows": ([(7,), (9,)], (5, 7)),
    "one empty list": ([(0,), (3,)], (2,)),
    "all empty": ([(0,), (0, 2)], (3,)),
    "rows of width 0": ([(2,), (1,)], (0,)),
    "rows of width 0 inside": ([(3,)], (2, 0, 3)),
    "rank 7 rows": ([(2, 1)], (1, 2, 1, 3, 1, 2, 1)),
}


def draw(rng, index_shapes, row_shape, dtype, index_type, high=9):
    """Random stitch inputs in which rows repeat and rows are missing."""
    kind = support.element_type(index_type)
    indices = [np.asarray(rng.integers(0, high, s), kind) for s in index_shapes]
    data = [support.array_of(rng, (*s, *row_shape), dtype) for s in index_shapes]
    return indices, data


def constants(arrays, dtype):
    return [tensor(a, dtype) for a in arrays]


@support.over(support.ALL_TYPES, support.STITCH_INDEX_TYPES)
def test_values(dtype, index_type, mode, rng):
    for name, (index_shapes, row_shape) in SHAPES.items():
        indices, data = draw(rng, index_shapes, row_shape, dtype, index_type)
        merged = call(
            mode, tsg.dynamic_stitch, constants(indices, index_type), constants(data, dtype)
        )
        assert merged.dtype == dtype
        same(merged, oracle.stitch(indices, data), name)


@pytest.mark.parametrize("index_type", support.STITCH_INDEX_TYPES, ids=lambda t: t.name)
def test_values_when_no_shape_is_known(index_type, rng):
    for name, (index_shapes, row_shape) in SHAPES.items():
        indices, data = draw(rng, index_shapes, row_shape, tf.float32, index_type)
        inputs = constants(indices, index_type), constants(data, tf.float32)
        same(call("unknown", tsg.dynamic_stitch, *inputs), oracle.stitch(indices, data), name)


@in_each_mode
def test_reference_page_example(mode):
    indices = [tf.constant(6), tf.constant([4, 1]), tf.constant([[5, 2], [0, 3]])]
    data = [
        tf.constant([61, 62]),
        tf.constant([[41, 42], [11, 12]]),
        tf.constant([[[51, 52], [21, 22]], [[1, 2], [31, 32]]]),
    ]
    merged = call(mode, tsg.dynamic_stitch, indices, data)
    equal(merged, [[1, 2], [11, 12], [21, 22], [31, 32], [41, 42], [51, 52], [61, 62]])
    # The greatest index is 6 and there are 7 rows: the page's shape formula is one short.
    assert merged.shape == (7, 2)


@in_each_mode
def test_reference_page_formulas(mode):
    scalar = call(
        mode,
        tsg.dynamic_stitch,
        [tf.constant(1), tf.constant(0)],
        [tf.constant([5.0, 6.0]), tf.constant([7.0, 8.0])],
    )
    equal(scalar, [[7.0, 8.0], [5.0, 6.0]])
    vector = call(mode, tsg.dynamic_stitch, [tf.constant([2, 0])], [tf.constant([[1.0], [2.0]])])
    equal(vector, [[2.0], [0.0], [1.0]])


@in_each_mode
def test_reference_page_partition_example(mode):
    def increment_where_valid(x):
        condition = tf.cast(tf.not_equal(x, tf.constant(-1.0)), tf.int32)
        parts = tf.dynamic_partition(x, condition, 2)
        parts[1] = parts[1] + 1.0
        places = tf.dynamic_partition(tf.range(tf.shape(x)[0]), condition, 2)
        return tsg.dynamic_stitch(places, parts)

    result = call(mode, increment_where_valid, tf.constant([0.1, -1.0, 5.2, 4.3, -1.0, 7.4]))
    support.close(result, [1.1, -1.0, 6.2, 5.3, -1.0, 8.4])


def test_reference_page_last_writer():
    # (0, 0) < (0, 2) in one list, (0, 1) < (1, 0) across lists.
    equal(tsg.dynamic_stitch([[0, 1, 0], [1]], [[1, 2, 3], [4]]), [3, 4])


class TestLastWriter:
    def test_wins_in_a_list_and_across_lists(self):
        indices = [[0, 1, 0], [1], [2, 2]]
        equal(tsg.dynamic_stitch(indices, [[1.0, 2.0, 3.0], [4.0], [5.0, 6.0]]), [3.0, 4.0, 6.0])

    def test_order_inside_a_matrix_of_indices_is_row_major(self):
        index = [[0, 1, 2], [1, 2, 0], [2, 2, 1]]
        data = np.arange(9).reshape(3, 3)
        equal(tsg.dynamic_stitch([index], [data]), [5, 8, 7])

    @pytest.mark.parametrize("width", [1, 2, 3, 8, 40])
    def test_wins_among_very_many(self, width, rng):
        indices = [rng.integers(0, 500, 20_000).astype(np.int32) for _ in range(3)]
        data = [rng.random((20_000, width), np.float32) for _ in range(3)]
        want = oracle.stitch(indices, data)
        for _ in range(3):
            same(tsg.dynamic_stitch(indices, data), want)

    def test_a_row_is_never_a_mix_of_two_writers(self):
        width = 1 << 21
        first, last = tf.fill([1, width], 1.0), tf.fill([1, width], 2.0)
        for _ in range(20):
            equal(np.unique(tsg.dynamic_stitch([[0], [0]], [first, last]).numpy()), [2.0])

    def test_every_index_equal(self):
        data = np.arange(50_000)
        equal(tsg.dynamic_stitch([np.full(50_000, 3)], [data]), [0, 0, 0, 49_999])


class TestMissingRows:
    @pytest.mark.parametrize("dtype", support.FIXED_WIDTH, ids=lambda t: t.name)
    def test_are_zero_whatever_the_memory_held(self, dtype):
        row = support.array_of(np.random.default_rng(1), (1, 3), dtype)
        for rows in (2, 17, 1024, 40_000):
            want = np.zeros((rows, 3), support.element_type(dtype))
            want[-1] = row
            for _ in range(2):
                support.soil_memory(rows * 3 * dtype.size)
                same(tsg.dynamic_stitch([[rows - 1]], [tensor(row, dtype)]), want, f"{rows} rows")

    def test_are_zero_between_rows_that_are_written(self, rng):
        kept = np.flatnonzero(rng.random(30_000) < 0.5)
        data = rng.random((kept.size, 17), np.float32)
        for _ in range(3):
            support.soil_memory((int(kept[-1]) + 1) * 17 * 4)
            same(tsg.dynamic_stitch([kept], [data]), oracle.stitch([kept], [data]))

    def test_are_empty_strings(self):
        equal(tsg.dynamic_stitch([[2]], [tf.constant(["a"])]), [b"", b"", b"a"])
        equal(tsg.dynamic_stitch([3], [["a", "b"]]), [[b"", b""]] * 3 + [[b"a", b"b"]])


class TestOtherTypes:
    @in_each_mode
    def test_variant(self, mode):
        def list_lengths(values):
            lists = tf.stack(
                [
                    tf.raw_ops.TensorListFromTensor(
                        tensor=values[:k], element_shape=tf.constant([], tf.int32)
                    )
                    for k in (1, 2, 3)
                ]
            )
            merged = tsg.dynamic_stitch([[3, 0], 1], [lists[:2], lists[2]])
            return tf.stack(
                [tf.raw_ops.TensorListLength(input_handle=merged[k]) for k in (0, 1, 3)]
            ), tf.shape(merged)

        lengths, shape = call(mode, list_lengths, tf.constant([1.0, 2.0, 3.0]))
        equal(lengths, [2, 3, 1])
        equal(shape, [4])

    def test_variant_row_that_no_index_names(self):
        held = tf.raw_ops.TensorListFromTensor(
            tensor=tf.constant([1.0]), element_shape=tf.constant([], tf.int32)
        )
        merged = tsg.dynamic_stitch([[1]], [tf.stack([held])])
        with pytest.raises(tf.errors.InvalidArgumentError, match="not a list"):
            tf.raw_ops.TensorListLength(input_handle=merged[0])

    @in_each_mode
    def test_resource(self, mode):
        variables = [tf.Variable(float(k)) for k in range(3)]

        def read(which):
            handles = tf.stack([v.handle for v in variables])
            merged = tsg.raw_ops.MyDynamicStitch(indices=[which], data=[handles])
            return [
                tf.raw_ops.ReadVariableOp(resource=merged[k], dtype=tf.float32) for k in range(3)
            ]

        equal(tf.stack(call(mode, read, tf.constant([2, 0, 1]))), [1.0, 2.0, 0.0])


class TestInputs:
    def test_lists_arrays_and_variables(self):
        want = [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
        equal(tsg.dynamic_stitch([[2], [0]], [[[1.0, 2.0]], [[3.0, 4.0]]]), want)
        equal(tsg.dynamic_stitch([np.array([2, 0])], [np.array([[1.0, 2.0], [3.0, 4.0]])]), want)
        rows = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        equal(tsg.dynamic_stitch([tf.Variable([2, 0])], [rows]), want)

    @in_each_mode
    @pytest.mark.parametrize("index_type", support.CONVERTED_INDEX_TYPES, ids=lambda t: t.name)
    def test_other_index_types_are_converted(self, index_type, mode):
        indices = [tensor([3, 0], index_type), tensor(1, index_type)]
        data = [tf.constant([1.0, 2.0]), tf.constant(3.0)]
        equal(call(mode, tsg.dynamic_stitch, indices, data), [2.0, 3.0, 0.0, 1.0])

    def test_large_unsigned_indices_keep_their_value(self):
        far = tensor([40_000], tf.uint16)
        assert tsg.dynamic_stitch([far], [tensor([1], tf.int8)]).shape == (40_001,)

    def test_int64_indices_from_partition_and_where(self):
        mask = tf.constant([0, 1, 0])
        data = tf.dynamic_partition(tf.constant([1.0, 2.0, 3.0]), mask, 2)
        ranges = tf.dynamic_partition(tf.range(3, dtype=tf.int64), mask, 2)
        equal(tsg.dynamic_stitch(ranges, data), [1.0, 2.0, 3.0])
        places = [tf.where(mask == 0)[:, 0], tf.where(mask == 1)[:, 0]]
        equal(tsg.dynamic_stitch(places, data), [1.0, 2.0, 3.0])

    def test_hundreds_of_shards(self):
        n = 700
        indices = [tf.constant([k, n + k]) for k in range(n)]
        data = [tf.constant([[float(k)], [float(n + k)]]) for k in range(n)]
        equal(tsg.dynamic_stitch(indices, data), np.arange(2.0 * n)[:, None])

    def test_name(self):
        with tf.Graph().as_default():
            merged = tsg.dynamic_stitch([[0]], [[1.0]], name="merge_shards")
        assert "merge_shards" in merged.op.name

    @in_each_mode
    def test_a_batch_of_nothing(self, mode):
        def merge(x):
            assignment = tf.zeros(tf.shape(x)[:1], tf.int32)
            places = tf.dynamic_partition(tf.range(tf.shape(x)[0]), assignment, 2)
            return tsg.dynamic_stitch(
                places, [2 * part for part in tf.dynamic_partition(x, assignment, 2)]
            )

        assert call(mode, merge, tf.zeros([0, 2])).shape == (0, 2)


class TestSized:
    @support.over((tf.float32, tf.int8, tf.string, tf.complex128), support.STITCH_INDEX_TYPES)
    def test_values(self, dtype, index_type, mode, rng):
        for name, (index_shapes, row_shape) in SHAPES.items():
            indices, data = draw(rng, index_shapes, row_shape, dtype, index_type)
            for size in (9, 12):
                merged = call(
                    mode,
                    lambda n, i, d: tsg.dynamic_stitch(i, d, size=n),
                    tensor(size, index_type),
                    constants(indices, index_type),
                    constants(data, dtype),
                )
                same(merged, oracle.stitch(indices, data, size), f"{name}, size {size}")

    def test_size_may_be_a_number_or_a_tensor_of_another_type(self):
        for size in (4, np.int64(4), tf.constant(4), tf.constant(4, tf.int64)):
            for kind in (np.int32, np.int64):
                merged = tsg.dynamic_stitch([np.array([1], kind)], [[5.0]], size=size)
                equal(merged, [0.0, 5.0, 0.0, 0.0], f"{size!r} {kind.__name__}")

    def test_no_rows(self):
        assert tsg.dynamic_stitch([np.zeros(0, int)], [np.zeros((0, 3))], size=0).shape == (0, 3)
        equal(tsg.dynamic_stitch([np.zeros(0, int)], [np.zeros((0, 2))], size=2), np.zeros((2, 2)))

    def test_rows_past_the_last_index_are_zero(self):
        for dtype in (tf.float32, tf.int8, tf.bfloat16):
            support.soil_memory(50_000 * dtype.size)
            merged = tsg.dynamic_stitch([[1]], [tensor([1], dtype)], size=50_000).numpy()
            assert np.flatnonzero(merged).tolist() == [1]

    @in_every_mode
    def test_ignore_passes_over_bad_indices(self, mode):
        def merge(size, index, rows):
            return tsg.raw_ops.MyDynamicStitchSized(
                size=size, indices=[index], data=[rows], bad_indices_policy="IGNORE"
            )

        inputs = tf.constant(3), tf.constant([5, 1, -1, 3, 0]), tf.constant([1, 2, 3, 4, 5])
        equal(call(mode, merge, *inputs), [5, 2, 0])


class TestLarge:
    """Sizes and offsets are 64-bit."""

    # Row widths in bytes on both sides of every power of two that a copy may be specialised for.
    @pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 12, 16, 17, 31, 64, 100, 256, 1000, 4096])
    def test_many_rows_of_each_width(self, width, rng):
        rows = min(60_000, 12_000_000 // width)
        order = rng.permutation(rows)
        parts = np.split(order, [rows // 3, rows // 2])
        data = [support.array_of(rng, (p.size, width), tf.uint8) for p in parts]
        want = np.empty((rows, width), np.uint8)
        for part, rows_of_part in zip(parts, data, strict=True):
            want[part] = rows_of_part
        same(tsg.dynamic_stitch(parts, data), want)

    @pytest.mark.parametrize("rows", [5, 4000])
    def test_many_strings(self, rows, rng):
        order = rng.permutation(rows)
        data = support.array_of(rng, (rows, 3), tf.string)
        want = np.empty_like(data)
        want[order] = data
        same(tsg.dynamic_stitch([order], [tf.constant(data)]), want)

    def test_greatest_int32_index(self):
        support.need_memory(3)
        merged = tsg.dynamic_stitch([[2**31 - 1]], [tensor([7], tf.int8)])
        assert merged.shape == (2**31,)
        equal(merged[-3:], [0, 0, 7])

    def test_more_elements_than_int32_counts(self):
        support.need_memory(4)
        rows = tf.fill([1, 1 << 20], tensor(3, tf.int8))
        merged = tsg.dynamic_stitch([[2100]], [rows])
        assert merged.shape == (2101, 1 << 20)
        equal(np.unique(merged[2100]), [3])
        # Where the row would be, were its offset taken modulo 2**31.
        assert not merged[52].numpy().any() and not merged[2099].numpy().any()

    @in_each_mode
    def test_what_does_not_fit_in_memory_is_an_error(self, mode):
        for width in (1024, 1 << 24):
            with pytest.raises(tf.errors.ResourceExhaustedError):
                call(
                    mode,
                    tsg.dynamic_stitch,
                    [tf.constant([2_000_000_000])],
                    [tf.zeros([1, width])],
                )

    @in_each_mode
    def test_int64_index_beyond_any_memory_is_an_error(self, mode):
        for far in (2**40, 2**62, 2**63 - 1):
            with pytest.raises((tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError)):
                call(
                    mode,
                    tsg.dynamic_stitch,
                    [tf.constant([far], tf.int64)],
                    [tf.zeros([1, 1024])],
                )
