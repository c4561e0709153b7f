"""The same inputs to the built-in op and to ours: the same values, or the same exception class.

Where the built-in is wrong, or refuses what ours takes, the plain NumPy tests say what is right;
such inputs are left out here.
"""

from __future__ import annotations

import numpy as np
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import call, in_every_mode, same, tensor

raw = tsg.raw_ops


def compare(mode, ours, theirs, inputs, note=""):
    want = call(mode, theirs, *inputs)
    got = call(mode, ours, *inputs)
    assert got.dtype == want.dtype and got.shape == want.shape, note
    same(got, support.to_numpy(want), note)


def with_kernel(op, attribute, types):
    return [t for t in types if support.has_cpu_kernel(op, **{attribute: t})]


class TestStitch:
    SHAPES = (
        ([()], ()),
        ([(7,)], ()),
        ([(4,), (3,)], (3,)),
        ([(), (2,), (2, 2)], (2,)),
        ([(300,), (500,)], (5,)),
        ([(0,), (3,)], (2,)),
        ([(0,), (0, 2)], (3,)),
        ([(2,), (1,)], (0,)),
    )

    @support.over(with_kernel("DynamicStitch", "T", support.ALL_TYPES), [tf.int32])
    def test_serial(self, dtype, index_type, mode, rng):
        self.check(tf.raw_ops.DynamicStitch, dtype, mode, rng, high=400)

    @support.over(with_kernel("ParallelDynamicStitch", "T", support.ALL_TYPES), [tf.int32])
    def test_parallel(self, dtype, index_type, mode, rng):
        # Without repeated indices: with them the built-in may mix two rows.
        self.check(tf.raw_ops.ParallelDynamicStitch, dtype, mode, rng, high=None)

    def check(self, op, dtype, mode, rng, high):
        for index_shapes, row_shape in self.SHAPES:
            sizes = [int(np.prod(s, dtype=int)) for s in index_shapes]
            if high is None:
                flat = rng.permutation(sum(sizes) + 5)[: sum(sizes)]
            else:
                flat = rng.integers(0, high, sum(sizes))
            parts = np.split(flat, np.cumsum(sizes)[:-1])
            indices = [
                tf.constant(p.reshape(s), tf.int32)
                for p, s in zip(parts, index_shapes, strict=True)
            ]
            data = [
                tensor(support.array_of(rng, (*s, *row_shape), dtype), dtype) for s in index_shapes
            ]
            compare(
                mode,
                lambda i, d: raw.MyDynamicStitch(indices=i, data=d),
                lambda i, d: op(indices=i, data=d),
                (indices, data),
                f"{index_shapes} {row_shape}",
            )


class TestGather:
    SHAPES = (
        ((5,), (7, 1)),
        ((3, 4), (5, 2)),
        ((3, 4), (5, 1)),
        ((3, 4), (3, 0)),
        ((3, 4), (2,)),
        ((3, 4, 5), (2, 3, 2)),
        ((2, 3, 2, 5), (6, 3)),
        ((2,) * 8, (9, 7)),
        ((40, 33), (700, 1)),
        ((3, 2), (4, 0, 2)),
    )

    @support.over(with_kernel("GatherNd", "Tparams", support.ALL_TYPES), support.GATHER_INDEX_TYPES)
    def test_values(self, dtype, index_type, mode, rng):
        for params_shape, indices_shape in self.SHAPES:
            limits = params_shape[: indices_shape[-1]]
            compare(
                mode,
                lambda p, i: raw.MyGatherNd(params=p, indices=i),
                lambda p, i: tf.raw_ops.GatherNd(params=p, indices=i),
                (
                    tensor(support.array_of(rng, params_shape, dtype), dtype),
                    tensor(
                        support.index_array(rng, limits, indices_shape[:-1], index_type), index_type
                    ),
                ),
                f"{params_shape} {indices_shape}",
            )

    @support.over((tf.float32, tf.string), (tf.int32, tf.int64))
    def test_batch_dims(self, dtype, index_type, mode, rng):
        for params_shape, indices_shape, batch_dims in (
            ((4, 3), (4, 1), 1),
            ((2, 3, 4), (2, 5, 1), 1),
            ((2, 3, 4), (2, 5, 2), 1),
            ((3, 4, 5, 6), (3, 4, 7, 2), 2),
        ):
            limits = params_shape[batch_dims : batch_dims + indices_shape[-1]]
            compare(
                mode,
                lambda p, i, b=batch_dims: tsg.gather_nd(p, i, batch_dims=b),
                lambda p, i, b=batch_dims: tf.gather_nd(p, i, batch_dims=b),
                (
                    tensor(support.array_of(rng, params_shape, dtype), dtype),
                    tensor(
                        support.index_array(rng, limits, indices_shape[:-1], index_type), index_type
                    ),
                ),
                f"{params_shape} {indices_shape}",
            )

    @in_every_mode
    @pytest.mark.parametrize("index_type", support.GATHER_INDEX_TYPES, ids=lambda t: t.name)
    def test_ignore(self, index_type, mode, rng):
        for params_shape, depth in (((9,), 1), ((5, 6), 2), ((5, 6), 1)):
            limits = [n + 2 for n in params_shape[:depth]]
            indices = support.index_array(rng, limits, (50,), index_type) - 1
            compare(
                mode,
                lambda p, i: raw.MyGatherNd(params=p, indices=i, bad_indices_policy="IGNORE"),
                lambda p, i: tf.raw_ops.GatherNd(params=p, indices=i, bad_indices_policy="IGNORE"),
                (tf.random.stateless_normal(params_shape, (1, 2)), tensor(indices, index_type)),
                f"{params_shape}",
            )


class TestScatter:
    SHAPES = (
        ((5,), (12, 1)),
        ((3, 4), (20, 2)),
        ((3, 4), (8, 1)),
        ((3, 4, 5), (2, 6, 2)),
        ((3, 2), (0, 1)),
        ((2,) * 7, (9, 7)),
    )

    @support.over(
        with_kernel("ScatterNd", "T", support.ADDABLE),
        with_kernel("ScatterNd", "Tindices", support.GATHER_INDEX_TYPES),
    )
    def test_values(self, dtype, index_type, mode, rng):
        for shape, indices_shape in self.SHAPES:
            depth = indices_shape[-1]
            outer = indices_shape[:-1]
            if dtype in support.SMALL_FLOATS:
                # Without repeated indices: with them the built-in rounds after each addition.
                places = rng.permutation(int(np.prod(shape[:depth])))
                count = min(places.size, int(np.prod(outer)))
                outer = (count,)
                indices = np.stack(np.unravel_index(places[:count], shape[:depth]), -1)
            else:
                indices = support.index_array(rng, shape[:depth], outer, index_type)
            updates = support.numbers_of(rng, outer + shape[depth:], dtype)
            compare(
                mode,
                lambda i, u, s: raw.MyScatterNd(indices=i, updates=u, shape=s),
                lambda i, u, s: tf.raw_ops.ScatterNd(indices=i, updates=u, shape=s),
                (tensor(indices, index_type), tensor(updates, dtype), tensor(shape, index_type)),
                f"{shape} {indices_shape}",
            )

    @in_every_mode
    def test_ignore(self, mode, rng):
        indices = rng.integers(-1, 6, (50, 1)).astype(np.int32)
        compare(
            mode,
            lambda i, u, s: raw.MyScatterNd(
                indices=i, updates=u, shape=s, bad_indices_policy="IGNORE"
            ),
            lambda i, u, s: tf.raw_ops.ScatterNd(
                indices=i, updates=u, shape=s, bad_indices_policy="IGNORE"
            ),
            (
                tf.constant(indices),
                tf.random.stateless_normal([50, 3], (1, 2)),
                tf.constant([5, 3]),
            ),
        )


def ints(*shape):
    return tf.zeros(shape, tf.int32)


STITCH_ERRORS = {
    "prefix": ([ints(2)], [tf.ones([3])]),
    "suffix": ([ints(1), ints(1)], [tf.ones([1, 2]), tf.ones([1, 3])]),
    "rank": ([ints(2)], [tf.ones([])]),
    "rank of the suffix": ([ints(1), ints()], [tf.ones([1, 1]), tf.ones([])]),
    "negative": ([tf.constant([0, -1])], [tf.ones([2])]),
    "all negative": ([tf.constant([-5, -6])], [tf.ones([2])]),
    "more indices than data": ([ints(1)] * 3, [tf.ones([1])] * 2),
    "more data than indices": ([ints(1)] * 2, [tf.ones([1])] * 3),
    "no data": ([ints(1)], []),
    "empty lists": ([], []),
    "mixed data types": ([ints(1), ints(1)], [tf.ones([1]), ints(1)]),
    "float indices": ([tf.ones([1])], [tf.ones([1])]),
}
GATHER_ERRORS = {
    "past the end": (tf.ones([3]), tf.constant([[0], [7]])),
    "negative": (tf.ones([3, 2]), tf.constant([[0, 1], [2, -1]])),
    "depth over rank": (tf.ones([3]), ints(1, 2)),
    "scalar indices": (tf.ones([3]), ints()),
    "empty params": (tf.zeros([0, 5]), ints(1, 1)),
    "float indices": (tf.ones([3]), tf.zeros([1, 1])),
    "int8 indices": (tf.ones([3]), tf.zeros([1, 1], tf.int8)),
    "scalar params": (tf.ones([]), ints(1, 1)),
}
SCATTER_ERRORS = {
    "past the end": (tf.constant([[0], [7]]), tf.ones([2]), tf.constant([3])),
    "negative": (tf.constant([[0], [-1]]), tf.ones([2]), tf.constant([3])),
    "updates": (ints(2, 1), tf.ones([3]), tf.constant([3])),
    "slice": (ints(2, 1), tf.ones([2, 2]), tf.constant([3, 3])),
    "scalar indices": (ints(), tf.ones([1]), tf.constant([3])),
    "shape is a matrix": (ints(1, 1), tf.ones([1]), tf.constant([[3]])),
    "shape is a scalar": (ints(1, 1), tf.ones([1]), tf.constant(3)),
    "negative shape": (ints(1, 1), tf.ones([1]), tf.constant([-3])),
    "empty output": (ints(1, 1), tf.ones([1]), tf.constant([0])),
    "types of indices and shape": (ints(1, 1), tf.ones([1]), tf.constant([3], tf.int64)),
    "float indices": (tf.zeros([1, 1]), tf.ones([1]), tf.constant([3.0])),
}


def error_class(mode, fn, args):
    try:
        result = call(mode, fn, *args)
    except Exception as error:
        return type(error)
    raise AssertionError(f"nothing was raised, the result is {result}")


def check_errors(mode, ours, theirs, args):
    want = error_class(mode, theirs, args)
    assert error_class(mode, ours, args) is want


@in_every_mode
class TestErrors:
    """The class of the exception, eager, traced with known and traced with unknown shapes."""

    @pytest.mark.parametrize("name", STITCH_ERRORS)
    def test_stitch(self, name, mode):
        check_errors(
            mode,
            lambda i, d: raw.MyDynamicStitch(indices=i, data=d),
            lambda i, d: tf.raw_ops.DynamicStitch(indices=i, data=d),
            STITCH_ERRORS[name],
        )

    @pytest.mark.parametrize("name", GATHER_ERRORS)
    def test_gather(self, name, mode):
        check_errors(
            mode,
            lambda p, i: raw.MyGatherNd(params=p, indices=i),
            lambda p, i: tf.raw_ops.GatherNd(params=p, indices=i),
            GATHER_ERRORS[name],
        )

    @pytest.mark.parametrize("name", SCATTER_ERRORS)
    def test_scatter(self, name, mode):
        check_errors(
            mode,
            lambda i, u, s: raw.MyScatterNd(indices=i, updates=u, shape=s),
            lambda i, u, s: tf.raw_ops.ScatterNd(indices=i, updates=u, shape=s),
            SCATTER_ERRORS[name],
        )

    def test_not_enough_memory(self, mode):
        check_errors(
            mode,
            lambda i, d: raw.MyDynamicStitch(indices=i, data=d),
            lambda i, d: tf.raw_ops.DynamicStitch(indices=i, data=d),
            ([tf.constant([2_000_000_000])], [tf.zeros([1, 1024])]),
        )


@support.in_each_mode
@pytest.mark.parametrize("batch_dims", [-1, 2, 3])
def test_error_of_batch_dims(batch_dims, mode):
    check_errors(
        mode,
        lambda p, i: tsg.gather_nd(p, i, batch_dims=batch_dims),
        lambda p, i: tf.gather_nd(p, i, batch_dims=batch_dims),
        (tf.ones([2, 3]), ints(2, 1)),
    )


def test_a_graph_of_built_ins_becomes_ours_by_a_change_of_the_op_field():
    """Input, output and attribute names are the built-ins'; what is new has a default."""
    with tf.Graph().as_default() as graph:
        params = tf.compat.v1.placeholder(tf.float32, [None, 2], "params")
        indices = tf.compat.v1.placeholder(tf.int32, [None, 1], "indices")
        rows = tf.raw_ops.GatherNd(params=params, indices=indices, name="rows")
        merged = tf.raw_ops.DynamicStitch(indices=[indices[:, 0]], data=[rows], name="merged")
        tf.raw_ops.ScatterNd(indices=indices, updates=merged, shape=[5, 2], name="sum")
    definition = graph.as_graph_def()
    swapped = 0
    for node in definition.node:
        if node.op in ("GatherNd", "DynamicStitch", "ScatterNd"):
            node.op, swapped = "My" + node.op, swapped + 1
    assert swapped == 3
    results = []
    for graph_def in (graph.as_graph_def(), definition):
        with tf.Graph().as_default() as loaded:
            tf.graph_util.import_graph_def(graph_def, name="")
            with tf.compat.v1.Session(graph=loaded) as session:
                feed = {"params:0": [[1, 2], [3, 4], [5, 6]], "indices:0": [[2], [0], [1]]}
                results.append(session.run("sum:0", feed))
    same(results[1], results[0])


def test_the_built_ins_are_untouched():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    tsg.gather_nd(x, [[0, 0]])
    support.equal(tf.gather_nd(x, [[1, 0]]), [3.0])
    support.equal(tf.dynamic_stitch([[1, 0]], [x]), [[3.0, 4.0], [1.0, 2.0]])
    support.equal(tf.scatter_nd([[1]], [2.0], [2]), [0.0, 2.0])
    (gradient,) = support.gradients(lambda a: tf.gather_nd(a, [[1, 0]]), [x])
    support.close(gradient, [[0, 0], [1, 0]])
    gradients = support.gradients(
        lambda a, b: tf.dynamic_stitch([[0], [1]], [a, b]), [x[:1], x[1:]]
    )
    support.close(tf.concat(gradients, 0), np.ones((2, 2)))
