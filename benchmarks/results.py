"""What a run is told and what it finds: plain records, with no need of TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from benchmarks.cases import Case

Mode = Literal["rules", "eager", "graph"]


class WrongResultError(AssertionError):
    """A side gave something else than the case's right answer; nothing was timed."""


@dataclasses.dataclass(frozen=True)
class Options:
    """How to measure.

    Attributes:
      min_rounds: fewest samples of each side.
      budget: seconds to spend on each side of a case, when `min_rounds` takes less.
      mode: eager, in a graph, or as the rules say for each case.
      variables: differentiate gather_nd by a variable in place of a function input.
    """

    min_rounds: int = 7
    budget: float = 0.5
    mode: Mode = "rules"
    variables: bool = False


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes at the peak of one call; None: not measured.

    Attributes:
      builtin_peak: how far the process's resident memory rises, output included.
      ours_peak: the same of ours.
      ours_scratch: what our op allocates beside its outputs.
    """

    builtin_peak: int | None = None
    ours_peak: int | None = None
    ours_scratch: int | None = None


@dataclasses.dataclass(frozen=True)
class Measurement:
    """The numbers of one case. Times are seconds a call.

    `noise` is the larger interquartile range of the two sides, as a share of its median.
    """

    case: Case
    mode: str
    threads: int
    builtin: str
    builtin_s: float
    ours_s: float
    deepcopy_s: float
    call_s: float
    noise: float
    rounds: int
    output_bytes: int
    moved_bytes: int
    slice_bytes: int
    memory: Memory = Memory()
    peers_s: dict[str, float] = dataclasses.field(default_factory=dict)
    suite: str = "grid"

    @property
    def by_the_rules(self) -> bool:
        """Whether the case was called as the rules say: see `sides`."""
        return self.mode == ("eager" if self.case.is_raw else "graph")

    @property
    def ratio(self) -> float:
        """How many times as fast as the built-in."""
        return self.builtin_s / self.ours_s

    @property
    def ours_gbps(self) -> float:
        """Our throughput in GB/s; what is counted: `Problem.moved_bytes`."""
        return self.moved_bytes / self.ours_s / 1e9

    @property
    def builtin_gbps(self) -> float:
        """The built-in's throughput in GB/s."""
        return self.moved_bytes / self.builtin_s / 1e9

    @property
    def copy_share(self) -> float:
        """Our speed as a share of that of a copy of the output's bytes."""
        return self.deepcopy_s / self.ours_s

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Measurement:
        """The measurement that `to_json` wrote."""
        nested = {
            "case": Case.from_json(entry["case"]),
            "memory": Memory(**entry["memory"]),
        }
        return cls(**{**entry, **nested})
