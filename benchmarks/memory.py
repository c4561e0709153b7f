"""Peak memory of one call, by two independent counts."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from benchmarks.sides import Function

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def available_bytes() -> int:
    """Free memory of the machine, as the kernel estimates it."""
    return _proc_field(Path("/proc/meminfo"), "MemAvailable")


def peak_resident_bytes(call: Callable[[], Any]) -> int | None:
    """How far the process's resident memory rises during `call`, output included.

    Counts memory from every allocator, in pages; freed heap is handed back first, so that reuse
    does not hide an allocation. None where the kernel lets no process reset its high-water mark.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        _CLEAR_REFS.write_text("5", encoding="ascii")  # Resets VmHWM to VmRSS.
        before = _proc_field(_STATUS, "VmRSS")
        output = call()
        peak = _proc_field(_STATUS, "VmHWM")
    except OSError:
        return None
    del output
    return max(0, peak - before)


def scratch_bytes(function: Function, inputs: Any, prefix: str = "My") -> int | None:
    """What the ops whose type starts with `prefix` allocate beside their outputs, at their peak.

    Exact, from a traced run of `function(*inputs)` in a graph; counts TensorFlow's allocator only.
    None when the graph holds no such op.
    """
    v1 = tf.compat.v1
    arrays = [tensor.numpy() for tensor in tf.nest.flatten(inputs)]
    with tf.Graph().as_default() as graph:
        fed = [v1.placeholder(tensor.dtype, tensor.shape) for tensor in tf.nest.flatten(inputs)]
        outputs = tf.nest.flatten(function(*tf.nest.pack_sequence_as(inputs, fed)))
        nodes = {op.name for op in graph.get_operations() if op.type.startswith(prefix)}
        if not nodes:
            return None
        metadata = v1.RunMetadata()
        with v1.Session(graph=graph) as session:
            session.run(
                [output.op for output in outputs],
                dict(zip(fed, arrays, strict=True)),
                v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE),
                metadata,
            )
    scratch = 0
    for device in metadata.step_stats.dev_stats:
        for stats in device.node_stats:
            if stats.node_name in nodes:
                peak = sum(memory.peak_bytes for memory in stats.memory)
                kept = sum(
                    output.tensor_description.allocation_description.requested_bytes
                    for output in stats.output
                )
                scratch += max(0, peak - kept)
    return scratch


def _proc_field(path: Path, name: str) -> int:
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{path} has no {name}")
