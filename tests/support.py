"""Types, tensor builders, ways to call an op, and comparisons that the test files share."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import dtypes, kernels

_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
# Each TensorFlow release has some of the narrow types.
_FLOATS8 = ("e5m2", "e4m3fn", "e4m3fnuz", "e4m3b11fnuz", "e5m2fnuz")
_SUB_BYTE = ("int4", "uint4", "int2", "uint2", "float4_e2m1fn")
_QUANTISED = ("qint8", "quint8", "qint16", "quint16", "qint32")
_FIXED_WIDTH_NAMES = (
    "bool",
    *_INTEGERS,
    *_FLOATS,
    *(f"float8_{kind}" for kind in _FLOATS8),
    *_SUB_BYTE,
    *_QUANTISED,
)

FIXED_WIDTH = tuple(getattr(dtypes, n) for n in _FIXED_WIDTH_NAMES if hasattr(dtypes, n))
#: Every type that NumPy can hand to a tensor and take back.
ALL_TYPES = (*FIXED_WIDTH, tf.string)
#: Types whose scatter sum is taken in float32 and rounded once.
SMALL_FLOATS = tuple(
    t
    for t in FIXED_WIDTH
    if t.name in ("float16", "bfloat16") or t.name.startswith(("float8", "float4"))
)
#: Types that scatter_nd adds.
ADDABLE = (
    *(t for t in FIXED_WIDTH if t.name in (*_INTEGERS, "int4", "uint4", "int2", "uint2")),
    *(tf.float32, tf.float64, tf.complex64, tf.complex128, tf.bool, tf.string),
    *SMALL_FLOATS,
)
DIFFERENTIABLE = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128)

STITCH_INDEX_TYPES = (tf.int32, tf.int64)
GATHER_INDEX_TYPES = (tf.int16, tf.int32, tf.int64)
#: Index types that only the Python functions take: they convert them.
CONVERTED_INDEX_TYPES = (tf.int8, tf.uint8, tf.uint16, tf.uint32, tf.uint64)

MODES = ("eager", "function")

UNDER_ASAN = "libasan" in os.environ.get("LD_PRELOAD", "")

#: What a wrong call may raise, by the time at which it is found out.
ARGUMENT_ERRORS = (tf.errors.InvalidArgumentError, ValueError, TypeError)


def over(
    data_types: Sequence[tf.DType],
    index_types: Sequence[tf.DType],
    modes: Sequence[str] = MODES,
) -> Callable:
    """Parametrises ``dtype``, ``index_type`` and ``mode`` with ids like ``int4-int16-eager``."""
    cases = [
        pytest.param(d, i, m, id=f"{d.name}-{i.name}-{m}")
        for d in data_types
        for i in index_types
        for m in modes
    ]
    return pytest.mark.parametrize(("dtype", "index_type", "mode"), cases)


in_each_mode = pytest.mark.parametrize("mode", MODES)
in_every_mode = pytest.mark.parametrize("mode", (*MODES, "unknown"))


def has_cpu_kernel(op: str, **types: tf.DType) -> bool:
    """Whether a CPU kernel of a built-in op is registered for these values of its attributes."""
    for kernel in kernels.get_registered_kernels_for_op(op).kernel:
        limits = {c.name: c.allowed_values.list.type for c in kernel.constraint}
        if kernel.device_type in ("CPU", "DEFAULT") and all(
            t.as_datatype_enum in limits.get(name, [t.as_datatype_enum])
            for name, t in types.items()
        ):
            return True
    return False


def call(mode: str, fn: Callable, *args: Any) -> Any:
    """Calls ``fn(*args)`` eagerly, as a ``tf.function``, or as one that knows no shape.

    Tensors in ``args`` (lists of them included) are the function's placeholders, so that nothing
    in it is a constant.
    """
    if mode == "eager":
        return fn(*args)
    if mode == "function":
        return tf.function(fn, autograph=False)(*args)
    assert mode == "unknown", mode
    specs = tf.nest.map_structure(lambda t: tf.TensorSpec(None, t.dtype), list(args))
    return tf.function(fn, input_signature=specs, autograph=False)(*args)


def element_type(dtype: tf.DType) -> np.dtype:
    """The NumPy type of the elements, an ordinary integer for the quantised types."""
    base = np.dtype(dtype.as_numpy_dtype)
    return base[0] if base.names else base


def tensor(values: Any, dtype: tf.DType) -> tf.Tensor:
    """A tensor of exactly this type: ``values`` is an array of it, or of numbers to convert."""
    array = np.asarray(values)
    if dtype != tf.string and array.dtype != element_type(dtype):
        array = array.astype(element_type(dtype))
    return tf.constant(array, dtype)


def array_of(rng: np.random.Generator, shape: Sequence[int], dtype: tf.DType) -> np.ndarray:
    """Random elements: any bit pattern where a type has no padding, so also NaNs with a payload."""
    shape = tuple(shape)
    if dtype == tf.string:
        out = np.empty(shape, object)
        for at in np.ndindex(shape):
            out[at] = rng.bytes(int(rng.choice([0, 3, 40])))
        return out
    kind = element_type(dtype)
    if dtype == tf.bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.name in _SUB_BYTE:
        low, high = {"int4": (-8, 8), "uint4": (0, 16), "int2": (-2, 2)}.get(dtype.name, (0, 4))
        return rng.integers(low, high, shape).astype(np.int32).astype(kind)
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(rng.bytes(count * kind.itemsize), kind).reshape(shape).copy()


def numbers_of(rng: np.random.Generator, shape: Sequence[int], dtype: tf.DType) -> np.ndarray:
    """Random elements that can be added: finite and small, of either sign where there is one."""
    shape = tuple(shape)
    if dtype in (tf.string, tf.bool) or dtype.is_integer:
        return array_of(rng, shape, dtype)
    values = rng.uniform(-2, 2, shape)
    if dtype.is_complex:
        values = values + 1j * rng.uniform(-2, 2, shape)
    return values.astype(element_type(dtype))


def index_array(
    rng: np.random.Generator, limits: Sequence[int], outer: Sequence[int], dtype: tf.DType
) -> np.ndarray:
    """Index vectors of depth ``len(limits)``, component k in ``[0, limits[k])``."""
    columns = [rng.integers(0, n, tuple(outer)) for n in limits]
    kind = element_type(dtype)
    return np.stack(columns, -1).astype(kind) if columns else np.zeros((*outer, 0), kind)


def to_numpy(value: Any) -> np.ndarray:
    """The array of a tensor, variable, IndexedSlices (made dense) or array-like."""
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    if not hasattr(value, "numpy"):
        return np.asarray(value)
    # Of a scalar string tensor, numpy() makes bytes.
    return np.asarray(value.numpy(), object if value.dtype == tf.string else None)


def same(got: Any, want: Any, note: str = "") -> None:
    """Asserts equal shapes, element types and bits."""
    got, want = np.asarray(to_numpy(got)), np.asarray(want)
    assert got.shape == want.shape, f"{note}: shape {got.shape}, expected {want.shape}"
    assert got.dtype == want.dtype, f"{note}: type {got.dtype}, expected {want.dtype}"
    if got.dtype.kind == "O":
        differs = np.array([a != b for a, b in zip(got.flat, want.flat, strict=True)], bool)
        differs = differs.reshape(got.shape)
    elif got.size:
        raw = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (got, want))
        differs = np.not_equal(*raw).reshape(*got.shape, -1).any(-1)
    else:
        return
    if differs.any():
        at = tuple(int(k) for k in np.argwhere(differs)[0])
        count = int(differs.sum())
        raise AssertionError(
            f"{note}: {count} of {got.size} elements differ, first at {at}: "
            f"{got[at]!r}, expected {want[at]!r}"
        )


def equal(got: Any, want: Any, note: str = "") -> None:
    """Asserts equal shapes and equal values, whatever the type of the expected array."""
    got, want = np.asarray(to_numpy(got)), np.asarray(want)
    assert got.shape == want.shape, f"{note}: shape {got.shape}, expected {want.shape}"
    if want.dtype.kind in "OSU":
        want = want.astype(bytes).astype(object) if want.dtype.kind == "U" else want.astype(object)
        assert got.tolist() == want.tolist(), note
    else:
        np.testing.assert_array_equal(got.astype(want.dtype), want, err_msg=note)


def close(got: Any, want: Any, rtol: float = 1e-5, atol: float = 1e-6, note: str = "") -> None:
    """Asserts equal shapes and values that agree within the tolerances."""
    got, want = np.asarray(to_numpy(got)), np.asarray(want)
    assert got.shape == want.shape, f"{note}: shape {got.shape}, expected {want.shape}"
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        got.astype(wide), want.astype(wide), rtol=rtol, atol=atol, err_msg=note
    )


@contextlib.contextmanager
def fails(*fragments: str, kinds: Any = ARGUMENT_ERRORS) -> Iterator[pytest.ExceptionInfo]:
    """Expects an exception of one of ``kinds`` whose text holds every fragment."""
    with pytest.raises(kinds) as info:
        yield info
    text = str(info.value)
    for fragment in fragments:
        assert fragment in text, f"{fragment!r} is not in: {text[:600]}"


def shape_text(*shapes: Sequence[int]) -> re.Pattern:
    """A pattern that finds these shapes in this order, however brackets and blanks are set."""
    parts = [r"[\[(]\s*" + r",\s*".join(map(str, s)) + r",?\s*[\])]" for s in shapes]
    return re.compile(".*".join(parts), re.DOTALL)


def gradients(fn: Callable, inputs: Sequence[Any], upstream: Any = None) -> list[Any]:
    """The gradients of ``fn(*inputs)`` by each input, as the tape gives them."""
    inputs = [tf.convert_to_tensor(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = fn(*inputs)
    return tape.gradient(result, inputs, output_gradients=upstream)


def soil_memory(size: int, blocks: int = 4) -> None:
    """Leaves freed blocks of ``size`` bytes full of non-zero bytes in the allocator."""
    kept = [tf.fill([max(1, size)], tf.constant(0xAB, tf.uint8)) for _ in range(blocks)]
    del kept


def need_memory(gigabytes: float) -> None:
    """Skips the test where that much memory is not free, with 1 GB left over."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(s.split()[1]) for s in lines if s.startswith("MemAvailable")) / 1e6
    except (OSError, StopIteration):
        pytest.skip("how much memory is free is not known on this system")
    if free < gigabytes + 1:
        pytest.skip(f"needs {gigabytes} GB of free memory, {free:.1f} GB are there")


def zeros_untouched(shape: Sequence[int]) -> tuple[np.ndarray, tf.Tensor]:
    """An int8 array of zeros and a tensor on the same memory, which is only taken when touched."""
    count = int(np.prod(shape, dtype=np.int64))
    block = np.zeros(count + 64, np.int8)
    start = -block.ctypes.data % 64
    array = block[start : start + count].reshape(tuple(shape))
    return array, tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def run_python(source: str | Path, *args: str, env: dict[str, str] | None = None) -> str:
    """Runs Python source, or a file, in a new process that finds the package; returns its output.

    The process sees no GPU.

    Raises:
      AssertionError: the process failed; the message holds the end of its output.
    """
    import tf_stitch_gather

    home = str(Path(tf_stitch_gather.__file__).resolve().parent.parent)
    paths = [home, str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    environment = {**os.environ, **quiet, **(env or {})}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    command = [sys.executable]
    command += [str(source)] if isinstance(source, Path) else ["-c", source]
    done = subprocess.run(
        [*command, *args], capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    tail = (done.stdout + done.stderr)[-3000:]
    assert done.returncode == 0, f"exit status {done.returncode}:\n{tail}"
    return done.stdout


def child(source: str | Path, *args: str, env: dict[str, str] | None = None) -> str:
    """The last line that ``run_python`` prints."""
    return run_python(source, *args, env=env).strip().splitlines()[-1]


def run_page(page: Path) -> None:
    """Runs the examples of a page in turn: Python as it is, shell lines of our command."""
    from tf_stitch_gather import _cli

    text = page.read_text("utf-8")
    blocks = list(re.finditer(r"^```(python|sh)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks, f"{page} has no example"
    for block in blocks:
        language, code = block.groups()
        if language == "python":
            # Padded, so that a traceback shows the lines of the page.
            lines = text.count("\n", 0, block.start(2))
            exec(compile("\n" * lines + code, str(page), "exec"), {"__name__": page.stem})
            continue
        for line in code.splitlines():
            program, *arguments = line.split()
            assert program == "tf-stitch-gather", line
            assert _cli.main(arguments) == 0, line
