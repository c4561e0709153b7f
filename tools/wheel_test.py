"""Tests the wheel and the source distribution where a user has them: in an environment of its own.

That environment, and the folder from which the tests run, lie outside the checkout, so that only
what was installed is there to be found. First the wheel is installed there, with what it depends
on; then, in its place, the source distribution, which pip builds in isolation, as it does for a
user. That build leaves the GPU kernels out: they take minutes, and the wheel may have them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST_PACKAGES = ("pytest", "hypothesis")

PROGRAM = """
import sys
import tensorflow as tf
import tf_stitch_gather as sg

assert sg.library_path().startswith(sys.prefix), sg.library_path()
assert sg.build_info()["xla"]["loaded"], sg.build_info()

def swapped(params):
    rows = sg.gather_nd(params, [[2], [0]])
    return sg.dynamic_stitch([[0, 2], [1]], [rows, [5.0]])

for call in (swapped, tf.function(swapped), tf.function(swapped, jit_compile=True)):
    tf.debugging.assert_equal(call(tf.constant([1.0, 2.0, 3.0])), [3.0, 5.0, 1.0])
"""


class Environment:
    """An empty virtual environment, and a folder beside it to work in."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / "venv" / "bin" / "python"
        self._work = folder / "work"
        self._work.mkdir()
        venv.create(folder / "venv", with_pip=True)
        hidden = ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
        self._variables = {k: v for k, v in os.environ.items() if k not in hidden}
        self._variables |= {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA": "0"}

    def run(self, *arguments: str | Path) -> None:
        command = [str(part) for part in (self.python, *arguments)]
        subprocess.run(command, cwd=self._work, env=self._variables, check=True)

    def install(self, *what: str | Path) -> None:
        self.run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def find_wheel(folder: Path) -> Path:
    """The wheel of this version in `folder`, named as one that serves every Python is."""
    text = (ROOT / "python" / "tf_stitch_gather" / "_version.py").read_text("utf-8")
    version = re.search(r'__version__ = "(.+)"', text)
    assert version is not None
    wheels = list(folder.glob(f"tf_stitch_gather-{version[1]}-py3-none-linux_*.whl"))
    if len(wheels) != 1:
        sys.exit(f"error: not one wheel of version {version[1]} in {folder}: run make wheel")
    return wheels[0].resolve()


def build_sdist(folder: Path) -> Path:
    program = "import sys, setuptools.build_meta as b; b.build_sdist(sys.argv[1])"
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: no source distribution was built\n{done.stdout}{done.stderr}")
    return next(folder.glob("*.tar.gz"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dist", type=Path, help="the folder that holds the wheel")
    wheel = find_wheel(parser.parse_args().dist)
    started = time.monotonic()

    def say(what: str) -> None:
        print(f"{what} ({time.monotonic() - started:.0f} s)", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tests = folder / "tests"
        shutil.copytree(ROOT / "tests", tests, ignore=shutil.ignore_patterns("__pycache__"))
        environment = Environment(folder)
        environment.install(wheel, *TEST_PACKAGES)
        say(f"Installed {wheel.name}")
        environment.run("-c", PROGRAM)
        environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", tests / "test_raw_ops.py")
        say("It works")
        sdist = build_sdist(folder)
        environment.install("--force-reinstall", "--no-deps", sdist)
        say(f"Built and installed {sdist.name}")
        environment.run("-c", PROGRAM)
        say("It works")


if __name__ == "__main__":
    main()
