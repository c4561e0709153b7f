"""Measures in a process of its own: TensorFlow fixes its number of threads when it starts.

Reads a `Job` as JSON from standard input and writes one JSON object a line to standard output:
`{"total": n}`, then for each case `{"start": name}` and `{"result": ...}`, a measurement or, in a
job for memory, the memory of a case; or `{"wrong": message}`, which ends the run.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import Any

from benchmarks.cases import Case


@dataclasses.dataclass(frozen=True)
class Job:
    """What a worker measures.

    Attributes:
      threads: TensorFlow's intra-op threads.
      cases: cases of a grid, as `Case.to_json` gives them.
      suites: suites of `benchmarks.growth`, run after the cases.
      largest: greatest number of indices in a growth suite.
      options: fields of `harness.Options`.
      peers: measure other libraries too.
      memory: measure the peak memory of `cases`, and no times.
    """

    threads: int
    cases: list[dict[str, Any]]
    suites: list[str]
    largest: int
    options: dict[str, Any]
    peers: bool
    memory: bool = False


def run(job: Job) -> int:
    """Runs `job`; returns the exit status."""
    if job.peers:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        os.environ["NPROC"] = str(job.threads)  # JAX's number of threads, read when it is imported.
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    tf.config.set_visible_devices([], "GPU")

    import tf_stitch_gather

    from benchmarks import growth, peers
    from benchmarks.harness import measure, measure_memory
    from benchmarks.results import Options, WrongResultError

    options = Options(**job.options)
    factories = list(peers.installed(job.threads).values()) if job.peers else []
    planned: list[tuple[str, str | Case]] = [("grid", Case.from_json(e)) for e in job.cases]
    for suite in job.suites:
        planned += [(suite, entry) for entry in growth.suite_cases(suite, job.largest)]

    _say(total=len(planned))
    for suite, entry in planned:
        _say(start=entry if isinstance(entry, str) else entry.name)
        try:
            if job.memory and isinstance(entry, Case):
                _say(result=dataclasses.asdict(measure_memory(entry, tf_stitch_gather, options)))
                continue
            if suite == "grid" and isinstance(entry, Case):
                result = measure(entry, tf_stitch_gather, options, job.threads, factories)
            else:
                result = growth.run_entry(entry, tf_stitch_gather, options, job.threads)
        except WrongResultError as error:
            _say(wrong=str(error))
            return 1
        _say(result=dataclasses.replace(result, suite=suite).to_json())
    return 0


def _say(**message: Any) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(run(Job(**json.load(sys.stdin))))
