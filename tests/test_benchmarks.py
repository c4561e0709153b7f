"""The benchmarks run on a small grid, judge rightly, and refuse to time a wrong result."""

from __future__ import annotations

import csv
import dataclasses
import json
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("rich")
ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import tf_stitch_gather  # noqa: E402

from benchmarks import growth, harness, problems, targets  # noqa: E402
from benchmarks.cases import DEFAULT_GRID, Case, GridError, load_grid  # noqa: E402
from benchmarks.results import Measurement, Memory, Options, WrongResultError  # noqa: E402

QUICK = Options(min_rounds=2, budget=0.0)

TINY = [
    Case("gather", "gather_nd", params=(50, 3), indices=(20, 1)),
    Case("gather depth 2 int64", "gather_nd", index="int64", params=(5, 6, 4), indices=(30, 2)),
    Case("gather sorted", "gather_nd", params=(50,), indices=(40, 1), order="sorted"),
    Case("gather strings", "gather_nd", dtype="string", params=(9,), indices=(7, 1)),
    Case("gather bfloat16", "gather_nd", dtype="bfloat16", params=(9, 2), indices=(7, 1)),
    Case("gather batch", "gather_nd", params=(2, 3, 7, 2), indices=(2, 3, 5, 1), batch_dims=2),
    Case("gradient", "gather_nd_grad", params=(6, 5), indices=(40, 2)),
    Case("gradient rows", "gather_nd_grad", params=(9, 4), indices=(40, 1)),
    Case("gradient batch", "gather_nd_grad", params=(2, 7, 3), indices=(2, 9, 1), batch_dims=1),
    Case("scatter", "scatter_nd", indices=(30, 1), shape=(12, 3)),
    Case("scatter half", "scatter_nd", dtype="float16", indices=(30, 2), shape=(4, 3)),
    Case("stitch", "dynamic_stitch", parts=3, rows=8, slice=(4,), duplicates=0.5),
    Case("stitch int64", "dynamic_stitch", index="int64", parts=3, rows=8),
    Case("stitch gradient", "dynamic_stitch_grad", parts=3, rows=8, slice=(2,), duplicates=0.25),
]
BY_NAME = {case.name: case for case in TINY}


def spoilt(change: Callable[[Any], Any]) -> Any:
    """The package with each result passed through `change`."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: change(function(*args, **kwargs))

    raw = tf_stitch_gather.raw_ops
    return types.SimpleNamespace(
        gather_nd=wrap(tf_stitch_gather.gather_nd),
        dynamic_stitch=wrap(tf_stitch_gather.dynamic_stitch),
        raw_ops=types.SimpleNamespace(
            MyGatherNd=wrap(raw.MyGatherNd),
            MyScatterNd=wrap(raw.MyScatterNd),
            MyDynamicStitch=wrap(raw.MyDynamicStitch),
        ),
    )


@pytest.mark.parametrize("mode", ["rules", "eager", "graph"])
@pytest.mark.parametrize("case", TINY, ids=lambda case: case.name.replace(" ", "-"))
def test_measures_a_case(case: Case, mode: Any) -> None:
    found = harness.measure(case, tf_stitch_gather, dataclasses.replace(QUICK, mode=mode))
    assert found.rounds >= 2
    assert min(found.builtin_s, found.ours_s, found.deepcopy_s, found.call_s) > 0
    assert found.ratio == pytest.approx(found.builtin_s / found.ours_s)
    assert found.output_bytes > 0
    assert found.by_the_rules or mode != "rules"
    assert Measurement.from_json(json.loads(json.dumps(found.to_json()))).case == case


@pytest.mark.parametrize("name", ["gradient rows", "gradient"])
def test_measures_a_gradient_by_a_variable(name: str) -> None:
    options = dataclasses.replace(QUICK, variables=True)
    assert harness.measure(BY_NAME[name], tf_stitch_gather, options).ours_s > 0


@pytest.mark.parametrize(
    "case", [case for case in TINY if case.dtype != "string"], ids=lambda case: case.name
)
def test_refuses_a_wrong_value(case: Case) -> None:
    with pytest.raises(WrongResultError, match="ours: output 0 at"):
        harness.measure(case, spoilt(lambda result: result * 2), QUICK)


def test_refuses_a_single_wrong_element() -> None:
    def change(result: tf.Tensor) -> tf.Tensor:
        return tf.tensor_scatter_nd_add(result, [[3, 1]], [1.0])

    with pytest.raises(WrongResultError, match=r"'gather', ours: output 0 at \[3, 1\]"):
        harness.measure(BY_NAME["gather"], spoilt(change), QUICK)


def test_refuses_a_wrong_shape_and_type() -> None:
    with pytest.raises(WrongResultError, match=r"is float32\[60\], expected float32\[20, 3\]"):
        harness.measure(BY_NAME["gather"], spoilt(lambda result: tf.reshape(result, [-1])), QUICK)
    with pytest.raises(WrongResultError, match=r"is float64\[20, 3\]"):
        harness.measure(BY_NAME["gather"], spoilt(lambda r: tf.cast(r, tf.float64)), QUICK)


def test_refuses_the_built_ins_gradient_of_overwritten_rows() -> None:
    """The right answer for an overwritten row is zero, so TensorFlow's own gradient is refused."""
    builtin = types.SimpleNamespace(dynamic_stitch=tf.dynamic_stitch, raw_ops=None)
    with pytest.raises(WrongResultError, match="stitch gradient"):
        harness.measure(BY_NAME["stitch gradient"], builtin, QUICK)


def test_memory_of_a_call_holds_its_output() -> None:
    case = Case("gather 8 MB", "gather_nd", params=(1000, 2048), indices=(1000, 1))
    found = harness.measure_memory(case, tf_stitch_gather, QUICK)
    assert found.ours_scratch == 0
    if found.ours_peak is None:
        pytest.skip("this kernel does not reset a process's high-water mark")
    assert 0 <= found.ours_peak < 2 * 8_192_000 + 2**21


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5])
def test_duplicates_is_the_share_of_overwritten_rows(share: float) -> None:
    case = Case("s", "dynamic_stitch", parts=4, rows=100, slice=(1,), duplicates=share)
    indices = np.concatenate(problems.make_problem(case).inputs[0])
    assert indices.size - np.unique(indices).size == round(400 * share)
    assert np.array_equal(np.unique(indices), np.arange(indices.max() + 1))


def test_problems_follow_their_definition() -> None:
    problem = problems.make_problem(BY_NAME["scatter half"])
    indices, updates, shape = problem.inputs
    want = np.zeros(shape, np.float64)
    np.add.at(want, tuple(indices.T), updates.astype(np.float64))
    assert np.array_equal(problem.expected[0], want.astype(np.float16))

    problem = problems.make_problem(BY_NAME["gather batch"])
    params, indices = problem.inputs
    want = np.stack([[params[a, b][indices[a, b, :, 0]] for b in range(3)] for a in range(2)])
    assert np.array_equal(problem.expected[0], want)
    ascending = problems.make_problem(BY_NAME["gather sorted"]).inputs[1][:, 0]
    assert np.all(np.diff(ascending) >= 0)


def measurement(
    ours_s: float, call_s: float = 0.0, deepcopy_s: float = 0.0, **fields: Any
) -> Measurement:
    """One whose built-in takes a second."""
    case = Case("g", "gather_nd", params=(9, 16), indices=(9, 1))
    known = {"case": case, "mode": "eager", "threads": 2, "builtin": "b", "builtin_s": 1.0}
    sizes = {"output_bytes": 576, "moved_bytes": 576, "slice_bytes": 64}
    return Measurement(
        ours_s=ours_s, call_s=call_s, deepcopy_s=deepcopy_s, noise=0.0, rounds=7,
        **{**known, **sizes, **fields},
    )  # fmt: skip


def test_judges_mean_minimum_and_limits() -> None:
    (verdict,) = targets.judge([measurement(0.2), measurement(0.4)])
    assert verdict.group == "gather_nd"
    assert verdict.geometric_mean == pytest.approx(12.5**0.5)
    assert verdict.reached

    slow = measurement(1.0)
    (verdict,) = targets.judge([measurement(0.1), slow])
    assert not verdict.reached
    assert verdict.missed == ("g",)

    at_call, at_copy = measurement(1.0, call_s=0.95), measurement(1.0, deepcopy_s=0.95)
    assert targets.limit_reached(at_call) == "call"
    assert targets.limit_reached(at_copy) == "copy"
    assert targets.limit_reached(measurement(1.0, call_s=0.8, deepcopy_s=0.8)) == ""
    (verdict,) = targets.judge([measurement(0.3), at_call, at_copy])
    assert verdict.at_limit == 2
    assert verdict.missed == ()
    assert verdict.geometric_mean < 3 < verdict.credited_mean
    assert verdict.reached

    batched = Case("b", "gather_nd", params=(2, 9), indices=(2, 3, 1), batch_dims=1)
    limited = [measurement(0.9, call_s=0.9, case=batched, mode="graph")] * 3
    (verdict,) = targets.judge(limited)
    assert verdict.reached

    (verdict,) = targets.judge([measurement(0.9, threads=1)])
    assert verdict.reached, "one thread has a floor only"


def test_finds_slow_copies_and_too_much_scratch() -> None:
    assert targets.below_copy_share([measurement(1.0, deepcopy_s=0.6)])
    assert not targets.below_copy_share([measurement(1.0, deepcopy_s=0.8)])
    assert not targets.below_copy_share([measurement(1.0, deepcopy_s=0.6, slice_bytes=4)])
    assert targets.over_scratch([measurement(1.0, memory=Memory(ours_scratch=1))])
    assert not targets.over_scratch([measurement(1.0, memory=Memory(ours_scratch=0))])


def test_reads_the_grid_and_refuses_others(tmp_path: Path) -> None:
    assert len(load_grid()) > 30
    bad = tmp_path / "grid.json"
    for entry, told in [
        ({"name": "x", "op": "gather"}, "op is 'gather'"),
        ({"name": "x", "op": "gather_nd", "params": [3]}, "lacks"),
        ({"name": "x", "op": "scatter_nd", "indices": [3, 2], "shape": [4]}, "do not fit"),
        (
            {"name": "x", "op": "gather_nd", "params": [2, 3], "indices": [3, 1], "batch_dims": 1},
            "do not fit",
        ),
        ({"name": "x", "op": "scatter_nd", "indices": [3, 1], "shape": [4], "a": 1}, "unknown"),
    ]:
        bad.write_text(json.dumps([entry]), encoding="utf-8")
        with pytest.raises(GridError, match=told):
            load_grid(bad)
    bad.write_text("[", encoding="utf-8")
    with pytest.raises(GridError, match="not JSON"):
        load_grid(bad)


@pytest.mark.parametrize("op", ["gather_nd", "scatter_nd", "dynamic_stitch"])
def test_measures_a_chain_of_small_ops(op: str) -> None:
    found = growth.measure_chain(op, tf_stitch_gather, QUICK, threads=0, length=5)
    assert found.ours_s > 0
    with pytest.raises(WrongResultError):
        growth.measure_chain(op, spoilt(lambda r: r + 1), QUICK, threads=0, length=5)


def test_growth_cases_are_cases() -> None:
    cases = [*growth.count_cases(10**4), *growth.part_cases(), *growth.width_cases()]
    assert all(Case.from_json(case.to_json()) == case for case in cases)
    assert {case.index_count for case in growth.part_cases()} == {100_000}


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The benchmarks' command, without the figures' cases of full size."""
    return subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "run.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_command_prints_and_writes_what_it_measured(tmp_path: Path) -> None:
    grid, numbers = tmp_path / "grid.json", tmp_path / "out" / "numbers.csv"
    chosen = [BY_NAME[name] for name in ("gather", "gradient rows", "scatter", "stitch")]
    grid.write_text(json.dumps([case.to_json() for case in chosen]), encoding="utf-8")
    result = command(
        *("--grid", str(grid), "--threads", "1", "--repeats", "2", "--budget", "0"),
        *("--csv", str(numbers), "--peers"),
    )
    assert result.returncode == 0, result.stdout + result.stderr
    for text in ("gradient rows", "Ratios to the built-in", "at limit", "numpy"):
        assert text in result.stdout
    with numbers.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["case"] for row in rows] == [case.name for case in chosen]
    for row in rows:
        assert float(row["ratio"]) == pytest.approx(
            float(row["builtin_s"]) / float(row["ours_s"]), rel=1e-3
        )
        assert row["threads"] == "1"
        assert row["ours_scratch_bytes"] != ""
    assert float(rows[0]["numpy_s"]) > 0


def test_the_command_says_what_is_wrong_with_a_grid(tmp_path: Path) -> None:
    assert command("--grid", str(tmp_path / "none.json")).returncode == 2
    assert command("--only", "no such case").returncode == 2
    assert DEFAULT_GRID.exists()


def test_draws_figures_as_png_and_svg(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks import plots

    found = [harness.measure(case, tf_stitch_gather, QUICK, 2) for case in TINY[:3]]
    wide = [
        dataclasses.replace(harness.measure(case, tf_stitch_gather, QUICK, 2), suite="width")
        for case in (BY_NAME["gather"], BY_NAME["stitch"])
    ]
    files = plots.draw_all([*found, *wide], tmp_path, "a machine")
    assert {file.name for file in files} == {
        f"{stem}.{kind}" for stem in ("speedup", "throughput") for kind in ("png", "svg")
    }
    for file in files:
        start = file.read_bytes()[:200]
        assert start.startswith(b"\x89PNG") if file.suffix == ".png" else b"<?xml" in start
