"""SavedModels on disk, with these ops in place of built-in ones, or back."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

# TensorFlow has no public way to read a model without running it.
from google.protobuf import message, text_format
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2
from tensorflow.python.framework import meta_graph
from tensorflow.python.saved_model.pywrap_saved_model import fingerprinting

from tf_stitch_gather import _builtin, _inline, _native, rewrite

#: What a model may be rewritten to.
TARGETS = ("ours", "builtin", "tflite")


class ModelError(Exception):
    """What is wrong with a model or a destination, in one line."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a node that has a counterpart.

    Attributes:
      kind: `"replaced"`, `"collapsed"` or `"skipped"`.
      function: The function that the node is in; empty in the graph itself.
      node: Its name.
      op: Its op before.
      reason: Why it was skipped; else empty.
    """

    kind: str
    function: str
    node: str
    op: str
    reason: str

    def place(self) -> str:
        return f"{self.node} of function {self.function}" if self.function else self.node


#: Told of each step: how many are done, of how many, and what is next.
Progress = Callable[[int, int, str], None]


def _no_progress(done: int, total: int, step: str) -> None:
    pass


def read(folder: Path) -> saved_model_pb2.SavedModel:
    """The model in a folder.

    Raises:
      ModelError: if there is none that can be read.
    """
    binary, text = folder / "saved_model.pb", folder / "saved_model.pbtxt"
    model = saved_model_pb2.SavedModel()
    try:
        if binary.is_file():
            model.ParseFromString(binary.read_bytes())
        elif text.is_file():
            text_format.Parse(text.read_text("utf-8"), model)
        elif (folder / "saved_model.cpb").is_file():
            raise ModelError(f"{folder} is split into chunks (saved_model.cpb), which is not read")
        elif not folder.is_dir():
            raise ModelError(f"there is no folder {folder}")
        else:
            raise ModelError(f"{folder} is no SavedModel: it holds no saved_model.pb")
    except (message.DecodeError, text_format.ParseError, UnicodeDecodeError):
        raise ModelError(f"the SavedModel in {folder} cannot be read: it is damaged") from None
    except OSError as error:
        raise ModelError(f"{folder} cannot be read: {error.strerror or error}") from None
    if not model.meta_graphs:
        raise ModelError(f"the SavedModel in {folder} cannot be read: it holds no graph")
    return model


def rewrite_graph(graph: graph_pb2.GraphDef, to: str) -> list[Outcome]:
    """Rewrites a graph and its function library in place.

    Raises:
      ModelError: if the graph is broken, or a node has no form in the target.
    """
    try:
        for body in _inline.bodies(graph):
            body.check()
        rewritten, lines = _native.rewrite_graph(
            graph.SerializeToString(), to != "ours", rewrite.xla_knows_our_ops()
        )
    except (ValueError, message.EncodeError) as error:
        raise ModelError(f"the graph is broken: {error}") from None
    graph.ParseFromString(rewritten)
    outcomes = [Outcome(*line) for line in lines]
    if to == "ours":
        return outcomes
    by_place = {(o.function, o.node): o for o in outcomes if o.kind == "replaced"}
    for body in _inline.bodies(graph):
        for node in list(body.nodes):
            policy = ""
            if "bad_indices_policy" in node.attr:
                policy = node.attr["bad_indices_policy"].s.decode()
            op = _builtin.composite_of(node.op, policy, lite=to == "tflite")
            if not op:
                continue
            outcome = Outcome("replaced", body.name, node.name, node.op, "")
            try:
                _inline.replace(body, node, op, lite=to == "tflite")
            except _inline.UnconvertibleError as error:
                raise ModelError(
                    f"no built-in ops stand in for {outcome.place()} ({outcome.op}): {error}"
                ) from None
            by_place.setdefault((body.name, outcome.node), outcome)
    return list(by_place.values())


def _rewrite_meta_graph(graph: meta_graph_pb2.MetaGraphDef, to: str) -> list[Outcome]:
    outcomes = rewrite_graph(graph.graph_def, to)
    if outcomes:
        # Of ops that are not registered here, what the model says of them is kept.
        info = graph.meta_info_def.stripped_op_list
        used = meta_graph.ops_used_by_graph_def(graph.graph_def)
        defined = {op.name: op for op in info.op if op.name in used}
        for op in meta_graph.stripped_op_list_for_graph(graph.graph_def).op:
            defined.setdefault(op.name, op)
        kept = [defined[name] for name in sorted(defined)]
        del info.op[:]
        info.op.extend(kept)
    return outcomes


def rewrite_model(
    source: Path,
    destination: Path,
    to: str = "ours",
    force: bool = False,
    progress: Progress = _no_progress,
) -> list[Outcome]:
    """Writes the model in `source` to `destination` with its ops replaced.

    The destination is written whole or not at all, and the source not touched.

    Raises:
      ModelError: if the model cannot be read or rewritten, or the destination cannot be written.
    """
    source, destination = source.resolve(), destination.resolve()
    if destination == source or source in destination.parents:
        raise ModelError(f"{destination} is the model itself or lies in it: name another folder")
    if destination.exists() and not force:
        raise ModelError(f"{destination} exists: name another folder, or use --force")
    if destination in source.parents:
        raise ModelError(f"{destination} holds the model: name another folder")
    if not destination.parent.is_dir():
        raise ModelError(f"there is no folder {destination.parent}")
    files = [path for path in source.rglob("*") if path.is_file()] if source.is_dir() else []
    total = len(files) + 2
    progress(0, total, "reading the model")
    model = read(source)
    progress(1, total, "rewriting graphs")
    outcomes = [o for graph in model.meta_graphs for o in _rewrite_meta_graph(graph, to)]
    try:
        with _written_whole(destination) as partial:
            for done, path in enumerate(files, 2):
                progress(done, total, f"writing {path.name}")
                copy = partial / path.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                if path.parent != source or path.name not in _OF_THE_GRAPH:
                    shutil.copy2(path, copy)
            (partial / "saved_model.pb").write_bytes(model.SerializeToString(deterministic=True))
            if (source / "fingerprint.pb").is_file():
                print_of_it = fingerprinting.CreateFingerprintDef(str(partial))
                (partial / "fingerprint.pb").write_bytes(print_of_it)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        reason = error.strerror or str(error)
        raise ModelError(f"{destination} cannot be written: {reason}{where}") from None
    except message.EncodeError:
        raise ModelError("the rewritten graph is larger than the 2 GB of a SavedModel") from None
    progress(total, total, "done")
    return outcomes


#: Files that hold the graph, or tell of it, and so are not copied.
_OF_THE_GRAPH = ("saved_model.pb", "saved_model.pbtxt", "fingerprint.pb")


def _synchronise(folder: Path) -> None:
    """Has the disk hold what was written, so that a full one is found out here."""
    for path in [*folder.rglob("*"), folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _written_whole(destination: Path) -> Iterator[Path]:
    """A folder beside `destination` that takes its place when the block is left without error."""
    parent = destination.parent
    partial = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", suffix=".partial", dir=parent))
    replaced = None
    try:
        partial.chmod(0o777 & ~_umask())
        yield partial
        _synchronise(partial)
        if destination.exists():
            replaced = Path(
                tempfile.mkdtemp(prefix=f".{destination.name}.", suffix=".replaced", dir=parent)
            )
            destination.rename(replaced / destination.name)
        try:
            partial.rename(destination)
        except OSError:
            if replaced is not None:
                (replaced / destination.name).rename(destination)
            raise
    finally:
        for left in (partial, replaced):
            if left is not None:
                shutil.rmtree(left, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def summary(outcomes: list[Outcome]) -> list[str]:
    """What was done, a line for each kind."""
    counts = collections.Counter((o.kind, o.op) for o in outcomes)
    text = {
        "replaced": "replaced",
        "collapsed": "given batch dimensions in place of an index grid",
        "skipped": "left as they are (--verbose says why)",
    }
    lines = [f"{op}: {count} {text[kind]}" for (kind, op), count in sorted(counts.items())]
    return lines or ["no node to replace"]
