"""The ops compiled by XLA, against the NumPy oracle, the built-in ops and eager mode.

Cases share a compiled function where they can: one costs 50 to 500 ms.
"""

from __future__ import annotations

import doctest
import itertools
import re
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
import tf_stitch_gather as sg
from support import (
    ADDABLE,
    FIXED_WIDTH,
    GATHER_INDEX_TYPES,
    STITCH_INDEX_TYPES,
    array_of,
    child,
    close,
    element_type,
    equal,
    fails,
    numbers_of,
    same,
    tensor,
)
from tensorflow.python.framework import kernels

ROOT = Path(__file__).resolve().parents[1]

NOT_IN_XLA = ("qint16", "quint16", "int2", "uint2", "float4_e2m1fn")
XLA_TYPES = [t for t in FIXED_WIDTH if t.name not in NOT_IN_XLA]
SUMMED = [t for t in ADDABLE if t in XLA_TYPES]
SPARSE = (tf.bool, tf.int8, tf.int64, tf.float16, tf.bfloat16, tf.float32, tf.complex64)
POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")

in_every_xla_type = pytest.mark.parametrize("dtype", XLA_TYPES, ids=lambda t: t.name)


def jit(fn: Callable) -> Callable:
    return tf.function(fn, jit_compile=True, autograph=False)


def jit_unknown(fn: Callable, *dtypes: tf.DType) -> Callable:
    """A function that knows no shape before it is compiled: what is wrong the kernels find out."""
    specs = [tf.TensorSpec(None, dtype) for dtype in dtypes]
    return tf.function(fn, input_signature=specs, jit_compile=True, autograph=False)


def wide(dtype: tf.DType) -> tf.DType:
    """The type in which values enter a function and leave it.

    TensorFlow hands tensors of 4-bit types to XLA as if they were packed, which they are not.
    """
    return {"int4": tf.int8, "uint4": tf.uint8}.get(dtype.name, dtype)


def outside(values: np.ndarray, dtype: tf.DType) -> tf.Tensor:
    return tensor(values, wide(dtype))


def leaving(value: tf.Tensor) -> tf.Tensor:
    return tf.cast(value, wide(value.dtype))


def all_same(got: Any, want: Any, note: str = "") -> None:
    got, want = tf.nest.flatten(got), tf.nest.flatten(want)
    assert len(got) == len(want)
    for n, (g, w) in enumerate(zip(got, want, strict=True)):
        w = w.astype({"int4": np.int8, "uint4": np.uint8}.get(w.dtype.name, w.dtype))
        same(g, w, f"{note} output {n}")


def some_bad(rng: np.random.Generator, limits: tuple[int, ...], outer: tuple[int, ...]):
    """Index vectors, about a third of which are out of range on either side."""
    return np.stack([rng.integers(-1, n + 1, outer) for n in limits], -1)


# ---------------------------------------------------------------- each type


def test_is_loaded():
    assert sg.build_info()["xla"] == {"loaded": True, "reason": None}


def test_types_are_those_that_xla_knows():
    jit(tf.identity)(1.0)  # TensorFlow registers the kernels of XLA with the first function.

    def types(op: str, attr: str) -> set[int]:
        for kernel in kernels.get_registered_kernels_for_op(op).kernel:
            if kernel.device_type == "XLA_CPU_JIT":
                limits = {c.name: c.allowed_values.list.type for c in kernel.constraint}
                return set(limits[attr])
        raise AssertionError(f"{op} has no kernel for XLA")

    known = types("GatherNd", "Tparams")
    assert known == {t.as_datatype_enum for t in XLA_TYPES}
    for op in sg.raw_ops.__all__:
        attr = {"MyGatherNd": "Tparams", "MyResourceGatherNd": "dtype"}.get(op, "T")
        assert types(op, attr) == known, op


@in_every_xla_type
def test_gather_of_each_type(dtype, rng):
    """Rows, scalars, batches and depth 0; indices out of range give zeros."""
    params = array_of(rng, (3, 4, 5), dtype)
    calls = [((3,), 0), ((3, 4), 0), ((3, 4, 5), 0), ((4,), 1), ((5,), 2), ((), 0)]
    index_types = itertools.cycle(GATHER_INDEX_TYPES)
    cases = []
    for limits, batch_dims in calls:
        outer = (*params.shape[:batch_dims], 4)
        indices = some_bad(rng, limits, outer) if limits else np.zeros((4, 0))
        cases.append((indices.astype(element_type(next(index_types))), batch_dims))

    @jit
    def gather(params, *indices):
        params = tf.cast(params, dtype)
        return [
            leaving(sg.gather_nd(params, i, batch_dims=b))
            for i, (_, b) in zip(indices, cases, strict=True)
        ]

    got = gather(outside(params, dtype), *(tf.constant(i) for i, _ in cases))
    all_same(got, [oracle.gather_nd(params, i, b, ignore=True) for i, b in cases])


@in_every_xla_type
def test_stitch_and_gradient_of_each_type(dtype, rng):
    """Duplicates, gaps and indices out of range, known to XLA and not known to it."""
    shapes = [(4,), (2, 3), (), (0,)]
    data = [array_of(rng, (*shape, 2), dtype) for shape in shapes]
    upstream = array_of(rng, (7, 2), dtype)
    cases = [
        [rng.integers(-1, 8, s).astype(element_type(t)) for s in shapes] for t in STITCH_INDEX_TYPES
    ]

    @jit
    def stitch(data, upstream, given):
        out = []
        data, upstream = [tf.cast(d, dtype) for d in data], tf.cast(upstream, dtype)
        for indices in (cases[0], given):
            out += [
                sg.dynamic_stitch(indices, data, size=7),
                *sg.raw_ops.MyDynamicStitchGrad(indices=indices, grad=upstream),
            ]
        return [leaving(value) for value in out]

    got = stitch(
        [outside(d, dtype) for d in data],
        outside(upstream, dtype),
        [tf.constant(i) for i in cases[1]],
    )
    want = []
    for indices in cases:
        want += [oracle.stitch(indices, data, 7), *oracle.stitch_gradient(indices, upstream, 7)]
    all_same(got, want)


@pytest.mark.parametrize("dtype", SUMMED, ids=lambda t: t.name)
def test_sums_of_each_type(dtype, rng):
    """Many updates of one place, in order; indices out of range are left out."""
    calls = [((3,), 0, (4,)), ((3, 4), 0, ()), ((4,), 1, ()), ((), 0, (3, 4))]
    index_types = itertools.cycle(GATHER_INDEX_TYPES)
    cases = []
    for limits, batch_dims, slice_shape in calls:
        outer = (*(3, 4)[:batch_dims], 20)
        indices = some_bad(rng, limits, outer) if limits else np.zeros((20, 0))
        updates = numbers_of(rng, (*outer, *slice_shape), dtype)
        cases.append((indices.astype(element_type(next(index_types))), updates, batch_dims))

    @jit
    def scatter(*inputs):
        return [
            leaving(
                sg.raw_ops.MyScatterNd(
                    indices=i,
                    updates=tf.cast(u, dtype),
                    shape=tf.cast([3, 4], i.dtype),
                    batch_dims=b,
                )
            )
            for i, u, (_, _, b) in zip(inputs[::2], inputs[1::2], cases, strict=True)
        ]

    got = scatter(*(t for i, u, _ in cases for t in (tf.constant(i), outside(u, dtype))))
    all_same(got, [oracle.scatter_nd(i, u, (3, 4), b, ignore=True) for i, u, b in cases])


@pytest.mark.parametrize("dtype", SPARSE, ids=lambda t: t.name)
def test_sparse_gradient(dtype, rng):
    """Its shape depends on the indices, as on the CPU."""
    indices = rng.integers(-1, 7, (2, 9, 1))
    grad = numbers_of(rng, (2, 9, 3), dtype)
    arguments = tf.constant(indices), outside(grad, dtype), tf.constant(6, tf.int64)

    def sparse(indices, grad, num_rows):
        rows, values = sg.raw_ops.MyGatherNdSparseGrad(
            indices=indices,
            grad=tf.cast(grad, dtype),
            num_rows=num_rows,
            bad_indices_policy="IGNORE",
        )
        return rows, leaving(values)

    got, want = jit(sparse)(*arguments), sparse(*arguments)
    all_same(got, [w.numpy() for w in want])


def test_a_type_that_xla_does_not_add():
    with fails("qint8", "cannot be added"):
        jit(lambda u: sg.scatter_nd([[0]], u, [2]))(tensor([1], tf.qint8))


@pytest.mark.parametrize("policy", POLICIES)
def test_an_index_out_of_range_has_no_effect_whatever_the_policy(policy):
    indices = tf.constant([[2], [3], [-1], [0]])

    @jit
    def call(indices):
        return (
            sg.gather_nd(tf.constant([5, 6, 7]), indices, bad_indices_policy=policy),
            sg.scatter_nd(indices, tf.constant([1, 2, 3, 4]), [3], bad_indices_policy=policy),
            sg.raw_ops.MyDynamicStitchSized(
                size=3,
                indices=[indices[:, 0]],
                data=[tf.constant([1, 2, 3, 4])],
                bad_indices_policy=policy,
            ),
        )

    all_same(call(indices), [np.int32(x) for x in ([7, 0, 0, 5], [4, 0, 1], [4, 0, 1])])


def test_against_the_built_in_ops(rng):
    """Where those are right under XLA: indices in range, and no gap in a stitch."""
    params, updates = tf.constant(rng.normal(size=(6, 5, 4))), tf.constant(rng.normal(size=(30, 4)))
    indices = tf.constant(np.stack([rng.integers(0, 6, 30), rng.integers(0, 5, 30)], -1))
    places = np.split(rng.permutation(30).astype(np.int32), [12])
    data = tf.split(updates, [12, 18])

    @jit
    def ours(params, indices, updates, data):
        return (
            sg.gather_nd(params, indices),
            sg.gather_nd(params, indices[:6, None, :1] % 5, batch_dims=1),
            sg.scatter_nd(indices, updates, [6, 5, 4]),
            sg.dynamic_stitch(places, data),
        )

    @jit
    def theirs(params, indices, updates, data):
        return (
            tf.raw_ops.GatherNd(params=params, indices=indices),
            tf.gather_nd(params, indices[:6, None, :1] % 5, batch_dims=1),
            tf.raw_ops.ScatterNd(
                indices=indices, updates=updates, shape=tf.constant([6, 5, 4], tf.int64)
            ),
            tf.raw_ops.DynamicStitch(indices=places, data=data),
        )

    arguments = params, indices, updates, data
    all_same(ours(*arguments), [t.numpy() for t in theirs(*arguments)])


# ---------------------------------------------------------------- shapes


def test_extreme_shapes():
    """Ten columns, more rows than an index type counts, nothing asked for, slices of nothing."""
    deep = np.arange(2.0**10, dtype=np.float32).reshape([2] * 10)
    place = [1, 0] * 5

    @jit
    def gather(deep, wide):
        return (
            sg.gather_nd(deep, [place]),
            sg.gather_nd(wide, tf.constant([[32767], [-32768]], tf.int16)),
            sg.gather_nd(deep, [1, 1]),
            sg.gather_nd(wide, tf.zeros([0, 1], tf.int32)),
            sg.gather_nd(wide, tf.zeros([2, 0, 1], tf.int64)),
            sg.gather_nd(tf.zeros([3, 0, 2]), [[1], [7]]),
            sg.gather_nd(tf.zeros([0, 2]), [[1]], bad_indices_policy="IGNORE"),
            sg.scatter_nd(tf.zeros([0, 1], tf.int32), tf.zeros([0, 3]), [2, 3]),
            sg.scatter_nd([[0]], tf.zeros([1, 0]), [2, 0]),
            sg.scatter_nd([[0]], tf.ones([1, 2]), [0, 2]),
            sg.dynamic_stitch([tf.zeros([0], tf.int32)], [tf.zeros([0, 3])]),
            sg.dynamic_stitch([tf.zeros([0], tf.int32)], [tf.zeros([0, 3])], size=2),
            sg.dynamic_stitch([[1]], [tf.zeros([1, 0])]),
            sg.dynamic_stitch([5], [7.0], size=0),
            sg.dynamic_stitch([[9999], [20, 9999]], [[1.0], [2.0, 3.0]]),
        )

    def zeros(*shape):
        return np.zeros(shape, np.float32)

    got = gather(tf.constant(deep), tf.range(40000, dtype=tf.int64))
    want = [
        deep[tuple(place)][None],
        np.int64([32767, 0]),
        deep[1, 1],
        np.zeros((0,), np.int64),
        np.zeros((2, 0), np.int64),
        zeros(2, 0, 2),
        zeros(1, 2),
        zeros(2, 3),
        zeros(2, 0),
        zeros(0, 2),
        zeros(0, 3),
        zeros(2, 3),
        zeros(2, 0),
        zeros(0),
        np.eye(1, 10000, 20, dtype=np.float32)[0] * 2
        + np.eye(1, 10000, 9999, dtype=np.float32)[0] * 3,
    ]
    all_same(got, want)


def test_many_parts(rng):
    parts = 40
    indices = rng.integers(0, 150, (parts, 3)).astype(np.int32)
    data = rng.normal(size=(parts, 3, 2)).astype(np.float32)

    @jit
    def stitch(indices, data):
        return sg.dynamic_stitch(tf.unstack(indices), tf.unstack(data), size=150)

    same(stitch(tf.constant(indices), tf.constant(data)), oracle.stitch(indices, data, 150))


def test_dynamic_shapes():
    """`where`, `boolean_mask` and `dynamic_partition` give XLA a bound in place of a size."""

    def call(mask, values, ids):
        chosen = tf.where(mask)
        places = tf.dynamic_partition(tf.range(tf.size(ids)), ids % 2, 2)
        shards = tf.dynamic_partition(ids // 2, ids % 2, 2)
        rows = [sg.gather_nd(values, shard[:, None]) for shard in shards]
        return (
            sg.gather_nd(values, chosen),
            sg.gather_nd(tf.boolean_mask(values, mask), [[0], [1], [2]]),
            sg.scatter_nd(chosen, tf.boolean_mask(values, mask), [4]),
            sg.dynamic_stitch([chosen[:, 0]], [tf.boolean_mask(values, mask)], size=4),
            sg.dynamic_stitch(places, rows, size=tf.size(ids)),
            sg.dynamic_stitch(places, rows),
        )

    compiled = jit(call)
    for mask in ([True, False, True, False], [False, False, False, True]):
        got = compiled(tf.constant(mask), tf.range(1.0, 5.0), tf.constant([3, 0, 2, 3, 1]))
        count = sum(mask)
        values = np.float32([1, 2, 3, 4])[mask]
        spread = np.where(mask, np.float32([1, 2, 3, 4]), np.float32(0))
        padded = np.concatenate([values, np.zeros(3 - count, np.float32)])
        rows = np.float32([2, 1, 2, 2, 1])
        all_same(got, [values, padded, spread, spread, rows, rows], str(mask))


def test_gradients_with_dynamic_shapes():
    """Each part of a stitch begins where the one before really ends."""
    table = tf.Variable([1.0, 2.0, 3.0, 4.0])

    def derivatives(mask, ids):
        places = tf.dynamic_partition(tf.range(tf.size(ids)), ids % 2, 2)
        with tf.GradientTape() as tape:
            parts = tf.dynamic_partition(tf.gather(table, ids), ids % 2, 2)
            sized = sg.dynamic_stitch(places, parts, size=tf.size(ids))
            merged = sg.dynamic_stitch(places, parts)
            chosen = sg.gather_nd(table, tf.where(mask))
            loss = tf.reduce_sum(sized**2) + tf.reduce_sum(merged**3) + tf.reduce_sum(chosen**4)
        return tf.convert_to_tensor(tape.gradient(loss, table))

    compiled = jit(derivatives)
    for mask, ids in (([1, 0, 1, 0], [3, 0, 2, 3, 1]), ([0, 0, 0, 1], [2, 2, 0, 0, 3])):
        arguments = tf.constant(mask) > 0, tf.constant(ids)
        close(compiled(*arguments), derivatives(*arguments), note=str(mask))


def test_rows_of_a_stitch_without_a_size():
    """Arguments and variables are taken as constants."""
    traces = []
    state = tf.Variable([0, 0])
    data = tf.constant([1.5, 2.5])

    @jit
    def stitch(indices, data):
        traces.append(1)
        return sg.dynamic_stitch([indices], [data]), sg.dynamic_stitch([state + 1], [data])

    for indices in ([0, 3], [4, 1], [2, 2]):
        state.assign(indices)
        rows = np.array(indices)
        want = [oracle.stitch([r], [data.numpy()]) for r in (rows, rows + 1)]
        all_same(stitch(tf.constant(indices), data), want, str(indices))
    assert len(traces) == 1


def test_sizes_that_are_known_by_a_bound():
    @jit
    def call(data, below):
        chosen = tf.where(tf.random.uniform([6]) < below)
        count = tf.size(chosen)
        return (
            sg.dynamic_stitch([[0, 2]], [data], size=count),
            sg.scatter_nd([[1]], data[:1], count[None]),
        )

    data = tf.constant([1.0, 2.0])
    for below, rows in ((2.0, 6), (-1.0, 0)):
        stitched, scattered = np.zeros(6, np.float32), np.zeros(6, np.float32)
        stitched[[0, 2]], scattered[1] = [1, 2], 1
        all_same(call(data, tf.constant(below)), [stitched[:rows], scattered[:rows]])


# ---------------------------------------------------------------- errors


STITCH = (tf.int32, tf.float32)
GATHER = (tf.float32, tf.int32)
ERRORS = {
    "negative": (
        lambda i, d: sg.dynamic_stitch([[0], i], [d, d]),
        STITCH,
        ([-2], [1.0]),
        ["indices[1][0] = -2 is out of range"],
    ),
    "stitch-parts": (
        lambda i, d: sg.dynamic_stitch([i], [d]),
        STITCH,
        ([0, 1], [1.0]),
        ["data[0].shape = [1] does not start with indices[0].shape = [2]"],
    ),
    "stitch-size": (
        lambda i, d: sg.dynamic_stitch([i], [d], size=i[0]),
        STITCH,
        ([-1], [1.0]),
        ["size = -1 must not be negative"],
    ),
    "stitch-rows-unknown": (
        lambda i, d: sg.dynamic_stitch(
            [tf.argmax(tf.random.uniform([1, 3]), 1, tf.int32) + i * 0], [d]
        ),
        STITCH,
        ([0], [1.0]),
        ["pass size= to dynamic_stitch"],
    ),
    "too-great": (
        lambda i, d: sg.dynamic_stitch([tf.cast(i, tf.int64) * 2**32], [d]),
        STITCH,
        ([2**29], [1.0]),
        ["does not fit in memory"],
    ),
    "gather-depth": (
        sg.gather_nd,
        GATHER,
        ([1.0, 2.0], [[0, 0]]),
        ["index innermost dimension length must be <= params rank; saw: 2 vs. 1"],
    ),
    "gather-batch": (
        lambda p, i: sg.raw_ops.MyGatherNd(params=p, indices=i, batch_dims=2),
        GATHER,
        (np.zeros((2, 3, 4)), np.zeros((3, 2, 1))),
        ["(2,3)", "(3,2)"],
    ),
    "gather-from-nothing": (
        sg.gather_nd,
        GATHER,
        (np.zeros((0, 2)), [[0]]),
        ["Requested more than 0 entries, but params is empty.  Params shape: [0,2]"],
    ),
    "scatter-updates": (
        lambda u, i: sg.scatter_nd(i, u, [4]),
        GATHER,
        ([1.0, 2.0], [[0]]),
        ["updates must have shape indices.shape[:-1] + shape[1:] = [1]"],
    ),
    "scatter-shape": (
        lambda u, i: sg.scatter_nd(i, u, i[0] - 1),
        GATHER,
        ([1.0], [[0]]),
        ["shape[0] = -1 must not be negative"],
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    fn, dtypes, arguments, texts = ERRORS[name]
    values = [tf.constant(np.array(a), d) for a, d in zip(arguments, dtypes, strict=True)]
    with fails(*texts, kinds=(tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError)):
        jit_unknown(fn, *dtypes)(*values)


# ---------------------------------------------------------------- gradients


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float32, tf.complex128], ids=lambda t: t.name)
def test_gradients(dtype, rng):
    """Of first and second order, with the tape inside the function and outside of it."""
    params = tensor(numbers_of(rng, (5, 3), dtype), dtype)
    indices = tf.constant([[4], [1], [4], [0]])
    places = [tf.constant([0, 2, 0]), tf.constant([5])]

    def loss(params):
        rows = sg.gather_nd(params, indices)
        merged = sg.dynamic_stitch(places, [rows[:3], rows[3:]], size=6)
        pairs = sg.gather_nd(params, tf.constant([[[0], [2]]] * 5), batch_dims=1)
        return tf.reduce_sum(merged * merged * merged) + tf.reduce_sum(pairs * pairs)

    def gradients(loss, params):
        with tf.GradientTape() as outer:
            outer.watch(params)
            with tf.GradientTape() as inner:
                inner.watch(params)
                value = loss(params)
            first = tf.convert_to_tensor(inner.gradient(value, params))
            norm = tf.reduce_sum(first * first)
        return first, outer.gradient(norm, params)

    want = gradients(loss, params)
    tolerance = 1e-5 if dtype.size >= 4 else 3e-2
    for got in (jit(lambda p: gradients(loss, p))(params), gradients(jit(loss), params)):
        for g, w in zip(got, want, strict=True):
            close(g, w, rtol=tolerance, atol=tolerance)


def test_gradient_of_scatter_jacobian_and_forward_mode(rng):
    updates = tf.constant(rng.normal(size=(4, 2)))
    indices = tf.constant([[3], [1], [3], [9]])

    def scatter(updates):
        return sg.scatter_nd(indices, updates, [5, 2])

    @jit
    def derivatives(updates):
        with tf.GradientTape() as tape:
            tape.watch(updates)
            sums = scatter(updates)
        jacobian = tape.jacobian(sums, updates)
        with tf.autodiff.ForwardAccumulator(updates, updates) as accumulator:
            sums = scatter(updates)
        return sums, jacobian, accumulator.jvp(sums)

    sums, jacobian, jvp = derivatives(updates)
    want = np.zeros((5, 2, 4, 2))
    for n, row in enumerate([3, 1, 3]):
        want[row, [0, 1], n, [0, 1]] = 1
    equal(jacobian, want)
    same(jvp, sums.numpy())
    close(sums, np.einsum("abnc,nc->ab", want, updates.numpy()))


class TestVariable:
    """A lookup in a variable: rows in, and a gradient of unique rows out."""

    def test_lookup_sees_the_assigned_value(self):
        table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

        @jit
        def step(indices):
            before = sg.gather_nd(table, indices)
            table.assign_add(tf.ones_like(table))
            table.scatter_nd_add([[0]], [[10.0, 10.0]])
            return before, sg.gather_nd(table, indices)

        for turn in range(2):
            before, after = step(tf.constant([[0], [5], [1]]))
            add = np.float32(turn)
            want = np.float32([[1, 2], [0, 0], [3, 4]])
            want[0] += 11 * add
            want[2] += add
            same(before, want)
            want[0] += 11
            want[2] += 1
            same(after, want)

    @pytest.mark.parametrize("place", ["inside", "outside", "inner function"])
    def test_gradient(self, place):
        table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

        def loss(indices):
            return tf.reduce_sum(tf.square(sg.gather_nd(table, indices)))

        def gradient(indices, loss=loss):
            with tf.GradientTape() as tape:
                value = loss(indices)
            return tape.gradient(value, table)

        if place == "inside":
            compiled = jit(gradient)
        elif place == "outside":
            compiled = lambda indices: gradient(indices, jit(loss))  # noqa: E731
        else:
            compiled = jit(tf.function(gradient, autograph=False))
        got = compiled(tf.constant([[2], [0], [2]]))
        equal(got, [[2.0, 4.0], [0.0, 0.0], [20.0, 24.0]])
        if place != "outside":
            equal(got.indices, [0, 2])

    @pytest.mark.parametrize("optimizer", ["Adam", "SGD"])
    def test_optimizer_takes_the_same_steps(self, optimizer, rng):
        initial = rng.normal(size=(20, 3)).astype(np.float32)
        batches = [tf.constant(rng.integers(0, 20, (8, 1))) for _ in range(3)]

        def train(compile_step: Callable) -> np.ndarray:
            table = tf.Variable(initial)
            steps = getattr(keras.optimizers, optimizer)(learning_rate=0.1)
            steps.build([table])

            def step(indices):
                with tf.GradientTape() as tape:
                    value = tf.reduce_sum(tf.square(sg.gather_nd(table, indices)))
                steps.apply([tape.gradient(value, table)], [table])

            compiled = compile_step(step)
            for indices in batches:
                compiled(indices)
            return table.numpy()

        close(train(jit), train(lambda step: step), rtol=1e-4, atol=1e-5)


def test_keras_fit_compiles_by_default(rng):
    """Keras compiles a model's steps with XLA unless it is told not to."""

    class Lookup(keras.layers.Layer):
        def build(self, _):
            self.table = self.add_weight(shape=(30, 4), initializer="glorot_uniform", name="table")

        def call(self, ids):
            rows = sg.gather_nd(self.table.value, tf.cast(ids, tf.int32)[..., None])
            return tf.reduce_mean(rows, axis=1)

    ids = rng.integers(0, 30, (64, 5))
    labels = rng.normal(size=(64, 1)).astype(np.float32)
    losses = []
    for jit_compile in ("auto", False):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([Lookup(), keras.layers.Dense(1)])
        model.compile("adam", "mse", jit_compile=jit_compile)
        losses.append(model.fit(ids, labels, batch_size=16, epochs=2, verbose=0).history["loss"])
        assert model.jit_compile is (jit_compile == "auto")
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


# ---------------------------------------------------------------- loading

CHECK = """
    import os
    import shutil
    import sys

    import numpy as np
    import tensorflow as tf

    def check_jit(sg):
        @tf.function(jit_compile=True, autograph=False)
        def call(params, indices):
            rows = sg.gather_nd(params, indices)
            return rows, sg.dynamic_stitch([indices[:, 0]], [rows], size=3)

        rows, merged = call(tf.constant([1.0, 2.0]), tf.constant([[1], [7], [0]]))
        assert rows.numpy().tolist() == [2.0, 0.0, 1.0], rows
        assert merged.numpy().tolist() == [1.0, 2.0, 0.0], merged
"""


@pytest.mark.parametrize("tool", ["readelf", "nm"])
def test_library_file(tool):
    """It needs both libraries of TensorFlow, from wherever they are loaded, and exports nothing."""
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool} of binutils")
    options = {"readelf": ["--dynamic", "--wide"], "nm": ["--dynamic", "--defined-only"]}[tool]
    library = Path(sg.__file__).resolve().parent / "libtf_stitch_gather_xla.so"
    output = subprocess.run(
        [tool, *options, library], capture_output=True, text=True, check=True
    ).stdout
    if tool == "nm":
        assert output == ""
    else:
        needed = re.findall(r"\(NEEDED\).*\[(libtensorflow.+)\]", output)
        assert sorted(needed) == ["libtensorflow_cc.so.2", "libtensorflow_framework.so.2"]
        assert "RPATH" not in output
        assert "RUNPATH" not in output


def test_loading(tmp_path):
    """Without the library the rest works; with it, it loads late, and again from a copy."""
    code = textwrap.dedent(CHECK) + textwrap.dedent("""
    folder, package = sys.argv[1:]
    file = "libtf_stitch_gather_xla.so"
    # Before the ops: it finds none, and leaves the process alive.
    tf.load_library(shutil.copy(os.path.join(package, file), os.path.join(folder, "early.so")))

    def import_from(parent):
        for name in [n for n in sys.modules if n.split(".")[0] == "tf_stitch_gather"]:
            del sys.modules[name]
        sys.path.insert(0, parent)
        import tf_stitch_gather

        assert tf_stitch_gather.library_path().startswith(parent)
        return tf_stitch_gather

    for way, reason in (("missing", "is missing"), ("broken", "does not load")):
        library = os.path.join(folder, way, "tf_stitch_gather", file)
        shutil.copytree(package, os.path.dirname(library))
        os.unlink(library)
        if way == "broken":
            with open(library, "wb") as stream:
                stream.write(b"not a library")
        sg = import_from(os.path.join(folder, way))
        state = sg.build_info()["xla"]
        assert state["loaded"] is False
        assert all(text in state["reason"] for text in (reason, library, "Build it")), state
        assert sg.gather_nd([1.0, 2.0], [[1]]).numpy().tolist() == [2.0]
        try:
            check_jit(sg)
        except tf.errors.InvalidArgumentError as error:
            assert "MyGatherNd" in str(error) and "XLA_CPU_JIT" in str(error), error
        else:
            raise AssertionError("compiled without kernels")

    # XLA has compiled functions by now, and registered its kernels.
    copied = shutil.copytree(package, os.path.join(folder, "copy", "tf_stitch_gather"))
    for parent in (os.path.dirname(package), os.path.dirname(copied)):
        sg = import_from(parent)
        assert sg.build_info()["xla"] == {"loaded": True, "reason": None}
        check_jit(sg)
    print("all checked")
    """)
    package = Path(sg.__file__).resolve().parent
    assert child(code, str(tmp_path.resolve()), str(package)) == "all checked"


def test_auto_clustering():
    """Without jit_compile: XLA takes the ops into its clusters, and the values stay."""
    code = textwrap.dedent(CHECK) + textwrap.dedent("""
    import tf_stitch_gather as sg

    def model(params, indices, upstream):
        rows = sg.gather_nd(params, indices)
        merged = sg.dynamic_stitch([[3, 0, 3]], [rows])
        sized = sg.dynamic_stitch([indices[:, 0]], [rows], size=4)
        sums = sg.scatter_nd(indices, rows, [4, 2])
        loss = tf.reduce_sum((merged + sized + sums) * upstream)
        return [merged, sized, sums, *tf.gradients(loss, [params])]

    values = [np.arange(8.0).reshape(4, 2), np.array([[2], [1], [2]]), np.ones((4, 2))]
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        inputs = [tf.compat.v1.placeholder(v.dtype, v.shape) for v in values]
        outputs = model(*inputs)
        options = tf.compat.v1.RunOptions(output_partition_graphs=True)
        metadata = tf.compat.v1.RunMetadata()
        got = session.run(outputs, dict(zip(inputs, values)), options, metadata)
    left = {node.op for graph in metadata.partition_graphs for node in graph.node}
    assert "_XlaRun" in left, left
    # A stitch without a size is only compiled where its indices are constants.
    clustered = {node.op for node in graph.as_graph_def().node if node.op.startswith("My")}
    print(sorted(op for op in clustered if op in left))
    rows = values[0][[2, 1, 2]]
    merged = np.stack([rows[1], [0, 0], [0, 0], rows[2]])
    sized = np.stack([[0, 0], rows[1], rows[2], [0, 0]])
    sums = np.stack([[0, 0], rows[1], 2 * rows[2], [0, 0]])
    for g, w in zip(got, [merged, sized, sums]):
        np.testing.assert_array_equal(g, w)
    np.testing.assert_array_equal(got[3], [[0, 0], [3, 3], [4, 4], [0, 0]])
    """)
    flags = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1"
    assert child(code, env={"TF_XLA_FLAGS": flags}) == "[]"


def test_page_examples():
    result = doctest.testfile(str(ROOT / "docs" / "xla.md"), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0
