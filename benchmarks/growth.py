"""How cost grows: with the indices, the parts of a stitch, the ops of a graph and a slice's width.

All but the third are ordinary cases of generated sizes; the third builds chains of small ops.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import memory
from benchmarks.cases import Case
from benchmarks.harness import measure, time_sides
from benchmarks.results import Measurement, Options, WrongResultError
from benchmarks.sides import Side

SUITES = ("count", "parts", "graph", "width")

_PART_ROWS = 100_000
_PART_COUNTS = (1, 10, 100, 1_000, 10_000)
_CHAIN_OPS = 1_000
_CHAIN_ROWS = 16
_FEW_ROUNDS_FROM = 10**7
_WIDTH_OUTPUT_BYTES = 2**24
_WIDTHS = tuple(2**power for power in range(2, 15))  # Bytes a slice: 4 B to 16 KB.
# Inputs, the results, the expected one and NumPy's temporaries, in units of what the op touches.
_WORKING_SETS = 6


def count_cases(largest: int) -> list[Case]:
    """From 10^3 to `largest` indices, single elements and rows of 64 bytes.

    Sizes that would not leave half of the machine's free memory are left out.
    """
    room = memory.available_bytes() // 2
    cases = []
    for power in range(3, int(math.log10(largest)) + 1):
        n = 10**power
        for label, slice_shape in (("elements", ()), ("64 B", (16,))):
            if n * (8 + 8 * math.prod(slice_shape)) * _WORKING_SETS > room:
                continue
            at = f"10^{power} {label}"
            cases += [
                Case(f"gather {at}", "gather_nd", params=(n, *slice_shape), indices=(n, 1)),
                Case(f"scatter {at}", "scatter_nd", shape=(n, *slice_shape), indices=(n, 1)),
                Case(f"stitch {at}", "dynamic_stitch", parts=4, rows=n // 4, slice=slice_shape),
            ]
    return cases


def part_cases() -> list[Case]:
    """The same 100,000 rows of 64 bytes stitched from 1 to 10,000 parts."""
    return [
        Case(f"{n:,} parts", "dynamic_stitch", parts=n, rows=_PART_ROWS // n, slice=(16,))
        for n in _PART_COUNTS
    ]


def width_cases() -> list[Case]:
    """Outputs of 16 MB made of slices of 4 B to 16 KB."""
    cases = []
    for width in _WIDTHS:
        n, slice_shape = _WIDTH_OUTPUT_BYTES // width, (width // 4,)
        cases += [
            Case(f"gather {width} B", "gather_nd", params=(n, *slice_shape), indices=(n, 1)),
            Case(f"stitch {width} B", "dynamic_stitch", parts=4, rows=n // 4, slice=slice_shape),
        ]
    return cases


def suite_cases(suite: str, largest: int) -> list[str | Case]:
    """The cases of a suite; for the chains, which no grid can hold, the op they consist of."""
    if suite == "count":
        return list(count_cases(largest))
    if suite == "parts":
        return list(part_cases())
    if suite == "width":
        return list(width_cases())
    return ["gather_nd", "scatter_nd", "dynamic_stitch"]


def run_entry(entry: str | Case, ours: Any, options: Options, threads: int) -> Measurement:
    """Measures one entry of `suite_cases`; the largest, seconds a call, in few rounds."""
    if isinstance(entry, Case):
        if entry.index_count >= _FEW_ROUNDS_FROM:
            options = dataclasses.replace(options, min_rounds=min(3, options.min_rounds))
        return measure(entry, ours, options, threads)
    return measure_chain(entry, ours, options, threads)


def measure_chain(
    op: str, ours: Any, options: Options, threads: int, length: int = _CHAIN_OPS
) -> Measurement:
    """A `tf.function` of `length` small ops, each fed by the one before, so that none is dropped.

    Its times are those of one op of the chain; `deepcopy` is a chain of copies, `call` of Snapshot,
    which hands its input on.
    """
    order = np.random.default_rng(0).permutation(_CHAIN_ROWS).astype(np.int32)
    start = np.arange(_CHAIN_ROWS, dtype=np.float32)
    expected = start
    for _ in range(length):
        if op == "gather_nd":
            expected = expected[order]
        else:
            moved = np.empty_like(expected)
            moved[order] = expected
            expected = moved

    steps = {
        **_chain_steps(op, ours, order),
        "deepcopy": lambda x: tf.raw_ops.DeepCopy(x=x),
        "call": lambda x: tf.raw_ops.Snapshot(input=x),
    }
    sides = [Side(name, _chain(step, start, length)) for name, step in steps.items()]
    for side in sides[:2]:
        if not np.array_equal(side.call(), expected):
            raise WrongResultError(f"chain of {op}, {side.name}: not the expected values")
    samples = time_sides(sides, options.min_rounds, options.budget)
    seconds = {name: float(np.median(values)) / length for name, values in samples.items()}
    builtin = sides[0].name
    shapes: dict[str, dict[str, Any]] = {
        "gather_nd": {"params": (_CHAIN_ROWS,), "indices": (_CHAIN_ROWS, 1)},
        "scatter_nd": {"shape": (_CHAIN_ROWS,), "indices": (_CHAIN_ROWS, 1)},
        "dynamic_stitch": {"rows": _CHAIN_ROWS},
    }
    return Measurement(
        case=Case(f"graph of {length:,} {op}", op, **shapes[op]),
        mode="graph",
        threads=threads,
        builtin=builtin,
        builtin_s=seconds[builtin],
        ours_s=seconds["ours"],
        deepcopy_s=seconds["deepcopy"],
        call_s=seconds["call"],
        noise=0.0,
        rounds=len(samples["ours"]),
        output_bytes=start.nbytes,
        moved_bytes=start.nbytes,
        slice_bytes=start.itemsize,
    )


def _chain_steps(op: str, ours: Any, order: np.ndarray) -> dict[str, Callable[[Any], Any]]:
    """One step of the built-in and of ours, in this order."""
    raw, own = tf.raw_ops, ours.raw_ops
    flat, column = tf.constant(order), tf.constant(order[:, None])
    shape = tf.constant([_CHAIN_ROWS])
    if op == "gather_nd":
        return {
            "GatherNd": lambda x: raw.GatherNd(params=x, indices=column),
            "ours": lambda x: own.MyGatherNd(params=x, indices=column),
        }
    if op == "scatter_nd":
        return {
            "ScatterNd": lambda x: raw.ScatterNd(indices=column, updates=x, shape=shape),
            "ours": lambda x: own.MyScatterNd(indices=column, updates=x, shape=shape),
        }
    return {
        "DynamicStitch": lambda x: raw.DynamicStitch(indices=[flat], data=[x]),
        "ours": lambda x: own.MyDynamicStitch(indices=[flat], data=[x]),
    }


def _chain(step: Callable[[Any], Any], start: np.ndarray, length: int) -> Callable[[], Any]:
    @functools.partial(tf.function, autograph=False)
    def chain(x: Any) -> Any:
        for _ in range(length):
            x = step(x)
        return x

    return functools.partial(chain, tf.constant(start))
