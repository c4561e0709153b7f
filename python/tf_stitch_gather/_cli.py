"""The command `tf-stitch-gather`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from tf_stitch_gather import _loader, _paths
from tf_stitch_gather._version import __version__


def _add_cmake_dir(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "cmake-dir", help="print the folder that CMake's find_package(tf_stitch_gather) wants"
    )
    parser.set_defaults(run=lambda options: print(_paths.cmake_path()))


def _add_include_dir(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("include-dir", help="print the folder with the C++ headers")
    parser.set_defaults(run=lambda options: print(_paths.include_path()))


def _add_library_path(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("library-path", help="print the path of the op library")
    parser.set_defaults(run=lambda options: print(_loader.library_path()))


def _add_info(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("info", help="print what the op library was built with, as JSON")
    parser.set_defaults(run=lambda options: print(json.dumps(_loader.build_info(), indent=2)))


#: Each adds one command, whose parser sets `run` to a function of the parsed options that returns
#: the exit status, or None for 0.
_COMMANDS = (_add_cmake_dir, _add_include_dir, _add_info, _add_library_path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
      arguments: The arguments; by default those of the process.

    Returns:
      The exit status.
    """
    parser = argparse.ArgumentParser(
        prog="tf-stitch-gather", description="Tools for the TensorFlow ops of tf-stitch-gather."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add_command in _COMMANDS:
        add_command(commands)
    options = parser.parse_args(arguments)
    return options.run(options) or 0
