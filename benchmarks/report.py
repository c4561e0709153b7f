"""The table, the summary and the CSV of a run."""

from __future__ import annotations

import csv
import datetime
import platform
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.results import Measurement
from benchmarks.targets import (
    COPY_SHARE,
    COPY_SLICE_BYTES,
    NOISY,
    Verdict,
    below_copy_share,
    group_of,
    judge,
    limit_reached,
    limit_share,
    over_scratch,
)

_FIELDS = (
    "suite",
    "mode",
    "threads",
    "builtin",
    "builtin_s",
    "ours_s",
    "ratio",
    "builtin_gbps",
    "ours_gbps",
    "deepcopy_s",
    "call_s",
    "copy_share",
    "noise",
    "rounds",
    "output_bytes",
    "slice_bytes",
)


_SUITE_TITLES = {
    "count": "Growth with the number of indices",
    "parts": "100,000 rows of 64 bytes stitched from more and more parts",
    "graph": "A graph of many small ops: times of one op",
    "width": "16 MB of output in slices of more and more bytes",
}
_LEGEND = (
    "built-in, ours, copy (DeepCopy of the output's bytes), call (an op that does nothing with as "
    "many inputs): median time. ±: interquartile range. peak: rise of resident memory in one of "
    "our calls, output included. scratch: what our op allocates beside its output. limit: the copy "
    "or the call, whichever is slower, where we stand at it, and our share of its speed."
)


def machine() -> str:
    """The CPU's model and its number of cores, as they may be published."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return model


def caption(threads: int) -> str:
    """One line that says where and when a run was made."""
    today = datetime.date.today().isoformat()
    return f"{machine()}, {threads} thread{'s' if threads > 1 else ''}, {today}"


def print_cases(console: Console, measurements: Sequence[Measurement]) -> None:
    """A table for each number of threads, and one for each growth suite."""
    grid = [m for m in measurements if m.suite == "grid"]
    for threads in sorted({m.threads for m in grid}, reverse=True):
        _print_grid(console, [m for m in grid if m.threads == threads], caption(threads))
    if grid:
        console.print(_LEGEND, style="dim")
    for suite, title in _SUITE_TITLES.items():
        chosen = [m for m in measurements if m.suite == suite]
        if chosen:
            _print_suite(console, chosen, f"{title} ({caption(chosen[0].threads)})")


def _print_grid(console: Console, measurements: Sequence[Measurement], title: str) -> None:
    """The cases of the grid, with a column for each peer that was measured."""
    peers = sorted({name for m in measurements for name in m.peers_s})
    headings = ["built-in", "ours", "ratio", "GB/s", "copy", "call", "±", "peak", "scratch", *peers]
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("case", overflow="fold", min_width=24)
    table.add_column("called", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("limit", no_wrap=True)
    previous = ""
    for m in measurements:
        if previous not in ("", m.case.op):
            table.add_section()
        previous = m.case.op
        table.add_row(
            escape(m.case.name),
            m.mode,
            _time(m.builtin_s),
            _time(m.ours_s),
            f"{m.ratio:.2f}",
            f"{m.ours_gbps:.2f}",
            _time(m.deepcopy_s),
            _time(m.call_s),
            f"{m.noise:.0%}",
            _bytes(m.memory.ours_peak),
            _bytes(m.memory.ours_scratch),
            *(_time(m.peers_s[peer]) if peer in m.peers_s else "" for peer in peers),
            f"{limit_reached(m)} {limit_share(m):.2f}" if limit_reached(m) else "",
            style="red" if m.ratio < 1 and not limit_reached(m) else "",
        )
    console.print(table)


def _print_suite(console: Console, measurements: Sequence[Measurement], title: str) -> None:
    """The cases of a growth suite, op by op, with the time an index takes."""
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("case")
    for heading in ("built-in", "ours", "ratio", "built-in, an index", "ours, an index", "GB/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    # A stable sort: within an op and a slice's width, as they were run.
    ordered = sorted(measurements, key=lambda m: (m.case.op, m.suite != "width" and m.slice_bytes))
    previous = ""
    for m in ordered:
        if m.suite != "graph" and previous not in ("", m.case.op):
            table.add_section()
        previous = m.case.op
        table.add_row(
            escape(m.case.name),
            _time(m.builtin_s),
            _time(m.ours_s),
            f"{m.ratio:.2f}",
            _time(m.builtin_s / m.case.index_count),
            _time(m.ours_s / m.case.index_count),
            f"{m.ours_gbps:.2f}",
        )
    console.print(table)


def print_summary(console: Console, measurements: Sequence[Measurement]) -> list[Verdict]:
    """The verdict on each group against its targets; returns the verdicts.

    Counts the cases of the grid that were called as the rules say: the targets are about these.
    """
    grid = [m for m in measurements if m.suite == "grid" and m.by_the_rules]
    verdicts = judge(grid)
    if not verdicts:
        return []
    table = Table(title="Ratios to the built-in", title_justify="left", header_style="bold")
    for heading in ("op", "threads", "cases", "at limit", "mean", "credited", "target", "lowest"):
        table.add_column(heading, justify="left" if heading == "op" else "right")
    table.add_column("target")
    table.add_column("")
    for v in verdicts:
        table.add_row(
            v.group,
            str(v.threads),
            str(v.cases),
            str(v.at_limit),
            f"{v.geometric_mean:.2f}",
            f"{v.credited_mean:.2f}",
            f"{v.target.geometric_mean:.1f}" if v.target.geometric_mean else "-",
            f"{v.worst[0]:.2f} {escape(v.worst[1])}",
            f"{v.target.minimum:.1f}",
            "[green]reached[/]" if v.reached else "[red]missed[/]",
        )
    console.print(table)
    console.print(
        "mean: geometric mean as measured; credited: a case at a limit counts as having reached "
        "the target. Raw ops called eagerly; batch_dims and gradients inside tf.function.",
        style="dim",
    )
    for v in verdicts:
        if v.missed:
            console.print(
                f"below {v.target.minimum} ({v.threads} threads): {escape('; '.join(v.missed))}"
            )
    slow = below_copy_share(grid)
    console.print(
        f"Slices of {COPY_SLICE_BYTES} bytes and more below {COPY_SHARE} of a copy's speed: "
        + (
            "; ".join(
                f"{escape(m.case.name)} ({m.threads} threads) {m.copy_share:.2f}" for m in slow
            )
            or "none"
        )
    )
    heavy = over_scratch(grid)
    console.print(
        "Scratch memory beyond its bound: "
        + (
            "; ".join(f"{escape(m.case.name)} {_bytes(m.memory.ours_scratch)}" for m in heavy)
            or "none"
        )
    )
    _print_peers(console, grid)
    noisy = sum(m.noise > NOISY for m in grid)
    if noisy:
        console.print(
            f"{noisy} of {len(grid)} cases have an interquartile range above {NOISY:.0%}: "
            "something else ran on this machine. Repeat the run before relying on their ratios.",
            style="yellow",
        )
    return verdicts


def _print_peers(console: Console, measurements: Sequence[Measurement]) -> None:
    for name in sorted({name for m in measurements for name in m.peers_s}):
        behind = [m for m in measurements if name in m.peers_s and m.ours_s > m.peers_s[name]]
        total = sum(name in m.peers_s for m in measurements)
        told = "; ".join(
            f"{escape(m.case.name)} ({m.threads} threads) {m.peers_s[name] / m.ours_s:.2f}"
            for m in behind
        )
        console.print(
            f"Slower than {name} in {len(behind)} of {total} cases{': ' if told else ''}{told}"
        )


def write_csv(path: Path, measurements: Sequence[Measurement]) -> None:
    """One line a case and number of threads; times in seconds, memory in bytes."""
    peers = sorted({name for m in measurements for name in m.peers_s})
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["case", "op", "group", "dtype", "index", "at_limit", *_FIELDS]
            + ["builtin_peak_bytes", "ours_peak_bytes", "ours_scratch_bytes"]
            + [f"{peer}_s" for peer in peers]
        )
        for m in measurements:
            values = [getattr(m, name) for name in _FIELDS]
            values += [m.memory.builtin_peak, m.memory.ours_peak, m.memory.ours_scratch]
            writer.writerow(
                [m.case.name, m.case.op, group_of(m), m.case.dtype, m.case.index, limit_reached(m)]
                + [f"{v:.6g}" if isinstance(v, float) else v for v in values]
                + [f"{m.peers_s[peer]:.6g}" if peer in m.peers_s else "" for peer in peers]
            )


def _time(seconds: float) -> str:
    """Three digits with a unit that suits."""
    units = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))
    unit, scale = next((u for u in units if seconds * u[1] >= 1), ("ns", 1e9))
    return f"{seconds * scale:.3g} {unit}"


def _bytes(count: int | None) -> str:
    if count is None:
        return "-"
    if count < 1000:
        return f"{count} B"
    return f"{count / 1e3:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"
