"""Writes a makefile fragment with what the build needs to know about TensorFlow.

Importing TensorFlow takes seconds, so the fragment is kept and rewritten only when the interpreter
or the TensorFlow installation it finds has changed. The first line of the fragment holds the key
that says so.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

OLDEST_TENSORFLOW = (2, 18)
NEWEST_TENSORFLOW = (2, 21)
SUPPORTED = "2.18 to 2.21"
INSTALL = f"{sys.executable} -m pip install 'tensorflow>=2.18,<2.22'"

# Runs in a process of its own: its last line is the answer, whatever TensorFlow prints before.
QUERY = """
import tensorflow as tf
print()
print(repr((
    tf.__version__,
    tf.version.GIT_VERSION,
    tf.sysconfig.CXX11_ABI_FLAG,
    tf.sysconfig.get_compile_flags(),
    tf.sysconfig.get_link_flags(),
)))
"""


def fail(message: str) -> NoReturn:
    sys.exit(f"error: {message}")


def find_tensorflow() -> Path:
    """The folder of the installed tensorflow package, found without importing it."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        fail(
            f"{sys.executable} has no tensorflow: install TensorFlow {SUPPORTED} for it "
            f"({INSTALL}), or run make without PYTHON="
        )
    return Path(spec.origin).parent


def installation_key(tensorflow: Path) -> str:
    """Changes when the interpreter, TensorFlow's place, its files or this script change."""
    parts = [sys.executable, sys.version, str(tensorflow), Path(__file__).read_text("utf-8")]
    for library in sorted(tensorflow.glob("libtensorflow_framework.so*")):
        stat = library.stat()
        parts.append(f"{library.name} {stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def query_tensorflow() -> tuple[str, str, int, list[str], list[str]]:
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
    answer = subprocess.run(
        [sys.executable, "-c", QUERY],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"]
        fail(
            f"{sys.executable} cannot import its tensorflow ({lines[-1].strip()}): "
            f"install TensorFlow {SUPPORTED} again"
        )
    facts: tuple[str, str, int, list[str], list[str]] = ast.literal_eval(
        answer.stdout.strip().splitlines()[-1]
    )
    return facts


def fragment(key: str) -> str:
    version, git_version, abi, compile_flags, link_flags = query_tensorflow()
    numbers = re.match(r"(\d+)\.(\d+)\.", version)
    if numbers is None or tuple(map(int, numbers.groups())) < OLDEST_TENSORFLOW:
        fail(
            f"TensorFlow {version} of {sys.executable} does not fit: "
            f"install TensorFlow {SUPPORTED} ({INSTALL})"
        )
    if not any("tensorflow_framework" in flag for flag in link_flags):
        fail(
            f"TensorFlow {version} of {sys.executable} has no libtensorflow_framework to link to: "
            f"install the tensorflow package, {SUPPORTED}"
        )
    include = [flag[2:] for flag in compile_flags if flag.startswith("-I")]
    defines = [flag for flag in compile_flags if flag.startswith("-D")]
    # Not every version's headers tell it: tf_ops/ops/compat.h says what depends on it.
    major, minor = map(int, numbers.groups())
    defines.append(f"-DTSG_TENSORFLOW_VERSION={1000 * major + minor}")
    standard = [
        flag.split("=", 1)[1] for flag in compile_flags if flag.lstrip("-").startswith("std=")
    ]
    # An RPATH would tie the library to the machine that built it.
    link_flags = [flag for flag in link_flags if "rpath" not in flag]
    variables = {
        "TF_VERSION": version,
        "TF_GIT_VERSION": git_version,
        "TF_ABI": str(abi),
        "TF_CXX_STD": standard[0] if standard else "c++17",
        "TF_DEFINES": " ".join(defines),
        "TF_INCLUDES": " ".join(f"-isystem {folder}" for folder in include),
        "TF_LINK_FLAGS": " ".join(link_flags),
    }
    lines = [f"# {key}"] + [f"{name} := {value}" for name, value in variables.items()]
    return "\n".join(lines) + "\n"


def main(output: Path) -> None:
    key = installation_key(find_tensorflow())
    if output.exists() and output.read_text("utf-8").startswith(f"# {key}\n"):
        return
    text = fragment(key)
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = output.with_suffix(".partial")
    partial.write_text(text, "utf-8")
    partial.replace(output)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
