"""Lookups in a table that is split over shards: values, gradients, devices and errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from tensorflow.python.distribute.sharded_variable import ShardedVariable

STRATEGIES = ("mod", "div")
in_each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
TABLE = np.arange(30, dtype=np.float32).reshape(10, 3)


def split(table: np.ndarray, count: int, strategy: str) -> list[np.ndarray]:
    """The rows of `table` in `count` shards."""
    if strategy == "mod":
        return [table[shard::count] for shard in range(count)]
    return np.array_split(table, count)


def joined(gradients: list[Any], strategy: str, rows: int) -> np.ndarray:
    """The gradient of the whole table, of the gradients by its shards."""
    parts = [support.to_numpy(gradient) for gradient in gradients]
    if strategy == "div":
        return np.concatenate(parts)
    whole = np.empty((rows, *parts[0].shape[1:]), parts[0].dtype)
    for shard, part in enumerate(parts):
        whole[shard :: len(parts)] = part
    return whole


@in_each_strategy
@pytest.mark.parametrize("count", [1, 2, 3, 10, 12], ids=lambda n: f"{n}-shards")
@pytest.mark.parametrize("kind", ["variables", "tensors", "arrays"])
def test_values(strategy: str, count: int, kind: str, rng: np.random.Generator) -> None:
    make = {"variables": tf.Variable, "tensors": tf.constant, "arrays": np.asarray}[kind]
    shards = [make(part) for part in split(TABLE, count, strategy)]
    ids = rng.integers(0, 10, (4, 5))

    def lookup(ids: tf.Tensor) -> tf.Tensor:
        return tsg.sharded_lookup(shards, ids, strategy)

    for mode in support.MODES if count > 3 else (*support.MODES, "unknown"):
        support.same(support.call(mode, lookup, tf.constant(ids)), TABLE[ids], mode)
    if count <= 10:  # With more shards than rows, embedding_lookup divides by zero.
        theirs = tf.compat.v1.nn.embedding_lookup([*map(tf.constant, shards)], ids, strategy)
        support.same(theirs, TABLE[ids], "embedding_lookup")


@pytest.mark.parametrize(
    "ids",
    [7, [], [[]], [0, 0, 0], np.array([[2, 9]], np.uint8), np.array([3, 3], np.int16)],
    ids=["scalar", "empty", "empty-matrix", "one-id", "uint8", "int16"],
)
@in_each_strategy
def test_ids(ids: Any, strategy: str) -> None:
    shards = [tf.Variable(part) for part in split(TABLE, 2, strategy)]
    support.same(tsg.sharded_lookup(shards, ids, strategy), TABLE[np.asarray(ids, int)])


def test_ragged_ids() -> None:
    ids = tf.ragged.constant([[1, 2], [], [9]])
    rows = tsg.sharded_lookup([tf.constant(part) for part in split(TABLE, 2, "mod")], ids)
    assert [row.numpy().tolist() for row in rows] == [
        TABLE[[1, 2]].tolist(),
        [],
        TABLE[[9]].tolist(),
    ]


@pytest.mark.parametrize("dtype", [tf.string, tf.int8, tf.bfloat16], ids=lambda d: d.name)
def test_types(dtype: tf.DType, rng: np.random.Generator) -> None:
    table = support.array_of(rng, [7, 2], dtype)
    shards = [support.tensor(part, dtype) for part in split(table, 3, "mod")]
    support.same(tsg.sharded_lookup(shards, [6, 0, 6, 3]), table[[6, 0, 6, 3]])


def test_tables_that_tensorflow_splits() -> None:
    sharded = ShardedVariable([tf.Variable(part) for part in split(TABLE, 3, "div")])
    support.same(tsg.sharded_lookup(sharded, [9, 0, 9]), TABLE[[9, 0, 9]])
    support.same(tsg.sharded_lookup(tf.Variable(TABLE), [9, 0]), TABLE[[9, 0]])
    support.same(tsg.sharded_lookup(tf.constant(TABLE), [9, 0]), TABLE[[9, 0]])


@pytest.mark.parametrize("resource", [True, False], ids=["resource", "reference"])
def test_partitioned_variable(resource: bool) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session() as session:
        table = v1.get_variable(
            "table",
            TABLE.shape,
            initializer=lambda shape, dtype, partition_info: TABLE[partition_info.var_offset[0] :][
                : shape[0]
            ],
            partitioner=v1.fixed_size_partitioner(3),
            use_resource=resource,
        )
        rows = tsg.sharded_lookup(table, [9, 0, 9])
        gradients = v1.gradients(tf.reduce_sum(rows), list(table))
        session.run(v1.global_variables_initializer())
        support.same(session.run(rows), TABLE[[9, 0, 9]])
        assert all(isinstance(gradient, tf.IndexedSlices) for gradient in gradients)
        found = [(g.indices.tolist(), g.values[:, 0].tolist()) for g in session.run(gradients)]
        assert found == [([0], [1.0]), ([], []), ([2], [2.0])]
        lookups = [op for op in graph.get_operations() if op.type.endswith("GatherNd")]
        assert any(b"table/part_2" in group for op in lookups for group in op.colocation_groups())
        other = v1.get_variable("columns", [4, 6], partitioner=v1.fixed_size_partitioner(2, axis=1))
        with support.fails("shards must be split by rows"):
            tsg.sharded_lookup(other, [0])


@in_each_strategy
@support.in_each_mode
def test_gradient_is_merged_for_each_shard(
    strategy: str, mode: str, rng: np.random.Generator
) -> None:
    shards = [tf.Variable(part) for part in split(TABLE, 3, strategy)]
    ids = rng.integers(0, 10, (3, 7))
    weights = rng.integers(-4, 5, (3, 7, 3)).astype(np.float32)

    def gradients(ids: tf.Tensor) -> list[tf.IndexedSlices]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tsg.sharded_lookup(shards, ids, strategy) * weights)
        return tape.gradient(loss, shards)

    got = support.call(mode, gradients, tf.constant(ids))
    for gradient in got:
        assert isinstance(gradient, tf.IndexedSlices)
        rows = gradient.indices.numpy()
        assert (np.diff(rows) > 0).all()
    want = np.zeros_like(TABLE)
    np.add.at(want, ids, weights)
    support.same(joined(got, strategy, 10), want)
    assert sum(gradient.indices.shape[0] for gradient in got) == np.unique(ids).size


def test_second_order_and_forward_mode() -> None:
    shards = [tf.Variable(part) for part in split(TABLE, 2, "mod")]
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_sum(tsg.sharded_lookup(shards, [3, 0, 3]) ** 3)
        gradients = inner.gradient(loss, shards)
    want = np.zeros_like(TABLE)
    want[0], want[3] = 6 * TABLE[0], 12 * TABLE[3]
    support.close(joined(outer.gradient(gradients, shards), "mod", 10), want)
    tangent = tf.ones_like(shards[1])
    with tf.autodiff.ForwardAccumulator(shards[1], tangent) as accumulator:
        rows = 2 * tsg.sharded_lookup(shards, [3, 0, 3])
    support.same(accumulator.jvp(rows)[:, 0], np.float32([2, 0, 2]))


def test_mirrored_variables() -> None:
    """Each replica reads rows of its own copy, and not the whole of it."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        shards = [tf.Variable(part) for part in split(TABLE, 2, "mod")]

    def rows_and_gradients() -> tuple[tf.Tensor, list[tf.IndexedSlices]]:
        with tf.GradientTape() as tape:
            rows = tsg.sharded_lookup(shards, [3, 0, 3])
        return rows, tape.gradient(rows, shards)

    run = tf.function(lambda: strategy.run(rows_and_gradients), autograph=False)
    rows, gradients = run()
    support.same(rows, TABLE[[3, 0, 3]])
    assert [(g.indices.numpy().tolist(), g.values[:, 0].numpy().tolist()) for g in gradients] == [
        ([0], [1.0]),
        ([1], [2.0]),
    ]
    operations = run.get_concrete_function().graph.get_operations()
    assert not any(op.type == "ReadVariableOp" for op in operations)
    support.same(tsg.sharded_lookup(shards, [3, 0]), TABLE[[3, 0]])


def graph_of(shards: Any) -> tf.Graph:
    function = tf.function(lambda ids: tsg.sharded_lookup(shards, ids), autograph=False)
    return function.get_concrete_function(tf.TensorSpec([None, 4], tf.int64))


def test_a_function_reads_rows_beside_the_table_and_knows_the_shape() -> None:
    concrete = graph_of([tf.Variable(part) for part in split(TABLE, 2, "mod")])
    assert concrete.structured_outputs.shape.as_list() == [None, 4, 3]
    operations = concrete.graph.get_operations()
    lookups = [op for op in operations if op.type == "MyResourceGatherNd"]
    assert [op.colocation_groups() for op in lookups] == [
        [b"loc:@" + op.inputs[0].op.name.encode()] for op in lookups
    ]
    assert len(lookups) == 2
    assert not any(op.type == "ReadVariableOp" for op in operations)


BAD_IDS = [
    pytest.param("mod", [[0, 1], [2, 10]], "ids[1,1] = 10", "row 5 of shards[0]", id="mod-high"),
    pytest.param("mod", [3, -1], "ids[1] = -1", "row -1 of shards[1]", id="mod-negative"),
    pytest.param("div", [4, 99, 98], "ids[1] = 99", "of shards[1]", id="div-high"),
    pytest.param("div", [-7], "ids[0] = -7", "row -7 of shards[0]", id="div-negative"),
]


@support.in_every_mode
@pytest.mark.parametrize(("strategy", "ids", "what", "where"), BAD_IDS)
def test_an_id_without_a_row(mode: str, strategy: str, ids: Any, what: str, where: str) -> None:
    shards = [tf.Variable(part) for part in split(TABLE, 2, strategy)]

    def lookup(ids: tf.Tensor, policy: str = "") -> tf.Tensor:
        return tsg.sharded_lookup(shards, ids, strategy, bad_indices_policy=policy)

    ids = tf.constant(ids, tf.int64)
    with support.fails(f"{what} is not covered by shards", where, "which has 5 rows"):
        support.call(mode, lookup, ids)
    if mode != "eager":
        return
    ignored = lookup(ids, "IGNORE")
    good = (ids >= 0) & (ids < 10)
    want = np.where(good[..., None], TABLE[np.clip(ids, 0, 9)], 0)
    support.same(ignored, want.astype(np.float32))


def test_an_ignored_id_has_no_part_in_the_gradient() -> None:
    shards = [tf.Variable(part) for part in split(TABLE, 2, "div")]
    with tf.GradientTape() as tape:
        rows = tsg.sharded_lookup(shards, [11, 4, -3], "div", bad_indices_policy="IGNORE")
    gradients = tape.gradient(rows, shards)
    assert [gradient.indices.numpy().tolist() for gradient in gradients] == [[4], []]


def test_a_missing_shard_leaves_the_variables_as_they_were() -> None:
    shards = [tf.Variable(part) for part in split(TABLE, 2, "mod")]
    shards[1] = tf.Variable(TABLE[1:5:2])

    @functools.partial(tf.function, autograph=False)
    def step(ids: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tsg.sharded_lookup(shards, ids))
        for shard, gradient in zip(shards, tape.gradient(loss, shards), strict=True):
            shard.scatter_sub(gradient)

    before = [shard.numpy() for shard in shards]
    with support.fails("ids[1] = 9", "row 4 of shards[1], which has 2 rows"):
        step(tf.constant([0, 9]))
    for shard, values in zip(shards, before, strict=True):
        support.same(shard, values)
    step(tf.constant([0, 8]))
    support.same(shards[0][0], TABLE[0] - 1)


Call = Callable[[], Any]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        pytest.param(
            lambda: tsg.sharded_lookup([], [0]), ValueError, "shards must hold at least", id="none"
        ),
        pytest.param(
            lambda: tsg.sharded_lookup({"a": TABLE}, [0]),
            TypeError,
            "shards must be a list or tuple of variables or tensors, .* got dict",
            id="dict",
        ),
        pytest.param(
            lambda: tsg.sharded_lookup([TABLE, TABLE], [0], "hash"),
            ValueError,
            "strategy must be 'mod' or 'div', got 'hash'",
            id="strategy",
        ),
        pytest.param(
            lambda: tsg.sharded_lookup([TABLE, TABLE.astype(int)], [0]),
            TypeError,
            r"shards\[0\] of float32 and shards\[1\] of int64",
            id="types",
        ),
        pytest.param(
            lambda: tsg.sharded_lookup([TABLE, TABLE[:, :2]], [0]),
            ValueError,
            r"shards\[0\] of shape \(10, 3\) and shards\[1\] of shape \(10, 2\)",
            id="row-shapes",
        ),
        pytest.param(
            lambda: tsg.sharded_lookup([1.0, 2.0], [0]),
            ValueError,
            r"shards\[0\] must have rows, got a scalar",
            id="scalars",
        ),
        pytest.param(
            lambda: tsg.sharded_lookup([TABLE[:4], TABLE[4:]], [0], "div"),
            ValueError,
            r"strategy 'div' puts 5 of 10 rows into shards\[0\], got 4",
            id="uneven",
        ),
        pytest.param(
            lambda: tsg.sharded_lookup([TABLE, TABLE], [0.5]),
            TypeError,
            "ids must be integers of 8 to 64 bits, got float32",
            id="float-ids",
        ),
        pytest.param(
            lambda: tsg.sharded_lookup([TABLE, TABLE], [0], bad_indices_policy="maybe"),
            tf.errors.InvalidArgumentError,
            "IGNORE",
            id="policy",
        ),
    ],
)
def test_bad_arguments(call: Call, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()
