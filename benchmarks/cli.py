"""The command: reads the options, runs a worker for each number of threads, and reports."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks import report
from benchmarks.cases import DEFAULT_GRID, GridError, load_grid
from benchmarks.results import Measurement, Memory
from benchmarks.worker import Job

_ROOT = Path(__file__).resolve().parent.parent
_MAPPED_BYTES = 64 * 1024


class WorkerError(RuntimeError):
    """A worker found a wrong result, or ended with an error."""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Times the ops against TensorFlow's own, on the CPU."
    )
    add = parser.add_argument
    add("--grid", type=Path, default=DEFAULT_GRID, metavar="FILE", help="cases to run (JSON)")
    add(
        "--only",
        default="",
        metavar="SUBSTR",
        help="just the cases whose name or op has this in it",
    )
    add(
        "--threads",
        type=_counts,
        default=sorted({1, os.cpu_count() or 1}, reverse=True),
        metavar="N,M",
        help="intra-op threads, a run for each (default: all cores, then 1)",
    )
    add(
        "--repeats",
        type=int,
        default=7,
        metavar="N",
        help="least samples of each side (default: 7)",
    )
    add(
        "--budget",
        type=float,
        default=0.5,
        metavar="S",
        help="seconds for each side of a case, when that allows more samples (default: 0.5)",
    )
    add(
        "--mode",
        choices=["rules", "eager", "graph", "both"],
        default="rules",
        help="raw ops eagerly and the rest inside tf.function (rules), or all in one way, or both",
    )
    add(
        "--variables",
        action="store_true",
        help="differentiate gather_nd by a variable, not by an input of the function",
    )
    add(
        "--peers",
        action="store_true",
        help="also NumPy, PyTorch and JAX, where installed; their threads may disturb the others",
    )
    add("--growth", action="store_true", help="also growth with indices, parts and ops in a graph")
    add(
        "--growth-max",
        type=lambda text: int(float(text)),
        default=10**8,
        metavar="N",
        help="most indices in --growth, memory permitting (default: 1e8)",
    )
    add("--csv", type=Path, metavar="FILE", help="write every number to this file")
    add(
        "--plots",
        type=Path,
        metavar="DIR",
        help="draw figures as PNG and SVG; measures throughput against slice size for one of them",
    )
    add(
        "--no-grid",
        action="store_true",
        help="leave the grid out: only --growth and --plots' sweep",
    )
    add("--no-memory", action="store_true", help="leave peak memory out")
    add("--check", action="store_true", help="exit with 1 when a target of the summary is missed")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        cases = [] if options.no_grid else load_grid(options.grid)
    except (GridError, OSError) as error:
        console.print(f"[red]{error}[/]")
        return 2
    cases = [case for case in cases if options.only in case.name or options.only in case.op]
    suites = [*(["count", "parts", "graph"] if options.growth else [])]
    suites += ["width"] if options.plots else []
    if not cases and not suites:
        console.print("[red]No case is left to run.[/]")
        return 2

    jobs = [
        Job(
            threads=threads,
            cases=[case.to_json() for case in cases],
            # Growth and width are about the whole machine: measured with the most threads only.
            suites=suites if threads == max(options.threads) and number == 0 else [],
            largest=options.growth_max,
            options={
                "min_rounds": options.repeats,
                "budget": options.budget,
                "mode": mode,
                "variables": options.variables,
            },
            peers=options.peers,
        )
        for threads in options.threads
        for number, mode in enumerate(
            ["eager", "graph"] if options.mode == "both" else [options.mode]
        )
    ]
    try:
        measurements = _run_jobs(jobs, not options.no_memory, console)
    except WorkerError as error:
        console.print(str(error), style="red", markup=False)
        return 1
    return _report(measurements, options, console)


def _report(measurements: list[Measurement], options: argparse.Namespace, console: Console) -> int:
    report.print_cases(console, measurements)
    verdicts = report.print_summary(console, measurements)
    if options.csv:
        report.write_csv(options.csv, measurements)
        console.print(f"Numbers: {options.csv}")
    if options.plots:
        from benchmarks import plots

        text = report.caption(max(options.threads))
        files = plots.draw_all(measurements, options.plots, text)
        console.print("Figures: " + ", ".join(str(file) for file in files))
    return 1 if options.check and not all(v.reached for v in verdicts) else 0


def _run_jobs(jobs: Sequence[Job], with_memory: bool, console: Console) -> list[Measurement]:
    """Runs a worker for each job, and one more for its memory; returns all measurements."""
    measurements: list[Measurement] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        for job in jobs:
            label = f"{job.threads} thread{'s' if job.threads > 1 else ''}"
            timed = [Measurement.from_json(e) for e in _run_worker(job, progress, label)]
            if with_memory and job.cases:
                memory_job = dataclasses.replace(job, memory=True, suites=[], peers=False)
                peaks = _run_worker(memory_job, progress, f"{label}, memory")
                for place, peak in enumerate(peaks):
                    timed[place] = dataclasses.replace(timed[place], memory=Memory(**peak))
            measurements += timed
    return measurements


def _run_worker(job: Job, progress: Progress, label: str) -> list[dict[str, Any]]:
    """The results of one worker, shown as they come. Raises WorkerError when it ends badly."""
    results = []
    task = progress.add_task(f"{label}: starting", total=None)
    for message in _messages(job):
        if "total" in message:
            progress.update(task, total=message["total"])
        elif "start" in message:
            progress.update(task, description=f"{label}: {message['start']}")
        elif "result" in message:
            results.append(message["result"])
            progress.advance(task)
            if not progress.console.is_terminal:  # A log has no bar: a line tells how far it is.
                progress.console.print(progress.tasks[task].description, markup=False)
        elif "wrong" in message:
            raise WorkerError(f"Wrong result, nothing timed: {message['wrong']}")
    progress.update(task, description=label)
    return results


def _messages(job: Job) -> Iterator[dict[str, Any]]:
    """The messages of one worker. Raises WorkerError with its last words when it ends badly."""
    paths = [os.environ.get("PYTHONPATH", ""), str(_ROOT), str(_ROOT / "python")]
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **os.environ,
        # A block of this size or more is mapped for itself and unmapped when freed, so a peak
        # of resident memory shows each of them. For times malloc stays as it is.
        **({"MALLOC_MMAP_THRESHOLD_": str(_MAPPED_BYTES)} if job.memory else {}),
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        worker = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        )
        assert worker.stdin is not None and worker.stdout is not None
        wrong = False
        try:
            worker.stdin.write(json.dumps(dataclasses.asdict(job)))
            worker.stdin.close()
            for line in worker.stdout:
                with contextlib.suppress(json.JSONDecodeError):
                    message = json.loads(line)
                    wrong = wrong or "wrong" in message
                    yield message
        finally:
            if worker.poll() is None and sys.exc_info()[0] is not None:
                worker.kill()
            worker.wait()
        if worker.returncode and not wrong:
            errors.seek(0)
            tail = "".join(errors.readlines()[-15:])
            raise WorkerError(f"The worker ended with status {worker.returncode}:\n{tail}")


def _counts(text: str) -> list[int]:
    counts = [int(part) for part in text.split(",")]
    if not counts or min(counts) < 1:
        raise argparse.ArgumentTypeError("thread counts are 1 or more")
    return counts
