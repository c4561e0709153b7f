"""What a wrong call raises: the class, and a text that names the argument, what and where."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import oracle
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import call, fails, in_each_mode, in_every_mode, tensor

INVALID = tf.errors.InvalidArgumentError
raw = tsg.raw_ops

LIMIT = 1500  # characters; the built-in's answer to an unknown policy takes a page


def stitch(indices, data):
    return raw.MyDynamicStitch(indices=indices, data=data)


def sized(size, indices, data):
    return raw.MyDynamicStitchSized(size=size, indices=indices, data=data)


def gather(params, indices):
    return raw.MyGatherNd(params=params, indices=indices)


def scatter(indices, updates, shape):
    return raw.MyScatterNd(indices=indices, updates=updates, shape=shape)


def batched(batch_dims):
    def gather_with_batch_dims(params, indices):
        return raw.MyGatherNd(params=params, indices=indices, batch_dims=batch_dims)

    return gather_with_batch_dims


def batched_scatter(indices, updates, shape):
    return raw.MyScatterNd(indices=indices, updates=updates, shape=shape, batch_dims=1)


def stitch_grad(indices, grad):
    return raw.MyDynamicStitchGrad(indices=indices, grad=grad)


def sparse_grad(indices, grad, num_rows):
    return raw.MyGatherNdSparseGrad(indices=indices, grad=grad, num_rows=num_rows)


def ints(*shape):
    return tf.zeros(shape, tf.int32)


class Case(NamedTuple):
    """A call that must fail: found out from shapes alone, or only when it runs."""

    fn: Callable
    args: tuple[Any, ...]
    fragments: tuple[str, ...]
    by_shape: bool


BY_SHAPE = {
    "stitch, prefix": Case(stitch, ([ints(2)], [tf.ones([3])]), ("data[0]", "[3]", "[2]"), True),
    "stitch, prefix of the second": Case(
        stitch,
        ([ints(1), ints(2, 2)], [tf.ones([1, 5]), tf.ones([2, 3, 5])]),
        ("data[1]", "indices[1]", "[2,3,5]", "[2,2]"),
        True,
    ),
    "stitch, rank below the indices'": Case(
        stitch, ([ints(2)], [tf.ones([])]), ("data[0]", "[2]"), True
    ),
    "stitch, suffix": Case(
        stitch,
        ([ints(1), ints(1)], [tf.ones([1, 2]), tf.ones([1, 3])]),
        ("data[1]", "[1,3]", "[2]"),
        True,
    ),
    "stitch, rank of the suffix": Case(
        stitch, ([ints(1), ints()], [tf.ones([1, 1]), tf.ones([])]), ("data[1]",), True
    ),
    "sized, size is a vector": Case(
        sized, (tf.constant([3]), [ints(1)], [tf.ones([1])]), ("size", "[1]"), True
    ),
    "sized, suffix": Case(
        sized,
        (tf.constant(3), [ints(1), ints(1)], [tf.ones([1, 2]), tf.ones([1, 3])]),
        ("data[1]",),
        True,
    ),
    "stitch gradient, scalar": Case(stitch_grad, ([ints(1)], tf.ones([])), ("grad",), True),
    "gather, depth over rank": Case(gather, (tf.ones([3]), ints(1, 2)), ("params", "2", "1"), True),
    "gather, indices is a scalar": Case(gather, (tf.ones([3]), ints()), ("indices",), True),
    "gather, batches disagree": Case(
        batched(1), (tf.ones([2, 3]), ints(3, 1)), ("batch_dims", "(2)", "(3)"), True
    ),
    "gather, two batch dims disagree": Case(
        batched(2), (tf.ones([2, 3, 4]), ints(3, 2, 1)), ("batch_dims", "(2,3)", "(3,2)"), True
    ),
    "gather, depth over rank after the batch": Case(
        batched(1), (tf.ones([2, 3]), ints(2, 2)), ("2",), True
    ),
    "gather, batch_dims too many for indices": Case(
        batched(2), (tf.ones([2, 3]), ints(2, 1)), ("batch_dims", "2", "[2,1]"), True
    ),
    "gather, batch_dims too many for params": Case(
        batched(2), (tf.ones([2]), ints(2, 3, 1)), ("batch_dims",), True
    ),
    "gather, batch_dims negative": Case(
        batched(-1), (tf.ones([2, 3]), ints(2, 1)), ("batch_dims", "-1"), True
    ),
    "scatter, updates": Case(
        scatter, (ints(2, 1), tf.ones([3]), tf.constant([3])), ("updates", "[3]", "[2,1]"), True
    ),
    "scatter, indices is a scalar": Case(
        scatter, (ints(), tf.ones([1]), tf.constant([3])), ("indices",), True
    ),
    "scatter, shape is a scalar": Case(
        scatter, (ints(1, 1), tf.ones([1]), tf.constant(3)), ("shape",), True
    ),
    "scatter, shape is a matrix": Case(
        scatter, (ints(1, 1), tf.ones([1]), tf.constant([[3]])), ("shape",), True
    ),
    "sparse gradient, two columns": Case(
        sparse_grad, (ints(1, 2), tf.ones([1]), tf.constant(3, tf.int64)), ("indices",), True
    ),
    "sparse gradient, grad": Case(
        sparse_grad, (ints(2, 1), tf.ones([1]), tf.constant(3, tf.int64)), ("grad", "[1]"), True
    ),
    "sparse gradient, num_rows is a vector": Case(
        sparse_grad, (ints(1, 1), tf.ones([1]), tf.constant([3], tf.int64)), ("num_rows",), True
    ),
}

BY_VALUE = {
    "stitch, negative": Case(
        stitch,
        ([tf.constant([0, 1]), tf.constant([[1, 2], [-5, 0]])], [tf.ones([2]), tf.ones([2, 2])]),
        ("indices[1][2] = -5 is out of range",),
        False,
    ),
    "stitch, all negative": Case(
        stitch,
        ([tf.constant([-5, -6])], [tf.ones([2])]),
        ("indices[0][0] = -5 is out of range",),
        False,
    ),
    "stitch, negative scalar": Case(
        stitch,
        ([tf.constant([0]), tf.constant(-3)], [tf.ones([1]), tf.ones([])]),
        ("indices[1][0] = -3 is out of range",),
        False,
    ),
    "stitch, least int32": Case(
        stitch,
        ([tf.constant([-(2**31)])], [tf.ones([1])]),
        ("indices[0][0] = -2147483648 is out of range",),
        False,
    ),
    "stitch, least int64": Case(
        stitch,
        ([tf.constant([-(2**63)], tf.int64)], [tf.ones([1])]),
        ("indices[0][0] = -9223372036854775808 is out of range",),
        False,
    ),
    "stitch, negative, rows of width 0": Case(
        stitch,
        ([tf.constant([-1])], [tf.ones([1, 0])]),
        ("indices[0][0] = -1 is out of range",),
        False,
    ),
    "sized, at the size": Case(
        sized,
        (tf.constant(3), [tf.constant([2, 3])], [tf.ones([2])]),
        ("indices[0][1] = 3 is out of range",),
        False,
    ),
    "sized, negative": Case(
        sized,
        (tf.constant(3), [tf.constant([2]), tf.constant([-1])], [tf.ones([1]), tf.ones([1])]),
        ("indices[1][0] = -1 is out of range",),
        False,
    ),
    "sized, no rows": Case(
        sized,
        (tf.constant(0), [tf.constant([0])], [tf.ones([1])]),
        ("indices[0][0] = 0 is out of range",),
        False,
    ),
    "sized, negative size": Case(
        sized, (tf.constant(-3), [ints(0)], [tf.ones([0])]), ("size", "-3"), False
    ),
    "stitch gradient, past the end": Case(
        stitch_grad,
        ([tf.constant([0, 3])], tf.ones([2])),
        ("indices[0][1] = 3 is out of range",),
        False,
    ),
    "gather, past the end": Case(
        gather,
        (tf.ones([3]), tf.constant([[0], [7]])),
        ("indices[1] = [7] does not index into param shape [3]",),
        False,
    ),
    "gather, second of a matrix": Case(
        gather,
        (tf.ones([3]), tf.constant([[[0], [7]], [[8], [0]]])),
        ("indices[0,1] = [7] does not index into param shape [3]",),
        False,
    ),
    "gather, negative component": Case(
        gather,
        (tf.ones([10, 4]), tf.constant([[8, -1]])),
        ("indices[0] = [8, -1] does not index into param shape [10,4]",),
        False,
    ),
    "gather, all components": Case(
        gather,
        (tf.ones([5, 5, 5]), tf.constant([[0, 0, 0], [6, 6, 6]])),
        ("indices[1] = [6, 6, 6] does not index into param shape [5,5,5]",),
        False,
    ),
    "gather, vector of indices": Case(
        gather, (tf.ones([3, 2]), tf.constant([7])), ("= [7] does not index", "[3,2]"), False
    ),
    "gather, far negative int64": Case(
        gather,
        (tf.ones([1, 5]), tf.constant([-50_000_000_000_000_000], tf.int64)),
        ("-50000000000000000",),
        False,
    ),
    "gather, 2**32 is not 0": Case(
        gather, (tf.ones([1, 5]), tf.constant([[2**32]], tf.int64)), ("4294967296",), False
    ),
    "gather, 2**32 is not 0 in the second component": Case(
        gather, (tf.ones([1, 5]), tf.constant([[0, 2**32]], tf.int64)), ("4294967296",), False
    ),
    "gather, greatest int32": Case(
        gather, (tf.ones([3]), tf.constant([[2**31 - 1]])), ("[2147483647]",), False
    ),
    "gather, int16": Case(
        gather,
        (tf.ones([3]), tf.constant([[-(2**15)]], tf.int16)),
        ("indices[0] = [-32768] does not index",),
        False,
    ),
    "gather, depth 9": Case(
        gather,
        (tf.ones([2] * 9), tf.constant([[0] * 9, [1] * 8 + [2]])),
        ("indices[1] = [1, 1, 1, 1, 1, 1, 1, 1, 2]",),
        False,
    ),
    "gather, empty slices": Case(
        gather, (tf.zeros([2, 0]), tf.constant([[7]])), ("indices[0] = [7]", "[2,0]"), False
    ),
    "gather, params are empty": Case(
        gather,
        (tf.zeros([0, 5]), tf.constant([[0]])),
        ("Requested more than 0 entries, but params is empty.  Params shape: [0,5]",),
        False,
    ),
    "gather, params are empty, depth 2": Case(
        gather,
        (tf.zeros([5, 0]), tf.constant([[0, 0]])),
        ("Requested more than 0 entries, but params is empty.  Params shape: [5,0]",),
        False,
    ),
    "gather, in a batch": Case(
        batched(1),
        (tf.ones([2, 3]), tf.constant([[1], [7]])),
        ("indices[1] = [7] does not index",),
        False,
    ),
    "gather, inside a batch": Case(
        batched(1),
        (tf.ones([2, 3, 4]), tf.constant([[[1], [2]], [[0], [-1]]])),
        ("indices[1,1] = [-1] does not index",),
        False,
    ),
    "gather, the batch dimension's size is no limit": Case(
        # 3 would be in range, were it held against the batch dimension.
        batched(1),
        (tf.ones([9, 3]), ints(9, 1) + 3),
        ("indices[0] = [3] does not index",),
        False,
    ),
    "scatter, past the end": Case(
        scatter,
        (tf.constant([[0], [7]]), tf.ones([2]), tf.constant([3])),
        ("indices[1] = [7] does not index into", "[3]"),
        False,
    ),
    "scatter, second of a matrix": Case(
        scatter,
        (tf.constant([[[0], [7]], [[1], [1]]]), tf.ones([2, 2, 2]), tf.constant([3, 2])),
        ("indices[0,1] = [7] does not index into", "[3,2]"),
        False,
    ),
    "scatter, negative": Case(
        scatter,
        (tf.constant([[0], [-1]]), tf.ones([2]), tf.constant([3])),
        ("indices[1] = [-1] does not index",),
        False,
    ),
    "scatter, onto nothing": Case(
        scatter, (tf.constant([[0]]), tf.ones([1]), tf.constant([0])), ("[0]",), False
    ),
    "scatter, slice": Case(
        scatter,
        (tf.constant([[0], [1]]), tf.ones([2, 2]), tf.constant([3, 3])),
        ("updates", "[2,2]", "[3,3]"),
        False,
    ),
    "scatter, negative shape": Case(
        scatter, (tf.constant([[0]]), tf.ones([1]), tf.constant([-3])), ("-3",), False
    ),
    "scatter, in a batch": Case(
        batched_scatter,
        (tf.constant([[[0]], [[5]]]), tf.ones([2, 1]), tf.constant([2, 3])),
        ("indices[1,0] = [5] does not index",),
        False,
    ),
    "scatter, batches disagree": Case(
        batched_scatter,
        (ints(2, 1, 1), tf.ones([2, 1]), tf.constant([3, 3])),
        ("(2)", "(3)"),
        False,
    ),
    "sparse gradient, past the end": Case(
        sparse_grad,
        (tf.constant([[0], [3]]), tf.ones([2]), tf.constant(3, tf.int64)),
        ("indices[1] = [3] does not index",),
        False,
    ),
    "sparse gradient, negative num_rows": Case(
        sparse_grad, (ints(0, 1), tf.ones([0]), tf.constant(-3, tf.int64)), ("-3",), False
    ),
}


@in_every_mode
@pytest.mark.parametrize("name", [*BY_SHAPE, *BY_VALUE])
def test_message_and_class(name, mode):
    case = (BY_SHAPE | BY_VALUE)[name]
    # What the shapes tell is found out when the graph is built, where Python gets a ValueError.
    kind = ValueError if mode == "function" and case.by_shape else INVALID
    if name == "gather, batch_dims negative" and mode != "eager":
        kind = ValueError
    with pytest.raises(kind) as info:
        call(mode, case.fn, *case.args)
    text = str(info.value)
    missing = [f for f in case.fragments if f not in text and mode != "function"]
    assert not missing, f"lacks {missing}: {text}"
    if mode == "function":
        # The user's code precedes it, and inputs are shown with their shapes.
        assert re.search(re.escape(case.fragments[0]), text), text


class TestStitchLists:
    @in_each_mode
    @pytest.mark.parametrize(("count", "data_count"), [(3, 4), (4, 2), (1, 0), (0, 1), (0, 0)])
    def test_unequal_or_empty(self, count, data_count, mode):
        indices = [tf.constant([k]) for k in range(count)]
        data = [tf.constant([float(k)]) for k in range(data_count)]
        for fn in (stitch, tsg.dynamic_stitch):
            with pytest.raises(support.ARGUMENT_ERRORS):
                call(mode, lambda f=fn: f(indices, data))

    @in_each_mode
    def test_message_names_both_lengths(self, mode):
        with fails("data", "indices", "3", "4", kinds=(ValueError, INVALID)):
            call(mode, lambda: tsg.dynamic_stitch([[0], [1], [2]], [[1.0], [2.0], [3.0], [4.0]]))

    def test_variables_in_place_of_lists(self):
        indices = tf.Variable([[4, 3, 1, 7], [1, 5, 1, 0]])
        with fails("indices", kinds=(TypeError, ValueError)):
            tsg.dynamic_stitch(indices, tf.Variable([9, 10, 11, 12]))
        with fails("indices", kinds=(TypeError, ValueError)):
            tsg.dynamic_stitch(tf.constant([0, 1]), [tf.constant([1.0, 2.0])])
        with fails("data", kinds=(TypeError, ValueError)):
            tsg.dynamic_stitch([[0], [1]], tf.constant(1.0))

    @pytest.mark.parametrize("make", [tf.constant, np.array], ids=["eager tensor", "array"])
    def test_rows_in_place_of_lists(self, make):
        indices, data = make([[0, 2], [1, 0]]), make([[1.0, 2.0], [3.0, 4.0]])
        want = tf.dynamic_stitch(list(indices), list(data))
        support.same(tsg.dynamic_stitch(indices, data), want)
        support.same(tsg.dynamic_stitch(list(indices), data), want)
        support.same(tsg.dynamic_stitch(indices, list(data), size=3), want)

    @in_each_mode
    @pytest.mark.parametrize(
        ("indices", "data", "words"),
        [
            ([], [], "indices must hold at least 1 tensor"),
            ([[0]], [], "data must hold at least 1 tensor"),
            ([[0], [1]], [[1.0]], "the same length, got 2 and 1"),
            ([[0], [1.5]], [[1.0], [2.0]], "indices[1] must be integers"),
            ([[True], [1]], [[1.0], [2.0]], "indices[0] must be integers"),
        ],
        ids=["no parts", "no data", "unequal", "float indices", "boolean indices"],
    )
    def test_message_names_the_argument(self, indices, data, words, mode):
        with fails(words, kinds=(TypeError, ValueError)):
            call(mode, lambda: tsg.dynamic_stitch(indices, data))

    @in_each_mode
    def test_mixed_types(self, mode):
        with pytest.raises(support.ARGUMENT_ERRORS):
            call(
                mode,
                stitch,
                [tf.constant([0]), tf.constant([1])],
                [tf.constant([1.0]), tf.constant([1])],
            )
        with pytest.raises(support.ARGUMENT_ERRORS):
            call(mode, stitch, [tf.constant([0.0])], [tf.constant([1.0])])
        with pytest.raises(support.ARGUMENT_ERRORS):
            call(mode, tsg.dynamic_stitch, [tf.constant([0.0])], [tf.constant([1.0])])


class TestRandomBadStitch:
    def test_process_survives(self, rng):
        # The third index is outside or inside by chance; out of range must be told, in range work.
        for _ in range(60):
            index = rng.integers(-256, 257, 2).astype(np.int32)
            indices, data = [index, index[0]], [np.array([1, 2]), np.array(3)]
            if (index < 0).any():
                with fails("is out of range", kinds=INVALID):
                    tsg.dynamic_stitch(indices, data)
            else:
                support.same(tsg.dynamic_stitch(indices, data), oracle.stitch(indices, data))


class TestBatchDims:
    PARAMS = ((1, 2), (3, 4))
    INDICES = ((1,), (0,))

    @in_each_mode
    @pytest.mark.parametrize(
        "value",
        [True, np.True_, 1.5, np.float32(1), tf.constant(1.0), "1", None, [1], tf.constant([1])],
        ids=repr,
    )
    def test_what_is_no_integer_scalar_is_a_type_error(self, value, mode):
        with fails("batch_dims", kinds=TypeError):
            call(mode, lambda: tsg.gather_nd(self.PARAMS, self.INDICES, batch_dims=value))

    @in_each_mode
    def test_negative_is_a_value_error(self, mode):
        with fails("batch_dims", "-1", kinds=ValueError):
            call(mode, lambda: tsg.gather_nd(self.PARAMS, self.INDICES, batch_dims=-1))

    @in_each_mode
    @pytest.mark.parametrize("value", [2, 3, 2**31, 2**62])
    def test_too_many(self, value, mode):
        with fails("batch_dims", kinds=(ValueError, INVALID)):
            call(mode, lambda: tsg.gather_nd(self.PARAMS, self.INDICES, batch_dims=value))

    @in_each_mode
    def test_disagreement_speaks_of_batches_and_not_of_a_reshape(self, mode):
        with fails("batch", kinds=(ValueError, INVALID)) as info:
            call(
                mode,
                lambda p, i: tsg.gather_nd(p, i, batch_dims=1),
                tf.reshape(tf.range(6), [2, 3]),
                tf.ones([3, 1], tf.int32),
            )
        assert "reshape" not in str(info.value).lower().replace("/reshape", "")


class TestPolicy:
    CALLS = (
        lambda policy: tsg.gather_nd([1.0], [[0]], bad_indices_policy=policy),
        lambda policy: tsg.scatter_nd([[0]], [1.0], [1], bad_indices_policy=policy),
        lambda policy: raw.MyDynamicStitchSized(
            size=1, indices=[[0]], data=[[1.0]], bad_indices_policy=policy
        ),
        lambda policy: raw.MyDynamicStitchGrad(
            indices=[[0]], grad=[1.0], bad_indices_policy=policy
        ),
        lambda policy: raw.MyGatherNdSparseGrad(
            indices=[[0]], grad=[1.0], num_rows=1, bad_indices_policy=policy
        ),
    )
    IDS = ("gather", "scatter", "stitch", "stitch gradient", "sparse gradient")

    @in_each_mode
    @pytest.mark.parametrize("fn", CALLS, ids=IDS)
    @pytest.mark.parametrize("policy", ["CLAMP", "ignore", "IGNORE "])
    def test_unknown_value_lists_the_known_ones(self, policy, fn, mode):
        kind = INVALID if mode == "eager" else (INVALID, ValueError)
        with fails(policy, "DEFAULT", "ERROR", "IGNORE", kinds=kind) as info:
            call(mode, lambda: fn(policy))
        message = str(info.value)
        # In a function the text begins with the user's code.
        assert len(message) < LIMIT + (1500 if mode == "function" else 0), message

    @pytest.mark.parametrize("fn", CALLS, ids=IDS)
    def test_bytes_that_are_no_text_do_not_cut_the_message(self, fn):
        with fails("'ERR\\x00\\xc3\\xa9' is not one of", "'IGNORE'", kinds=INVALID):
            fn("ERR\0é")
        with fails("x...' is not one of", kinds=INVALID) as info:
            fn("x" * 100_000)
        assert len(str(info.value)) < LIMIT

    @in_each_mode
    @pytest.mark.parametrize("policy", ["", "DEFAULT", "ERROR"])
    def test_a_bad_index_is_an_error_on_cpu(self, policy, mode):
        with tf.device("CPU:0"):
            with fails("[5] does not index", kinds=INVALID):
                call(
                    mode,
                    lambda p, i: tsg.gather_nd(p, i, bad_indices_policy=policy),
                    tf.ones([3, 2]),
                    tf.constant([[1], [5]]),
                )
            with fails("[5] does not index", kinds=INVALID):
                call(
                    mode,
                    lambda i, u: tsg.scatter_nd(i, u, [3], bad_indices_policy=policy),
                    tf.constant([[1], [5]]),
                    tf.ones([2]),
                )
            with fails("= 5 is out of range", kinds=INVALID):
                call(
                    mode,
                    lambda i, d: raw.MyDynamicStitchSized(
                        size=3, indices=[i], data=[d], bad_indices_policy=policy
                    ),
                    tf.constant([1, 5]),
                    tf.ones([2]),
                )


class TestFirstBadIndex:
    """Of many bad indices the first in row-major order is named, however many threads look."""

    COUNT = 200_000

    def bad_places(self, rng):
        return np.sort(rng.choice(self.COUNT, 500, replace=False))

    @pytest.mark.parametrize("index_type", support.GATHER_INDEX_TYPES, ids=lambda t: t.name)
    @pytest.mark.parametrize("depth", [1, 2, 3, 9])
    def test_gather(self, depth, index_type, rng):
        params = tf.ones([3] * depth)
        for _ in range(3):
            index = rng.integers(0, 3, (self.COUNT, depth))
            bad = self.bad_places(rng)
            index[bad, rng.integers(0, depth, bad.size)] = rng.choice([-1, 3, 999], bad.size)
            vector = ", ".join(map(str, index[bad[0]]))
            for _ in range(3):
                with fails(f"indices[{bad[0]}] = [{vector}] does not index", kinds=INVALID):
                    tsg.gather_nd(params, tensor(index, index_type))

    def test_gather_in_a_matrix_of_indices(self, rng):
        index = rng.integers(0, 3, (400, 500, 1))
        bad = np.argwhere(rng.random((400, 500)) < 0.001)
        index[tuple(bad.T)] = 7
        at = ",".join(map(str, bad[0]))
        with fails(f"indices[{at}] = [7] does not index into param shape [3,2]", kinds=INVALID):
            tsg.gather_nd(tf.ones([3, 2]), index)
        index = np.broadcast_to(index, (400, 500, 1))
        with fails(f"indices[{at}] = [7] does not index", kinds=INVALID):
            tsg.gather_nd(tf.ones([400, 3]), index, batch_dims=1)

    def test_gather_of_nothing_but_bad_indices(self):
        for rows in (1, 2, 1000, 100_000):
            with fails("indices[0] = [-9]", kinds=INVALID):
                tsg.gather_nd(tf.ones([3, 8]), np.full((rows, 1), -9))

    def test_scatter(self, rng):
        for shape, depth in (((50,), 1), ((9, 9), 2), ((50, 16), 1)):
            index = rng.integers(0, 9, (self.COUNT // 4, depth))
            bad = np.sort(rng.choice(len(index), 200, replace=False))
            index[bad, -1] = 50
            vector = ", ".join(map(str, index[bad[0]]))
            for _ in range(3):
                with fails(f"indices[{bad[0]}] = [{vector}] does not index", kinds=INVALID):
                    tsg.scatter_nd(index, np.ones((len(index), *shape[depth:]), "f"), shape)

    def test_stitch(self, rng):
        for _ in range(3):
            index = [rng.integers(0, 1000, self.COUNT) for _ in range(3)]
            bad = self.bad_places(rng)
            index[1][bad], index[2][bad] = -7, -8
            data = [np.zeros((self.COUNT, 2), np.float32)] * 3
            with fails(f"indices[1][{bad[0]}] = -7 is out of range", kinds=INVALID):
                tsg.dynamic_stitch(index, data)
            with fails(f"indices[1][{bad[0]}] = -7 is out of range", kinds=INVALID):
                tsg.dynamic_stitch(index, data, size=1000)

    def test_sparse_gradient(self, rng):
        index = rng.integers(0, 1000, (self.COUNT, 1))
        bad = self.bad_places(rng)
        index[bad] = rng.choice([-1, 1000], (bad.size, 1))
        with fails(f"indices[{bad[0]}] = [{index[bad[0], 0]}] does not index", kinds=INVALID):
            raw.MyGatherNdSparseGrad(indices=index, grad=np.zeros(self.COUNT), num_rows=1000)


class TestNodeName:
    @pytest.mark.parametrize(
        "fn",
        [
            lambda: tsg.gather_nd([1.0], [[7]], name="my_lookup"),
            lambda: tsg.gather_nd(tf.zeros([0]), [[7]], name="my_lookup"),
            lambda: tsg.scatter_nd([[7]], [1.0], [3], name="my_lookup"),
            lambda: tsg.dynamic_stitch([[-7]], [[1.0]], name="my_lookup"),
        ],
        ids=["gather", "gather of nothing", "scatter", "stitch"],
    )
    def test_is_in_the_message(self, fn):
        with fails("my_lookup", kinds=INVALID):
            tf.function(fn)()


class TestValuesPastInt32:
    """Integers that Python or NumPy hands over keep their value, and so are out of range."""

    FAR = (2**32, 2**32 + 1, -(2**32), 2**40 + 1)

    @pytest.mark.parametrize("make", [list, np.array, tf.constant], ids=["list", "array", "tensor"])
    @pytest.mark.parametrize("far", FAR)
    def test_gather(self, far, make):
        with fails(f"[{far}] does not index", kinds=INVALID):
            tsg.gather_nd(tf.range(5), make([[far]]))
        with fails(f"[{far}] does not index", kinds=INVALID):
            tf.function(lambda: tsg.gather_nd(tf.range(5), make([[far]])))()

    @pytest.mark.parametrize("make", [list, np.array, tf.constant], ids=["list", "array", "tensor"])
    @pytest.mark.parametrize("far", FAR)
    def test_scatter(self, far, make):
        with fails(f"[{far}] does not index", kinds=INVALID):
            tsg.scatter_nd(make([[far]]), [1.0], [5])

    @pytest.mark.parametrize("make", [list, np.array, tf.constant], ids=["list", "array", "tensor"])
    def test_stitch(self, make):
        with fails("-4294967296 is out of range", kinds=INVALID):
            tsg.dynamic_stitch([make([-(2**32)])], [[1.0]])
        with fails("4294967297 is out of range", kinds=INVALID):
            tsg.dynamic_stitch([make([2**32 + 1])], [[1.0]], size=5)
        with pytest.raises((INVALID, tf.errors.ResourceExhaustedError)):
            tsg.dynamic_stitch([make([2**50])], [[1.0]])

    @pytest.mark.parametrize("size", [2**60, np.int64(2**60), np.array(2**60)], ids=type)
    def test_size(self, size):
        with pytest.raises((INVALID, tf.errors.ResourceExhaustedError)):
            tsg.dynamic_stitch([[0]], [[1.0]], size=size)


class TestArguments:
    @pytest.mark.parametrize(
        "fn",
        [
            lambda: tsg.gather_nd([1.0], [[0.0]]),
            lambda: tsg.gather_nd([1.0], np.array([[0.0]])),
            lambda: tsg.gather_nd([1.0], [["a"]]),
            lambda: tsg.gather_nd([1.0], [[True]]),
            lambda: tsg.scatter_nd([[0.0]], [1.0], [1]),
            lambda: tsg.scatter_nd([[0]], [1.0], [1.0]),
            lambda: tsg.dynamic_stitch([np.array([0.0])], [[1.0]]),
            lambda: tsg.dynamic_stitch([[0]], [[1.0]], size=1.5),
            lambda: tsg.dynamic_stitch([[0]], [[1.0]], size=np.float64(1)),
            lambda: tsg.dynamic_stitch([[0]], [[1.0]], size=[1]),
            lambda: tsg.dynamic_stitch([[0]], [[1.0]], size=-1),
            lambda: tsg.dynamic_stitch(None, [[1.0]]),
            lambda: tsg.dynamic_stitch([[0]], None),
            lambda: tsg.gather_nd(None, [[0]]),
            lambda: tsg.gather_nd([1.0], None),
            lambda: tsg.gather_nd([1.0], [[0], [0, 1]]),
        ],
        ids=[
            "float indices",
            "array of float indices",
            "string indices",
            "boolean indices",
            "float indices of a scatter",
            "float shape",
            "array of float indices of a stitch",
            "float size",
            "NumPy float size",
            "vector size",
            "negative size",
            "no list of indices",
            "no list of data",
            "no params",
            "no indices",
            "uneven indices",
        ],
    )
    @in_each_mode
    def test_nonsense_is_an_argument_error(self, fn, mode):
        with pytest.raises(support.ARGUMENT_ERRORS):
            call(mode, fn)

    @in_each_mode
    @pytest.mark.parametrize("value", [1.5, True, "a"], ids=["float", "bool", "string"])
    def test_message_names_what_is_no_integer(self, value, mode):
        dtype = tf.constant(value).dtype.name
        for argument, fn in (
            ("size", lambda: tsg.dynamic_stitch([[0]], [[1.0]], size=value)),
            ("indices[0]", lambda: tsg.dynamic_stitch([[value]], [[1.0]])),
            ("indices", lambda: tsg.gather_nd([1.0], [[value]])),
            ("indices", lambda: tsg.scatter_nd([[value]], [1.0], [1])),
            ("shape", lambda: tsg.scatter_nd([[0]], [1.0], [value])),
        ):
            with fails(
                f"{argument} must be integers of 8 to 64 bits, got {dtype}", kinds=TypeError
            ):
                call(mode, fn)

    @in_each_mode
    def test_an_index_beyond_int64_does_not_turn_negative(self, mode):
        huge = tf.constant([2**64 - 1], tf.uint64)
        with fails("[9223372036854775807] does not index", kinds=INVALID):
            call(mode, lambda i: tsg.gather_nd([1.0], i), huge)
        with fails("[9223372036854775807] does not index", kinds=INVALID):
            call(mode, lambda i: tsg.scatter_nd(i[:, None], [1.0], [1]), huge)
        with fails("indices[0][0] = 9223372036854775807 is out of range", kinds=INVALID):
            call(mode, lambda i: tsg.dynamic_stitch([i], [[1.0]], size=1), huge)
        with fails("[1099511627776] does not index", kinds=INVALID):
            call(mode, lambda i: tsg.gather_nd([1.0], i), tf.constant([2**40], tf.uint64))

    def test_a_shape_whose_product_overflows(self):
        with pytest.raises((*support.ARGUMENT_ERRORS, tf.errors.ResourceExhaustedError)):
            tsg.scatter_nd(tf.zeros([0, 3], tf.int64), tf.zeros([0]), [2**40, 2**40, 2**40])
        with pytest.raises((*support.ARGUMENT_ERRORS, tf.errors.ResourceExhaustedError)):
            tsg.dynamic_stitch([tf.zeros([0], tf.int64)], [tf.zeros([0, 2**20])], size=2**60)
