"""Static shapes: what is known of a result while the graph is built."""

from __future__ import annotations

import numpy as np
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg

raw = tsg.raw_ops
U = None  # an unknown dimension, or, in place of a shape, an unknown rank


def spec(shape, dtype=tf.float32):
    return tf.TensorSpec(shape, dtype)


def infer(fn, *specs):
    """The static shapes of the results of ``fn``: a list of dimensions, or None, for each."""
    seen = []

    def trace(*args):
        results = fn(*args)
        for result in tf.nest.flatten(results):
            rank = result.shape.rank
            seen.append(None if rank is None else result.shape.as_list())
        return results

    tf.function(trace, input_signature=specs, autograph=False).get_concrete_function()
    return seen if len(seen) > 1 else seen[0]


def stitch(indices, data, shape):
    """``shape`` of a stitch of placeholders of these shapes."""
    n = len(indices)
    specs = [spec(s, tf.int32) for s in indices] + [spec(s) for s in data]
    got = infer(lambda *a: raw.MyDynamicStitch(indices=list(a[:n]), data=list(a[n:])), *specs)
    assert got == shape


def sized(size, data, shape, index=(U,)):
    """``shape`` of a sized stitch; a size of None is not known."""
    specs = [spec(index, tf.int32), spec(data)] + [spec((), tf.int32)] * (size is None)
    got = infer(
        lambda i, d, n=size: raw.MyDynamicStitchSized(size=n, indices=[i], data=[d]), *specs
    )
    assert got == shape


def gather(params, indices, shape, batch_dims=0):
    got = infer(
        lambda p, i: raw.MyGatherNd(params=p, indices=i, batch_dims=batch_dims),
        spec(params),
        spec(indices, tf.int32),
    )
    assert got == shape


def scatter(indices, updates, to, shape, batch_dims=0):
    """``to`` is the constant output shape, or the static shape of an unknown one, as a spec."""
    constant = not isinstance(to, tf.TensorSpec)
    specs = [spec(indices, tf.int32), spec(updates)] + ([] if constant else [to])
    got = infer(
        lambda i, u, s=to: raw.MyScatterNd(indices=i, updates=u, shape=s, batch_dims=batch_dims),
        *specs,
    )
    assert got == shape


class TestStitch:
    def test_of_unknown_indices(self):
        stitch([(U,)], [(U, 3)], [U, 3])
        stitch([(2,)], [(2, 3)], [U, 3])
        stitch([()], [(3, 4)], [U, 3, 4])
        stitch([(2, 3)], [(2, 3)], [U])
        stitch([(2,), ()], [(2, 5), (5,)], [U, 5])

    def test_rank_is_unknown(self):
        stitch([U], [U], U)
        stitch([U], [(2, 3)], U)
        stitch([(2,)], [U], U)

    def test_any_part_tells_rank_and_suffix(self):
        stitch([U, (U,)], [U, (U, 7)], [U, 7])
        stitch([(U,), U], [(U, 7), U], [U, 7])
        stitch([(1,), (1,)], [(1, U), (1, 4)], [U, 4])
        stitch([(1,), (1,)], [(1, U, 3), (1, 4, U)], [U, 4, 3])

    def test_constant_indices_tell_the_row_count(self):
        def fn(x, y):
            return tsg.dynamic_stitch([[0, 5], [2]], [x, y])

        assert infer(fn, spec((2, 3)), spec((1, 3))) == [6, 3]
        assert infer(fn, spec((2, U)), spec((1, 4))) == [6, 4]
        assert infer(fn, spec((U, U)), spec((1, 4))) == [6, 4]
        assert infer(lambda x: tsg.dynamic_stitch([tf.range(3)], [x]), spec((3, 2))) == [3, 2]

    def test_constant_indices_of_each_type(self):
        for index_type in support.STITCH_INDEX_TYPES:
            index = support.tensor([4, 1], index_type)
            assert infer(lambda x, i=index: tsg.dynamic_stitch([i], [x]), spec((2,))) == [5]

    def test_one_unknown_index_hides_the_row_count(self):
        got = infer(
            lambda i, x: tsg.dynamic_stitch([[3], i], [x, x]), spec((1,), tf.int32), spec((1, 2))
        )
        assert got == [U, 2]

    def test_greatest_int32_index(self):
        assert infer(lambda x: tsg.dynamic_stitch([[2**31 - 1]], [x]), spec((1,))) == [2**31]

    def test_no_index_at_all(self):
        empty = tf.zeros([0], tf.int32)
        assert infer(lambda x: tsg.dynamic_stitch([empty], [x]), spec((0, 3))) == [0, 3]

    def test_constant_negative_index(self):
        # Which of the two times finds it is open; that it is found is not.
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            tf.function(lambda x: tsg.dynamic_stitch([[-1]], [x]))(tf.ones([1]))

    def test_mismatch_is_found_while_the_graph_is_built(self):
        with pytest.raises(ValueError, match=r"data\[0\]"):
            stitch([(2,)], [(3,)], U)
        with pytest.raises(ValueError, match=r"data\[1\]"):
            stitch([(2,), (1,)], [(2, 3), (1, 4)], U)
        with pytest.raises(ValueError, match=r"data\[2\]"):
            stitch([(2,), U, (1,)], [(2, 3), U, (1, 4)], U)


class TestSized:
    def test_constant_size(self):
        sized(5, (U, 3), [5, 3])
        sized(0, (U, 3), [0, 3])
        sized(5, (2,), [5], index=(2,))
        sized(5, U, U, index=U)

    def test_unknown_size(self):
        sized(None, (U, 3), [U, 3])

    def test_by_the_public_function(self):
        def fn(i, x):
            return tsg.dynamic_stitch([i], [x], size=4)

        assert infer(fn, spec((U,), tf.int32), spec((U, 3))) == [4, 3]
        assert infer(fn, spec((U,), tf.int64), spec((U, 3))) == [4, 3]

    def test_negative_size(self):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            sized(-2, (U, 3), U)


class TestGather:
    def test_known(self):
        gather((3, 4), (5, 2), [5])
        gather((3, 4), (5, 1), [5, 4])
        gather((3, 4), (5, 0), [5, 3, 4])
        gather((3, 4), (2,), [])
        gather((3, 4), (1,), [4])
        gather((), (7, 0), [7])
        gather((2, 3, 4, 5), (6, 7, 2), [6, 7, 4, 5])
        gather((2,) * 12, (3, 9), [3, 2, 2, 2])

    def test_unknown_dimensions(self):
        gather((U, U), (U, 2), [U])
        gather((U, 4), (U, 1), [U, 4])
        gather((3, U, 5), (U, 2, 1), [U, 2, U, 5])

    def test_unknown_depth(self):
        gather((3, 4), (5, U), U)
        gather((3, 4), U, U)

    def test_unknown_params(self):
        gather(U, (5, 1), U)
        gather(U, U, U)

    def test_batch_dims(self):
        gather((2, 3, 4), (2, 5, 1), [2, 5, 4], 1)
        gather((2, 3, 4), (2, 1), [2, 4], 1)
        gather((2, 3, 4, 6), (2, 3, 5, 1), [2, 3, 5, 6], 2)
        gather((2, 3), (2, 3, 0), [2, 3], 2)

    def test_a_batch_dimension_known_on_either_side(self):
        gather((U, 3, 4), (2, 5, 1), [2, 5, 4], 1)
        gather((2, 3, 4), (U, 5, 1), [2, 5, 4], 1)
        gather((U, 3, 4), (U, U, 1), [U, U, 4], 1)

    def test_batch_dims_of_unknown_rank(self):
        gather(U, (U, 1), U, 1)
        gather((U, 3), U, U, 1)
        gather(U, U, U, 1)

    def test_each_index_type_and_the_public_function(self):
        for index_type in support.GATHER_INDEX_TYPES + support.CONVERTED_INDEX_TYPES:
            got = infer(tsg.gather_nd, spec((3, 4)), spec((U, 1), index_type))
            assert got == [U, 4], index_type

    @pytest.mark.parametrize(
        ("params", "indices", "batch_dims"),
        [
            ((3,), (5, 2), 0),
            ((3,), (), 0),
            ((), (2, 1), 0),
            ((2, 3), (3, 1), 1),
            ((2, 3, 4), (2, 4, 1), 2),
            ((2, 3), (2, 2), 1),
            ((2, 3), (2, 1), 2),
            ((2,), (2, 3, 1), 2),
            (U, (2, 1), 2),
            ((2,), U, 2),
        ],
    )
    def test_mismatch_is_found_while_the_graph_is_built(self, params, indices, batch_dims):
        with pytest.raises(ValueError, match=r"indices|params|batch"):
            gather(params, indices, U, batch_dims)


class TestScatter:
    def test_constant_shape(self):
        scatter((U, 1), (U, 4), [3, 4], [3, 4])
        scatter((5, 2), (5,), [3, 4], [3, 4])
        scatter(U, U, [3, 4], [3, 4])
        scatter((2, U, 1), (2, U), [2, 7], [2, 7], 1)

    def test_unknown_shape(self):
        scatter((5, 1), (5, 4), spec((2,), tf.int32), [U, U])
        scatter((5, 1), U, spec((3,), tf.int32), [U, U, U])
        scatter((5, 1), (5, 4), spec((U,), tf.int32), U)
        scatter(U, U, spec(U, tf.int32), U)

    def test_shape_known_in_part(self):
        got = infer(
            lambda x, i, u: raw.MyScatterNd(
                indices=i, updates=u, shape=tf.stack([tf.shape(x)[0], 4])
            ),
            spec((U, 4)),
            spec((U, 1), tf.int32),
            spec((U, 4)),
        )
        assert got == [U, 4]

    @pytest.mark.parametrize(
        ("indices", "updates", "to"),
        [((2, 1), (3,), [3]), ((2, 1), (2, 2), [3, 3]), ((), (1,), [3]), ((2, 1), (2,), [[3]])],
    )
    def test_mismatch_is_found_while_the_graph_is_built(self, indices, updates, to):
        with pytest.raises(ValueError, match=r"indices|updates|shape"):
            scatter(indices, updates, to, U)

    def test_by_the_public_function(self):
        got = infer(lambda i, u: tsg.scatter_nd(i, u, [6, 2]), spec((U, 1), tf.int32), spec((U, 2)))
        assert got == [6, 2]


class TestGradientOps:
    def test_stitch_gradient(self):
        def fn(i, j, g):
            return raw.MyDynamicStitchGrad(indices=[i, j], grad=g)

        ints = spec((2, U), tf.int32), spec((), tf.int32)
        assert infer(fn, *ints, spec((U, 3))) == [[2, U, 3], [3]]
        assert infer(fn, *ints, spec(U)) == [U, U]
        assert infer(fn, spec(U, tf.int32), ints[1], spec((U, 3))) == [U, [3]]

    def test_sparse_gradient(self):
        def fn(i, g, n):
            return raw.MyGatherNdSparseGrad(indices=i, grad=g, num_rows=n)

        rows = spec((), tf.int64)
        assert infer(fn, spec((U, 1), tf.int32), spec((U, 3)), rows) == [[U], [U, 3]]
        assert infer(fn, spec((2, 4, 1), tf.int32), spec((2, 4)), rows) == [[U], [U]]
        assert infer(fn, spec((1,), tf.int32), spec((3, 5)), rows) == [[U], [U, 3, 5]]
        assert infer(fn, spec(U, tf.int32), spec(U), rows) == [[U], U]

    def test_gradients_have_the_shape_of_the_inputs(self):
        def of_gather(p, i):
            return tf.gradients(tsg.gather_nd(p * 2.0, i), p)[0]

        assert infer(of_gather, spec((3, 4)), spec((U, 2), tf.int32)) == [3, 4]

        def of_stitch(i, d):
            return tf.gradients(tsg.dynamic_stitch([i], [d]), d)[0]

        assert infer(of_stitch, spec((5,), tf.int32), spec((5, 4))) == [5, 4]


def test_static_shape_is_the_shape_at_run_time(rng):
    """Of many random calls: what was inferred, from all that is known, is what came out."""
    for _ in range(40):
        params_shape = rng.integers(1, 4, rng.integers(1, 6)).tolist()
        batch_dims = int(rng.integers(0, len(params_shape)))
        depth = int(rng.integers(0, len(params_shape) - batch_dims + 1))
        outer = params_shape[:batch_dims] + rng.integers(0, 3, rng.integers(0, 3)).tolist()
        indices = np.zeros((*outer, depth), np.int32)
        params = np.ones(params_shape, np.float32)
        static = infer(
            lambda p, i, b=batch_dims: tsg.gather_nd(p, i, batch_dims=b),
            spec(params.shape),
            spec(indices.shape, tf.int32),
        )
        assert static == list(tsg.gather_nd(params, indices, batch_dims=batch_dims).shape)
