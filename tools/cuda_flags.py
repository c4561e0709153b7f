"""Writes a makefile fragment with what the build needs to know about CUDA.

The compiler is the nvcc on PATH, of CUDA_HOME or CUDA_PATH, of /usr/local/cuda, or of the packages
that the extra `cuda` installs beside the interpreter, the first of them that is whole: it needs the
headers of the CUDA runtime and of CCCL, and the static runtime library. `--mode auto` does without
where there is none, `on` makes that an error, and `off` does not look for one.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Machine code for what is in use from Turing on; PTX of the newest serves what comes after.
MACHINE_CODE = ("75", "80", "86", "89", "90", "100")
INSTALL = (
    "pip install 'tf-stitch-gather[cuda]', or in a checkout: python tools/install_packages.py cuda"
)


class UnfitError(Exception):
    """Why an nvcc that was found does not serve."""


@dataclass
class Toolkit:
    nvcc: Path
    version: str
    library_folder: Path
    cccl: Path
    machine_code: list[str]


def package_folders() -> Iterator[Path]:
    """The folders in which pip puts NVIDIA's packages for this interpreter, newest CUDA first."""
    for scheme in dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")):
        yield from sorted(Path(scheme).glob("nvidia/cu[0-9]*"), reverse=True)


def candidates() -> Iterator[Path]:
    on_path = shutil.which("nvcc")
    if on_path:
        yield Path(on_path)
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    named = [Path(home) for home in homes if home]
    for home in [*named, Path("/usr/local/cuda"), *package_folders()]:
        nvcc = home / "bin" / "nvcc"
        if nvcc.is_file():
            yield nvcc


def run(nvcc: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [nvcc, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnfitError(f"does not run: {error}") from None
    return done.stdout + done.stderr


def inspect(nvcc: Path) -> Toolkit:
    version = re.search(r"release [\d.]+, V([\d.]+)", run(nvcc, "--version"))
    if version is None:
        raise UnfitError("tells no version")
    # A dry run prints the variables of nvcc's profile: where it looks for what it needs.
    plan = run(nvcc, "--dryrun", "-x", "cu", "-c", os.devnull, "-o", os.devnull)
    includes = [Path(folder) for folder in re.findall(r'"-I([^"]+)"', plan)]
    includes += [Path(folder) for folder in re.findall(r'"-isystem" +"([^"]+)"', plan)]
    libraries = [Path(folder) for folder in re.findall(r'"-L([^"]+)"', plan)]
    cccl = next((f for f in includes if (f / "cub" / "cub.cuh").is_file()), None)
    runtime = next((f for f in libraries if (f / "libcudart_static.a").is_file()), None)
    if not any((folder / "cuda_runtime.h").is_file() for folder in includes):
        raise UnfitError("has no cuda_runtime.h")
    if cccl is None:
        raise UnfitError("has no CCCL (Thrust, CUB, libcu++)")
    if runtime is None:
        raise UnfitError("has no libcudart_static.a")
    known = re.findall(r"compute_(\d+)", run(nvcc, "--list-gpu-arch"))
    return Toolkit(
        nvcc=nvcc,
        version=version.group(1),
        library_folder=runtime.resolve(),
        cccl=cccl.resolve(),
        machine_code=[arch for arch in MACHINE_CODE if arch in known],
    )


def find_toolkit() -> tuple[Toolkit | None, str]:
    """A toolkit, or why there is none."""
    reasons = []
    for nvcc in candidates():
        try:
            return inspect(nvcc), ""
        except UnfitError as reason:
            reasons.append(f"{nvcc} {reason}")
    return None, "; ".join(reasons) or "no nvcc found"


def find_cccl(toolkit: Toolkit | None) -> Path | None:
    """The headers with which the device code compiles for the host."""
    if toolkit is not None:
        return toolkit.cccl
    for folder in package_folders():
        if (folder / "include" / "cccl" / "thrust").is_dir():
            return folder / "include" / "cccl"
    return None


def fragment(mode: str, architectures: list[str]) -> str:
    toolkit, reason = (None, "turned off by CUDA=0") if mode == "off" else find_toolkit()
    if toolkit is None and mode == "on":
        sys.exit(f"error: CUDA=1, but {reason}. Install a compiler: {INSTALL}")
    # The tests of the device code take the headers of a toolkit even when CUDA is off.
    cccl = find_cccl(toolkit or find_toolkit()[0])
    variables = {"CCCL_INCLUDE": str(cccl or "")}
    if toolkit is None:
        variables["CUDA_SUMMARY"] = f"GPU kernels: none ({reason})"
    else:
        chosen = architectures or toolkit.machine_code
        ptx = max(chosen, key=int)
        codes = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in chosen]
        codes.append(f"-gencode=arch=compute_{ptx},code=compute_{ptx}")
        names = [*(f"sm_{arch}" for arch in chosen), f"compute_{ptx}"]
        variables |= {
            "NVCC": str(toolkit.nvcc),
            "NVCC_VERSION": toolkit.version,
            "CUDA_LIBRARY_FOLDER": str(toolkit.library_folder),
            "CUDA_GENCODE": " ".join(codes),
            "CUDA_ARCHITECTURES": " ".join(names),
            "CUDA_SUMMARY": f"GPU kernels: nvcc {toolkit.version} for {' '.join(names)}",
        }
    return "".join(f"{name} := {value}\n" for name, value in variables.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--mode", choices=("auto", "on", "off"), default="auto")
    parser.add_argument("--architectures", nargs="*", default=[], metavar="NN")
    options = parser.parse_args()
    text = fragment(options.mode, options.architectures)
    if options.output.exists() and options.output.read_text("utf-8") == text:
        return
    options.output.parent.mkdir(parents=True, exist_ok=True)
    partial = options.output.with_suffix(".partial")
    partial.write_text(text, "utf-8")
    partial.replace(options.output)


if __name__ == "__main__":
    main()
