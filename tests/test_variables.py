"""Lookups in variables: only the rows asked for are read, and every transformation still works."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import tf_stitch_gather as tsg

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def table() -> tf.Variable:
    return tf.Variable(TABLE)


def op_types(function: tf.types.experimental.ConcreteFunction) -> set[str]:
    return {op.type for op in function.graph.get_operations()}


@pytest.mark.parametrize("index_dtype", [tf.int16, tf.int32, tf.int64], ids=lambda d: d.name)
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_values(table: tf.Variable, index_dtype: tf.DType, in_function: bool) -> None:
    def lookup(indices: tf.Tensor) -> tf.Tensor:
        return tsg.gather_nd(table, indices)

    run = tf.function(lookup) if in_function else lookup
    np.testing.assert_array_equal(run(tf.constant([[3], [1]], index_dtype)), TABLE[[3, 1]])
    np.testing.assert_array_equal(
        run(tf.constant([[3, 2], [0, 1]], index_dtype)), TABLE[[3, 0], [2, 1]]
    )


def test_a_function_reads_rows_and_not_the_variable(table: tf.Variable) -> None:
    lookup = tf.function(lambda indices: tsg.gather_nd(table, indices))
    types = op_types(lookup.get_concrete_function(tf.TensorSpec([None, 1], tf.int32)))
    assert "MyResourceGatherNd" in types
    assert "ReadVariableOp" not in types


def test_static_shape(table: tf.Variable) -> None:
    lookup = tf.function(lambda indices: tsg.gather_nd(table, indices))
    concrete = lookup.get_concrete_function(tf.TensorSpec([None, 1], tf.int32))
    assert concrete.structured_outputs.shape.as_list() == [None, 3]


def test_batch_dims_and_policy(table: tf.Variable) -> None:
    rows = tsg.gather_nd(table, [[2], [7], [0], [-1]], batch_dims=1, bad_indices_policy="IGNORE")
    np.testing.assert_array_equal(rows, [2, 0, 6, 0])


def test_error_names_the_index(table: tf.Variable) -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"indices\[1\] = \[4\] does not index"
    ):
        tsg.gather_nd(table, [[3], [4]])


def test_wrong_dtype_of_the_raw_op(table: tf.Variable) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="the variable holds float"):
        tsg.raw_ops.MyResourceGatherNd(resource=table.handle, indices=[[0]], dtype=tf.int32)


def test_uninitialized_variable() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("v", initializer=TABLE, use_resource=True)
        rows = tsg.gather_nd(variable, [[1]])
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(rows)
        session.run(variable.initializer)
        np.testing.assert_array_equal(session.run(rows), TABLE[[1]])


def test_a_resource_that_is_no_variable(table: tf.Variable) -> None:
    def lookup(resource: tf.Tensor) -> tf.Tensor:
        return tsg.raw_ops.MyResourceGatherNd(resource=resource, indices=[[0]], dtype=tf.float32)

    hash_table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="resource is not a variable"):
        lookup(hash_table.resource_handle)
    handles = tf.stack([table.handle, table.handle])
    # Some versions of TensorFlow see an empty one themselves.
    for count, words in ((0, "handle"), (2, r"handle of one variable, got shape \[2\]")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            lookup(handles[:count])


@pytest.mark.parametrize("tape_inside", [False, True], ids=["tape-outside", "tape-inside"])
def test_sparse_gradient_in_a_function(table: tf.Variable, tape_inside: bool) -> None:
    indices = tf.constant([[3], [1], [3]])
    if tape_inside:

        @tf.function
        def gradient() -> tf.IndexedSlices:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tsg.gather_nd(table, indices))
            return tape.gradient(loss, table)

        slices = gradient()
        assert isinstance(slices, tf.IndexedSlices)
        np.testing.assert_array_equal(slices.indices, [1, 3])
        np.testing.assert_array_equal(slices.values[:, 0], [1, 2])
    else:
        lookup = tf.function(lambda: tsg.gather_nd(table, indices))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(lookup())
        dense = tf.convert_to_tensor(tape.gradient(loss, table))
        np.testing.assert_array_equal(dense[:, 0], [0, 1, 0, 2])


def test_a_value_read_from_a_variable_has_a_sparse_gradient(table: tf.Variable) -> None:
    @tf.function
    def gradient() -> tf.IndexedSlices:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tsg.gather_nd(tf.identity(table.read_value()), [[1], [1]]))
        return tape.gradient(loss, table)

    assert isinstance(gradient(), tf.IndexedSlices)


def test_dense_gradient(table: tf.Variable) -> None:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tsg.gather_nd(table, [[1, 1], [3, 2], [1, 1]]))
    expected = np.zeros_like(TABLE)
    expected[1, 1], expected[3, 2] = 2, 1
    np.testing.assert_array_equal(tape.gradient(loss, table), expected)


def test_second_order(table: tf.Variable) -> None:
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_sum(tsg.gather_nd(table, [[1], [1]]) ** 3)
        gradient = inner.gradient(loss, table)
    expected = np.zeros_like(TABLE)
    expected[1] = 12 * TABLE[1]
    np.testing.assert_allclose(tf.convert_to_tensor(outer.gradient(gradient, table)), expected)


def test_forward_mode(table: tf.Variable) -> None:
    with tf.autodiff.ForwardAccumulator(table, tf.constant(TABLE)) as accumulator:
        rows = 2 * tsg.gather_nd(table, [[3], [1]])
    np.testing.assert_array_equal(accumulator.jvp(rows), 2 * TABLE[[3, 1]])


def test_forward_over_backward(table: tf.Variable) -> None:
    with tf.autodiff.ForwardAccumulator(table, tf.ones_like(table)) as accumulator:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tsg.gather_nd(table, [[1], [3]]) ** 3)
        gradient = tape.gradient(loss, table)
    expected = np.zeros_like(TABLE)
    expected[[1, 3]] = 6 * TABLE[[1, 3]]
    np.testing.assert_allclose(accumulator.jvp(gradient), expected)


def test_a_lookup_sees_the_assignment_before_it(table: tf.Variable) -> None:
    @tf.function
    def update_and_look() -> tuple[tf.Tensor, tf.Tensor]:
        before = tsg.gather_nd(table, [[1]])
        table.scatter_nd_update([[1]], [[-1.0, -2.0, -3.0]])
        return before, tsg.gather_nd(table, [[1]])

    before, after = update_and_look()
    np.testing.assert_array_equal(before, TABLE[[1]])
    np.testing.assert_array_equal(after, [[-1, -2, -3]])
