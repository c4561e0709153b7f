"""Lets each allocation of the op libraries fail once: an exception, or the right result.

`tests/failing_new.cc` is preloaded, and named as the only argument.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np
import tensorflow as tf
import tf_stitch_gather as tsg
from tf_stitch_gather import _native

MESSAGE = "no memory for the small objects"
raw = tsg.raw_ops
shim = ctypes.CDLL(sys.argv[1])


def fail_each(name: str, call: Callable[[], np.ndarray], step: int = 1) -> int:
    """The number of allocations that failed, of those of a call or of every `step`th."""
    right = call()
    failed = 0
    for number in range(0, 20_000, step):
        shim.fail_after(number)
        try:
            got = call()
        except tf.errors.ResourceExhaustedError as error:
            got = None
            assert MESSAGE in error.message, (name, error)
        except (MemoryError, ValueError, tf.errors.OpError) as error:
            got = None  # Raised where a graph is built.
            assert "memory" in str(error), (name, number, error)
        if not shim.stop_failing():
            assert got is not None, (name, number)
            break
        failed += 1
        assert got is None or np.array_equal(got, right), (name, number)
    else:
        raise AssertionError(f"{name} never ends")
    assert np.array_equal(call(), right), name
    return failed


params, indices = tf.random.uniform([3, 2]), tf.constant([[1], [0]])
deep = tf.reshape(tf.range(2**12), [2] * 12)  # The dimensions of these are on the heap.
long = tf.random.uniform([2**17, 8])
back = tf.range(2**17 - 1, -1, -1)
variable = tf.Variable(params)


def bad(call: Callable[[], tf.Tensor]) -> Callable[[], np.ndarray]:
    """A call that fails: its message takes memory as well."""

    def message() -> np.ndarray:
        try:
            call()
        except tf.errors.InvalidArgumentError as error:
            return np.array(error.message)
        raise AssertionError("a bad call has passed")

    return message


EAGER = {
    "gather": lambda: raw.MyGatherNd(params=params, indices=indices).numpy(),
    "gather of rank 12": lambda: raw.MyGatherNd(params=deep, indices=indices).numpy(),
    "gather of many": lambda: raw.MyGatherNd(params=long, indices=back[:, None]).numpy(),
    "gather, bad": bad(lambda: raw.MyGatherNd(params=params, indices=[[9]])),
    "gather of a variable": lambda: raw.MyResourceGatherNd(
        resource=variable.handle, indices=indices, dtype=tf.float32
    ).numpy(),
    "scatter": lambda: tsg.scatter_nd(indices, params[:2], [4, 2]).numpy(),
    "scatter of many": lambda: tsg.scatter_nd(back[:, None], long, [2**17, 8]).numpy(),
    "scatter, bad": bad(lambda: tsg.scatter_nd([[4]], params[:1], [4, 2])),
    "scatter, bad shape": bad(lambda: tsg.scatter_nd([[4]], params, [4, 3])),
    "sparse gradient": lambda: raw.MyGatherNdSparseGrad(
        indices=back[:, None], grad=long, num_rows=2**17
    )[1].numpy(),
    "stitch": lambda: raw.MyDynamicStitch(indices=[[0, 2], [1]], data=[[1, 3], [2]]).numpy(),
    "stitch of many": lambda: raw.MyDynamicStitch(indices=[back], data=[long]).numpy(),
    "stitch, bad": bad(lambda: raw.MyDynamicStitch(indices=[[0, -2]], data=[[1, 3]])),
    "sized stitch": lambda: raw.MyDynamicStitchSized(
        size=3, indices=[[0, 2], [1]], data=[[1, 3], [2]]
    ).numpy(),
    "gradient of a stitch": lambda: raw.MyDynamicStitchGrad(indices=[back], grad=long)[0].numpy(),
}


def build_and_run() -> np.ndarray:
    """Shape functions, kernels that are made, and calls of these."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        rows = raw.MyGatherNd(params=deep.numpy(), indices=indices.numpy())
        merged = raw.MyDynamicStitch(indices=[[1, 0]], data=[rows])
        return session.run(raw.MyScatterNd(indices=[[1], [0]], updates=merged, shape=[2] * 12))


def compiled() -> np.ndarray:
    @tf.function(jit_compile=True)
    def both(table: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        return tsg.dynamic_stitch([[1, 0]], [tsg.gather_nd(table, places)], size=2)

    return both(params, indices).numpy()


def rewritten() -> np.ndarray:
    """The C function, in one direction."""
    with tf.Graph().as_default() as graph:
        table = tf.compat.v1.placeholder(tf.float32, [None, 4, 8])
        tf.gather_nd(table, tf.zeros([5, 3, 1], tf.int32), batch_dims=1)
        tf.dynamic_stitch([[1, 0]], [tf.gather_nd(table, [[1], [0]])])
    text = graph.as_graph_def().SerializeToString(deterministic=True)
    new, outcomes = _native.rewrite_graph(text, to_builtin=False, xla=True)
    return np.array([str(len(new)), str(outcomes)])


def passed() -> np.ndarray:
    """The pass of Grappler, which leaves a graph as it is where it finds no memory."""

    @tf.function
    def look_up(table: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        return tf.dynamic_stitch([[1, 0]], [tf.gather_nd(table, places)])

    return look_up(params, indices).numpy()


counts = {}
for name, call in EAGER.items():
    counts[name] = fail_each(name, call)
counts["graph"] = fail_each("graph", build_and_run)
counts["rewrite"] = fail_each("rewrite", rewritten, step=41)
if tsg.build_info()["xla"]["loaded"]:  # A sanitized build has no library for XLA.
    counts["xla"] = fail_each("xla", compiled, step=7)
tsg.rewrite.enable()
counts["pass"] = fail_each("pass", passed, step=5)
assert counts["graph"] > 300 and all(counts[n] > 0 for n in counts.keys() - EAGER.keys()), counts
print(counts)
print(sum(counts.values()))
