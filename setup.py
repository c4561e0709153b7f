"""Builds the op library with make and packs it. Everything else about the package is in
pyproject.toml."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.errors import ExecError, PlatformError

ROOT = Path(__file__).resolve().parent
PACKAGE = "tf_stitch_gather"
BUILT_FILES = ("libtf_stitch_gather.so", "libtf_stitch_gather_xla.so", "_build_info.json")

# The distributions that bring a tensorflow package.
TENSORFLOW_DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu")


def tensorflow_requirement() -> str:
    """Pins TensorFlow to the minor version built for: its C++ interface changes with the next."""
    for name in TENSORFLOW_DISTRIBUTIONS:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        major, minor = (int(number) for number in version.split(".")[:2])
        suffix = ".dev0" if "dev" in version else ""
        return f"{name}>={major}.{minor}{suffix},<{major}.{minor + 1}{suffix}"
    # Reached where no build can follow, as for the metadata of a source distribution.
    return "tensorflow>=2.18,<2.22"


class BuildLibrary(Command):
    """Runs make: into the wheel, or in place for an editable installation."""

    description = "build the op library"
    user_options: ClassVar = [("build-lib=", "d", "directory to build into")]

    def initialize_options(self) -> None:
        self.build_lib: str | None = None
        self.editable_mode = False

    def finalize_options(self) -> None:
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def run(self) -> None:
        if not sys.platform.startswith("linux"):
            raise PlatformError("tf-stitch-gather builds on Linux only")
        if shutil.which("make") is None:
            raise ExecError("make is missing. Install it (Debian, Ubuntu: apt-get install make)")
        folder = Path("python") if self.editable_mode else Path(self.build_lib)
        (folder / PACKAGE).mkdir(parents=True, exist_ok=True)
        command = ["make", f"PYTHON={sys.executable}", f"PACKAGE_DIR={folder / PACKAGE}", "WERROR="]
        # A make that has started this process must not hand its options on.
        hidden = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0:
            raise ExecError("make could not build the op library: its message above says why")

    def get_outputs(self) -> list[str]:
        return [str(Path(self.build_lib, PACKAGE, name)) for name in BUILT_FILES]

    def get_output_mapping(self) -> dict[str, str]:
        return {
            str(Path(self.build_lib, PACKAGE, name)): str(Path("python", PACKAGE, name))
            for name in BUILT_FILES
        }

    def get_source_files(self) -> list[str]:
        return []


class Build(build):
    sub_commands: ClassVar = [*build.sub_commands, ("build_library", None)]

    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = os.path.join("build", "package")

    def run(self) -> None:
        # What an earlier version of the sources left there would be packed, too.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class Wheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        """The library knows TensorFlow's ABI, but not Python's: one wheel serves every Python."""
        return "py3", "none", super().get_tag()[2]


class BinaryDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(
    distclass=BinaryDistribution,
    cmdclass={"build": Build, "build_library": BuildLibrary, "bdist_wheel": Wheel},
    install_requires=[tensorflow_requirement(), "numpy"],
)
