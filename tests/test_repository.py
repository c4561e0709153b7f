"""Rules that hold for the files of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

if not (ROOT / ".git").exists() or shutil.which("git") is None:
    pytest.skip("needs a git checkout", allow_module_level=True)

LISTING = subprocess.run(
    # The checkout may belong to another user, which git refuses by default.
    ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard", "-z"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout
FILES = [name for name in sorted(set(LISTING.split("\0"))) if name and (ROOT / name).is_file()]
SOURCES = [name for name in FILES if re.search(r"\.(py|cc|h|toml)$|(^|/)(Makefile|run)$", name)]
PRODUCT = [name for name in SOURCES if not name.startswith("tests/")]
CXX_FILES = [name for name in FILES if re.search(r"^tf_ops/.*\.(cc|h)$", name)]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def version() -> str:
    found = re.search(
        r'^__version__ = "(.+)"$', text("python/tf_stitch_gather/_version.py"), re.MULTILINE
    )
    assert found
    return found.group(1)


def test_nothing_built_is_kept():
    built = re.compile(
        r"\.(so|o|d|a|whl|pyc)$|_build_info\.json$|(^|/)(build|dist|\.venv)/|\.egg-info/"
    )
    assert [name for name in FILES if built.search(name)] == []


def test_only_one_file_states_the_version():
    stated = re.compile(rf"""["']{re.escape(version())}["']""")
    holders = [name for name in PRODUCT if stated.search(text(name))]
    assert holders == ["python/tf_stitch_gather/_version.py"]


def test_changelog_begins_with_the_version():
    entries = re.findall(r"^## \[([^]]+)\]", text("CHANGELOG.md"), re.MULTILINE)
    assert next(entry for entry in entries if entry != "Unreleased") == version()


def test_only_the_makefile_has_compiler_flags():
    flags = re.compile(r"(?<![\w-])(-O[0-3s]|-std=|-fPIC|-fvisibility|-march|-Wl,|-Wall|-shared)\b")
    assert [name for name in PRODUCT if flags.search(text(name))] == ["Makefile"]


def test_supported_tensorflow_is_the_same_everywhere():
    oldest, newest = "2.18", "2.21"
    after = "2.22"
    assert f'"tensorflow>={oldest},<{after}"' in text("pyproject.toml")
    assert f'"tensorflow>={oldest},<{after}"' in text("setup.py")
    flags = text("tools/tf_flags.py")
    assert f"'tensorflow>={oldest},<{after}'" in flags
    assert f'SUPPORTED = "{oldest} to {newest}"' in flags
    assert f"OLDEST_TENSORFLOW = ({oldest.replace('.', ', ')})" in flags
    assert f"NEWEST_TENSORFLOW = ({newest.replace('.', ', ')})" in flags


def test_no_file_names_a_place_on_a_machine():
    place = re.compile(rf"{re.escape(str(ROOT))}\b|(?<![\w.$}}/])/(home|root|Users)/[\w.-]+")
    found = [
        f"{name}: {match.group()}"
        for name in [*SOURCES, *(name for name in FILES if name.endswith(".md"))]
        for match in place.finditer(text(name))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("folder", "may_include"),
    [
        ("core", {"core"}),
        ("cpu", {"core", "cpu"}),
        ("ops", {"core", "ops", "tensorflow"}),
        ("grappler", {"core", "grappler", "tensorflow"}),
        ("gpu", {"core", "gpu"}),
        ("xla", {"core", "ops", "tensorflow", "xla"}),
        ("kernels", {"core", "cpu", "gpu", "kernels", "ops", "tensorflow"}),
        ("tests", {"core", "cpu", "gpu", "tests"}),
    ],
)
def test_includes_go_one_way(folder, may_include):
    files = [name for name in CXX_FILES if name.startswith(f"tf_ops/{folder}/")]
    assert files
    for name in files:
        for include in re.findall(r'^#include ["<]([^">]+)[">]', text(name), re.MULTILINE):
            parts = include.split("/")
            if parts[0] == "tf_ops":
                assert parts[1] in may_include, f"{name} includes {include}"
            elif parts[0] in ("tensorflow", "absl", "xla", "tsl", "Eigen", "unsupported"):
                assert "tensorflow" in may_include, f"{name} includes {include}"


def test_no_namespace_is_used_whole():
    assert [name for name in CXX_FILES if re.search(r"^using namespace", text(name), re.M)] == []


def test_licence_is_apache_2():
    words = text("LICENSE").split()
    assert words[:5] == ["Apache", "License", "Version", "2.0,", "January"]
    assert 'license = "Apache-2.0"' in text("pyproject.toml")


def test_the_checks_can_be_started():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=False).returncode == 0


def test_every_goal_of_the_makefile_is_explained():
    goals = re.search(r"^\.PHONY: FORCE (.*)$", text("Makefile"), re.MULTILINE)
    assert goals
    printed = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    explained = {line.split()[0]: line.split()[1:] for line in printed.splitlines()}
    assert set(explained) == set(goals.group(1).split())
    assert all(explained.values())


def test_goals_that_need_the_library_know_tensorflows_flags():
    """The Makefile asks for them only where a goal is not listed as doing without TensorFlow."""
    makefile = text("Makefile")
    without = re.findall(r"^WITHOUT_(?:BUILD|TENSORFLOW) := (.*)$", makefile, re.MULTILINE)
    needing = re.findall(r"^(\w[\w-]*):(?: [^#\n]*)? library\b", makefile, re.MULTILINE)
    assert {"test", "demo", "stress"} <= set(needing)
    assert not set(needing) & set(" ".join(without).split())
