"""Threads: the same bits for any number of them, and many callers at once."""

from __future__ import annotations

from concurrent import futures
from pathlib import Path

import numpy as np
import support
import tensorflow as tf
import tf_stitch_gather as tsg

HERE = Path(__file__).resolve().parent


def test_results_have_the_same_bits_for_any_number_of_threads():
    program = HERE / "determinism_program.py"
    counts = (1, 2, 3, 8)
    # Two at a time: most of such a process is the import of TensorFlow, on one core.
    with futures.ThreadPoolExecutor(2) as pool:
        digests = list(pool.map(lambda n: support.child(program, str(n)), counts))
    assert len(set(digests)) == 1, dict(zip(counts, digests, strict=True))


def test_many_threads_call_the_same_function():
    specs = [tf.TensorSpec([None, 3]), tf.TensorSpec([None, 1], tf.int32)]

    @tf.function(input_signature=specs)
    def both(params, index):
        return (
            tsg.gather_nd(params, index),
            tsg.dynamic_stitch([index[:, 0]], [params]),
            tsg.scatter_nd(index, params, tf.shape(params)),
        )

    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(40):
            count = int(rng.integers(1, 3000))
            params = rng.random((count, 3), np.float32)
            order = rng.permutation(count).astype(np.int32)
            moved = np.empty_like(params)
            moved[order] = params
            gathered, stitched, scattered = both(params, order[:, None])
            if not (
                np.array_equal(gathered, params[order])
                and np.array_equal(stitched, moved)
                and np.array_equal(scattered, moved)
            ):
                failures.append((seed, count))

    run_threads(work, 8)
    assert not failures


def test_many_threads_call_eagerly_and_take_gradients():
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        table = tf.Variable(tf.zeros([50, 2]))
        for _ in range(20):
            index = rng.integers(0, 50, (400, 1)).astype(np.int32)
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tsg.gather_nd(table, index))
            got = tf.convert_to_tensor(tape.gradient(loss, table)).numpy()
            if not np.array_equal(got[:, 0], np.bincount(index[:, 0], minlength=50)):
                failures.append(seed)

    run_threads(work, 6)
    assert not failures


def run_threads(work, count):
    """Runs ``work(0) ... work(count - 1)`` at once, and raises what one of them raised."""

    def on_the_cpu(seed):  # A device is chosen for one thread.
        with tf.device("CPU:0"):
            work(seed)

    with futures.ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(on_the_cpu, k) for k in range(count)]:
            done.result()


# Indices lie in memory that another thread writes all the time. Whatever value an op reads, it must
# use the one that it checked; a place outside would end the process or show foreign bytes.
CHANGING_INDICES = """
import threading

import numpy as np
import tensorflow as tf

import tf_stitch_gather as tsg

raw = tsg.raw_ops
ROWS, COUNT = 100, 4096
block = np.zeros(COUNT * 8 + 64, np.uint8)
start = -block.ctypes.data % 64
array = block[start : start + COUNT * 8].view(np.int64)
flat = tf.experimental.dlpack.from_dlpack(array.__dlpack__())
column = tf.reshape(flat, [COUNT, 1])
# For the stitch that takes its row count from the indices: near ones, which need no memory.
near_block = np.zeros(COUNT * 8 + 64, np.uint8)
start = -near_block.ctypes.data % 64
near_array = near_block[start : start + COUNT * 8].view(np.int64)
near = tf.experimental.dlpack.from_dlpack(near_array.__dlpack__())
array[:] = 5
assert column.numpy()[0, 0] == 5, "the tensor does not share the memory"

stop = threading.Event()


def write():
    while not stop.is_set():
        array[:] = 2**40
        array[:] = 7
        array[:] = -(2**40)
        array[:] = 3
        near_array[:] = 4
        near_array[:] = 30_000
        near_array[:] = 1
        near_array[::7] = -1
        near_array[:] = 0


writer = threading.Thread(target=write)
writer.start()
params = tf.ones([ROWS, 4])
rows = tf.ones([COUNT, 4])
calls = (
    lambda policy: raw.MyGatherNd(params=params, indices=column, bad_indices_policy=policy),
    lambda policy: raw.MyScatterNd(
        indices=column,
        updates=rows,
        shape=tf.constant([ROWS, 4], tf.int64),
        bad_indices_policy=policy,
    ),
    lambda policy: raw.MyDynamicStitchSized(
        size=tf.constant(ROWS, tf.int64), indices=[flat], data=[rows], bad_indices_policy=policy
    ),
    lambda policy: raw.MyDynamicStitchGrad(
        indices=[flat], grad=params, bad_indices_policy=policy
    )[0],
    lambda policy: raw.MyGatherNdSparseGrad(
        indices=column, grad=rows, num_rows=tf.constant(ROWS, tf.int64), bad_indices_policy=policy
    ).values,
)
seen = set()
try:
    for _ in range(60):
        for number, call in enumerate(calls):
            for policy in ("IGNORE", "ERROR"):
                try:
                    values = np.unique(call(policy).numpy())
                except tf.errors.InvalidArgumentError:
                    assert policy == "ERROR"
                    continue
                seen.add(number)
                whole = values == np.round(values)
                assert whole.all() and values.min(initial=0) >= 0 and values.max(initial=0) <= COUNT
        for _ in range(5):
            try:
                values = np.unique(raw.MyDynamicStitch(indices=[near], data=[rows]).numpy())
            except tf.errors.InvalidArgumentError:
                continue
            assert set(values.tolist()) <= {0.0, 1.0}
finally:
    stop.set()
    writer.join()
assert seen == set(range(len(calls)))
print("alive")
"""


def test_indices_that_change_while_an_op_runs():
    assert support.child(CHANGING_INDICES) == "alive"
