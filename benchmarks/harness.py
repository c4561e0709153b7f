"""Checks a case, then times its sides against each other in this process.

Every side is called once per round, the order turning from round to round, so that drift of the
machine and the state of caches and heap fall on all alike. Calls that are too short for the clock
are repeated within a sample. Times are medians over the rounds.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import memory
from benchmarks.cases import Case
from benchmarks.problems import Problem, make_problem
from benchmarks.results import Measurement, Memory, Options, WrongResultError
from benchmarks.sides import Side, build_sides, in_graph

_SAMPLE_SECONDS = 1e-3
_MAX_ROUNDS = 300
_WARM_UP_CALLS = 3
# Tracing a run copies the inputs; larger cases are left to the count of resident memory.
_MAX_TRACED_BYTES = 2**30

PeerFactory = Callable[[Problem], Side | None]


def measure(
    case: Case,
    ours: Any,
    options: Options,
    threads: int = 0,
    peers: Sequence[PeerFactory] = (),
) -> Measurement:
    """Checks and times `case`.

    Args:
      case: what to run.
      ours: the module under test.
      options: how to measure.
      threads: noted in the result; TensorFlow fixes the number when it starts.
      peers: factories of sides of other libraries, that return None for cases they do not take.

    Raises:
      WrongResultError: a result differs from the case's right answer.
    """
    problem = make_problem(case)
    sides = build_sides(problem, ours, options.mode, options.variables)
    peer_sides = [side for make in peers if (side := make(problem)) is not None]
    for side in [*sides.builtins, sides.ours, *peer_sides]:
        check(side, problem)

    every = [*sides.builtins, sides.ours, sides.deepcopy, sides.call, *peer_sides]
    samples = time_sides(every, options.min_rounds, options.budget)
    seconds = {name: statistics.median(values) for name, values in samples.items()}
    best = min(sides.builtins, key=lambda side: seconds[side.name])
    return Measurement(
        case=case,
        mode="graph" if in_graph(case, options.mode) else "eager",
        threads=threads,
        builtin=best.name,
        builtin_s=seconds[best.name],
        ours_s=seconds["ours"],
        deepcopy_s=seconds["deepcopy"],
        call_s=seconds["call"],
        noise=max(_spread(samples[best.name]), _spread(samples["ours"])),
        rounds=len(samples["ours"]),
        output_bytes=problem.output_bytes,
        moved_bytes=problem.moved_bytes,
        slice_bytes=problem.slice_bytes,
        peers_s={side.name: seconds[side.name] for side in peer_sides},
    )


def measure_memory(case: Case, ours: Any, options: Options) -> Memory:
    """Peak memory of one call of each side of `case`; of the first built-in where there are two.

    Resident memory is a true count where malloc maps each large block anew, as `cli` has it;
    elsewhere it misses what is served from blocks freed before.
    """
    problem = make_problem(case)
    sides = build_sides(problem, ours, options.mode, options.variables)
    for side in (sides.builtins[0], sides.ours):
        for _ in range(_WARM_UP_CALLS):
            side.call()
    fed = sum(np.asarray(array).nbytes for array in tf.nest.flatten(problem.inputs))
    traced = sides.inputs and not options.variables and fed < _MAX_TRACED_BYTES
    return Memory(
        builtin_peak=memory.peak_resident_bytes(sides.builtins[0].call),
        ours_peak=memory.peak_resident_bytes(sides.ours.call),
        ours_scratch=memory.scratch_bytes(sides.function, sides.inputs) if traced else None,
    )


def check(side: Side, problem: Problem) -> None:
    """Raises WrongResultError unless `side` gives the problem's expected outputs, to the bit."""
    results = tf.nest.flatten(side.call())
    if not side.checked:
        return
    label = f"{problem.case.name!r}, {side.name}"
    if len(results) != len(problem.expected):
        raise WrongResultError(f"{label}: {len(results)} outputs, expected {len(problem.expected)}")
    for number, (result, want) in enumerate(zip(results, problem.expected, strict=True)):
        got = np.asarray(result)
        if got.shape != want.shape or got.dtype != want.dtype:
            raise WrongResultError(
                f"{label}: output {number} is {got.dtype}{list(got.shape)}, "
                f"expected {want.dtype}{list(want.shape)}"
            )
        if not np.array_equal(got, want):
            place = tuple(int(axis[0]) for axis in np.nonzero(got != want))
            raise WrongResultError(
                f"{label}: output {number} at {list(place)} is {got[place]!r}, "
                f"expected {want[place]!r}"
            )


def time_sides(sides: Sequence[Side], min_rounds: int, budget: float) -> dict[str, list[float]]:
    """Seconds a call, per side and round, sides interleaved."""
    inner = {side.name: _calls_per_sample(side.call) for side in sides}
    samples: dict[str, list[float]] = {side.name: [] for side in sides}
    deadline = time.perf_counter() + budget * len(sides)
    with _no_collector():
        for number in range(_MAX_ROUNDS):
            if number >= min_rounds and time.perf_counter() > deadline:
                break
            turn = number % len(sides)
            order = [*sides[turn:], *sides[:turn]]
            for side in reversed(order) if number % 2 else order:
                samples[side.name].append(_sample(side.call, inner[side.name]))
    return samples


def _sample(call: Callable[[], Any], times: int) -> float:
    start = time.perf_counter()
    for _ in itertools.repeat(None, times):
        call()
    return (time.perf_counter() - start) / times


def _calls_per_sample(call: Callable[[], Any]) -> int:
    """Warms `call` up, and says how often to call it for a sample that the clock resolves."""
    for _ in range(_WARM_UP_CALLS):
        seconds = _sample(call, 1)
    return max(1, round(_SAMPLE_SECONDS / seconds))


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """Keeps Python's cycle collector out of the samples."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _spread(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(values, n=4)
    return (high - low) / middle
