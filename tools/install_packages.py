"""Installs what pyproject.toml asks for to build and develop the project, but not the project.

Runs in the virtual environment that shall receive the packages.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def pip_install(*requirements: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*command, *requirements], stdin=subprocess.DEVNULL, check=False).returncode:
        sys.exit(
            "error: pip could not install the packages: "
            "its message above says why; check the connection to the package index"
        )


def main() -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        pip_install("tomli")
        import tomli as tomllib

    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
    requirements = project["build-system"]["requires"]
    for extra in sys.argv[1:]:
        requirements = requirements + project["project"]["optional-dependencies"][extra]
    pip_install(*requirements)


if __name__ == "__main__":
    main()
