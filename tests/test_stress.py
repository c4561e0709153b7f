"""Load: many calls from many threads, and memory that stays flat.

The suite takes short runs; `make stress` sets STRESS=1 and takes the long ones.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import numpy as np
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from test_concurrency import run_threads

LONG = os.environ.get("STRESS") == "1"
THREADS = 8
CALLS_A_THREAD = 10_000 if LONG else 150
CALLS_FOR_MEMORY = 100_000 if LONG else 4_000
RUNS = 200 if LONG else 3

raw = tsg.raw_ops

not_under_asan = pytest.mark.skipif(support.UNDER_ASAN, reason="ASan keeps freed memory")


def mixed_call(rng: np.random.Generator, call_traced: Callable) -> None:
    """One random call of one of the ops, whose result is checked."""
    count, rows = int(rng.integers(0, 200)), int(rng.integers(1, 60))
    index = rng.integers(0, rows, count)
    params = rng.integers(-9, 9, (rows, 3)).astype(np.float64)
    updates = rng.integers(-9, 9, (count, 3)).astype(np.float64)
    sums = np.zeros_like(params)
    np.add.at(sums, index, updates)
    choice = rng.integers(0, 7)
    if choice == 0:
        support.same(tsg.gather_nd(params, index[:, None]), params[index])
    elif choice == 1:
        support.same(tsg.scatter_nd(index[:, None], updates, params.shape), sums)
    elif choice == 2:
        order = rng.permutation(rows)
        cut = int(rng.integers(0, rows + 1))
        parts = [order[:cut], order[cut:]]
        support.same(tsg.dynamic_stitch(parts, [params[p] for p in parts]), params)
    elif choice == 3:
        got_rows, values = raw.MyGatherNdSparseGrad(
            indices=index[:, None], grad=updates, num_rows=rows
        )
        support.same(got_rows, np.unique(index))
        support.same(values, sums[np.unique(index)])
    elif choice == 4:
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not index"):
            tsg.gather_nd(params, [[rows]])
    elif choice == 5:
        words = np.array([b"w" * (k % 50) for k in range(rows)], object)
        support.same(tsg.gather_nd(words, index[:, None]), words[index])
    else:
        support.same(call_traced(params, index[:, None]), params[index])


def test_many_threads_make_mixed_calls():
    """Eager ones and ones that trace functions, all at once."""

    def work(seed):
        rng = np.random.default_rng(seed)
        traced = tf.function(lambda p, i: tsg.gather_nd(p, i), reduce_retracing=True)
        for call in range(CALLS_A_THREAD):
            if call % 2000 == 50:  # Traces anew, while others run.
                traced = tf.function(lambda p, i: tsg.gather_nd(p, i), reduce_retracing=True)
            mixed_call(rng, traced)

    run_threads(work, THREADS)


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def bytes_kept(call: Callable[[], object], count: int) -> int:
    """How much the process grows over ``count`` calls."""
    before = resident_bytes()
    for _ in range(count):
        call()
    return resident_bytes() - before


@not_under_asan
def test_memory_stays_flat():
    """A leak of 10 bytes a call would show in the long run: outputs and scratch go back."""
    params, index = tf.ones([64, 4]), tf.constant([[1], [63]])
    bad = tf.constant([[64]])
    halves = tf.ones([2, 4], tf.float16)

    def eight_calls():
        rows = tsg.gather_nd(params, index)
        tsg.scatter_nd(index, rows, [64, 4])
        tsg.scatter_nd(index, halves, [64, 4])
        merged = tsg.dynamic_stitch([[0, 1], [5]], [rows, params[:1]])
        raw.MyDynamicStitchGrad(indices=[[0, 1], [5]], grad=merged)
        raw.MyGatherNdSparseGrad(indices=index, grad=rows, num_rows=64)
        tsg.gather_nd(params, bad, bad_indices_policy="IGNORE")
        tsg.scatter_nd(bad, rows[:1], [64, 4], bad_indices_policy="IGNORE")

    bytes_kept(eight_calls, 250)  # Fills the caches.
    kept = bytes_kept(eight_calls, CALLS_FOR_MEMORY // 8)
    assert kept < max(10 * CALLS_FOR_MEMORY, 2**20), f"{kept} bytes"


@not_under_asan
def test_a_call_that_fails_keeps_no_more_than_a_built_in():
    """TensorFlow itself keeps 700 to 900 bytes of each eager call that fails."""
    params, bad = tf.ones([64, 4]), tf.constant([[64]])

    def failing(gather_nd: Callable) -> None:
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            gather_nd(params, bad)

    ours, built_in = 0, 0
    for _ in range(CALLS_FOR_MEMORY // 2000):  # In turn: the first ones fill what is free.
        ours += bytes_kept(lambda: failing(tsg.gather_nd), 250)
        built_in += bytes_kept(lambda: failing(tf.gather_nd), 250)
    assert ours < built_in + 2**20, f"{ours} bytes, the built-in {built_in}"


def test_every_run_has_the_same_bits():
    """On more threads than there are cores, in one process."""
    rng = np.random.default_rng(3)
    index = rng.integers(0, 500, (20_000, 1))
    updates = (rng.normal(size=(20_000, 40)) * 1e3).astype(np.float32)
    parts = [rng.integers(0, 700, 9_000) for _ in range(2)]

    def once():
        results = [
            tsg.scatter_nd(index, updates, [500, 40]),
            tsg.scatter_nd(index, updates.astype(np.float16), [500, 40]),
            *raw.MyGatherNdSparseGrad(indices=index, grad=updates, num_rows=500),
            tsg.dynamic_stitch(parts, [updates[:9_000], updates[9_000:18_000]]),
        ]
        return [result.numpy().tobytes() for result in results]

    first = once()
    assert all(once() == first for _ in range(RUNS))
