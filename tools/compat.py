"""Builds and tests the library with each supported TensorFlow and Python, and prints a matrix.

Every TensorFlow has one build, in build/compat, and every pair of a TensorFlow and a Python has a
virtual environment of its own there, removed again when its tests are done: the library knows
nothing of Python's binary interface, and so one build has to serve every Python. An interpreter is
looked for on PATH as `python3.X`; without it the cell says so, and so does a TensorFlow that the
package index does not have for a Python.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import tf_flags

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "tf_stitch_gather"
NIGHTLY = "nightly"
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
TEST_PACKAGES = ("pytest", "hypothesis")

# What the ops compute, as against how the project is built, installed and documented.
QUICK = ("raw_ops", "dynamic_stitch", "gather_nd", "scatter_nd", "variables", "vectorize")
FULL = (
    *QUICK,
    *("concurrency", "equivalence", "errors", "function_gradients", "gradients", "graphs"),
    *("hostile", "properties", "shapes"),
)


@dataclasses.dataclass
class Cell:
    """What came of one TensorFlow and one Python."""

    tensorflow: str
    python: str
    outcome: str
    good: bool
    seconds: float


class StepError(Exception):
    """A step of a cell that failed, in the words of the cell."""


def run(command: list[str], log: Path, what: str, env: dict[str, str] | None = None) -> str:
    """Runs a command; returns its output, which the log gets, too."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n{done.stdout}\n")
    if done.returncode != 0:
        if "No matching distribution found for t" in done.stdout:
            raise StepError("not in the package index")
        raise StepError(f"{what} failed: {os.path.relpath(log, ROOT)}")
    return done.stdout


def interpreter(python: str) -> str:
    if python == "{}.{}".format(*sys.version_info):
        return sys.executable
    command = shutil.which(f"python{python}")
    if command is not None:
        # A launcher may stand there for a Python that is not installed.
        tried = subprocess.run(
            [command, "-c", "import venv, ensurepip"], capture_output=True, check=False
        )
        if tried.returncode == 0:
            return command
    raise StepError("no such Python here")


def make_environment(folder: Path, tensorflow: str, python: str, log: Path) -> Path:
    """An environment with that TensorFlow; returns its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    run([interpreter(python), "-m", "venv", str(folder)], log, "making an environment")
    own = folder / "bin" / "python"
    what = ["--pre", "tf-nightly"] if tensorflow == NIGHTLY else [f"tensorflow=={tensorflow}.*"]
    pip = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, *what, *TEST_PACKAGES], log, "installing TensorFlow")
    return own


def version_of(python: Path, log: Path) -> str:
    program = "import tensorflow as tf; print(tf.__version__)"
    return run([str(python), "-c", program], log, "importing TensorFlow").split()[-1]


def build(folder: Path, python: Path, log: Path) -> Path:
    """The package with a library for the TensorFlow of `python`; returns the folder to import."""
    package = folder / "package" / PACKAGE
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(
        ROOT / "python" / PACKAGE,
        package,
        ignore=shutil.ignore_patterns("*.so", "*.json", "*.partial", "include", "__pycache__"),
    )
    variables = {"PYTHON": python, "PACKAGE_DIR": package, "BUILD": folder / "build", "CUDA": 0}
    # The make that started this must not hand its options on.
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    run(["make", *(f"{k}={v}" for k, v in variables.items()), "library"], log, "the build", env)
    return package.parent


def test(package: Path, python: Path, names: tuple[str, ...], log: Path) -> str:
    """Runs the tests of these names; returns how many passed."""
    report = log.with_suffix(".xml")
    env = dict(os.environ, PYTHONPATH=str(package), TF_CPP_MIN_LOG_LEVEL="3")
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    run([*command, *(f"tests/test_{name}.py" for name in names)], log, "a test", env)
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    total = sum(int(suite.get("tests", 0)) for suite in suites)
    skipped = sum(int(suite.get("skipped", 0)) for suite in suites)
    if total - skipped < 1:
        raise StepError(f"no test ran: {os.path.relpath(log, ROOT)}")
    return f"{total - skipped} passed" + (f", {skipped} skipped" if skipped else "")


def column(
    tensorflow: str, pythons: list[str], names: tuple[str, ...], keep: bool, folder: Path
) -> list[Cell]:
    """All Pythons with one TensorFlow, which is built with the first of them that has it."""
    home = folder / f"tensorflow-{tensorflow}"
    home.mkdir(parents=True, exist_ok=True)
    shown = tensorflow
    package: Path | None = None
    cells: list[Cell] = []
    for python in pythons:
        started = time.monotonic()
        log = home / f"python{python}.log"
        log.unlink(missing_ok=True)
        environment = home / f"python{python}"
        print(f"TensorFlow {tensorflow}, Python {python} ...", flush=True)
        try:
            own = make_environment(environment, tensorflow, python, log)
            if package is None:
                package = build(home, own, log)
            shown = version_of(own, log)
            # One library: the tests of the Pythons after the first are those of the ops alone.
            chosen = QUICK if any(cell.good for cell in cells) else names
            outcome, good = test(package, own, chosen, log), True
        except StepError as error:
            outcome, good = str(error), False
        finally:
            if not keep:
                shutil.rmtree(environment, ignore_errors=True)
        cells.append(Cell(shown, python, outcome, good, time.monotonic() - started))
        print(f"  {cells[-1].tensorflow}: {outcome} ({cells[-1].seconds:.0f} s)", flush=True)
    for cell in cells:
        cell.tensorflow = shown
    return cells


def matrix(rows: list[list[Cell]], pythons: list[str]) -> str:
    """The cells as a table in Markdown."""
    lines = ["| TensorFlow | " + " | ".join(f"Python {python}" for python in pythons) + " |"]
    lines.append("|---|" + "---|" * len(pythons))
    for cells in rows:
        lines.append(f"| {cells[0].tensorflow} | " + " | ".join(c.outcome for c in cells) + " |")
    return "\n".join(lines)


def main() -> None:
    oldest, newest = tf_flags.OLDEST_TENSORFLOW, tf_flags.NEWEST_TENSORFLOW
    supported = [f"{oldest[0]}.{minor}" for minor in range(oldest[1], newest[1] + 1)]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--tensorflow", nargs="+", default=[*supported, NIGHTLY], metavar="VERSION",
        help=f"minor versions, or {NIGHTLY} (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--python", nargs="+", default=list(PYTHONS), metavar="VERSION",
        help="as in python3.X (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="only the tests of the ops themselves")
    parser.add_argument("--keep", action="store_true", help="keep the environments, 1.5 GB each")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "compat")
    options = parser.parse_args()
    names = QUICK if options.quick else FULL
    rows = [
        column(version, options.python, names, options.keep, options.folder.resolve())
        for version in options.tensorflow
    ]
    print()
    print(matrix(rows, options.python))
    # A TensorFlow that was never made for a Python is no failure; nothing tested at all is.
    unavailable = ("not in the package index", "no such Python here")
    cells = [cell for cells in rows for cell in cells]
    if not any(c.good for c in cells) or any(
        not c.good and c.outcome not in unavailable for c in cells
    ):
        sys.exit("error: not every pair passed: the logs named above say why")


if __name__ == "__main__":
    main()
