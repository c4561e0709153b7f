"""The figures of a run, each as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import NullFormatter

from benchmarks.results import Measurement
from benchmarks.targets import TARGETS, group_of, limit_reached

_COLOURS = dict(zip(TARGETS, ["#1f77b4", "#17becf", "#d62728", "#2ca02c", "#9467bd"], strict=True))
_BUILTIN_COLOUR = "#999999"


def draw_all(measurements: Sequence[Measurement], folder: Path, caption: str) -> list[Path]:
    """Draws what the measurements allow into `folder`; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    most = max((m.threads for m in measurements), default=0)
    chosen = [m for m in measurements if m.threads == most]
    by_suite = {
        suite: [m for m in chosen if m.suite == suite] for suite in ("grid", "width", "count")
    }
    files: list[Path] = []
    if by_suite["grid"]:
        files += _save(_speedup(by_suite["grid"], caption), folder / "speedup")
    if by_suite["width"]:
        files += _save(_throughput(by_suite["width"], caption), folder / "throughput")
    if by_suite["count"]:
        files += _save(_growth(by_suite["count"], caption), folder / "growth")
    return files


def _speedup(measurements: Sequence[Measurement], caption: str) -> Any:
    """A bar for each case: how many times as fast as the built-in, on a logarithmic axis."""
    ordered = sorted(measurements, key=lambda m: list(TARGETS).index(group_of(m)))
    figure, axes = plt.subplots(figsize=(9, 0.27 * len(ordered) + 1.6), layout="constrained")
    seen: set[str] = set()
    for place, m in enumerate(ordered):
        group = group_of(m)
        label = None if group in seen else group
        seen.add(group)
        axes.barh(place, m.ratio - 1, left=1, color=_COLOURS[group], label=label)
        limit = limit_reached(m)
        note = f"{m.ratio:.1f}x" + (f"  (at the {limit} limit)" if limit else "")
        axes.annotate(
            note,
            (max(m.ratio, 1), place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    axes.set_yticks(range(len(ordered)), [m.case.name for m in ordered], fontsize=7)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.set_xscale("log")
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100) if t <= 3 * max(m.ratio for m in ordered)]
    axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
    axes.minorticks_off()
    low, high = min(0.9, *(m.ratio for m in ordered)), max(m.ratio for m in ordered)
    axes.set_xlim(low * 0.95, high * 2.2)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("speed, the built-in op = 1x")
    axes.set_title(caption, fontsize=8)
    axes.legend(fontsize=7, loc="lower right")
    return figure


def _throughput(measurements: Sequence[Measurement], caption: str) -> Any:
    """GB/s of output against the width of a slice, with the line of a plain copy."""
    panels = [("gather_nd", "gather_nd"), ("dynamic_stitch", "dynamic_stitch")]
    figure, row = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    for axes, (op, group) in zip(row, panels, strict=True):
        points = sorted((m for m in measurements if m.case.op == op), key=lambda m: m.slice_bytes)
        widths = [m.slice_bytes for m in points]
        copies = [m.output_bytes / m.deepcopy_s / 1e9 for m in points]
        axes.plot(widths, copies, "--", color="black", label="DeepCopy of the output")
        axes.plot(widths, [m.ours_gbps for m in points], "o-", color=_COLOURS[group], label="ours")
        axes.plot(
            widths, [m.builtin_gbps for m in points], "s-", color=_BUILTIN_COLOUR, label="built-in"
        )
        axes.set_xscale("log", base=2)
        axes.set_xlabel("bytes a slice")
        axes.set_title(op, fontsize=9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    row[0].set_ylabel("output, GB/s")
    row[0].set_ylim(bottom=0)
    figure.suptitle(f"16 MB of output. {caption}", fontsize=8)
    return figure


def _growth(measurements: Sequence[Measurement], caption: str) -> Any:
    """Nanoseconds an index against the number of indices."""
    kinds = [("elements", 4), ("rows of 64 bytes", 64)]
    figure, row = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    for axes, (title, width) in zip(row, kinds, strict=True):
        for op, group in (
            ("gather_nd", "gather_nd"),
            ("scatter_nd", "gradient of gather_nd, scatter_nd"),
            ("dynamic_stitch", "dynamic_stitch"),
        ):
            points = sorted(
                (m for m in measurements if m.case.op == op and m.slice_bytes == width),
                key=lambda m: m.case.index_count,
            )
            counts = [m.case.index_count for m in points]
            for values, style, name in (
                ([m.ours_s for m in points], "o-", f"{op}, ours"),
                ([m.builtin_s for m in points], "s:", f"{op}, built-in"),
            ):
                each = [1e9 * s / n for s, n in zip(values, counts, strict=True)]
                axes.plot(counts, each, style, color=_COLOURS[group], label=name, markersize=4)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("indices")
        axes.set_title(title, fontsize=9)
        axes.grid(alpha=0.3)
    row[0].set_ylabel("ns an index")
    row[0].legend(fontsize=7)
    figure.suptitle(caption, fontsize=8)
    return figure


def _save(figure: Any, stem: Path) -> list[Path]:
    files = [stem.with_suffix(suffix) for suffix in (".png", ".svg")]
    for file in files:
        figure.savefig(file, dpi=150)
    plt.close(figure)
    return files
