"""Random shapes, types and indices, found and shrunk by hypothesis, against the NumPy loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from hypothesis import given
from hypothesis import strategies as st
from support import call, close, same, tensor

raw = tsg.raw_ops

dims = st.integers(0, 4)
seeds = st.integers(0, 2**32 - 1)
# One type of each width and kind of copy.
moved = st.sampled_from(
    [tf.int8, tf.bool, tf.bfloat16, tf.float32, tf.int64, tf.complex128, tf.string]
)
added = st.sampled_from([tf.uint8, tf.int32, tf.float16, tf.float32, tf.float64, tf.complex64])
policies = st.sampled_from(["", "DEFAULT", "ERROR", "IGNORE"])


@st.composite
def gathers(draw: Any) -> dict[str, Any]:
    """Shapes of a gather, and where its indices may lie: a few of them outside."""
    shape = draw(st.lists(dims, min_size=0, max_size=9))
    batch_dims = draw(st.integers(0, len(shape)))
    depth = draw(st.integers(0, len(shape) - batch_dims))
    between = draw(st.lists(dims, min_size=0, max_size=2))
    rng = np.random.default_rng(draw(seeds))
    outer = (*shape[:batch_dims], *between)
    index_type = draw(st.sampled_from(support.GATHER_INDEX_TYPES))
    limits = np.array(shape[batch_dims : batch_dims + depth], np.int64)
    indices = rng.integers(0, np.maximum(limits, 1), (*outer, depth))
    if draw(st.booleans()) and indices.size:
        bad = rng.random(indices.shape) < 0.1
        indices = np.where(bad, rng.choice([-1, -300, 5, 300], indices.shape), indices)
    return {
        "shape": tuple(shape),
        "indices": indices.astype(support.element_type(index_type)),
        "batch_dims": batch_dims,
        "index_type": index_type,
        "rng": rng,
    }


@given(gathers(), moved, policies)
def test_gather_nd(case, dtype, policy):
    shape, indices, batch_dims = case["shape"], case["indices"], case["batch_dims"]
    params = support.array_of(case["rng"], shape, dtype)
    inputs = tensor(params, dtype), tensor(indices, case["index_type"])

    def gather():
        return tsg.gather_nd(*inputs, batch_dims=batch_dims, bad_indices_policy=policy)

    bad = oracle.first_bad(shape, indices, batch_dims)
    if bad is None or policy == "IGNORE":
        same(gather(), oracle.gather_nd(params, indices, batch_dims, ignore=True))
        return
    with pytest.raises(tf.errors.InvalidArgumentError) as info:
        gather()
    vector = ", ".join(map(str, bad.vector))
    text = str(info.value)
    empty = 0 in shape[: batch_dims + indices.shape[-1]]
    assert f"= [{vector}] does not index" in text or (empty and "params is empty" in text)
    if bad.position and not empty:
        assert f"indices[{','.join(map(str, bad.position))}] =" in text


@given(gathers(), added, st.booleans())
def test_scatter_nd(case, dtype, ignore):
    shape, indices, batch_dims = case["shape"], case["indices"], case["batch_dims"]
    depth = indices.shape[-1]
    updates_shape = indices.shape[:-1] + shape[batch_dims + depth :]
    updates = support.numbers_of(case["rng"], updates_shape, dtype)

    def scatter():
        return raw.MyScatterNd(
            indices=tensor(indices, case["index_type"]),
            updates=tensor(updates, dtype),
            shape=tensor(shape, case["index_type"]),
            batch_dims=batch_dims,
            bad_indices_policy="IGNORE" if ignore else "",
        )

    bad = oracle.first_bad(shape, indices, batch_dims)
    if bad is None or ignore:
        same(scatter(), oracle.scatter_nd(indices, updates, shape, batch_dims, ignore=True))
    else:
        vector = ", ".join(map(str, bad.vector))
        with support.fails(f"= [{vector}] does not index", kinds=tf.errors.InvalidArgumentError):
            scatter()


@given(gathers(), st.sampled_from(["eager", "function"]))
def test_gradient_of_gather_nd(case, mode):
    shape, indices, batch_dims = case["shape"], case["indices"], case["batch_dims"]
    params = case["rng"].normal(size=shape)

    def gradient(p, i):
        with tf.GradientTape() as tape:
            tape.watch(p)
            y = tsg.gather_nd(p, i, batch_dims=batch_dims, bad_indices_policy="IGNORE")
            loss = tf.reduce_sum(tf.sin(y))
        return tf.convert_to_tensor(tape.gradient(loss, p))

    got = call(mode, gradient, tf.constant(params), tensor(indices, case["index_type"]))
    upstream = np.cos(oracle.gather_nd(params, indices, batch_dims, ignore=True))
    # An ignored index reads a zero, which is no part of params.
    want = oracle.scatter_nd(indices, upstream, shape, batch_dims, ignore=True)
    close(got, want, 1e-12, 1e-12)


@st.composite
def stitches(draw: Any) -> dict[str, Any]:
    """Lists of indices in which rows repeat and are missing, of any ranks."""
    index_shapes = draw(st.lists(st.lists(dims, max_size=3).map(tuple), min_size=1, max_size=4))
    row_shape = tuple(draw(st.lists(dims, max_size=3)))
    high = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(support.STITCH_INDEX_TYPES))
    indices = [
        np.asarray(rng.integers(0, high, s), support.element_type(kind)) for s in index_shapes
    ]
    return {"indices": indices, "row_shape": row_shape, "rng": rng, "high": high}


@given(stitches(), moved, st.booleans())
def test_dynamic_stitch(case, dtype, sized):
    indices, rng = case["indices"], case["rng"]
    data = [support.array_of(rng, i.shape + case["row_shape"], dtype) for i in indices]
    size = case["high"] + 2 if sized else None
    got = tsg.dynamic_stitch(
        [tf.constant(i) for i in indices], [tensor(d, dtype) for d in data], size=size
    )
    same(got, oracle.stitch(indices, data, size))


@given(stitches(), st.sampled_from(["eager", "function"]))
def test_gradient_of_dynamic_stitch(case, mode):
    indices, rng = case["indices"], case["rng"]
    data = [rng.normal(size=i.shape + case["row_shape"]) for i in indices]

    def derive(i, d):
        with tf.GradientTape() as tape:
            tape.watch(d)
            loss = tf.reduce_sum(tf.sin(tsg.dynamic_stitch(i, d)))
        return tape.gradient(loss, d)

    got = call(mode, derive, [tf.constant(i) for i in indices], [tf.constant(d) for d in data])
    want = oracle.stitch_gradient(indices, np.cos(oracle.stitch(indices, data)))
    for g, w in zip(got, want, strict=True):
        close(g, w, 1e-12, 1e-12)


@given(stitches(), st.data())
def test_sized_stitch_with_bad_indices(case, choice):
    """In row-major order of the lists the first bad index is told, or all are passed over."""
    indices, rng = case["indices"], case["rng"]
    data = [rng.random(i.shape + case["row_shape"]) for i in indices]
    size = choice.draw(st.integers(0, case["high"]))
    indices = [i - np.asarray(choice.draw(st.integers(0, 2)), i.dtype) for i in indices]

    def stitch(policy):
        return raw.MyDynamicStitchSized(
            size=tf.constant(size, indices[0].dtype),
            indices=[tf.constant(i) for i in indices],
            data=[tf.constant(d) for d in data],
            bad_indices_policy=policy,
        )

    same(stitch("IGNORE"), oracle.stitch(indices, data, size))
    bad = [
        (m, k, v)
        for m, index in enumerate(indices)
        for k, v in enumerate(index.reshape(-1))
        if not 0 <= v < size
    ]
    if not bad:
        same(stitch("ERROR"), oracle.stitch(indices, data, size))
    else:
        m, k, v = bad[0]
        with support.fails(f"indices[{m}][{k}] = {v} is out of range"):
            stitch("ERROR")


@given(st.integers(0, 60), st.integers(1, 12), st.lists(dims, max_size=2), seeds)
def test_sparse_gradient(count, num_rows, row_shape, seed):
    rng = np.random.default_rng(seed)
    indices = rng.integers(-2, num_rows + 2, (count, 1))
    grad = rng.integers(-9, 9, (count, *row_shape)).astype(np.float32)
    rows, values = raw.MyGatherNdSparseGrad(
        indices=indices, grad=grad, num_rows=num_rows, bad_indices_policy="IGNORE"
    )
    want_rows, want = oracle.merged_rows(indices, grad, num_rows)
    support.equal(rows, want_rows)
    support.equal(values, want)
