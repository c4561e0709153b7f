"""Prints a digest of the result bits of every op, computed with a given number of threads."""

from __future__ import annotations

import hashlib
import sys

import numpy as np
import tensorflow as tf
import tf_stitch_gather as tsg

tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[1]))
tf.config.threading.set_inter_op_parallelism_threads(1)

raw = tsg.raw_ops
digest = hashlib.sha256()


def add(*tensors):
    for tensor in tensors:
        array = np.ascontiguousarray(tf.convert_to_tensor(tensor).numpy())
        digest.update(str(array.shape).encode() + array.tobytes())


rng = np.random.default_rng(7)
for dtype in (np.float16, np.float32, np.float64, tf.bfloat16.as_numpy_dtype, np.complex64):
    # Few and many places, narrow and wide slices: each may take another way through the code.
    for shape, depth, count in (
        ((3,), 1, 60_000),
        ((50_000,), 1, 60_000),
        ((200, 200), 2, 60_000),
        ((100, 70), 1, 9000),
        ((2, 40_000), 1, 30),
    ):
        index = np.stack([rng.integers(0, n, count) for n in shape[:depth]], -1)
        updates = (rng.normal(size=(count, *shape[depth:])) * 1e3).astype(dtype)
        add(tsg.scatter_nd(index, tf.constant(updates), shape))
        if depth == 1:
            add(*raw.MyGatherNdSparseGrad(indices=index, grad=updates, num_rows=shape[0]))
        params = tf.constant(rng.normal(size=shape).astype(dtype))
        with tf.GradientTape() as tape:
            tape.watch(params)
            picked = tsg.gather_nd(params, index)
        add(picked, tape.gradient(picked, params, output_gradients=tf.constant(updates)))

batched = rng.integers(0, 30, (64, 500, 1))
updates = rng.normal(size=(64, 500, 4)).astype(np.float32)
add(raw.MyScatterNd(indices=batched, updates=updates, shape=[64, 30, 4], batch_dims=1))

# Every row is named many times over, in two lists, and one is very wide.
for rows, width, count in ((500, 7, 40_000), (3, 100_000, 12), (20_000, 1, 60_000)):
    indices = [rng.integers(0, rows, count) for _ in range(2)]
    data = [rng.normal(size=(count, width)).astype(np.float32) for _ in range(2)]
    merged = tsg.dynamic_stitch(indices, data)
    add(merged, tsg.dynamic_stitch(indices, data, size=rows + 5))
    add(*raw.MyDynamicStitchGrad(indices=indices, grad=merged))

print(digest.hexdigest())
