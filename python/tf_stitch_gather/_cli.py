"""The command `tf-stitch-gather`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_stitch_gather import _compare, _console, _loader, _paths, _savedmodel
from tf_stitch_gather._savedmodel import ModelError
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
    parser = commands.add_parser(
        "info", help="print what the op library was built with and what it finds here, as JSON"
    )
    parser.set_defaults(run=_info)


def _info(options: argparse.Namespace) -> None:
    here = {
        "tensorflow": tf.__version__,
        "library": _loader.library_path(),
        "devices": [device.name for device in tf.config.list_physical_devices()],
        "ops": list(_loader.OP_NAMES),
    }
    print(json.dumps({**_loader.build_info(), "here": here}, indent=2))


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SRC", type=Path, help="the folder of a SavedModel")


def _add_rewrite(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "rewrite",
        help="write a copy of a SavedModel with these ops in place of the built-in ones, or back",
        description="Writes the SavedModel SRC to DST with its ops replaced. Names, signatures, "
        "variables and assets stay. DST is written whole or not at all.",
    )
    _add_source(parser)
    parser.add_argument("destination", metavar="DST", type=Path, help="the folder to write")
    parser.add_argument(
        "--to",
        choices=_savedmodel.TARGETS,
        default="ours",
        help="ours: needs this package to run (the default). builtin: needs TensorFlow alone. "
        "tflite: built-in ops that TensorFlow Lite has too",
    )
    parser.add_argument("--force", action="store_true", help="replace DST if it exists")
    parser.add_argument(
        "--verbose", action="store_true", help="name each node, and why one was skipped"
    )
    parser.set_defaults(run=_rewrite)


def _rewrite(options: argparse.Namespace) -> None:
    with _console.progress("rewrite") as progress:
        outcomes = _savedmodel.rewrite_model(
            options.source, options.destination, options.to, options.force, progress
        )
    if options.verbose:
        for outcome in outcomes:
            reason = f": {outcome.reason}" if outcome.reason else ""
            print(f"{outcome.kind} {outcome.op} {outcome.place()}{reason}")
    for line in _savedmodel.summary(outcomes):
        print(line)


def _add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "compare",
        help="run a SavedModel with the built-in ops and with these, side by side",
        description="Calls the SavedModel with the built-in ops and with these on the same inputs, "
        "and prints the largest difference of each output and the time of a call. The exit "
        "status is 1 if an output differs by more than --tolerance.",
    )
    _add_source(parser)
    parser.add_argument(
        "--inputs",
        metavar="FILE.npz",
        type=Path,
        help="an array for each input of the signature; without it, inputs are made up",
    )
    parser.add_argument("--signature", metavar="NAME", help="default: serving_default")
    parser.add_argument("--tags", metavar="A,B", help="the tags of the graph to load")
    parser.add_argument(
        "--batch", metavar="N", type=_positive, default=8, help="made-up sizes (default: 8)"
    )
    _add_seconds(parser)
    parser.add_argument("--tolerance", metavar="X", type=float, default=1e-5, help="default: 1e-5")
    parser.set_defaults(run=_run_compare)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _add_seconds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=2.0, help="how long to time (default: 2)"
    )


def _read_inputs(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        reason = getattr(error, "strerror", None) or "it is no .npz file of plain arrays"
        raise ModelError(f"{path} cannot be read: {reason}") from None


def _ratio(builtin: float, ours: float) -> str:
    return f"{builtin / ours:.2f}"


def _run_compare(options: argparse.Namespace) -> int:
    inputs = None if options.inputs is None else _read_inputs(options.inputs)
    with _console.progress("compare") as progress:
        result = _compare.compare_model(
            options.source,
            inputs,
            signature=options.signature,
            tags=options.tags,
            batch=options.batch,
            seconds=options.seconds,
            progress=progress,
        )
    _console.table(
        ["output", "type", "largest difference"],
        [[o.name, o.kind, f"{o.difference:g}"] for o in result.outputs],
    )
    builtin, ours = result.builtin_seconds, result.our_seconds
    print(
        f"time of a call: built-in {builtin * 1e3:.3f} ms, here {ours * 1e3:.3f} ms, "
        f"ratio {_ratio(builtin, ours)}"
    )
    return int(any(output.difference > options.tolerance for output in result.outputs))


def _add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="time these ops against the built-in ones on this machine",
        description="Checks that results agree, then times both in turn. Times are medians. The "
        "exit status is 1 if results differ.",
    )
    _add_seconds(parser)
    parser.set_defaults(run=_bench)


def _bench(options: argparse.Namespace) -> int:
    rows = []
    differs = False
    cases = _compare.op_cases()
    with _console.progress("bench") as progress:
        for done, (name, (builtin, ours)) in enumerate(cases.items()):
            progress(done, len(cases), name)
            difference = float(tf.reduce_max(tf.abs(builtin() - ours())))
            differs = differs or difference > 1e-4
            times = _compare.time_both(builtin, ours, options.seconds / len(cases))
            rows.append(
                [
                    name,
                    "equal" if difference == 0 else f"differs by {difference:g}",
                    *(f"{seconds * 1e3:.3f}" for seconds in times),
                    _ratio(*times),
                ]
            )
    _console.table(["case", "results", "built-in ms", "here ms", "ratio"], rows)
    return int(differs)


#: Each adds one command, whose parser sets `run` to a function of the parsed options that returns
#: the exit status, or None for 0.
_COMMANDS = (
    _add_bench,
    _add_cmake_dir,
    _add_compare,
    _add_include_dir,
    _add_info,
    _add_library_path,
    _add_rewrite,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
      arguments: The arguments; by default those of the process.

    Returns:
      The exit status: 0, 1 if it failed or results differ, 2 for wrong arguments.
    """
    parser = argparse.ArgumentParser(
        prog="tf-stitch-gather", description="Tools for the TensorFlow ops of tf-stitch-gather."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add_command in _COMMANDS:
        add_command(commands)
    options = parser.parse_args(arguments)
    try:
        return options.run(options) or 0
    except ModelError as error:
        print(f"tf-stitch-gather: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tf-stitch-gather: interrupted", file=sys.stderr)
        return 130
