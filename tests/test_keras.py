"""The Keras layers, the plain functions on Keras inputs, and the optimizer for repeated rows."""

from __future__ import annotations

import textwrap

import keras
import numpy as np
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import close, equal

GatherNd, DynamicStitch, ScatterNd = (
    tsg.keras.GatherNd,
    tsg.keras.DynamicStitch,
    tsg.keras.ScatterNd,
)


def ints(*shape: int | None, batch_size: int | None = None) -> keras.KerasTensor:
    return keras.Input(shape, dtype="int32", batch_size=batch_size)


@pytest.fixture(params=["mixed_float16", "mixed_bfloat16"])
def mixed(request):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param.removeprefix("mixed_")
    keras.config.set_dtype_policy(before)


class TestShapes:
    @pytest.mark.parametrize(
        ("layer", "shapes", "want"),
        [
            pytest.param(GatherNd(), [(None, 5, 3), (None, 2)], (None, 3), id="gather"),
            pytest.param(
                GatherNd(1), [(None, 5, 3), (None, 4, 1)], (None, 4, 3), id="gather-batch"
            ),
            pytest.param(GatherNd(2), [(8, 5, 3), (8, 5, 7, 1)], (8, 5, 7), id="gather-batch-2"),
            pytest.param(GatherNd(), [(4, 3), (0,)], (4, 3), id="gather-depth-0"),
            pytest.param(
                DynamicStitch(), [[(None,), (2,)], [(None, 8), (2, 8)]], (None, 8), id="stitch"
            ),
            pytest.param(
                DynamicStitch(9), [[(None,), ()], [(None, None), (8,)]], (9, 8), id="stitch-sized"
            ),
            pytest.param(ScatterNd((9, 4)), [(None, 1), (None, 4)], (9, 4), id="scatter"),
            pytest.param(
                ScatterNd((9, 4), 1), [(None, 6, 1), (None, 6, 4)], (None, 9, 4), id="scatter-batch"
            ),
            pytest.param(ScatterNd([9], 1), [(3, 6, 1), (3, 6)], (3, 9), id="scatter-known-batch"),
        ],
    )
    def test_of_the_output(self, layer, shapes, want):
        assert layer.compute_output_shape(*shapes) == want
        dtypes = ("float64", "int64") if isinstance(layer, GatherNd) else ("int64", "float64")
        inputs = [
            [keras.KerasTensor(s, dtype) for s in shape]
            if isinstance(shape, list)
            else keras.KerasTensor(shape, dtype)
            for shape, dtype in zip(shapes, dtypes, strict=True)
        ]
        spec = layer.compute_output_spec(*inputs)
        assert (tuple(spec.shape), spec.dtype) == (want, "float64")

    def test_plain_functions_take_symbolic_inputs(self):
        rows = keras.Input((5, 3), dtype="float64")
        for got, shape, dtype in (
            (tsg.gather_nd(rows, [[0, 1]], name="picked"), (1, 3), "float64"),
            (tsg.gather_nd([[1, 2], [3, 4]], ints(1)), (None, 2), "int32"),
            (tsg.gather_nd(rows, ints(2, 1), batch_dims=np.int64(1)), (None, 2, 3), "float64"),
            (tsg.dynamic_stitch([[1, 0]], [keras.Input(batch_shape=(2, 3))]), (2, 3), "float32"),
            (tsg.dynamic_stitch([ints()], [rows], size=4), (4, 5, 3), "float64"),
            (
                tsg.dynamic_stitch([[1]], [[2.0]], keras.Input(batch_shape=(), dtype="int32")),
                (None,),
                "float32",
            ),
            (
                tsg.dynamic_stitch([np.arange(300)], [keras.Input(batch_shape=(300, 2))]),
                (300, 2),
                "float32",
            ),
            (tsg.scatter_nd(ints(1), rows, (7, 5, 3)), (7, 5, 3), "float64"),
            (tsg.scatter_nd(ints(1), rows, tf.constant([7, 5, 3])), (7, 5, 3), "float64"),
            (tsg.scatter_nd([[1]], [[2.0]], ints(batch_size=2)), (None, None), "float32"),
        ):
            assert isinstance(got, keras.KerasTensor)
            assert (tuple(got.shape), got.dtype) == (shape, dtype)
        assert tsg.gather_nd(rows, [[0, 1]], name="by_name")._keras_history.operation.name == (
            "by_name"
        )


class Routed(keras.Model):
    """Two experts on the halves of a batch that the sign of a feature makes, in a subclass."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.experts = [keras.layers.Dense(4, name=f"expert_{k}") for k in range(2)]
        self.stitch = DynamicStitch()
        self.pick = GatherNd(batch_dims=1)

    def call(self, x):
        side = tf.cast(x[:, 0] > 0, tf.int32)
        parts = tf.dynamic_partition(x, side, 2)
        places = tf.dynamic_partition(tf.range(tf.shape(x)[0]), side, 2)
        rows = self.stitch(places, [e(p) for e, p in zip(self.experts, parts, strict=True)])
        return self.pick(rows, side[:, tf.newaxis])[:, tf.newaxis]


def functional() -> keras.Model:
    """Each layer and each plain function once, with constants and a named layer between them."""
    tokens, places, order = keras.Input((6, 4)), ints(3, 1), ints()
    picked = GatherNd(batch_dims=1, name="picked")(tokens, places)
    spread = ScatterNd((6, 4), batch_dims=1)(places, keras.layers.Dense(4)(picked))
    shuffled = DynamicStitch()([order], [spread])
    corner = tsg.gather_nd(shuffled, tf.constant([[1, 2], [0, 5]], tf.int64))
    total = tsg.scatter_nd([[0], [0]], corner, (2, 4))  # Its second row is zero.
    merged = tsg.dynamic_stitch([[1, 0], [0]], [total, np.ones((1, 4), np.float32)], size=3)
    return keras.Model([tokens, places, order], [shuffled, merged])


def functional_by_hand(model, tokens, places, order):
    dense = next(layer for layer in model.layers if isinstance(layer, keras.layers.Dense))
    picked = np.take_along_axis(tokens, places, axis=1)
    spread = np.zeros_like(tokens)
    np.add.at(spread, (np.arange(len(tokens))[:, None], places[..., 0]), dense(picked).numpy())
    shuffled = np.zeros_like(spread)
    shuffled[order] = spread
    total = shuffled[[1, 0], [2, 5]].sum(axis=0)
    return shuffled, np.stack([np.ones(4), total, np.zeros(4)])


class TestModels:
    @pytest.fixture
    def inputs(self, rng):
        return [
            rng.normal(size=(5, 6, 4)).astype(np.float32),
            rng.integers(0, 6, (5, 3, 1)).astype(np.int32),
            rng.permutation(5).astype(np.int32),
        ]

    def test_functional_model_saves_and_loads(self, inputs, tmp_path):
        model = functional()
        shuffled, merged = model(inputs)
        for got, want in zip((shuffled, merged), functional_by_hand(model, *inputs), strict=True):
            close(got, want)
        model.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        for got, kept in zip(again(inputs), (shuffled, merged), strict=True):
            equal(got, kept)
        assert again.get_layer("picked").get_config() == model.get_layer("picked").get_config()

    def test_saved_model_loads_in_a_new_process(self, inputs, tmp_path):
        model = functional()
        model.save(tmp_path / "model.keras")
        np.savez(tmp_path / "inputs.npz", *inputs, want=model(inputs)[0])
        load = textwrap.dedent("""
            import sys

            import keras
            import numpy as np

            data = np.load(sys.argv[1] + "/inputs.npz")
            try:
                keras.models.load_model(sys.argv[1] + "/model.keras")
            except TypeError as error:
                assert "GatherNd" in str(error), error
            import tf_stitch_gather

            assert "tf_stitch_gather.keras" not in sys.modules
            import tf_stitch_gather.keras

            model = keras.models.load_model(sys.argv[1] + "/model.keras")
            got = model([data["arr_0"], data["arr_1"], data["arr_2"]])[0]
            np.testing.assert_array_equal(got, data["want"])
            print("all right")
        """)
        assert support.child(load, str(tmp_path)) == "all right"

    def test_subclassed_model_trains_saves_and_loads(self, rng, tmp_path):
        keras.utils.set_random_seed(0)
        x = rng.normal(size=(32, 4)).astype(np.float32)
        y = np.where(x[:, :1] > 0, 2 * x[:, 1:2], -x[:, 2:3])
        model = Routed()
        model.compile(keras.optimizers.Adam(0.05), "mse")
        loss = model.fit(x, y, epochs=40, batch_size=32, verbose=0).history["loss"]
        assert loss[-1] < 0.2 * loss[0]
        model.save_weights(tmp_path / "model.weights.h5")
        again = Routed()
        again(x)
        again.load_weights(tmp_path / "model.weights.h5")
        equal(again(x), model(x))

    def test_functional_model_trains(self, inputs):
        model = functional()
        model = keras.Model(model.inputs, model.outputs[0])
        model.compile("adam", "mse")
        target = np.ones((5, 6, 4), np.float32)
        loss = model.fit(inputs, target, epochs=3, shuffle=False, verbose=0).history["loss"]
        assert loss[-1] < loss[0]

    @pytest.mark.parametrize(
        "layer",
        [
            GatherNd(2, "IGNORE", name="g", dtype="mixed_bfloat16"),
            GatherNd(autocast=False),
            DynamicStitch(7),
            DynamicStitch(),
            ScatterNd((3, 4), 1, "ERROR"),
            ScatterNd(),
        ],
        ids=lambda layer: layer.name,
    )
    def test_config_makes_the_same_layer(self, layer):
        config = layer.get_config()
        again = keras.layers.deserialize(keras.layers.serialize(layer))
        assert type(again) is type(layer)
        assert again.get_config() == config
        assert again.autocast == layer.autocast


class TestValues:
    def test_eager_layers_give_what_the_functions_give(self, rng):
        params = rng.normal(size=(3, 5, 2)).astype(np.float32)
        index = rng.integers(0, 5, (3, 4, 1))
        equal(GatherNd(1)(params, index), np.take_along_axis(params, index, 1))
        equal(GatherNd()([[1, 2], [3, 4]], [[1]]), [[3, 4]])
        equal(GatherNd(0, "IGNORE")([1, 2], [[7]]), [0])
        equal(DynamicStitch()([[1], [0, 1]], [[5.0], [6.0, 7.0]]), [6, 7])
        equal(DynamicStitch(3)([[1]], [[5.0]]), [0, 5, 0])
        equal(DynamicStitch(3)([[1]], [[5.0]], size=2), [0, 5])
        equal(ScatterNd((3,))([[1], [1]], [5.0, 6.0]), [0, 11, 0])
        equal(
            ScatterNd((3,), 1, "IGNORE")([[[1], [9]], [[0], [0]]], [[1, 2], [3, 4]]),
            [[0, 1, 0], [7, 0, 0]],
        )
        equal(ScatterNd()([[1]], [5], shape=[2]), [0, 5])

    def test_a_batch_of_unknown_size_scatters(self):
        run = tf.function(
            ScatterNd((4,), batch_dims=1),
            input_signature=[tf.TensorSpec([None, 2, 1], tf.int64), tf.TensorSpec([None, 2])],
        )
        equal(run([[[1], [3]], [[0], [0]]], [[1, 2], [3, 4]]), [[0, 1, 0, 2], [7, 0, 0, 0]])

    def test_float64_keeps_its_bits_in_a_plain_function(self):
        x = keras.Input((2,), dtype="float64")
        model = keras.Model(x, tsg.gather_nd(x, [[0, 1]]))
        third = np.array([[0.0, 1 / 3]])
        equal(model(third), [1 / 3])
        assert GatherNd()(third, [[0, 1]]).dtype == tf.float32  # As every layer of Keras.


class TestMixedPrecision:
    def test_floats_are_cast_and_indices_are_not(self, mixed):
        """Row 2049 is no float16 and 257 no bfloat16."""
        table = np.arange(4096, dtype=np.float32) / 4096
        for at in (257, 2049, 4095):
            got = GatherNd()(table, [[at]])
            assert got.dtype.name == mixed
            equal(got, table[at : at + 1].astype(support.element_type(got.dtype)))
            equal(tf.where(DynamicStitch()([[at]], [[1.0]]) == 1)[:, 0], [at])
            scattered = ScatterNd((4096,))([[at]], [1.0])
            assert scattered.dtype.name == mixed
            equal(tf.where(scattered == 1)[:, 0], [at])

    def test_model_trains(self, mixed, rng):
        keras.utils.set_random_seed(1)
        tokens, places = keras.Input((6, 4)), ints(3, 1)
        hidden = keras.layers.Dense(8, "relu")(tokens)
        picked = GatherNd(1)(hidden, places)
        assert picked.dtype == mixed
        summed = ScatterNd((8,), 1)(ints(24, 1), keras.layers.Flatten()(picked))
        places_of_sum = summed._keras_history.operation.input[0]
        out = keras.layers.Dense(1, dtype="float32")(summed)
        model = keras.Model([tokens, places, places_of_sum], out)
        model.compile(keras.optimizers.SGD(0.05), "mse")
        x = [
            rng.normal(size=(16, 6, 4)),
            rng.integers(0, 6, (16, 3, 1)),
            rng.integers(0, 8, (16, 24, 1)),
        ]
        loss = model.fit(x, np.ones((16, 1)), epochs=12, verbose=0).history["loss"]
        assert np.isfinite(loss).all() and loss[-1] < loss[0]


@keras.saving.register_keras_serializable("tf_stitch_gather_tests")
class Table(keras.layers.Layer):
    """An embedding by the op, with as many lookups in it as inputs."""

    def __init__(self, rows, columns, **kwargs):
        super().__init__(**kwargs)
        self.rows, self.columns = rows, columns

    def build(self, *_):
        self.table = self.add_weight(shape=(self.rows, self.columns), name="table")

    def call(self, ids):
        return tsg.gather_nd(self.table, ids[..., tf.newaxis])

    def get_config(self):
        return {**super().get_config(), "rows": self.rows, "columns": self.columns}


def tower(table: keras.layers.Layer, lookups: int = 1) -> keras.Model:
    inputs = [keras.Input((3,), dtype="int32") for _ in range(lookups)]
    rows = [table(ids) for ids in inputs]
    flat = keras.layers.Flatten()(rows[0] if lookups == 1 else keras.layers.Add()(rows))
    return keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(flat))


class TestSparseGradients:
    def test_a_keras_variable_has_a_sparse_gradient(self):
        table = keras.Variable(np.ones((5, 2), np.float32))

        def gradient(ids):
            with tf.GradientTape() as tape:
                rows = tsg.gather_nd(table, ids)
            return tape.gradient(rows, table.value)

        for run in (gradient, tf.function(gradient)):
            found = run(tf.constant([[3], [1], [3]]))
            assert isinstance(found, tf.IndexedSlices)
            equal(found.indices, [1, 3])
            equal(found.values, [[1, 1], [2, 2]])

    def test_only_the_rows_asked_for_are_read_and_cast(self, mixed):
        """Under mixed precision Keras casts a variable; the cast comes after the lookup."""
        layer = Table(2**20, 8)
        layer.build()
        graph = tf.function(layer).get_concrete_function(tf.TensorSpec([3], tf.int32)).graph
        kinds = {op.type for op in graph.get_operations()}
        assert "MyResourceGatherNd" in kinds
        assert "ReadVariableOp" not in kinds
        with tf.GradientTape() as tape:
            rows = layer(tf.constant([7, 9, 7]))
        assert rows.dtype.name == mixed
        gradient = tape.gradient(rows, layer.table.value)
        assert isinstance(gradient, tf.IndexedSlices) and gradient.dtype == tf.float32
        equal(gradient.indices, [7, 9])

    @pytest.mark.parametrize("optimizer", ["SGD", "Adam", "Adagrad", "RMSprop", "Ftrl"])
    def test_fit_takes_the_steps_of_a_dense_gradient(self, optimizer, rng):
        """Two lookups in one table by `fit`, against a table whose gradient is made dense."""

        class Dense(Table):
            def call(self, ids):
                return tf.gather(self.table * 1.0, ids)

        ids = [rng.integers(0, 6, (8, 3)).astype(np.int32) for _ in range(2)]
        y = rng.normal(size=(8, 1))
        after = []
        for table, wrap in ((Table(6, 2), tsg.keras.UniqueRows), (Dense(6, 2), lambda o: o)):
            keras.utils.set_random_seed(3)
            model = tower(table, 2)
            model.compile(wrap(getattr(keras.optimizers, optimizer)(0.05)), "mse")
            loss = model.fit(ids, y, epochs=3, batch_size=4, shuffle=False, verbose=0).history
            after.append((table.table.numpy(), loss["loss"]))
        close(after[0][0], after[1][0], 1e-4, 1e-5)
        close(after[0][1], after[1][1], 1e-4, 1e-5)

    def test_one_lookup_needs_no_wrapper(self, rng):
        ids, y = rng.integers(0, 4, (8, 3)).astype(np.int32), rng.normal(size=(8, 1))
        after = []
        for wrap in (lambda o: o, tsg.keras.UniqueRows):
            keras.utils.set_random_seed(3)
            table = Table(4, 2)
            model = tower(table)
            model.compile(wrap(keras.optimizers.Adam(0.05)), "mse")
            model.fit(ids, y, epochs=2, verbose=0)
            after.append(table.table.numpy())
        equal(after[0], after[1])

    def test_mixed_precision_scales_the_loss_around_the_wrapper(self, rng):
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy("mixed_float16")
        try:
            model = tower(Table(6, 2), 2)
            model.compile(tsg.keras.UniqueRows(keras.optimizers.Adam(0.05)), "mse")
            assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
            ids = [rng.integers(0, 6, (8, 3)).astype(np.int32) for _ in range(2)]
            loss = model.fit(ids, np.ones((8, 1)), epochs=15, verbose=0).history["loss"]
        finally:
            keras.config.set_dtype_policy(before)
        assert np.isfinite(loss).all() and loss[-1] < loss[0]


class TestUniqueRows:
    def test_training_goes_on_after_save_and_load(self, rng, tmp_path):
        ids, y = rng.integers(0, 4, (8, 3)).astype(np.int32), rng.normal(size=(8, 1))
        model = tower(Table(4, 2))
        inner = keras.optimizers.Adam(0.05, clipnorm=1.0)
        model.compile(tsg.keras.UniqueRows(inner, name="unique"), "mse")
        model.fit(ids, y, epochs=2, verbose=0)
        model.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert isinstance(again.optimizer, tsg.keras.UniqueRows)
        assert again.optimizer.name == "unique"
        assert again.optimizer.inner_optimizer.clipnorm == 1.0
        assert int(again.optimizer.iterations) == int(inner.iterations) == 2
        for each in (model, again):
            each.fit(ids, y, epochs=1, verbose=0)
        equal(again.layers[1].table.value, model.layers[1].table.numpy())

    def test_learning_rate_is_that_of_the_inner_optimizer(self):
        optimizer = tsg.keras.UniqueRows(keras.optimizers.SGD(0.5))
        optimizer.learning_rate = 0.25
        close(optimizer.inner_optimizer.learning_rate, 0.25)
        close(optimizer.learning_rate, 0.25)

    def test_dense_and_missing_gradients_pass(self):
        first, second = keras.Variable([1.0]), keras.Variable([1.0])
        optimizer = tsg.keras.UniqueRows(keras.optimizers.SGD(1.0))
        with pytest.warns(UserWarning, match="Gradients do not exist"):
            optimizer.apply([tf.constant([0.5]), None], [first, second])
        equal(first.value, [0.5])
        equal(second.value, [1.0])

    def test_what_is_no_optimizer_is_refused(self):
        with support.fails("inner_optimizer", "'adam'", kinds=TypeError):
            tsg.keras.UniqueRows("adam")


ROWS = keras.Input((5, 3))


class TestErrors:
    """One line that names the argument, whether the layer or the function was called."""

    @pytest.mark.parametrize(
        ("call", "kind", "fragments"),
        [
            pytest.param(
                lambda: GatherNd()(ROWS, keras.Input((2,))),
                TypeError,
                ["indices must be of an integer type, got float32", "dtype='int32'"],
                id="float-indices",
            ),
            pytest.param(
                lambda: tsg.gather_nd(ROWS, ints(None)),
                ValueError,
                ["the last dimension of indices must be known", "(None, None)"],
                id="unknown-depth",
            ),
            pytest.param(
                lambda: GatherNd(batch_dims=1)(ROWS, ints(4)),
                ValueError,
                ["params of shape (None, 5, 3)", "indices of shape (None, 4)", "params rank"],
                id="too-deep",
            ),
            pytest.param(
                lambda: GatherNd(batch_dims=1)(ROWS, ints()),
                ValueError,
                ["batch_dims = 1", "rank 1 of indices"],
                id="indices-without-depth",
            ),
            pytest.param(
                lambda: GatherNd(1)(keras.Input((3,), 2), ints(3, 1, batch_size=4)),
                ValueError,
                ["batch shape (2) of params and (4) of indices"],
                id="batches-disagree",
            ),
            pytest.param(
                lambda: tsg.gather_nd(ROWS, [[0, 1]], bad_indices_policy="x"),
                ValueError,
                ["bad_indices_policy = 'x'"],
                id="policy",
            ),
            pytest.param(
                lambda: GatherNd(batch_dims=True), TypeError, ["batch_dims"], id="batch-dims"
            ),
            pytest.param(
                lambda: tsg.gather_nd(tf.Variable([1.0]), ints(1)),
                ValueError,
                ["params is a variable", "a weight of a layer"],
                id="variable",
            ),
            pytest.param(
                lambda: DynamicStitch()(ints(), [ROWS]),
                TypeError,
                ["indices must be a list or tuple", "KerasTensor"],
                id="no-list",
            ),
            pytest.param(
                lambda: tsg.dynamic_stitch([ints()], [ROWS, ROWS]),
                ValueError,
                ["indices and data must be lists of the same length", "1 and 2"],
                id="list-lengths",
            ),
            pytest.param(
                lambda: DynamicStitch()([ints(4)], [ROWS]),
                ValueError,
                ["data[0].shape = [?,5,3]", "indices[0].shape = [?,4]"],
                id="data-prefix",
            ),
            pytest.param(
                lambda: DynamicStitch()([ints(), keras.Input(())], [ROWS, ROWS]),
                TypeError,
                ["indices[1] must be of an integer type"],
                id="float-in-list",
            ),
            pytest.param(lambda: DynamicStitch(-1), ValueError, ["size", "-1"], id="size"),
            pytest.param(
                lambda: ScatterNd((7, 2))(ints(1), ROWS),
                ValueError,
                ["updates must have shape", "updates of shape (None, 5, 3)"],
                id="updates-rank",
            ),
            pytest.param(lambda: ScatterNd(7), TypeError, ["shape", "got 7"], id="shape-no-list"),
            pytest.param(lambda: ScatterNd((7, None)), ValueError, ["shape", "None"], id="shape"),
            pytest.param(
                lambda: ScatterNd()(ints(1), ROWS), ValueError, ["shape", "neither"], id="no-shape"
            ),
            pytest.param(
                lambda: tsg.scatter_nd(ints(1), ROWS, ints()),
                ValueError,
                ["the number of dimensions in shape must be known"],
                id="unknown-shape",
            ),
            pytest.param(
                lambda: GatherNd()(keras.Input((4,), sparse=True), [[0]]),
                ValueError,
                ["params must be dense", "sparse"],
                id="sparse",
            ),
        ],
    )
    def test_names_the_argument(self, call, kind, fragments):
        with support.fails(*fragments, kinds=kind) as info:
            call()
        assert "\n" not in str(info.value)

    def test_a_model_survives_a_bad_batch(self):
        """The weights are as they were, and the next good batch trains."""
        table = Table(4, 2)
        model = tower(table)
        model.compile("sgd", "mse")
        good, bad = np.zeros((2, 3), np.int32), np.full((2, 3), 9, np.int32)
        model.fit(good, np.ones((2, 1)), verbose=0)
        before = table.table.numpy()
        with support.fails("indices[0,0] = [9] does not index into param shape [4,2]"):
            model.fit(bad, np.ones((2, 1)), verbose=0)
        equal(table.table.value, before)
        model.fit(good, np.ones((2, 1)), verbose=0)
        assert (table.table.numpy() != before).any()

    def test_another_backend_is_refused(self):
        program = textwrap.dedent("""
            import tf_stitch_gather

            try:
                tf_stitch_gather.keras
            except ImportError as error:
                print(error)
        """)
        said = support.child(program, env={"KERAS_BACKEND": "numpy"})
        # Keras' backend for NumPy loads only where SciPy and JAX are installed.
        assert "needs Keras 3 on TensorFlow" in said
        assert "set KERAS_BACKEND=tensorflow" in said
