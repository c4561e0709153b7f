"""Puts these ops into graphs that were written with the built-in ones, as TensorFlow runs them.

A graph pass replaces `DynamicStitch`, `ParallelDynamicStitch`, `GatherNd`, `ResourceGatherNd` and
`ScatterNd` in every `tf.function`, loaded SavedModel and Keras `fit` or `predict`. Names, devices,
control edges and attributes of the nodes stay.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

# TensorFlow has no public way to name a graph pass for the functions of the process.
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.eager import context

from tf_stitch_gather import _loader, _native

__all__ = ["Stats", "disable", "enable", "enabled", "reset_stats", "session_config", "stats"]

_PASS = "tf_stitch_gather"


@dataclasses.dataclass(frozen=True)
class Stats:
    """What the graph pass did in this process.

    Attributes:
      replaced: How many nodes of each built-in op were replaced.
      collapsed: How many lookups behind an index grid, and gradients of such, were given batch
        dimensions in its place, by op.
      skipped: How many nodes were left as they are, by op and reason.
    """

    replaced: dict[str, int]
    collapsed: dict[str, int]
    skipped: dict[tuple[str, str], int]


def xla_knows_our_ops() -> bool:
    """Whether XLA can compile the ops in this process."""
    return bool(_loader.build_info()["xla"]["loaded"])


# The configuration that `enable` found.
_before: list[config_pb2.ConfigProto | None] = []


def _has_pass(config: config_pb2.ConfigProto | None) -> bool:
    if config is None:
        return False
    passes = config.graph_options.rewrite_options.custom_optimizers
    return any(custom.name == _PASS for custom in passes)


def session_config(
    config: config_pb2.ConfigProto | None = None,
) -> config_pb2.ConfigProto:
    """A `ConfigProto` with the graph pass, for `tf.compat.v1.Session` and `tf.distribute.Server`.

    >>> import tensorflow as tf
    >>> import tf_stitch_gather as sg
    >>> with tf.Graph().as_default():
    ...     rows = tf.gather_nd([10, 20, 30], [[2], [0]])
    ...     with tf.compat.v1.Session(config=sg.rewrite.session_config()) as session:
    ...         session.run(rows).tolist()
    [30, 10]

    Args:
      config: A `ConfigProto` to begin with (optional). It is not changed.

    Returns:
      A `ConfigProto`.
    """
    # A server reads it before anything else might have loaded the library.
    _native.rewrite_stats()
    result = config_pb2.ConfigProto()
    if config is not None:
        result.CopyFrom(config)
    if _has_pass(result):
        return result
    options = result.graph_options.rewrite_options
    options.min_graph_nodes = -1  # Else graphs of less than 4 nodes are left as they are.
    custom = options.custom_optimizers.add(name=_PASS)
    custom.parameter_map["xla"].b = xla_knows_our_ops()
    return result


def _set_config(config: config_pb2.ConfigProto) -> None:
    eager = context.context()
    # New threads take their options from here; this one has made its own before.
    eager._config = config
    eager.function_call_options = None


def enable() -> None:
    """Has TensorFlow use these ops in the functions that it runs from now on.

    That is in each `tf.function`, function of a loaded SavedModel, and Keras `fit`, `evaluate` and
    `predict`. A function is replaced when it is next called; its results stay those of the built-in
    ops. Calls of ops outside of a function are not touched: see `tf_stitch_gather.drop_in`.

    Threads that have run functions before keep their options: call it before they start.

    >>> import tensorflow as tf
    >>> import tf_stitch_gather as sg
    >>> sg.rewrite.enable()
    >>> lookup = tf.function(lambda table, ids: tf.gather_nd(table, ids))
    >>> lookup(tf.constant([10, 20, 30]), [[2], [0]]).numpy().tolist()
    [30, 10]
    >>> sg.rewrite.stats().replaced["GatherNd"] > 0
    True
    >>> sg.rewrite.disable()

    Returns:
      Nothing.
    """
    config = context.context()._config
    if not _has_pass(config):
        _before[:] = [config]
    _set_config(session_config(config))


def disable() -> None:
    """Undoes `enable`, for functions that are called from now on.

    >>> import tf_stitch_gather as sg
    >>> sg.rewrite.disable()

    Returns:
      Nothing.
    """
    if _has_pass(context.context()._config):
        _set_config(_before[0])


@contextlib.contextmanager
def enabled() -> Iterator[None]:
    """`enable` for a `with` block; behind it things are as they were before.

    >>> import tensorflow as tf
    >>> import tf_stitch_gather as sg
    >>> stitch = tf.function(lambda rows: tf.dynamic_stitch([[0, 2], [1]], [rows[:2], rows[2:]]))
    >>> with sg.rewrite.enabled():
    ...     stitch(tf.constant([1.0, 2.0, 3.0])).numpy().tolist()
    [1.0, 3.0, 2.0]

    Returns:
      A context manager.
    """
    before = context.context()._config
    enable()
    try:
        yield
    finally:
        _set_config(before)


def stats() -> Stats:
    """What the graph pass did since the process began or `reset_stats` was called.

    >>> import tf_stitch_gather as sg
    >>> sg.rewrite.reset_stats()
    >>> sg.rewrite.stats()
    Stats(replaced={}, collapsed={}, skipped={})

    Returns:
      A `Stats`.
    """
    result = Stats({}, {}, {})
    for kind, op, *rest in _native.rewrite_stats():
        if kind == "skipped":
            result.skipped[op, rest[0]] = int(rest[1])
        else:
            counts = result.replaced if kind == "replaced" else result.collapsed
            counts[op] = int(rest[0])
    return result


def reset_stats() -> None:
    """Sets the counts of `stats` to zero.

    >>> import tf_stitch_gather as sg
    >>> sg.rewrite.reset_stats()

    Returns:
      Nothing.
    """
    _native.reset_rewrite_stats()
