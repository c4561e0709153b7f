"""Runs a model, or single ops, with the built-in ops and with these, side by side."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tf_stitch_gather import _api, _savedmodel
from tf_stitch_gather._savedmodel import ModelError

Call = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Output:
    """One output of a model: its shape and type, and how far the two sides differ."""

    name: str
    kind: str
    difference: float


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The outputs, and the median times of a call in seconds."""

    outputs: list[Output]
    builtin_seconds: float
    our_seconds: float


def time_both(builtin: Call, ours: Call, seconds: float) -> tuple[float, float]:
    """The median seconds of each, called in turn for about so long."""
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 3:
        # Who is first changes, since the second may find warm caches.
        order = (0, 1) if len(times[0]) % 2 == 0 else (1, 0)
        for side in order:
            begin = time.perf_counter()
            (builtin, ours)[side]()
            times[side].append(time.perf_counter() - begin)
    return statistics.median(times[0]), statistics.median(times[1])


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


def _load(folder: Path, tags: str | None, signature: str | None) -> tuple[Any, Any]:
    """The model, which has to be kept, and the function of its signature."""
    try:
        with _quietly():
            model = tf.saved_model.load(str(folder), tags=tags.split(",") if tags else None)
    except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
        first_line = str(error).strip().partition("\n")[0]
        raise ModelError(f"the model does not load: {first_line}") from None
    names = list(model.signatures)
    wanted = signature or ("serving_default" if "serving_default" in names else "")
    if not wanted and len(names) == 1:
        wanted = names[0]
    if wanted not in names:
        raise ModelError(
            f"the model has no signature {wanted!r}: name one of {', '.join(names) or 'none'}"
            if names
            else "the model has no signature to call"
        )
    return model, model.signatures[wanted]


def _made_up(name: str, spec: tf.TensorSpec, batch: int) -> np.ndarray:
    """An input: random numbers, but zeros of types that may be indices."""
    if spec.shape.rank is None:
        raise ModelError(f"the input {name} may have any rank: give it by --inputs FILE.npz")
    shape = [batch if size is None else size for size in spec.shape]
    if spec.dtype == tf.string:
        return np.full(shape, b"", object)
    if spec.dtype.is_floating:
        values = np.random.default_rng(0).standard_normal(shape)
        return values.astype(spec.dtype.as_numpy_dtype)
    return np.zeros(shape, spec.dtype.as_numpy_dtype)


def _inputs(function: Any, given: Mapping[str, np.ndarray] | None, batch: int) -> dict[str, Any]:
    specs: dict[str, tf.TensorSpec] = function.structured_input_signature[1]
    if given is None:
        return {
            name: tf.constant(_made_up(name, spec, batch), spec.dtype)
            for name, spec in specs.items()
        }
    missing, extra = specs.keys() - given.keys(), given.keys() - specs.keys()
    if missing or extra:
        wrong = f"lacks {', '.join(sorted(missing))}" if missing else ""
        wrong = wrong or f"has {', '.join(sorted(extra))} too many"
        raise ModelError(f"the file of inputs {wrong}: the model takes {', '.join(sorted(specs))}")
    result = {}
    for name, spec in specs.items():
        try:
            result[name] = tf.cast(tf.constant(given[name]), spec.dtype)
        except (TypeError, ValueError, tf.errors.OpError) as error:
            raise ModelError(f"the input {name} does not fit: {error}") from None
        if not spec.shape.is_compatible_with(result[name].shape):
            raise ModelError(
                f"the input {name} has the shape {result[name].shape}, not {spec.shape}"
            )
    return result


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference of two arrays of one shape and type."""
    if a.size == 0:
        return 0.0
    if a.dtype.kind not in "fciub" and a.dtype.name != "bfloat16":
        return 0.0 if (a == b).all() else float("inf")
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    # Not-a-number in the same place, and the same infinity, do not differ.
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return float(np.max(np.where(same, 0.0, np.abs(a - b))))


def _compare(name: str, builtin: tf.Tensor, ours: tf.Tensor) -> Output:
    a, b = np.asarray(builtin), np.asarray(ours)
    shape = "x".join(map(str, a.shape)) or "scalar"
    kind = f"{builtin.dtype.name} {shape}"
    if a.shape != b.shape or a.dtype != b.dtype:
        return Output(name, kind, float("inf"))
    return Output(name, kind, _difference(a, b))


def compare_model(
    source: Path,
    inputs: Mapping[str, np.ndarray] | None,
    *,
    signature: str | None,
    tags: str | None,
    batch: int,
    seconds: float,
    progress: _savedmodel.Progress,
) -> Comparison:
    """Calls a model with the built-in ops and with ours on the same inputs.

    Raises:
      ModelError: if the model cannot be read or called.
    """
    with tempfile.TemporaryDirectory(prefix="tf-stitch-gather-") as folder:
        functions = []
        kept = []
        for step, to in enumerate(("builtin", "ours")):
            progress(step, 3, f"loading the model with {'our' if step else 'built-in'} ops")
            path = Path(folder) / to
            _savedmodel.rewrite_model(source, path, to)
            model, function = _load(path, tags, signature)
            kept.append(model)
            functions.append(function)
        builtin, ours = functions
        arguments = _inputs(builtin, inputs, batch)
        progress(2, 3, "calling it")
        try:
            expected, got = builtin(**arguments), ours(**arguments)
        except tf.errors.OpError as error:
            first_line = str(error.message).strip().partition("\n")[0]
            hint = "" if inputs else " (the inputs are made up: give real ones by --inputs)"
            raise ModelError(f"the call fails: {first_line}{hint}") from None
        outputs = [_compare(name, expected[name], got[name]) for name in sorted(expected)]
        times = time_both(
            lambda: [t.numpy() for t in builtin(**arguments).values()],
            lambda: [t.numpy() for t in ours(**arguments).values()],
            seconds,
        )
        progress(3, 3, "done")
    return Comparison(outputs, *times)


def op_cases() -> dict[str, tuple[Call, Call]]:
    """Calls of the built-in functions, and of ours, that should give the same."""
    random = np.random.default_rng(0)

    def ids(count: int, limit: int) -> np.ndarray:
        return random.integers(0, limit, count).astype(np.int32)

    table = tf.constant(random.standard_normal((100_000, 64)), tf.float32)
    rows = tf.constant(ids(20_000, 100_000)[:, None])
    batch = tf.constant(random.standard_normal((64, 512, 32)), tf.float32)
    places = tf.constant(ids(64 * 256, 512).reshape(64, 256, 1))
    updates = tf.constant(random.standard_normal((20_000, 64)), tf.float32)
    order = random.permutation(20_000).astype(np.int32)
    parts = [tf.constant(part) for part in np.array_split(order, 4)]
    data = [tf.gather(updates, part) for part in parts]
    shape = tf.constant([100_000, 64])
    calls: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
        "gather_nd, 20,000 rows of 64": (tf.gather_nd, _api.gather_nd, (table, rows)),
        "gather_nd, batch_dims=1": (
            lambda p, i: tf.gather_nd(p, i, batch_dims=1),
            lambda p, i: _api.gather_nd(p, i, batch_dims=1),
            (batch, places),
        ),
        "scatter_nd, 20,000 rows of 64": (
            tf.scatter_nd,
            _api.scatter_nd,
            (rows, updates, shape),
        ),
        "dynamic_stitch, 4 parts": (
            lambda i, d: tf.dynamic_stitch(i, d),
            lambda i, d: _api.dynamic_stitch(i, d),
            (parts, data),
        ),
    }
    return {
        name: (_call(builtin, args), _call(ours, args))
        for name, (builtin, ours, args) in calls.items()
    }


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> Call:
    return lambda: function(*args)
