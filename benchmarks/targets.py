"""What the numbers are held against, in one place, and the verdict on a run."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

from benchmarks.cases import STITCH_OPS
from benchmarks.results import Measurement


@dataclasses.dataclass(frozen=True)
class Target:
    """Ratios to the built-in to reach: the geometric mean over the cases, and in each of them."""

    geometric_mean: float
    minimum: float


TARGETS = {
    "gather_nd": Target(3.0, 1.1),
    "gather_nd, batch_dims": Target(5.0, 1.5),
    "gradient of gather_nd, scatter_nd": Target(6.0, 1.5),
    "dynamic_stitch": Target(1.8, 1.0),
    "gradient of dynamic_stitch": Target(1.2, 1.0),
}
# With a single thread there is only a floor.
SINGLE_THREAD_MINIMUM = 1.0

# A case stands at a limit when it takes at most this many times the limit's time.
AT_LIMIT = 1.10

# Above this interquartile range, as a share of the median, a case was disturbed.
NOISY = 0.5

# For slices this wide, the least share of a plain copy's speed.
COPY_SLICE_BYTES = 64
COPY_SHARE = 0.7

# Scratch memory beside the outputs: bytes for each index (a row of a stitch), and a constant.
SCRATCH_PER_INDEX = {
    "gather_nd": 0,
    "gather_nd_grad": 8,
    "scatter_nd": 8,
    "dynamic_stitch": 8,
    "dynamic_stitch_grad": 8,
}
SCRATCH_PER_THREAD = 64 * 1024


def group_of(measurement: Measurement) -> str:
    """The key of TARGETS that a measurement counts for."""
    case = measurement.case
    if case.op == "gather_nd":
        return "gather_nd, batch_dims" if case.batch_dims else "gather_nd"
    if case.op == "dynamic_stitch":
        return "dynamic_stitch"
    if case.op == "dynamic_stitch_grad":
        return "gradient of dynamic_stitch"
    return "gradient of gather_nd, scatter_nd"


def limit_reached(measurement: Measurement) -> str:
    """`"copy"` or `"call"` where our time is at that limit of the same run, else `""`."""
    if AT_LIMIT * limit_share(measurement) < 1:
        return ""
    return "call" if measurement.call_s > measurement.deepcopy_s else "copy"


def limit_share(measurement: Measurement) -> float:
    """Our share of the speed of the nearer limit: the copy, or the call that does nothing."""
    return max(measurement.call_s, measurement.deepcopy_s) / measurement.ours_s


def scratch_allowed(measurement: Measurement) -> int:
    """The bytes that the op may allocate beside its outputs."""
    case = measurement.case
    per_index = SCRATCH_PER_INDEX[case.op]
    if per_index == 0:
        return 0
    threads = 1 if case.op in STITCH_OPS else max(1, measurement.threads)
    return case.index_count * per_index + threads * SCRATCH_PER_THREAD


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One line of the summary: the cases of one group under one number of threads.

    `geometric_mean` is as measured. `credited_mean` counts a case at a limit as having reached the
    group's mean. `worst` is the lowest ratio and the case that has it; `missed` the cases below the
    minimum that stand at no limit.
    """

    group: str
    threads: int
    cases: int
    at_limit: int
    geometric_mean: float
    credited_mean: float
    target: Target
    worst: tuple[float, str]
    missed: tuple[str, ...]

    @property
    def reached(self) -> bool:
        """Whether mean and minimum hold."""
        mean = self.target.geometric_mean * (1 - 1e-9)  # The mean of equal numbers may round down.
        return not self.missed and self.credited_mean >= mean


def judge(measurements: Sequence[Measurement]) -> list[Verdict]:
    """The verdict on each group and number of threads, in TARGETS' order."""
    verdicts = []
    for threads in sorted({m.threads for m in measurements}, reverse=True):
        for group, full in TARGETS.items():
            members = [m for m in measurements if group_of(m) == group and m.threads == threads]
            if not members:
                continue
            target = Target(0.0, SINGLE_THREAD_MINIMUM) if threads == 1 else full
            limited = [m for m in members if limit_reached(m)]
            worst = min(members, key=lambda m: m.ratio)
            verdicts.append(
                Verdict(
                    group=group,
                    threads=threads,
                    cases=len(members),
                    at_limit=len(limited),
                    geometric_mean=statistics.geometric_mean(m.ratio for m in members),
                    credited_mean=statistics.geometric_mean(
                        max(m.ratio, target.geometric_mean) if m in limited else m.ratio
                        for m in members
                    ),
                    target=target,
                    worst=(worst.ratio, worst.case.name),
                    missed=tuple(
                        m.case.name
                        for m in members
                        if m.ratio < target.minimum and m not in limited
                    ),
                )
            )
    return verdicts


def below_copy_share(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The moves of wide slices that fall short of COPY_SHARE, those at the call's cost excepted."""
    return [
        m
        for m in measurements
        if m.case.op in ("gather_nd", "dynamic_stitch", "dynamic_stitch_grad")
        and m.slice_bytes >= COPY_SLICE_BYTES
        and m.copy_share < COPY_SHARE
        and limit_reached(m) != "call"
    ]


def over_scratch(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The cases whose op allocates more beside its outputs than it may."""
    return [
        m
        for m in measurements
        if m.memory.ours_scratch is not None and m.memory.ours_scratch > scratch_allowed(m)
    ]
