"""The GPU kernels: which there are, and their results on a device.

The tests of the second kind run where TensorFlow sees a GPU and the library has kernels for it.
They also run under `make gpu-kernel-test`, where a library made for tests has the GPU's kernels
registered for the CPU, with their device code compiled for the host.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import oracle
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import call, equal, in_each_mode, same, tensor
from tensorflow.python.framework import config, kernels
from tf_stitch_gather import _loader, raw_ops

ON_HOST = bool(os.environ.get("TSG_GPU_KERNELS_ON_HOST"))
GPUS = tf.config.list_physical_devices("GPU")
HAS_KERNELS = tsg.build_info()["cuda"] is not None
DEVICE = "CPU:0" if ON_HOST else "GPU:0"

if ON_HOST or (GPUS and HAS_KERNELS):
    SKIP = ""
elif not HAS_KERNELS:
    SKIP = "the library has no GPU kernels (built without CUDA)"
else:
    SKIP = "TensorFlow sees no GPU"
on_device = pytest.mark.skipif(bool(SKIP), reason=SKIP)

ADDABLE = tuple(t for t in support.ADDABLE if t != tf.string)
#: Sums of these are exact in any order for small whole numbers.
EXACT = tuple(t for t in ADDABLE if not t.name.startswith(("float8", "float4")))

#: The attribute of each op that is the type of its data, and the types a GPU has kernels for.
DATA_TYPES = {
    "MyDynamicStitch": ("T", support.FIXED_WIDTH),
    "MyDynamicStitchGrad": ("T", support.FIXED_WIDTH),
    "MyDynamicStitchSized": ("T", support.FIXED_WIDTH),
    "MyGatherNd": ("Tparams", support.FIXED_WIDTH),
    "MyGatherNdSparseGrad": ("T", ADDABLE),
    "MyResourceGatherNd": ("dtype", support.FIXED_WIDTH),
    "MyScatterNd": ("T", ADDABLE),
}


def types_with_kernel(op: str, attribute: str, device: str) -> set[int] | None:
    """The types for which the registry has a kernel; None where one serves all."""
    types: set[int] = set()
    for kernel in kernels.get_registered_kernels_for_op(op).kernel:
        if kernel.device_type != device:
            continue
        constraints = {c.name: c.allowed_values.list.type for c in kernel.constraint}
        if attribute not in constraints:
            assert not constraints, f"{op}: a constraint on {list(constraints)}"
            return None
        types.update(constraints[attribute])
    return types


class TestRegistry:
    def test_every_op_is_looked_at(self):
        assert sorted(DATA_TYPES) == sorted(_loader.OP_NAMES)

    @pytest.mark.skipif(ON_HOST, reason="a library for tests has the GPU's kernels only")
    @pytest.mark.parametrize("op", DATA_TYPES)
    def test_every_type_has_a_cpu_kernel(self, op):
        assert types_with_kernel(op, DATA_TYPES[op][0], "CPU") is None

    @pytest.mark.skipif(not (HAS_KERNELS or ON_HOST), reason="built without CUDA")
    @pytest.mark.parametrize("op", DATA_TYPES)
    def test_every_fixed_width_type_has_a_gpu_kernel(self, op):
        attribute, types = DATA_TYPES[op]
        found = types_with_kernel(op, attribute, "CPU" if ON_HOST else "GPU")
        assert found == {t.as_datatype_enum for t in types}

    @pytest.mark.skipif(HAS_KERNELS or ON_HOST, reason="built with CUDA")
    @pytest.mark.parametrize("op", DATA_TYPES)
    def test_no_gpu_kernel_without_cuda(self, op):
        assert types_with_kernel(op, DATA_TYPES[op][0], "GPU") == set()

    def test_a_gpu_without_kernels_is_warned_of(self, monkeypatch):
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
        with pytest.warns(UserWarning, match=r"no GPU kernels.*CUDA=1"):
            _loader.warn_without_gpu_kernels({"cuda": None})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _loader.warn_without_gpu_kernels({"cuda": {"nvcc": "13.0.88", "architectures": []}})

    def test_no_warning_without_a_gpu(self, monkeypatch):
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _loader.warn_without_gpu_kernels({"cuda": None})


def run(mode, fn, *args):
    """Calls `fn` with the device's kernels, and asserts that what it returns lives there."""
    with tf.device(DEVICE):
        args = tf.nest.map_structure(tf.identity, list(args))
        got = call(mode, fn, *args)
    for t in tf.nest.flatten(got):
        assert t.device.endswith(DEVICE), f"a result is on {t.device}"
    return got


def small_numbers(rng, shape, dtype):
    """Elements whose sums are exact in any order, also in types of few bits."""
    if dtype == tf.bool:
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0 if dtype.is_unsigned else -2, 3, shape).astype(
        support.element_type(dtype)
    )


# name: shape of params, shape of indices, batch_dims
GATHERS = {
    "scalars": ((7, 5), (40, 2), 0),
    "rows": ((9, 3), (30, 1), 0),
    "rows of 16": ((9, 16), (30, 1), 0),
    "a row that is wide": ((4, 9000), (3, 1), 0),
    "batch": ((3, 6, 2), (3, 4, 1), 1),
    "two batch dims": ((2, 3, 4, 5), (2, 3, 6, 1), 2),
    "depth 0": ((2, 3), (4, 0), 0),
    "one slice": ((5, 2), (1,), 0),
    "no index": ((5, 2), (0, 1), 0),
    "empty slices": ((5, 0), (4, 1), 0),
    "rank 10, depth 9": ((2,) * 10, (20, 9), 0),
}


@on_device
class TestGather:
    @support.over(support.FIXED_WIDTH, support.GATHER_INDEX_TYPES, ("eager",))
    def test_values(self, dtype, index_type, mode, rng):
        for name, (shape, indices_shape, batch_dims) in GATHERS.items():
            params = support.array_of(rng, shape, dtype)
            limits = shape[batch_dims : batch_dims + indices_shape[-1]]
            indices = support.index_array(rng, limits, indices_shape[:-1], index_type)
            got = run(
                mode,
                lambda p, i, b=batch_dims: tsg.gather_nd(p, i, batch_dims=b),
                tensor(params, dtype),
                tensor(indices, index_type),
            )
            same(got, oracle.gather_nd(params, indices, batch_dims), name)

    @pytest.mark.parametrize("mode", ("function", "unknown"))
    def test_values_in_a_graph(self, mode, rng):
        self.test_values(tf.float32, tf.int32, mode, rng)

    @in_each_mode
    def test_bad_indices(self, mode):
        params = tf.constant([[1, 2], [3, 4], [5, 6]])
        indices = tf.constant([[[0], [2]], [[3], [-1]]], tf.int64)
        got = run(
            mode, lambda p, i: tsg.gather_nd(p, i, bad_indices_policy="IGNORE"), params, indices
        )
        equal(got, [[[1, 2], [5, 6]], [[0, 0], [0, 0]]])
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"indices\[1,0\] = \[3\] does not index into param shape \[3,2\], node name: ",
        ):
            run(mode, lambda p, i: tsg.gather_nd(p, i, bad_indices_policy="ERROR"), params, indices)
        if not ON_HOST:
            equal(run(mode, tsg.gather_nd, params, indices), [[[1, 2], [5, 6]], [[0, 0], [0, 0]]])

    def test_good_indices_under_every_policy(self):
        for policy in ("", "DEFAULT", "ERROR", "IGNORE"):
            got = run(
                "eager",
                lambda p, i, policy=policy: tsg.gather_nd(p, i, bad_indices_policy=policy),
                tf.constant([1.0, 2.0, 3.0]),
                tf.constant([[2], [0]]),
            )
            equal(got, [3.0, 1.0])

    @in_each_mode
    def test_variable(self, mode):
        with tf.device(DEVICE):
            variable = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        read = lambda i: raw_ops.MyResourceGatherNd(  # noqa: E731
            resource=variable.handle, indices=i, dtype=tf.float32
        )
        equal(run(mode, read, tf.constant([[1], [1], [0]])), [[3, 4], [3, 4], [1, 2]])

    def test_params_at_an_odd_address(self, rng):
        whole = support.array_of(rng, (40, 5), tf.uint8)
        for start in range(4):
            got = run(
                "eager",
                lambda w, i, start=start: tsg.gather_nd(w[start:], i),
                tf.constant(whole),
                tf.constant([[3], [0], [7]]),
            )
            same(got, whole[start:][[3, 0, 7]])

    @in_each_mode
    def test_gradients(self, mode):
        def sparse(params, indices, weights):
            with tf.GradientTape() as tape:
                tape.watch(params)
                loss = tf.reduce_sum(tsg.gather_nd(params, indices) * weights)
            return tf.convert_to_tensor(tape.gradient(loss, params))

        got = run(
            mode, sparse, tf.ones([4]), tf.constant([[3], [1], [3]]), tf.constant([1.0, 2.0, 4.0])
        )
        equal(got, [0.0, 2.0, 0.0, 5.0])

    @in_each_mode
    @pytest.mark.parametrize("dtype", EXACT, ids=lambda t: t.name)
    def test_sparse_gradient(self, dtype, mode, rng):
        for count in (0, 1, 30, 900):
            indices = rng.integers(0, 20, (count, 1))
            grad = small_numbers(rng, (count, 3), dtype)
            rows, values = run(
                mode,
                lambda i, g: tuple(raw_ops.MyGatherNdSparseGrad(indices=i, grad=g, num_rows=20)),
                tf.constant(indices, tf.int32),
                tensor(grad, dtype),
            )
            want = np.unique(indices)
            equal(rows, want)
            equal(values, oracle.scatter_nd(indices, grad, (20, 3))[want])

    def test_sparse_gradient_leaves_bad_indices_out(self):
        arguments = tf.constant([[2], [-1], [7], [2]]), tf.constant([1.0, 2.0, 4.0, 8.0])
        rows, values = run(
            "eager",
            lambda i, g: tuple(
                raw_ops.MyGatherNdSparseGrad(
                    indices=i, grad=g, num_rows=3, bad_indices_policy="IGNORE"
                )
            ),
            *arguments,
        )
        equal(rows, [2])
        equal(values, [9.0])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = \[-1\] does not"):
            run(
                "eager",
                lambda i, g: (
                    raw_ops.MyGatherNdSparseGrad(
                        indices=i, grad=g, num_rows=3, bad_indices_policy="ERROR"
                    ).values
                ),
                *arguments,
            )


@on_device
class TestScatter:
    @support.over(EXACT, support.GATHER_INDEX_TYPES, ("eager",))
    def test_values(self, dtype, index_type, mode, rng):
        for shape, count, depth in (
            ((5,), 60, 1),
            ((6, 4), 50, 1),
            ((3, 4, 2), 30, 2),
            ((4,), 0, 1),
        ):
            indices = support.index_array(rng, shape[:depth], (count,), index_type)
            updates = small_numbers(rng, (count, *shape[depth:]), dtype)
            got = run(
                mode,
                lambda i, u, shape=shape: tsg.scatter_nd(i, u, shape),
                tensor(indices, index_type),
                tensor(updates, dtype),
            )
            equal(got, oracle.scatter_nd(indices, updates, shape))

    @pytest.mark.parametrize("mode", ("function", "unknown"))
    @pytest.mark.parametrize("dtype", (tf.float32, tf.float16), ids=lambda t: t.name)
    def test_values_in_a_graph(self, dtype, mode, rng):
        self.test_values(dtype, tf.int32, mode, rng)

    @pytest.mark.parametrize("dtype", (tf.float32, tf.float64, tf.complex64), ids=lambda t: t.name)
    def test_rounding(self, dtype, rng):
        indices = rng.integers(0, 50, (5000, 1))
        updates = support.numbers_of(rng, (5000, 3), dtype)
        got = run(
            "eager",
            lambda i, u: tsg.scatter_nd(i, u, [50, 3]),
            tf.constant(indices),
            tensor(updates, dtype),
        )
        np.testing.assert_allclose(
            got.numpy(), oracle.scatter_nd(indices, updates, (50, 3)), rtol=1e-4, atol=1e-4
        )

    def test_narrow_floats_round_once(self):
        # One after another 4096 + 1 would stand still in float16.
        updates = tf.constant([4096.0] + [1.0] * 64, tf.float16)
        got = run(
            "eager", lambda i, u: tsg.scatter_nd(i, u, [1]), tf.zeros([65, 1], tf.int32), updates
        )
        equal(got, np.array([4160], np.float16))

    def test_the_same_bits_when_determinism_is_on(self, rng):
        indices = tf.constant(rng.integers(0, 7, (20000, 1)))
        updates = tf.constant(rng.random((20000, 2), np.float32))
        config.enable_op_determinism()
        try:
            results = [
                run("eager", lambda i, u: tsg.scatter_nd(i, u, [7, 2]), indices, updates).numpy()
                for _ in range(4)
            ]
        finally:
            config.disable_op_determinism()
        for result in results[1:]:
            same(result, results[0])

    def test_bad_indices(self):
        arguments = tf.constant([[1], [4], [-2]]), tf.constant([1, 2, 4])
        got = run(
            "eager", lambda i, u: tsg.scatter_nd(i, u, [3], bad_indices_policy="IGNORE"), *arguments
        )
        equal(got, [0, 1, 0])
        for dtype in (tf.int32, tf.float16):
            with pytest.raises(
                tf.errors.InvalidArgumentError,
                match=r"indices\[1\] = \[4\] does not index into shape \[3\]",
            ):
                run(
                    "eager",
                    lambda i, u, dtype=dtype: tsg.scatter_nd(
                        i, tf.cast(u, dtype), [3], bad_indices_policy="ERROR"
                    ),
                    *arguments,
                )


# name: shapes of the indices, shape of a row
STITCHES = {
    "scalars": ([(5,), (), (2, 3)], ()),
    "rows": ([(40,), (30,)], (3,)),
    "rows of 64": ([(40,), (30,)], (64,)),
    "a row that is wide": ([(2,), (3,)], (9000,)),
    "some are empty": ([(0,), (4,), (0, 2)], (2,)),
    "all are empty": ([(0,)], (2,)),
    "empty rows": ([(4,)], (0,)),
    "many parts": ([(2,)] * 300, (3,)),
}


@on_device
class TestStitch:
    @staticmethod
    def draw(rng, shapes, row_shape, dtype, index_type):
        kind = support.element_type(index_type)
        indices = [np.asarray(rng.integers(0, 60, shape)).astype(kind) for shape in shapes]
        return indices, [support.array_of(rng, (*s, *row_shape), dtype) for s in shapes]

    @support.over(support.FIXED_WIDTH, support.STITCH_INDEX_TYPES, ("eager",))
    def test_values(self, dtype, index_type, mode, rng):
        for name, (shapes, row_shape) in STITCHES.items():
            indices, data = self.draw(rng, shapes, row_shape, dtype, index_type)
            inputs = [tensor(i, index_type) for i in indices], [tensor(d, dtype) for d in data]
            same(run(mode, tsg.dynamic_stitch, *inputs), oracle.stitch(indices, data), name)
            got = run(mode, lambda i, d: tsg.dynamic_stitch(i, d, size=64), *inputs)
            same(got, oracle.stitch(indices, data, 64), f"{name}, size 64")

    @pytest.mark.parametrize("mode", ("function", "unknown"))
    def test_values_in_a_graph(self, mode, rng):
        self.test_values(tf.float32, tf.int32, mode, rng)

    @in_each_mode
    @pytest.mark.parametrize("index_type", support.STITCH_INDEX_TYPES, ids=lambda t: t.name)
    def test_gradient(self, index_type, mode, rng):
        for shapes, row_shape in (STITCHES["rows"], STITCHES["many parts"]):
            indices, _ = self.draw(rng, shapes, row_shape, tf.float32, index_type)
            rows = max(int(i.max()) for i in indices) + 1
            grad = support.array_of(rng, (rows, *row_shape), tf.float32)
            got = run(
                mode,
                lambda i, g: raw_ops.MyDynamicStitchGrad(indices=i, grad=g),
                [tensor(i, index_type) for i in indices],
                tf.constant(grad),
            )
            for part, want in zip(got, oracle.stitch_gradient(indices, grad), strict=True):
                same(part, want)

    @in_each_mode
    def test_bad_indices(self, mode):
        indices = [tf.constant([1, 0]), tf.constant([2, -5, -6])]
        data = [tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0, 5.0])]
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"indices\[1\]\[1\] = -5 is out of range"
        ):
            run(mode, tsg.dynamic_stitch, indices, data)

        def sized(policy):
            return lambda i, d: raw_ops.MyDynamicStitchSized(
                size=2, indices=i, data=d, bad_indices_policy=policy
            )

        equal(run(mode, sized("IGNORE"), indices, data), [2.0, 1.0])
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"indices\[1\]\[0\] = 2 is out of range \[0, 2\)"
        ):
            run(mode, sized("ERROR"), indices, data)
        if not ON_HOST:
            equal(run(mode, sized(""), indices, data), [2.0, 1.0])

    def test_a_size_that_does_not_fit(self):
        for greatest in (2**31 - 1, 2**62, 2**63 - 1):
            index_type = tf.int32 if greatest < 2**31 else tf.int64
            with pytest.raises((tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError)):
                run(
                    "eager",
                    tsg.dynamic_stitch,
                    [tf.constant([greatest], index_type)],
                    [tf.zeros([1, 1 << 16])],
                )
        equal(run("eager", tsg.dynamic_stitch, [tf.constant([1])], [tf.constant([7])]), [0, 7])


@on_device
def test_many_at_once(rng):
    """Kernels that wait for the device, side by side in one graph."""
    params = support.array_of(rng, (50, 8), tf.float32)
    order = rng.permutation(50).astype(np.int32)

    @tf.function(autograph=False)
    def steps(p, i):
        results = []
        for k in range(20):
            rows = tsg.gather_nd(p, tf.roll(i, k, 0)[:, tf.newaxis], bad_indices_policy="ERROR")
            results.append(tsg.dynamic_stitch([tf.roll(i, k, 0)], [rows]))
        return results

    for got in run("eager", steps, tf.constant(params), tf.constant(order)):
        same(got, params)


@pytest.mark.skipif(bool(SKIP) or ON_HOST, reason=SKIP or "the device is the CPU")
def test_no_tensor_is_copied_between_devices(rng):
    """Indices and data stay where they are: a copy that nobody asked for is an error here."""
    params = support.array_of(rng, (50, 8), tf.float32)
    with tf.device(DEVICE):
        on_gpu = tf.identity(tf.constant(params))
        indices = tf.identity(tf.constant(np.arange(50, dtype=np.int64)))
    config.set_device_policy("explicit")
    try:
        with tf.device(DEVICE):
            column = tf.reshape(indices, [50, 1])
            gathered = raw_ops.MyGatherNd(params=on_gpu, indices=column, bad_indices_policy="ERROR")
            merged = raw_ops.MyDynamicStitch(indices=[indices], data=[gathered])
    finally:
        config.set_device_policy("silent")
    assert gathered.device.endswith(DEVICE) and merged.device.endswith(DEVICE)
    same(merged, params)
