"""A lookup in a table that is split over several tensors, variables or machines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

# TensorFlow has no public names for the tables that it splits itself.
from tensorflow.python.distribute.sharded_variable import ShardedVariable
from tensorflow.python.ops.variables import PartitionedVariable

from tf_stitch_gather._api import _as_indices, _local_copy, dynamic_stitch, gather_nd
from tf_stitch_gather._cluster import check_once

_STRATEGIES = ("mod", "div")


def sharded_lookup(
    shards: Any,
    ids: Any,
    strategy: str | None = None,
    name: str | None = None,
    bad_indices_policy: str = "",
) -> tf.Tensor:
    """Looks up rows of a table that is split by rows over `shards`.

    Each distinct id is fetched once, on the device of its shard: of a shard on another machine
    only those rows are sent. They are then stitched together and handed out in the order of `ids`.
    The values are those of `tf.compat.v1.nn.embedding_lookup`.

    With `strategy="mod"` id `i` is row `i // P` of shard `i % P`, of `P` shards:

    >>> import tf_stitch_gather as sg
    >>> shards = [[[0.0], [2.0], [4.0]], [[1.0], [3.0]]]
    >>> sg.sharded_lookup(shards, [3, 0, 3])[:, 0].numpy().tolist()
    [3.0, 0.0, 3.0]

    With `"div"` the shards lie one behind the other, as `tf.distribute` splits a variable:

    >>> shards = [[[0.0], [1.0], [2.0]], [[3.0], [4.0]]]
    >>> sg.sharded_lookup(shards, [3, 0, 3], strategy="div")[:, 0].numpy().tolist()
    [3.0, 0.0, 3.0]

    The gradient by a shard that is a variable is `tf.IndexedSlices` with unique, ascending rows;
    what belongs to one row is added up before it is sent to the shard.

    Args:
      shards: A list or tuple of at least 1 `tf.Variable` or `Tensor` of one type, of shapes
        `[rows] + row`, with the same `row` for each; or a `ShardedVariable` (what a
        `tf.distribute.ParameterServerStrategy` with a `variable_partitioner` makes), a
        `PartitionedVariable` of TensorFlow 1, or a `tf.Variable` or `Tensor` that is not split.
      ids: A `Tensor` of any integer type and shape, or a `RaggedTensor`.
      strategy: `"mod"` or `"div"`; by default `"mod"` for a list, and `"div"` for a
        `ShardedVariable` or `PartitionedVariable`, which TensorFlow splits that way. For `"div"`
        shards differ by at most one row, the larger ones first.
      name: A name for the operation (optional).
      bad_indices_policy: `""`, `"DEFAULT"` or `"ERROR"`: an id that no shard covers is an error;
        `"IGNORE"`: it gives a row of zeros, and has no part in the gradient.

    Returns:
      A `Tensor` of the type of the shards and of shape `ids.shape + row`.

    Raises:
      tf.errors.InvalidArgumentError: if an id is not covered and the policy says so.
      TypeError: if the types of the shards differ, or `ids` are not integers.
      ValueError: if there are no shards, their shapes do not fit each other or the strategy, or the
        strategy does not exist.
    """
    if isinstance(ids, tf.RaggedTensor):
        return ids.with_flat_values(
            sharded_lookup(shards, ids.flat_values, strategy, name, bad_indices_policy)
        )
    if strategy is None:
        strategy = "div" if isinstance(shards, ShardedVariable | PartitionedVariable) else "mod"
    if strategy not in _STRATEGIES:
        raise ValueError(f"strategy must be 'mod' or 'div', got {strategy!r}")
    tables = _as_tables(shards)
    sizes = _check_tables(tables, strategy)
    check_once(table.device for table in tables if isinstance(table, tf.Variable))
    with tf.name_scope(name or "sharded_lookup"):
        ids = _as_ids(ids)
        distinct, places = tf.unique(tf.reshape(ids, [-1]))
        part, row = _place(distinct, sizes, strategy)
        if bad_indices_policy != "IGNORE":
            checked = _check_covered(ids, distinct, part, row, sizes, strategy)
            with tf.control_dependencies(checked):
                part = tf.identity(part)
        rows = _fetch(tables, part, row, bad_indices_policy)
        # One more dimension: a column of indices, each in the shape of the ids.
        return gather_nd(rows, tf.reshape(places, tf.concat([_shape(ids), [1]], 0)))


def _as_tables(shards: Any) -> list[Any]:
    """The shards as a list of variables and tensors."""
    if isinstance(shards, ShardedVariable):
        return list(shards.variables)
    if isinstance(shards, PartitionedVariable):
        if shards._partition_axes() != [0]:
            raise ValueError("shards must be split by rows, got a variable that is split otherwise")
        return list(shards)
    if isinstance(shards, tf.Variable | tf.Tensor):
        return [_local_copy(shards)]
    if not isinstance(shards, list | tuple):
        raise TypeError(
            "shards must be a list or tuple of variables or tensors, a ShardedVariable or a "
            f"PartitionedVariable, got {type(shards).__name__}"
        )
    if not shards:
        raise ValueError("shards must hold at least one variable or tensor, got none")
    return [
        _local_copy(shard)
        if isinstance(shard, tf.Variable | tf.Tensor)
        else tf.convert_to_tensor(shard)
        for shard in shards
    ]


def _check_tables(tables: Sequence[Any], strategy: str) -> list[Any]:
    """The number of rows of each table, an `int` or, where it is not known, a tensor."""
    first = tables[0]
    for number, table in enumerate(tables):
        if table.dtype != first.dtype:
            raise TypeError(
                f"shards must have one type, got shards[0] of {first.dtype.name} and "
                f"shards[{number}] of {table.dtype.name}"
            )
        if table.shape.rank == 0:
            raise ValueError(f"shards[{number}] must have rows, got a scalar")
        if not table.shape[1:].is_compatible_with(first.shape[1:]):
            raise ValueError(
                f"shards must have rows of one shape, got shards[0] of shape {first.shape} and "
                f"shards[{number}] of shape {table.shape}"
            )
    sizes = [
        _rows(table) if table.shape.rank is None or table.shape[0] is None else table.shape[0]
        for table in tables
    ]
    if strategy == "div" and all(isinstance(size, int) for size in sizes):
        _check_div(sizes)
    return sizes


def _check_div(sizes: Sequence[int]) -> None:
    base, extra = divmod(sum(sizes), len(sizes))
    for number, size in enumerate(sizes):
        wanted = base + (number < extra)
        if size != wanted:
            raise ValueError(
                f"shards do not cover the ids: strategy 'div' puts {wanted} of {sum(sizes)} rows "
                f"into shards[{number}], got {size}; split the rows evenly, larger shards first"
            )


def _rows(table: Any) -> tf.Tensor:
    with _beside(table):
        return tf.shape(table, out_type=tf.int64)[0]


def _as_ids(ids: Any) -> tf.Tensor:
    ids = _as_indices(ids, "ids")
    # The number of shards, and their rows, have to fit into the type.
    return tf.cast(ids, tf.int32) if ids.dtype == tf.int16 else ids


def _shape(tensor: tf.Tensor) -> Any:
    return tensor.shape if tensor.shape.is_fully_defined() else tf.shape(tensor)


def _place(ids: tf.Tensor, sizes: Sequence[Any], strategy: str) -> tuple[tf.Tensor, tf.Tensor]:
    """The shard of each id, of type int32, and the row there; a bad id's is no row of its shard."""
    count = len(sizes)
    if count == 1:
        return tf.zeros_like(ids, tf.int32), ids
    if strategy == "mod":
        return tf.cast(ids % count, tf.int32), ids // count
    if all(isinstance(size, int) for size in sizes):
        total = sum(sizes)
    else:
        total = tf.add_n([tf.cast(size, tf.int64) for size in sizes])
    if not isinstance(total, int) or total > tf.int32.max:
        ids = tf.cast(ids, tf.int64)
    base, extra = total // count, total % count
    least = tf.maximum(tf.cast(base, ids.dtype), 1)
    part = tf.maximum(ids // (base + 1), (ids - extra) // least)
    part = tf.clip_by_value(part, 0, count - 1)
    return tf.cast(part, tf.int32), ids - part * base - tf.minimum(part, extra)


def _check_covered(
    ids: tf.Tensor,
    distinct: tf.Tensor,
    part: tf.Tensor,
    row: tf.Tensor,
    sizes: Sequence[Any],
    strategy: str,
) -> list[tf.Operation]:
    """What has to run before the lookup, so that it fails with the first id without a row."""
    row = tf.cast(row, tf.int64)
    if all(isinstance(size, int) for size in sizes):
        limits = tf.constant(sizes, tf.int64)
    else:
        limits = tf.stack([tf.cast(size, tf.int64) for size in sizes])
    limits = tf.gather(limits, part)
    covered = (row >= 0) & (row < limits)

    def message() -> tf.Tensor:
        # Distinct ids come in the order in which they first occur.
        first = tf.argmin(tf.cast(covered, tf.int32))
        flat = tf.argmax(tf.reshape(ids, [-1]) == distinct[first])
        text = tf.strings.as_string
        place = tf.unravel_index(flat, tf.shape(ids, out_type=tf.int64))
        return tf.strings.join(
            [
                *("ids[", tf.strings.reduce_join(text(place), separator=","), "] = "),
                *(text(distinct[first]), " is not covered by shards: with strategy "),
                *(f"{strategy} it is row ", text(row[first]), " of shards["),
                *(text(part[first]), "], which has ", text(limits[first]), " rows; pass all "),
                "shards of the table, or ids that are in it",
            ]
        )

    everywhere = tf.reduce_all(covered)
    if tf.executing_eagerly():
        if not everywhere:
            raise tf.errors.InvalidArgumentError(None, None, message().numpy().decode())
        return []

    def fail() -> tf.Tensor:
        check = tf.raw_ops.Assert(condition=False, data=[message()])
        with tf.control_dependencies([check]):
            return tf.constant(False)

    return [tf.cond(everywhere, lambda: tf.constant(True), fail).op]


def _fetch(tables: Sequence[Any], part: tf.Tensor, row: tf.Tensor, policy: str) -> tf.Tensor:
    """The rows, each read where its table is."""
    count = len(tables)
    if count == 1:
        parts = [tf.expand_dims(row, 1)]
    else:
        parts = tf.dynamic_partition(tf.expand_dims(row, 1), part, count)
    fetched = []
    for table, indices in zip(tables, parts, strict=True):
        with _beside(table):
            fetched.append(gather_nd(table, indices, bad_indices_policy=policy))
    if count == 1:
        return fetched[0]
    size = tf.size(part)
    return dynamic_stitch(tf.dynamic_partition(tf.range(size), part, count), fetched, size=size)


@contextlib.contextmanager
def _beside(table: Any) -> Iterator[None]:
    """Ops made within are placed on the device of `table`, whatever device was asked for."""
    if tf.executing_eagerly():
        with tf.device(table.device):
            yield
        return
    # A device's name would stay in a graph that is saved; so the placer is told of the table.
    graph = tf.compat.v1.get_default_graph()
    anchor = getattr(table, "handle", table)
    if hasattr(graph, "capture"):
        anchor = graph.capture(anchor)
    with tf.device(None), graph.colocate_with(anchor.op, ignore_existing=True):
        yield
