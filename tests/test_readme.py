"""The README and docs/ are true: their examples run, and what the README names is there."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest
import tf_stitch_gather

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def python_examples(page: Path) -> list[pytest.param]:
    """The fenced blocks of Python, each with its page and the line where its code begins."""
    text = page.read_text("utf-8")
    return [
        pytest.param(
            match["code"],
            page,
            line := text.count("\n", 0, match.start("code")),
            id=f"{page.stem}-line{line + 1}",
        )
        for match in re.finditer(r"^```python\n(?P<code>.*?)^```$", text, re.M | re.S)
    ]


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Their examples belong together, or are programs: the tests of their subjects run them.
RUN_AS_A_WHOLE = {"clusters", "drop-in", "savedmodel", "xla"}
PAGES_OF_EXAMPLES = [page for page in PAGES if page.stem not in RUN_AS_A_WHOLE]
EXAMPLES = [example for page in PAGES_OF_EXAMPLES for example in python_examples(page)]


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


@pytest.mark.parametrize(("code", "page", "line"), EXAMPLES)
def test_example_runs(code: str, page: Path, line: int) -> None:
    globals_: dict[str, object] = {"__name__": page.stem}
    if ">>>" not in code:
        # Padded, so that a traceback shows the lines of the page.
        exec(compile("\n" * line + code, str(page), "exec"), globals_)
        return
    example = doctest.DocTestParser().get_doctest(code, globals_, page.name, str(page), line)
    output: list[str] = []
    result = doctest.DocTestRunner().run(example, out=output.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(output)


def test_both_kinds_of_example_are_found() -> None:
    examples = [parameter.values[0] for parameter in EXAMPLES]
    assert any(">>>" in code for code in examples)
    assert any(">>>" not in code for code in examples)
    assert len(examples) == sum(
        page.read_text("utf-8").count("```python") for page in PAGES_OF_EXAMPLES
    )


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


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
