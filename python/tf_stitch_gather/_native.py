"""The functions of the op library beside its ops: tf_ops/grappler/c_api.h."""

from __future__ import annotations

import ctypes
import functools
import os

from tf_stitch_gather import _loader

#: TSG_OUT_OF_MEMORY of the header.
_OUT_OF_MEMORY = 2


class _Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


@functools.cache
def _library() -> ctypes.CDLL:
    """The library as this process has loaded it; a second copy of it would end the process."""
    _loader.load()
    try:
        library = ctypes.CDLL(_loader.library_path(), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        library.TsgRewriteGraph.restype = ctypes.c_int
    except (OSError, AttributeError):
        raise ImportError(
            "the ops of tf_stitch_gather were loaded from another file than "
            f"{_loader.library_path()}: load the library of this package only"
        ) from None
    return library


def _take(value: _Bytes) -> bytes:
    text = ctypes.string_at(value.data, value.size) if value.data else b""
    _library().TsgFree(ctypes.byref(value))
    return text


def _check_memory(result: int) -> None:
    if result == _OUT_OF_MEMORY:
        raise MemoryError("no memory for the graph and its copy: free some")


def _lines(text: bytes) -> list[list[str]]:
    return [line.split("\t") for line in text.decode("utf-8", "replace").splitlines()]


def rewrite_graph(graph: bytes, to_builtin: bool, xla: bool) -> tuple[bytes, list[list[str]]]:
    """Rewrites a serialized `GraphDef`; returns the new one and what became of each node."""
    rewritten, outcomes = _Bytes(), _Bytes()
    failed = _library().TsgRewriteGraph(
        graph,
        ctypes.c_size_t(len(graph)),
        int(to_builtin),
        int(xla),
        ctypes.byref(rewritten),
        ctypes.byref(outcomes),
    )
    graph, text = _take(rewritten), _take(outcomes)
    _check_memory(failed)
    if failed:
        raise ValueError(text.decode())
    return graph, _lines(text)


def rewrite_stats() -> list[list[str]]:
    """What the graph pass did, a list of fields for each kind of outcome."""
    stats = _Bytes()
    _check_memory(_library().TsgRewriteStats(ctypes.byref(stats)))
    return _lines(_take(stats))


def reset_rewrite_stats() -> None:
    _check_memory(_library().TsgResetRewriteStats())
