"""Writes the facts of a build, as JSON, beside the library that it made."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path


def package_version() -> str:
    text = Path("python/tf_stitch_gather/_version.py").read_text("utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit("error: _version.py states no __version__")
    return found.group(1)


def compiler(command: str) -> dict[str, str]:
    """The compiler's family and version, from the macros that it defines itself."""
    macros = subprocess.run(
        [*command.split(), "-dM", "-E", "-x", "c++", "/dev/null"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    values = dict(re.findall(r"^#define (\S+) (.*)$", macros, re.MULTILINE))
    if "__clang__" in values:
        parts = [values[f"__clang_{part}__"] for part in ("major", "minor", "patchlevel")]
        return {"id": "clang", "version": ".".join(parts)}
    parts = [values[f"__GNUC{part}__"] for part in ("", "_MINOR", "_PATCHLEVEL")]
    return {"id": "gcc", "version": ".".join(parts)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--cxx-standard", required=True)
    parser.add_argument("--cxx11-abi", type=int, required=True)
    parser.add_argument("--tensorflow", required=True)
    parser.add_argument("--nvcc", default="", help="its version, where GPU kernels were built")
    parser.add_argument("--cuda-architectures", default="")
    options = parser.parse_args()
    cuda = {"nvcc": options.nvcc, "architectures": options.cuda_architectures.split()}
    info = {
        "version": package_version(),
        "tensorflow": options.tensorflow,
        "compiler": compiler(options.compiler),
        "cxx11_abi": options.cxx11_abi,
        "cxx_standard": options.cxx_standard,
        "cuda": cuda if options.nvcc else None,
    }
    options.output.write_text(json.dumps(info, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
