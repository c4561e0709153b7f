"""Gradients: exact for the stitch, sums for gather and scatter; numeric, second order, forward."""

from __future__ import annotations

import warnings

import numpy as np
import oracle
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import call, close, equal, gradients, in_each_mode, same, tensor, to_numpy

raw = tsg.raw_ops


def derived(mode, fn, inputs, upstream):
    """The gradients of ``fn`` by its tensor inputs, taken inside or outside a function."""

    def run(arguments, upstream):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            result = fn(*arguments)
        found = tape.gradient(result, arguments, output_gradients=upstream)
        return [tf.convert_to_tensor(g) for g in found]

    return call(mode, run, list(inputs), upstream)


def check_numeric(fn, inputs, delta=1e-3, tolerance=1e-6):
    """Holds the gradient of ``fn`` against differences, in float64."""
    theory, numeric = tf.test.compute_gradient(fn, inputs, delta=delta)
    for index, (t, n) in enumerate(zip(theory, numeric, strict=True)):
        close(t, n, tolerance, tolerance, f"input {index}")


class TestStitch:
    SHAPES = (
        ([(5,)], ()),
        ([(4,), (3,)], (3,)),
        ([(), (2,), (2, 2)], (2,)),
        ([(7,), (0,), (9,)], (5, 2)),
        ([(2,), (1,)], (0,)),
        ([(0,), (0, 2)], (3,)),
    )

    @support.over(support.DIFFERENTIABLE, support.STITCH_INDEX_TYPES, (*support.MODES, "unknown"))
    def test_exact_with_repeated_indices(self, dtype, index_type, mode, rng):
        for index_shapes, row_shape in self.SHAPES:
            kind = support.element_type(index_type)
            indices = [np.asarray(rng.integers(0, 6, s), kind) for s in index_shapes]
            data = [support.numbers_of(rng, (*s, *row_shape), dtype) for s in index_shapes]
            upstream = support.numbers_of(rng, oracle.stitch(indices, data).shape, dtype)
            got = derived(
                mode,
                lambda *d, i=indices, t=index_type: tsg.dynamic_stitch(
                    [tensor(k, t) for k in i], list(d)
                ),
                [tensor(d, dtype) for d in data],
                tensor(upstream, dtype),
            )
            want = oracle.stitch_gradient(indices, upstream)
            for m, (g, w) in enumerate(zip(got, want, strict=True)):
                same(g, w, f"data[{m}] of {index_shapes} {row_shape}")

    def test_overwritten_row_receives_nothing(self):
        x, y = tf.constant([[1.0, 2.0, 3.0]]), tf.constant([[4.0, 5.0, 6.0]])
        of_x, of_y = gradients(lambda a, b: tsg.dynamic_stitch([[0], [0]], [a, b]), [x, y])
        equal(of_x, np.zeros((1, 3)))
        equal(of_y, np.ones((1, 3)))

    def test_permutation_with_gaps(self):
        x, y = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([5.0, 6.0])
        upstream = tf.reshape(tf.range(10.0), [5, 2])
        of_x, of_y = gradients(
            lambda a, b: tsg.dynamic_stitch([[4, 0], 2], [a, b]), [x, y], upstream
        )
        equal(of_x, [[8.0, 9.0], [0.0, 1.0]])
        equal(of_y, [4.0, 5.0])

    def test_very_many(self, rng):
        indices = [rng.integers(0, 20_000, n).astype(np.int32) for n in (30_000, 5000, 20_000)]
        data = [np.zeros((i.size, 7), np.float32) for i in indices]
        rows = max(int(i.max()) for i in indices) + 1
        upstream = rng.random((rows, 7), np.float32)
        got = gradients(lambda *d: tsg.dynamic_stitch(indices, list(d)), data, upstream)
        for g, w in zip(got, oracle.stitch_gradient(indices, upstream), strict=True):
            same(g, w)

    def test_numeric(self, rng):
        indices = [
            tf.constant(rng.integers(0, 6, 4), tf.int32),
            tf.constant(rng.integers(0, 6, (2, 3)), tf.int32),
            tf.constant(2),
        ]
        data = [rng.normal(size=s) for s in ((4, 2), (2, 3, 2), (2,))]
        check_numeric(lambda *d: tsg.dynamic_stitch(indices, list(d)), data)
        check_numeric(lambda *d: tsg.dynamic_stitch(indices, list(d), size=8), data)

    @in_each_mode
    def test_sized_drops_what_it_passed_over(self, mode):
        def merge(rows):
            return raw.MyDynamicStitchSized(
                size=3, indices=[[5, 1, -1, 1, 0]], data=[rows], bad_indices_policy="IGNORE"
            )

        (got,) = derived(mode, merge, [tf.zeros([5])], tf.constant([1.0, 2.0, 3.0]))
        equal(got, [0.0, 0.0, 0.0, 2.0, 1.0])

    def test_raw_gradient_op(self, rng):
        for dtype in support.ALL_TYPES:
            if dtype == tf.string:
                continue
            indices = [rng.integers(0, 6, s) for s in ((4,), (), (2, 2))]
            upstream = support.array_of(rng, (6, 3), dtype)
            got = raw.MyDynamicStitchGrad(indices=indices, grad=tensor(upstream, dtype))
            for g, w in zip(got, oracle.stitch_gradient(indices, upstream), strict=True):
                same(g, w, dtype.name)

    def test_repeats_in_one_list_and_across(self):
        x = tf.constant([1.0, 2.0, 3.0])
        (got,) = gradients(lambda a: tsg.dynamic_stitch([[0, 1, 0]], [a]), [x])
        equal(got, [0.0, 1.0, 1.0])

    def test_batch_of_nothing(self):
        x = tf.zeros([0, 2])
        with tf.GradientTape() as tape:
            tape.watch(x)
            mask = tf.zeros([0], tf.int32)
            parts = [2 * p for p in tf.dynamic_partition(x, mask, 2)]
            y = tsg.dynamic_stitch(tf.dynamic_partition(tf.range(0), mask, 2), parts)
        assert tape.gradient(y, x).shape == (0, 2)


class TestGather:
    # shape of params, shape of indices, batch_dims
    SHAPES = (
        ((5,), (7, 1), 0),
        ((3, 4), (9, 2), 0),
        ((3, 4), (5, 1), 0),
        ((3, 4), (3, 0), 0),
        ((), (3, 0), 0),
        ((3, 4), (2,), 0),
        ((3, 4), (1,), 0),
        ((3, 4), (0,), 0),
        ((3, 4, 5), (2, 3, 2), 0),
        ((2,) * 9, (12, 8), 0),
        ((3, 2), (0, 1), 0),
        ((3, 2), (0, 2), 0),
        ((3, 2), (4, 0, 2), 0),
        ((0, 2), (0, 2), 0),
        ((2, 0, 5), (3, 1), 0),
        ((2, 3, 0), (3, 2), 0),
        ((4, 3), (4, 1), 1),
        ((2, 3, 4), (2, 5, 1), 1),
        ((3, 2, 5, 3), (3, 2, 7, 2), 2),
        ((2, 3), (2, 4, 0), 1),
        ((2, 3), (2, 3, 0), 2),
    )

    @support.over(support.DIFFERENTIABLE, support.GATHER_INDEX_TYPES, (*support.MODES, "unknown"))
    def test_sums(self, dtype, index_type, mode, rng):
        for params_shape, indices_shape, batch_dims in self.SHAPES:
            limits = params_shape[batch_dims : batch_dims + indices_shape[-1]]
            limits = [max(1, n) for n in limits]
            indices = support.index_array(rng, limits, indices_shape[:-1], index_type)
            result_shape = indices_shape[:-1] + params_shape[batch_dims + indices_shape[-1] :]
            upstream = support.numbers_of(rng, result_shape, dtype)
            (got,) = derived(
                mode,
                lambda p, i=indices, b=batch_dims: tsg.gather_nd(
                    p, tensor(i, index_type), batch_dims=b
                ),
                [tensor(np.zeros(params_shape), dtype)],
                tensor(upstream, dtype),
            )
            assert got.dtype == dtype
            want = oracle.scatter_nd(indices, upstream, params_shape, batch_dims)
            # A sum of rows may be taken in any precision from float32 up.
            tight = 1e-12 if dtype in (tf.float64, tf.complex128) else 1e-6
            rough = {tf.float16: 1e-3, tf.bfloat16: 8e-3}.get(dtype, tight)
            close(got, want, rough, rough, f"{params_shape} {indices_shape} {batch_dims}")

    def test_numeric(self, rng):
        for params_shape, indices_shape, batch_dims in self.SHAPES:
            if 0 in params_shape or 0 in indices_shape[:-1] or len(params_shape) > 5:
                continue
            limits = params_shape[batch_dims : batch_dims + indices_shape[-1]]
            indices = support.index_array(rng, limits, indices_shape[:-1], tf.int32)
            check_numeric(
                lambda p, i=indices, b=batch_dims: tsg.gather_nd(p * p, i, batch_dims=b),
                [rng.normal(size=params_shape)],
            )

    def test_vector_of_indices(self):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        (got,) = gradients(lambda a: tsg.gather_nd(a, [1, 1]), [x])
        equal(got, [[0, 0], [0, 1], [0, 0]])
        (got,) = gradients(lambda a: tsg.gather_nd(a, [1]), [x])
        equal(got, [[0, 0], [1, 1], [0, 0]])

    def test_depth_zero(self):
        (got,) = gradients(
            lambda a: tsg.gather_nd(a, tf.zeros([3, 0], tf.int32)), [tf.constant([1.0, 2.0])]
        )
        equal(got, [3.0, 3.0])

    def test_rank_ten(self):
        x = tf.reshape(tf.range(2.0**10), [2] * 10)
        (got,) = gradients(lambda a: tsg.gather_nd(a, [[1, 1]]), [x])
        want = np.zeros([2] * 10)
        want[1, 1] = 1
        equal(got, want)

    @in_each_mode
    def test_int16_indices_into_many_rows(self, mode):
        for index in (tf.constant([[1, 1]], tf.int16), tf.constant([[1], [1]], tf.int16)):
            (got,) = derived(
                mode,
                lambda a, i=index: tf.reduce_sum(tsg.gather_nd(a, i)),
                [tf.ones([40_000, 3])],
                tf.constant(1.0),
            )
            want = np.zeros((40_000, 3))
            want[1] = [0, 1, 0] if index.shape[1] == 2 else [2, 2, 2]
            equal(got, want)

    @pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda t: t.name)
    def test_small_floats_accumulate_in_float32(self, dtype):
        # 5000 ones, added in the type itself, stand still at 2048 and at 256.
        want = to_numpy(tf.cast(tf.constant(5000.0), dtype))
        for params, index in (
            (tf.zeros([2, 2], dtype), tf.zeros([5000, 2], tf.int32)),
            (tf.zeros([2], dtype), tf.zeros([5000, 1], tf.int32)),
            (tf.zeros([2, 3], dtype), tf.zeros([5000, 1], tf.int32)),
        ):
            (got,) = gradients(lambda a, i=index: tsg.gather_nd(a, i), [params])
            same(to_numpy(got).reshape(-1)[0], want, f"depth {index.shape[1]}")

    @pytest.mark.parametrize("depth", [1, 2])
    def test_ignored_index_contributes_nothing(self, depth):
        x = tf.ones([3, 2])
        index = [[1, 0], [5, 0], [1, 0], [-1, 0]]

        def pick(a):
            return tsg.gather_nd(a, [i[:depth] for i in index], bad_indices_policy="IGNORE")

        want = [[0, 0], [2, 2], [0, 0]] if depth == 1 else [[0, 0], [2, 0], [0, 0]]
        for mode in ("eager", "function"):
            (got,) = derived(mode, pick, [x], tf.ones_like(pick(x)))
            equal(got, want, mode)

    def test_ignored_indices_only(self):
        def pick(a):
            return tsg.gather_nd(a, [[7], [-7]], bad_indices_policy="IGNORE")

        (got,) = gradients(pick, [tf.ones([3, 2])])
        equal(got, np.zeros((3, 2)))

    def test_same_bits_on_every_run(self, rng):
        params = tf.zeros([50, 40])
        deep = rng.integers(0, 40, (200_000, 2)).astype(np.int32)
        rows = rng.integers(0, 50, (100_000, 1)).astype(np.int32)
        for index in (deep, rows):
            shape = (len(index), *params.shape[index.shape[1] :])
            upstream = tf.constant(rng.normal(size=shape) * 1e3, tf.float32)
            found = {
                to_numpy(
                    gradients(lambda a, i=index: tsg.gather_nd(a, i), [params], upstream)[0]
                ).tobytes()
                for _ in range(5)
            }
            assert len(found) == 1


class TestSparse:
    """The gradient of a one-column lookup in a variable: unique, ascending, in-range, summed."""

    def of_variable(self, table, index, mode="eager", **kwargs):
        def run():
            with tf.GradientTape() as tape:
                rows = tsg.gather_nd(table, index, **kwargs)
                loss = tf.reduce_sum(rows * rows)
            return tape.gradient(loss, table)

        return run() if mode == "eager" else tf.function(run)()

    @in_each_mode
    def test_form(self, mode):
        table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        got = self.of_variable(table, [[2], [0], [2]], mode)
        assert isinstance(got, tf.IndexedSlices)
        equal(got.indices, [0, 2])
        equal(got.values, [[2.0, 4.0], [20.0, 24.0]])
        equal(got.dense_shape, [3, 2])

    def test_eager_tensor_may_be_a_variable(self):
        (got,) = gradients(lambda a: tsg.gather_nd(a, [[1], [1]]), [tf.ones([3, 2])])
        assert isinstance(got, tf.IndexedSlices)
        equal(got.indices, [1])
        equal(got.values, [[2.0, 2.0]])

    def test_what_cannot_be_sparse_is_dense(self):
        table = tf.Variable(tf.ones([3, 2]))
        assert isinstance(self.of_variable(table, [[1, 1]]), tf.Tensor)
        assert isinstance(self.of_variable(table, [[1], [0], [1]], batch_dims=1), tf.Tensor)

    @in_each_mode
    def test_ignored_rows_are_left_out(self, mode):
        table = tf.Variable(tf.ones([3, 2]))
        got = self.of_variable(table, [[1], [5], [1], [-1]], mode, bad_indices_policy="IGNORE")
        equal(got.indices, [1])
        equal(got.values, [[4.0, 4.0]])

    def test_no_rows(self):
        table = tf.Variable(tf.ones([3, 2]))
        got = self.of_variable(table, tf.zeros([0, 1], tf.int32))
        equal(got, np.zeros((3, 2)))

    @support.over(support.DIFFERENTIABLE, support.GATHER_INDEX_TYPES)
    def test_raw_op(self, dtype, index_type, mode, rng):
        # Integers up to 8: every sum of 50 of them is exact in each type but bfloat16 (256).
        top = 5 if dtype == tf.bfloat16 else 8
        for outer, row_shape in (
            ((50,), (3,)),
            ((5, 7), ()),
            ((), (2,)),
            ((0,), (2,)),
            ((40,), (0,)),
        ):
            indices = support.index_array(rng, [9], outer, index_type)
            grad = rng.integers(0, top, (*outer, *row_shape)).astype(support.element_type(dtype))
            rows, values = call(
                mode,
                lambda i, g, n: raw.MyGatherNdSparseGrad(indices=i, grad=g, num_rows=n),
                tensor(indices, index_type),
                tensor(grad, dtype),
                tf.constant(9, tf.int64),
            )
            want_rows, want = oracle.merged_rows(indices, grad, 9)
            assert rows.dtype == tf.int64 and values.dtype == dtype
            equal(rows, want_rows, f"{outer} {row_shape}")
            same(values, want.astype(support.element_type(dtype)), f"{outer} {row_shape}")

    @pytest.mark.parametrize("rows", [10, 5000, 10**9])
    def test_many_indices(self, rows, rng):
        # A table of 10**9 rows costs nothing: only the rows that are named take memory.
        index = rng.integers(0, rows, (40_000, 1))
        grad = rng.integers(0, 9, (40_000, 2)).astype(np.float64)
        got = raw.MyGatherNdSparseGrad(indices=index, grad=grad, num_rows=rows)
        want_rows, want = oracle.merged_rows(index, grad, rows)
        equal(got.rows, want_rows)
        equal(got.values, want)

    def test_sums_of_small_floats_are_rounded_once(self):
        for dtype in (tf.float16, tf.bfloat16):
            got = raw.MyGatherNdSparseGrad(
                indices=tf.zeros([5000, 1], tf.int32), grad=tf.ones([5000], dtype), num_rows=3
            )
            same(got.values, to_numpy(tf.cast([5000.0], dtype)), dtype.name)

    def test_big_table_is_not_made_dense(self):
        support.need_memory(2)
        table = tf.Variable(tf.zeros([2_000_000, 64]))
        index = tf.constant([[3], [5], [3]])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tsg.gather_nd(table, index))
        gradient = tape.gradient(loss, table)
        assert gradient.values.shape == (2, 64)
        table.scatter_sub(gradient)
        equal(table[:6, 0], [0.0, 0.0, 0.0, -2.0, 0.0, -1.0])

    @in_each_mode
    def test_no_warning_about_sparse_gradients(self, mode):
        def by_params(x, i):
            return tf.gradients(tsg.gather_nd(x * 2.0, i), x)

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for shape in ([None, 3], None):
                specs = [tf.TensorSpec(shape), tf.TensorSpec([None, 1], tf.int32)]
                tf.function(by_params, input_signature=specs).get_concrete_function()
        assert not [w for w in seen if "IndexedSlices" in str(w.message)]


class TestScatter:
    SHAPES = (
        ((5,), (7, 1)),
        ((3, 4), (9, 2)),
        ((3, 4), (5, 1)),
        ((3, 4), (0, 1)),
        ((3, 4, 5), (2, 3, 2)),
    )

    @support.over(support.DIFFERENTIABLE, (tf.int32, tf.int64), (*support.MODES, "unknown"))
    def test_is_a_gather(self, dtype, index_type, mode, rng):
        for shape, indices_shape in self.SHAPES:
            indices = support.index_array(
                rng, shape[: indices_shape[-1]], indices_shape[:-1], index_type
            )
            upstream = support.numbers_of(rng, shape, dtype)
            updates_shape = indices_shape[:-1] + shape[indices_shape[-1] :]
            (got,) = derived(
                mode,
                lambda u, i=indices, s=shape: tsg.scatter_nd(
                    tensor(i, index_type), u, tensor(s, index_type)
                ),
                [tensor(np.zeros(updates_shape), dtype)],
                tensor(upstream, dtype),
            )
            same(got, oracle.gather_nd(upstream, indices), f"{shape} {indices_shape}")

    def test_numeric(self, rng):
        for shape, indices_shape in self.SHAPES:
            if 0 in indices_shape:
                continue
            indices = support.index_array(
                rng, shape[: indices_shape[-1]], indices_shape[:-1], tf.int32
            )
            updates = rng.normal(size=indices_shape[:-1] + shape[indices_shape[-1] :])
            check_numeric(lambda u, i=indices, s=shape: tsg.scatter_nd(i, u * u, s), [updates])

    def test_ignored_update_has_no_gradient(self):
        (got,) = gradients(
            lambda u: tsg.scatter_nd([[1], [9], [1]], u, [3], bad_indices_policy="IGNORE"),
            [tf.zeros([3])],
            tf.constant([1.0, 2.0, 3.0]),
        )
        equal(got, [2.0, 0.0, 2.0])

    def test_int16_indices(self):
        (got,) = gradients(
            lambda u: tsg.scatter_nd(tf.constant([[1], [0]], tf.int16), u, [40_000]),
            [tf.zeros([2])],
            tf.range(40_000.0),
        )
        equal(got, [1.0, 0.0])

    def test_batch_dims_of_the_raw_op(self, rng):
        indices = rng.integers(0, 4, (3, 5, 1)).astype(np.int32)
        upstream = rng.random((3, 4, 2))
        (got,) = gradients(
            lambda u: raw.MyScatterNd(indices=indices, updates=u, shape=[3, 4, 2], batch_dims=1),
            [np.zeros((3, 5, 2))],
            tf.constant(upstream),
        )
        same(got, oracle.gather_nd(upstream, indices, 1))


class TestSecondOrder:
    def second(self, fn, x):
        """The gradient of the gradient, where ``fn(x)`` is a scalar."""
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = fn(x)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    @in_each_mode
    def test_stitch(self, mode):
        # The first of three rows is overwritten: d2/dx2 of x**3 is 6 x at the others.
        x = tf.constant([1.0, 2.0, 3.0])
        got = call(
            mode,
            lambda a: self.second(
                lambda b: tf.reduce_sum(tsg.dynamic_stitch([[0, 1, 0]], [b]) ** 3), a
            ),
            x,
        )
        close(got, [0, 12, 18])

    @in_each_mode
    def test_sized_stitch(self, mode):
        def cubes(b):
            merged = raw.MyDynamicStitchSized(
                size=2, indices=[[0, 1, 7]], data=[b], bad_indices_policy="IGNORE"
            )
            return tf.reduce_sum(merged**3)

        got = call(mode, lambda a: self.second(cubes, a), tf.constant([1.0, 2.0, 3.0]))
        close(got, [6, 12, 0])

    @in_each_mode
    @pytest.mark.parametrize(
        "index",
        [[[0], [0]], [[0, 0], [0, 0], [0, 1], [0, 1]], [0, 0], [0]],
        ids=["one column", "two columns", "one scalar", "one row"],
    )
    def test_gather(self, index, mode):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        got = call(
            mode,
            lambda a: tf.convert_to_tensor(
                self.second(lambda b: tf.reduce_sum(tsg.gather_nd(b, index) ** 3), a)
            ),
            x,
        )
        want = {
            ((0,), (0,)): [[12, 24], [0, 0]],
            ((0, 0), (0, 0), (0, 1), (0, 1)): [[12, 24], [0, 0]],
            (0, 0): [[6, 0], [0, 0]],
            (0,): [[6, 12], [0, 0]],
        }[tuple(tuple(k) if isinstance(k, list) else k for k in index)]
        close(got, want)

    def test_of_a_variable(self):
        table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = tf.reduce_sum(tsg.gather_nd(table, [[0], [0]]) ** 3)
            first = inner.gradient(y, table)
            total = tf.reduce_sum(tf.convert_to_tensor(first) ** 2)
        # y = 2 x**3, dy = 6 x**2, sum of squares 36 x**4, its gradient 144 x**3.
        close(outer.gradient(total, table), [[144, 144 * 8], [0, 0]])

    @in_each_mode
    def test_scatter(self, mode):
        x = tf.constant([1.0, 2.0, 3.0])
        got = call(
            mode,
            lambda a: self.second(
                lambda b: tf.reduce_sum(tsg.scatter_nd([[0], [2], [0]], b, [4]) ** 3), a
            ),
            x,
        )
        # (x0 + x2)**3 + x1**3; the second tape sums a row of the Hessian: 12 (x0 + x2).
        close(got, [48, 12, 48])

    def test_hessian_of_gather_by_jacobian(self):
        x = tf.constant([1.0, 2.0, 3.0])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tsg.dynamic_stitch([[0, 1, 0]], [x]) ** 3)
            first = inner.gradient(y, x)
        close(outer.jacobian(first, x), np.diag([0.0, 12.0, 18.0]))


class TestForwardMode:
    """``tf.autodiff.ForwardAccumulator``."""

    X = ((1.0, 2.0), (3.0, 4.0))
    TANGENT = ((1.0, 10.0), (100.0, 1000.0))

    def jvp(self, fn):
        x = tf.constant(self.X)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(self.TANGENT)) as accumulator:
            y = fn(x * x)
        return accumulator.jvp(y)

    # The tangent of x * x is 2 x t: [[2, 40], [600, 8000]].

    def test_gather(self):
        close(self.jvp(lambda a: tsg.gather_nd(a, [[0, 1], [1, 0]])), [40, 600])
        close(self.jvp(lambda a: tsg.gather_nd(a, [[1]])), [[600, 8000]])
        close(self.jvp(lambda a: tsg.gather_nd(a, [[1], [1]])), [[600, 8000]] * 2)
        close(self.jvp(lambda a: tsg.gather_nd(a, [[1], [0]], batch_dims=1)), [40, 600])

    def test_gather_that_ignores(self):
        got = self.jvp(lambda a: tsg.gather_nd(a, [[1], [7]], bad_indices_policy="IGNORE"))
        close(got, [[600, 8000], [0, 0]])

    def test_stitch(self):
        close(self.jvp(lambda a: tsg.dynamic_stitch([[2, 0]], [a])), [[600, 8000], [0, 0], [2, 40]])
        close(self.jvp(lambda a: tsg.dynamic_stitch([[0, 0]], [a])), [[600, 8000]])
        close(self.jvp(lambda a: tsg.dynamic_stitch([[0, 0]], [a], size=2)), [[600, 8000], [0, 0]])

    def test_scatter(self):
        close(self.jvp(lambda a: tsg.scatter_nd([[1], [1]], a, [2, 2])), [[0, 0], [602, 8040]])

    def test_inside_a_function(self):
        @tf.function
        def run(x, tangent):
            with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
                y = tsg.gather_nd(x * x, [[1], [1]])
                z = tsg.dynamic_stitch([[0, 0]], [x * x])
            return accumulator.jvp(y), accumulator.jvp(z)

        of_y, of_z = run(tf.constant(self.X), tf.constant(self.TANGENT))
        close(of_y, [[600, 8000]] * 2)
        close(of_z, [[600, 8000]])

    def test_forward_over_reverse(self):
        """The product of the Hessian and a vector."""
        x, v = tf.constant([1.0, 2.0, 3.0]), tf.constant([1.0, 10.0, 100.0])
        for fn, want in (
            (lambda a: tsg.gather_nd(a, [[0], [0], [2]]), [12.0, 0.0, 1800.0]),
            (lambda a: tsg.dynamic_stitch([[0, 1, 0]], [a]), [0.0, 120.0, 1800.0]),
        ):
            with tf.autodiff.ForwardAccumulator(x, v) as accumulator:
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = tf.reduce_sum(fn(x) ** 3)
                gradient = tf.convert_to_tensor(tape.gradient(y, x))
            close(accumulator.jvp(gradient), want)


class TestJacobian:
    X = ((1.0, 2.0), (3.0, 4.0))

    def jacobian(self, fn):
        x = tf.constant(self.X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        return tape.jacobian(y, x)

    def test_gather(self):
        got = self.jacobian(lambda a: tsg.gather_nd(a * a, [[0, 1], [1, 0], [0, 1]]))
        close(got, [[[0, 4], [0, 0]], [[0, 0], [6, 0]], [[0, 4], [0, 0]]])

    def test_gather_of_rows(self):
        got = to_numpy(self.jacobian(lambda a: tsg.gather_nd(a, [[0], [0]])))
        want = np.zeros((2, 2, 2, 2))
        want[:, 0, 0, 0] = want[:, 1, 0, 1] = 1
        close(got, want)

    def test_stitch(self):
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tsg.dynamic_stitch([[1, 0]], [x * x])
        close(tape.jacobian(y, x), [[0, 4], [2, 0]])

    def test_scatter(self):
        got = to_numpy(self.jacobian(lambda a: tsg.scatter_nd([[1], [1]], a, [2, 2])))
        assert got.shape == (2, 2, 2, 2)
        close(got.sum((2, 3)), [[0, 0], [2, 2]])


# What looks up, and what is done with the result.
SECOND = {
    "gather_nd, rows": lambda h: tsg.gather_nd(h, [[0], [2]]),
    "gather_nd, scalars": lambda h: tsg.gather_nd(h, [[0, 0], [2, 1]]),
    "tf.gather": lambda h: tf.gather(h, [0, 2]),
    "tf.gather_nd": lambda h: tf.gather_nd(h, [[0], [2]]),
    "stitch": lambda h: tsg.dynamic_stitch([[0, 1, 0]], [h]),
    "scatter": lambda h: tsg.scatter_nd([[0], [1], [0]], h, [2, 2]),
}
FIRST = {
    "gather_nd": lambda a: tsg.gather_nd(a, [[2], [0], [2]]),
    "stitch": lambda a: tsg.dynamic_stitch([[0, 1, 2]], [a]),
    "scatter": lambda a: tsg.scatter_nd([[0], [1], [2]], a, [3, 2]),
}


class TestChains:
    """A lookup in the result of a lookup: its upstream gradient would be sparse."""

    X = ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0))

    @pytest.mark.parametrize("second", SECOND)
    @pytest.mark.parametrize("first", FIRST)
    def test_same_with_and_without_function(self, first, second):
        x = tf.constant(self.X)

        def chain(a):
            return SECOND[second](FIRST[first](a * a))

        by_dense = tf.GradientTape()
        with by_dense:
            by_dense.watch(x)
            h = tf.gather(x * x, [2, 0, 2]) if first == "gather_nd" else tf.identity(x * x)
            y = {
                "gather_nd, rows": lambda: tf.gather(h, [0, 2]),
                "gather_nd, scalars": lambda: tf.stack([h[0, 0], h[2, 1]]),
                "tf.gather": lambda: tf.gather(h, [0, 2]),
                "tf.gather_nd": lambda: tf.gather(h, [0, 2]),
                "stitch": lambda: tf.gather(h, [2, 1]),
                "scatter": lambda: tf.stack([h[0] + h[2], h[1]]),
            }[second]()
        want = to_numpy(by_dense.gradient(y, x))
        close(gradients(chain, [x])[0], want)
        close(gradients(tf.function(chain), [x])[0], want)
        close(derived("function", chain, [x], tf.ones_like(y))[0], want)
        close(derived("unknown", chain, [x], tf.ones_like(y))[0], want)

    def test_function_called_in_a_function(self):
        @tf.function
        def look_up(a):
            return tsg.gather_nd(a, [[2], [0], [2]])

        @tf.function
        def loss(a):
            return tf.reduce_sum(tsg.gather_nd(look_up(look_up(a)), [[0], [0]]) ** 2)

        (got,) = gradients(loss, [tf.constant(self.X)])
        # Row 2 of a, through row 2 and then row 0; taken twice.
        close(got, [[0, 0], [0, 0], [20, 24]])

    def test_variable_looked_up_twice_in_a_function(self):
        table = tf.Variable(self.X)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tsg.gather_nd(table, [[0], [1]])) + tf.reduce_sum(
                    tsg.gather_nd(table, [[1], [1]])
                )
            return tf.convert_to_tensor(tape.gradient(loss, table))

        close(step(), [[1, 1], [3, 3], [0, 0]])


class TestSparseUpstream:
    """An upstream gradient that is IndexedSlices."""

    def test_of_each_op(self):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        # Rows repeat and come in no order.
        rows, weights = [2, 0, 2], tf.constant([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
        as_dense = tf.constant([[2.0, 20.0], [0.0, 0.0], [5.0, 50.0]])
        for fn in (
            lambda a: tsg.gather_nd(a, [[2], [0], [1]]),
            lambda a: tsg.gather_nd(a, [[0, 0], [1, 1], [2, 0]])[:, None] * [1.0, 1.0],
            lambda a: tsg.dynamic_stitch([[1, 2, 0]], [a]),
            lambda a: tsg.dynamic_stitch([[1, 0, 0]], [a], size=3),
            lambda a: tsg.scatter_nd([[2], [0], [2]], a, [3, 2]),
        ):

            def weighted(a, f=fn):
                # The gradient of tf.gather is IndexedSlices.
                return tf.gather(f(a), rows) * weights

            want = to_numpy(gradients(fn, [x], as_dense)[0])
            close(gradients(weighted, [x])[0], want)
            close(gradients(tf.function(weighted), [x])[0], want)

    def test_that_is_given_by_the_caller(self):
        x = tf.ones([3, 2])
        upstream = tf.IndexedSlices(
            tf.constant([[1.0, 1.0], [2.0, 2.0]]), tf.constant([2, 2]), tf.constant([3, 2])
        )
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tsg.gather_nd(x, [[0], [1], [0]])
        close(tape.gradient(y, x, output_gradients=upstream), [[3, 3], [0, 0], [0, 0]])


class TestNone:
    def test_indices_have_no_gradient(self):
        x, i = tf.constant([[1.0, 2.0]]), tf.constant([[0, 1]])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x])
            gathered = tsg.gather_nd(x, i)
            stitched = tsg.dynamic_stitch([[0]], [x])
            scattered = tsg.scatter_nd([[0]], x, [1, 2])
        assert tape.gradient(gathered, i) is None
        close(tape.gradient(gathered, x), [[0, 1]])
        close(tape.gradient(stitched, x), [[1, 1]])
        close(tape.gradient(scattered, x), [[1, 1]])

    def test_stitch_indices(self):
        x, i = tf.constant([1.0, 2.0]), tf.constant([1, 0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tsg.dynamic_stitch([i], [x])
        of_x, of_i = tape.gradient(y, [x, i])
        assert of_i is None
        close(of_x, [1, 1])

    @pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.uint8], ids=lambda t: t.name)
    def test_integer_data_has_no_gradient(self, dtype):
        x = tensor([1, 2], dtype)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            results = (
                tsg.gather_nd(x, [[0], [1]]),
                tsg.dynamic_stitch([[1, 0]], [x]),
                tsg.scatter_nd([[0], [1]], x, [2]),
            )
        assert [tape.gradient(r, x) for r in results] == [None] * 3


class TestOptimizers:
    """Keras optimizers take the step of a dense gradient where rows are looked up twice."""

    NAMES = ("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "RMSprop", "Ftrl", "Adamax", "Nadam")

    def step(self, name, look_up, function=False):
        optimizer = getattr(tf.keras.optimizers, name)(1.0)
        table = tf.Variable(tf.ones([3, 2]))

        def run():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(look_up(table))
            optimizer.apply_gradients([(tape.gradient(loss, table), table)])

        optimizer.build([table])
        for _ in range(2):
            (tf.function(run) if function else run)()
        return table.numpy()

    @in_each_mode
    @pytest.mark.parametrize("name", NAMES)
    def test_repeated_rows(self, name, mode):
        index = [[2], [2], [0]]
        got = self.step(name, lambda v: tsg.gather_nd(v, index), mode == "function")
        want = self.step(name, lambda v: tf.gather(tf.identity(v) * 1.0, [2, 2, 0]))
        close(got, want, 1e-4, 1e-4)

    @in_each_mode
    @pytest.mark.parametrize("name", ["SGD", "Adam"])
    def test_ignored_rows(self, name, mode):
        got = self.step(
            name,
            lambda v: tsg.gather_nd(v, [[1], [5], [-1]], bad_indices_policy="IGNORE"),
            mode == "function",
        )
        close(got, [[1, 1], [-1, -1], [1, 1]], 1e-3, 1e-3)
