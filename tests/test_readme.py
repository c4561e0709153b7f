"""The README is true: its examples run, and the files, targets and functions it names are there."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest
import tf_stitch_gather

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def python_examples() -> list[pytest.param]:
    """The fenced blocks of Python, each with the line of the README where its code begins."""
    return [
        pytest.param(
            match["code"], line := README.count("\n", 0, match.start("code")), id=f"line{line + 1}"
        )
        for match in re.finditer(r"^```python\n(?P<code>.*?)^```$", README, re.M | re.S)
    ]


def section(title: str) -> str:
    """The text under a heading, up to the next of the same level."""
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.M | re.S)
    assert match, f"the README has no section {title!r}"
    return match[1]


def first_cells(table: str) -> list[str]:
    """The first cell of each row of a table, without the heading."""
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert len(rows) > 2, "no table"
    return [row.split("|")[1].strip() for row in rows[2:]]


@pytest.mark.parametrize(("code", "line"), python_examples())
def test_example_runs(code: str, line: int) -> None:
    globals_: dict[str, object] = {"__name__": "readme"}
    if ">>>" not in code:
        # Padded, so that a traceback shows the lines of the README.
        exec(compile("\n" * line + code, str(ROOT / "README.md"), "exec"), globals_)
        return
    example = doctest.DocTestParser().get_doctest(code, globals_, "README.md", "README.md", line)
    output: list[str] = []
    result = doctest.DocTestRunner().run(example, out=output.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(output)


def test_both_kinds_of_example_are_found() -> None:
    examples = [parameter.values[0] for parameter in python_examples()]
    assert any(">>>" in code for code in examples)
    assert any(">>>" not in code for code in examples)
    assert len(examples) == README.count("```python")


@pytest.mark.parametrize(
    "path", re.findall(r"`([^`]+)`", "".join(first_cells(section("The tree"))))
)
def test_path_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.M))))
def test_make_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.M)


@pytest.mark.parametrize(
    "function", ["check_cluster", "dynamic_stitch", "gather_nd", "scatter_nd", "sharded_lookup"]
)
def test_signature_is_the_one_shown(function: str) -> None:
    shown = re.search(rf"^\| `{function}(\(.*?\))`", section("Python API"), re.M)
    assert shown, f"the README shows no signature of {function}"
    signature = inspect.signature(getattr(tf_stitch_gather, function))
    bare = signature.replace(
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    assert shown[1] == str(bare).replace("''", '""')


def test_every_raw_op_is_named() -> None:
    named = set(re.findall(r"`(My\w+)`", section("Python API")))
    assert named == set(tf_stitch_gather.raw_ops.__all__)
