"""The ops inside v1 graphs, control flow, tf.data, SavedModels, Keras layers and new processes."""

from __future__ import annotations

import textwrap

import keras
import numpy as np
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import close, equal

v1 = tf.compat.v1


class TestSession:
    """Graphs and sessions, as in TensorFlow 1."""

    def test_values_and_gradients(self):
        with tf.Graph().as_default(), v1.Session() as session:
            params = v1.placeholder(tf.float32, [None, None])
            index = v1.placeholder(tf.int64, [None, None])
            rows = tsg.gather_nd(params, index)
            merged = tsg.dynamic_stitch([index[:, 0]], [rows])
            total = tsg.scatter_nd(index, rows, tf.shape(params, tf.int64))
            of_params = v1.gradients(merged, params)[0]
            feed = {params: [[1, 2], [3, 4], [5, 6]], index: [[2], [0], [2]]}
            got = session.run([rows, merged, total, of_params], feed)
        equal(got[0], [[5, 6], [1, 2], [5, 6]])
        equal(got[1], [[1, 2], [0, 0], [5, 6]])
        equal(got[2], [[1, 2], [0, 0], [10, 12]])
        equal(got[3], [[1, 1], [0, 0], [1, 1]])

    def test_a_variable_and_a_train_step(self):
        with tf.Graph().as_default(), v1.Session() as session:
            table = v1.get_variable("table", initializer=tf.ones([3, 2]))
            loss = tf.reduce_sum(tsg.gather_nd(table, [[2], [2], [0]]))
            train = v1.train.GradientDescentOptimizer(1.0).minimize(loss)
            session.run(v1.global_variables_initializer())
            session.run(train)
            equal(session.run(table), [[0, 0], [1, 1], [-1, -1]])

    def test_a_reference_variable(self):
        with tf.Graph().as_default(), v1.Session() as session:
            table = v1.get_variable("table", initializer=tf.ones([3, 2]), use_resource=False)
            loss = tf.reduce_sum(tsg.gather_nd(table, [[2], [2], [0]]))
            train = v1.train.GradientDescentOptimizer(1.0).minimize(loss)
            session.run(v1.global_variables_initializer())
            session.run(train)
            equal(session.run(table), [[0, 0], [1, 1], [-1, -1]])

    def test_graph_definition_survives_serialization(self):
        with tf.Graph().as_default() as graph:
            index = v1.placeholder(tf.int32, [None, 1], "index")
            picked = tsg.gather_nd(
                tf.constant([[1.0, 2.0], [3.0, 4.0]]),
                index,
                batch_dims=0,
                bad_indices_policy="IGNORE",
            )
            tf.identity(picked, "picked")
        text = graph.as_graph_def().SerializeToString()
        definition = v1.GraphDef.FromString(text)
        with tf.Graph().as_default() as loaded, v1.Session(graph=loaded) as session:
            tf.graph_util.import_graph_def(definition, name="")
            equal(session.run("picked:0", {"index:0": [[1], [7]]}), [[3, 4], [0, 0]])


class TestControlFlow:
    def test_while_loop(self):
        params = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

        @tf.function
        def run(n):
            total = tf.zeros([2])
            for k in tf.range(n):
                total += tsg.gather_nd(params, [k])
            return total

        equal(run(tf.constant(3)), [9, 12])

    def test_gradient_of_a_while_loop(self):
        @tf.function
        def run(x):
            for _ in tf.range(3):
                x = tsg.dynamic_stitch([[1, 0], [0]], [x, x[1:] * 2.0])
            return x

        def by_hand(x):
            for _ in range(3):
                x = tf.stack([x[1] * 2.0, x[0]])
            return x

        x = tf.constant([1.0, 3.0])
        equal(run(x), by_hand(x).numpy())
        close(support.gradients(run, [x])[0], support.gradients(by_hand, [x])[0].numpy())

    def test_gradient_of_lookups_in_a_loop(self):
        table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

        @tf.function
        def gradient(index):
            with tf.GradientTape() as tape:
                total = 0.0
                for k in tf.range(tf.shape(index)[0]):
                    total += tf.reduce_sum(tsg.gather_nd(table, index[k : k + 1]))
            return tf.convert_to_tensor(tape.gradient(total, table))

        equal(gradient(tf.constant([[1], [0], [1]])), [[1, 1], [2, 2]])

    def test_cond(self):
        @tf.function
        def run(x, flag):
            return tf.cond(
                flag,
                lambda: tsg.gather_nd(x, [[1], [0]]),
                lambda: tsg.dynamic_stitch([[1, 0], [1]], [x, x[:1]]),
            )

        x = tf.constant([1.0, 2.0])
        for flag, want, of_x in ((True, [2, 1], [1, 1]), (False, [2, 1], [1, 1])):
            equal(run(x, tf.constant(flag)), want)
            equal(support.gradients(lambda a, f=flag: run(a, tf.constant(f)), [x])[0], of_x)

    def test_map_fn(self):
        params = tf.reshape(tf.range(12.0), [2, 3, 2])
        got = tf.map_fn(
            lambda a: tsg.gather_nd(a[0], a[1]),
            (params, tf.constant([[[0]], [[2]]])),
            fn_output_signature=tf.float32,
        )
        equal(got, [[[0, 1]], [[10, 11]]])


class TestDataPipeline:
    def test_map(self):
        table = tf.constant([[1, 2], [3, 4], [5, 6]])
        data = tf.data.Dataset.range(3).map(
            lambda k: (
                tsg.gather_nd(table, [k]),
                tsg.dynamic_stitch([[k]], [[k]]),
                tsg.scatter_nd([[k]], [k], [3]),
            ),
            num_parallel_calls=2,
        )
        rows, merged, scattered = zip(*data.as_numpy_iterator(), strict=True)
        equal(np.stack(rows), table.numpy())
        assert [m.tolist() for m in merged] == [[0], [0, 1], [0, 0, 2]]
        equal(np.stack(scattered), np.diag([0, 1, 2]))

    def test_error_reaches_the_reader(self):
        data = tf.data.Dataset.range(3).map(lambda k: tsg.gather_nd([1, 2], [[k]]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not index"):
            list(data)

    def test_batched_strings(self):
        data = tf.data.Dataset.from_tensor_slices([["a", "b"], ["c", "d"]]).batch(2)
        data = data.map(lambda words: tsg.gather_nd(words, [[1], [0]], batch_dims=1))
        equal(next(iter(data)), [b"b", b"c"])


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.int32)])
    def look_up(self, index):
        return tsg.gather_nd(self.table, index, bad_indices_policy="IGNORE")

    @tf.function(input_signature=[tf.TensorSpec([None, 2]), tf.TensorSpec([None], tf.int32)])
    def merge(self, rows, index):
        return tsg.dynamic_stitch([index], [rows])

    @tf.function(input_signature=[tf.TensorSpec([None, 2]), tf.TensorSpec([None, 2], tf.int32)])
    def pick(self, params, index):
        return tsg.gather_nd(params, index)

    @tf.function(
        input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, None, 1], tf.int64)]
    )
    def pick_in_batch(self, params, index):
        return tsg.gather_nd(params, index, batch_dims=1)


LOAD = """
    import sys

    import tensorflow as tf

    try:
        tf.saved_model.load(sys.argv[1])
    except RuntimeError as error:
        assert "Op type not registered 'My" in str(error), error
    else:
        raise AssertionError("the library was loaded before its import")
    import tf_stitch_gather  # One import mends it.

    module = tf.saved_model.load(sys.argv[1])
    x = tf.ones([2, 2])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        picked = module.pick(x, [[0, 0], [0, 0]])
        merged = module.merge(x, [0, 0])
        rows = module.look_up([[2], [9], [2]])
    assert tf.convert_to_tensor(tape.gradient(picked, x)).numpy().tolist() == [[2, 0], [0, 0]]
    # Both rows go to row 0 and the second wins.
    assert tf.convert_to_tensor(tape.gradient(merged, x)).numpy().tolist() == [[0, 0], [1, 1]]
    assert rows.numpy().tolist() == [[5, 6], [0, 0], [5, 6]]
    of_table = tf.convert_to_tensor(tape.gradient(rows, module.table))
    assert of_table.numpy().tolist() == [[0, 0], [0, 0], [2, 2]]
    got = module.pick_in_batch(tf.constant([[1.0, 2.0, 3.0]]), [[[2], [0]]])
    assert got.numpy().tolist() == [[3, 1]]
    print("all right")
"""


def test_saved_model_in_a_new_process(tmp_path):
    tf.saved_model.save(Module(), str(tmp_path))
    assert support.child(textwrap.dedent(LOAD), str(tmp_path)) == "all right"


def test_saved_model_in_this_process(tmp_path):
    tf.saved_model.save(Module(), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    equal(loaded.look_up([[1]]), [[3, 4]])


SPAWN = """
import multiprocessing


def work(queue):
    import tf_stitch_gather

    rows = tf_stitch_gather.gather_nd([1.0, 2.0], [[1]])
    queue.put(tf_stitch_gather.dynamic_stitch([[1]], [rows]).numpy().tolist())


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get(timeout=120))
    process.join()
"""


def test_in_a_spawned_process(tmp_path):
    program = tmp_path / "spawn.py"
    program.write_text(SPAWN, encoding="utf-8")
    assert support.child(program) == "[0.0, 2.0]"


@keras.saving.register_keras_serializable("tf_stitch_gather_tests")
class Pick(keras.layers.Layer):
    """The rows 0, 0, 2 and 1 of each example."""

    def call(self, x):
        index = tf.tile(tf.constant([[[0], [0], [2], [1]]]), [tf.shape(x)[0], 1, 1])
        return tsg.gather_nd(x, index, batch_dims=1)


@keras.saving.register_keras_serializable("tf_stitch_gather_tests")
class Route(keras.layers.Layer):
    """Partitions the examples by the sign of their first feature, and puts them back together."""

    def call(self, x):
        side = tf.cast(x[:, 0] > 0, tf.int32)
        low, high = tf.dynamic_partition(x, side, 2)
        places = tf.dynamic_partition(tf.range(tf.shape(x)[0]), side, 2)
        return tsg.dynamic_stitch(places, [low * 2, high * 3])


class TestKeras:
    def test_layers_build_train_save_and_load(self, tmp_path, rng):
        first, second = keras.Input((5, 3)), keras.Input((3,))
        picked, routed = Pick()(first), Route()(second)
        assert tuple(picked.shape) == (None, 4, 3)
        assert tuple(routed.shape) == (None, 3)
        joined = keras.layers.Concatenate()([keras.layers.Flatten()(picked), routed])
        model = keras.Model([first, second], keras.layers.Dense(1)(joined))
        model.compile("sgd", "mse")
        inputs = [rng.normal(size=s).astype(np.float32) for s in ((8, 5, 3), (8, 3))]
        history = model.fit(inputs, np.ones((8, 1)), epochs=5, verbose=0).history["loss"]
        assert history[-1] < history[0]
        model.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        close(again.predict(inputs, verbose=0), model.predict(inputs, verbose=0))
        model.export(tmp_path / "exported", verbose=False)
        exported = tf.saved_model.load(str(tmp_path / "exported"))
        close(exported.serve(inputs), model.predict(inputs, verbose=0), 1e-4, 1e-5)

    def test_values_of_the_layers(self, rng):
        x = rng.normal(size=(6, 3)).astype(np.float32)
        close(Route()(x), np.where(x[:, :1] > 0, x * 3, x * 2))
        y = rng.normal(size=(2, 5, 3)).astype(np.float32)
        close(Pick()(y), y[:, [0, 0, 2, 1]])

    @pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
    def test_mixed_precision(self, policy):
        before = keras.mixed_precision.dtype_policy()
        keras.mixed_precision.set_dtype_policy(policy)
        keras.utils.set_random_seed(1)
        try:
            model = keras.Sequential(
                [
                    keras.Input((4, 2)),
                    keras.layers.Dense(4),
                    Pick(),
                    keras.layers.Flatten(),
                    Route(),
                    keras.layers.Dense(1, dtype="float32"),
                ]
            )
            model.compile("sgd", "mse")
            x = np.random.default_rng(0).normal(size=(8, 4, 2))
            # The first steps may be left out, until the loss scale of float16 has come down.
            loss = model.fit(x, np.ones((8, 1)), epochs=15, verbose=0).history["loss"]
        finally:
            keras.mixed_precision.set_dtype_policy(before)
        assert model.layers[1].compute_dtype == policy.removeprefix("mixed_")
        assert np.isfinite(loss).all() and loss[-1] < loss[0]

    def test_embedding_by_gather_trains_as_one_by_tf_gather(self, rng):
        """Two tables, one looked up by each op, take the same steps of Adam."""
        start = rng.normal(size=(7, 3)).astype(np.float32)
        ours, theirs = tf.Variable(start), tf.Variable(start)
        optimizers = [keras.optimizers.Adam(0.1) for _ in range(2)]
        for _ in range(4):
            rows = rng.integers(0, 7, 10)
            for table, optimizer, look_up in (
                (ours, optimizers[0], lambda v, r=rows: tsg.gather_nd(v, r[:, None])),
                (theirs, optimizers[1], lambda v, r=rows: tf.gather(v * 1.0, r)),
            ):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.sin(look_up(table)))
                optimizer.apply_gradients([(tape.gradient(loss, table), table)])
            close(ours, theirs.numpy(), 1e-4, 1e-5)


class TestVariables:
    def test_as_data_of_a_stitch(self):
        shards = [tf.Variable([[1.0, 2.0]]), tf.Variable([[3.0, 4.0], [5.0, 6.0]])]

        @tf.function
        def run():
            with tf.GradientTape() as tape:
                merged = tsg.dynamic_stitch([[1], [0, 1]], shards)
                loss = tf.reduce_sum(merged * merged)
            return merged, tape.gradient(loss, shards)

        merged, (first, second) = run()
        equal(merged, [[3, 4], [5, 6]])
        equal(first, [[0, 0]])
        equal(second, [[6, 8], [10, 12]])

    def test_result_does_not_alias_its_input(self):
        table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        rows = tsg.gather_nd(table, [[0], [1]])
        whole = tsg.gather_nd(table, tf.zeros([1, 0], tf.int32))
        merged = tsg.dynamic_stitch([[0, 1]], [table])
        table.assign(tf.zeros([2, 2]))
        for kept in (rows, whole[0], merged):
            equal(kept, [[1, 2], [3, 4]])

    def test_sharded_embedding(self, rng):
        """Partition the ids, gather from each shard, stitch: as from one table."""
        table = rng.normal(size=(40, 5)).astype(np.float32)
        shards = [tf.Variable(table[k::4]) for k in range(4)]
        ids = tf.constant(rng.integers(0, 40, 100))

        @tf.function
        def look_up(ids):
            owner = tf.cast(ids % 4, tf.int32)
            places = tf.dynamic_partition(tf.range(tf.size(ids)), owner, 4)
            local = tf.dynamic_partition(ids // 4, owner, 4)
            rows = [
                tsg.gather_nd(shard, index[:, None])
                for shard, index in zip(shards, local, strict=True)
            ]
            return tsg.dynamic_stitch(places, rows)

        equal(look_up(ids), table[ids.numpy()])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(look_up(ids) ** 2)
        found = tape.gradient(loss, shards)
        want = np.zeros_like(table)
        np.add.at(want, ids.numpy(), 2 * table[ids.numpy()])
        for k, gradient in enumerate(found):
            close(gradient, want[k::4], 1e-5, 1e-5)
