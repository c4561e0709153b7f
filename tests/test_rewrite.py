"""The graph pass that puts our ops into graphs written with the built-in ones, and drop_in."""

from __future__ import annotations

import concurrent.futures
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tf_stitch_gather as sg
from support import child, fails, run_page, same
from tensorflow.core.framework import graph_pb2
from tf_stitch_gather import _native, rewrite

SHARDS = [np.arange(8, dtype=np.float32).reshape(4, 2) + 10 * k for k in range(3)]


@pytest.fixture(autouse=True)
def fresh_stats():
    rewrite.reset_stats()


def specs(args, static):
    """Input signatures of these arguments: with their shapes, or with their ranks alone."""
    return [
        tf.TensorSpec(a.shape if static else [None] * a.shape.rank, a.dtype)
        for a in map(tf.convert_to_tensor, args)
    ]


def run_both(fn, args, static=True):
    """The results of a `tf.function` without and with the pass, each flat."""
    results = []
    for with_pass in (False, True):
        function = tf.function(fn, input_signature=specs(args, static), autograph=False)
        if with_pass:
            with rewrite.enabled():
                results.append(tf.nest.flatten(function(*args)))
        else:
            results.append(tf.nest.flatten(function(*args)))
    return results


def check(fn, args, replaced, collapsed=None, static=True):
    expected, got = run_both(fn, args, static)
    for want, value in zip(expected, got, strict=True):
        same(value, want)
    stats = rewrite.stats()
    # The shape functions of gradients put stitches in, too.
    assert replaced.items() <= stats.replaced.items()
    assert stats.collapsed == (collapsed or {})
    assert stats.skipped == {}


def train(lookup):
    """The value and the gradient of a lookup in its first argument."""

    def step(params, indices):
        with tf.GradientTape() as tape:
            tape.watch(params)
            loss = tf.reduce_sum(lookup(params, indices) ** 2)
        return loss, tape.gradient(loss, params)

    return step


VECTOR = tf.constant([1.0, 2.0])
FLIP = [[1], [0]]

CASES = {
    "gather_nd": (
        lambda p, i: tf.gather_nd(p, i),
        (tf.reshape(tf.range(6.0), [2, 3]), tf.constant([[1, 2], [0, 0]])),
        {"GatherNd": 1},
    ),
    "gather_nd-ignore": (
        lambda p, i: tf.gather_nd(p, i, bad_indices_policy="IGNORE"),
        (VECTOR, tf.constant([[1], [7]], tf.int64)),
        {"GatherNd": 1},
    ),
    "scatter_nd": (
        lambda i, u: tf.scatter_nd(i, u, [5]),
        (tf.constant([[1], [1], [4]]), tf.constant([1.0, 2.0, 3.0])),
        {"ScatterNd": 1},
    ),
    "scatter_nd-string": (
        lambda i, u: tf.scatter_nd(i, u, [3]),
        (tf.constant([[1], [1]]), tf.constant(["a", "b"])),
        {"ScatterNd": 1},
    ),
    "dynamic_stitch": (
        lambda x: tf.dynamic_stitch([[0, 2], [1, 1]], [x, x + 1]),
        (VECTOR,),
        {"DynamicStitch": 1},
    ),
    "parallel_dynamic_stitch": (
        lambda x: tf.raw_ops.ParallelDynamicStitch(indices=[[0, 2], [1, 3]], data=[x, x + 1]),
        (VECTOR,),
        {"ParallelDynamicStitch": 1},
    ),
    "cond": (
        lambda x: tf.cond(
            x[0] > 0, lambda: tf.gather_nd(x, FLIP), lambda: tf.scatter_nd(FLIP, x, [2])
        ),
        (VECTOR,),
        {"GatherNd": 1, "ScatterNd": 1},
    ),
    "while": (
        lambda x: tf.while_loop(
            lambda k, y: k < 3, lambda k, y: (k + 1, tf.gather_nd(y, FLIP) + 1.0), [0, x]
        ),
        (VECTOR,),
        {"GatherNd": 1},
    ),
    "nested_function": (
        lambda x: tf.function(lambda y: tf.gather_nd(y, FLIP), autograph=False)(x),
        (VECTOR,),
        {"GatherNd": 1},
    ),
    "map_fn": (lambda x: tf.map_fn(lambda y: tf.gather_nd(x, [[0]]) + y, x), (VECTOR,), {}),
    "gradient": (
        train(lambda p, i: tf.gather_nd(p, i)),
        (tf.reshape(tf.range(6.0), [2, 3]), tf.constant([[1, 2], [1, 2]])),
        {"GatherNd": 1, "ScatterNd": 1},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_same_results(case):
    fn, args, replaced = CASES[case]
    check(fn, args, replaced)


GRIDS = {
    "1": ((2, 3, 4), (2, 3, 1), 1, tf.int32),
    "1-vector": ((2, 3), (2, 1), 1, tf.int64),
    "1-depth2": ((2, 3, 4), (2, 5, 2), 1, tf.int64),
    "2": ((2, 3, 4, 5), (2, 3, 6, 2), 2, tf.int32),
    "2-wide": ((2, 3, 4, 5), (2, 3, 2, 2, 1), 2, tf.int64),
    "3": ((2, 1, 3, 4), (2, 1, 3, 1), 3, tf.int32),
}


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("case", GRIDS)
def test_index_grid_is_collapsed(case, static, rng):
    params_shape, indices_shape, batch_dims, dtype = GRIDS[case]
    params = tf.constant(rng.standard_normal(params_shape), tf.float32)
    depth = indices_shape[-1]
    limit = min(params_shape[batch_dims : batch_dims + depth])
    indices = tf.constant(rng.integers(0, limit, indices_shape), dtype)
    check(
        train(lambda p, i: tf.gather_nd(p, i, batch_dims=batch_dims)),
        (params, indices),
        {"GatherNd": 1, "ScatterNd": 1},
        {"MyGatherNd": 1, "MyScatterNd": 1},
        static,
    )


def test_index_grid_in_a_loop():
    """The nodes that are added belong to the frame of the loop."""
    params = tf.reshape(tf.range(24.0), [2, 3, 4])
    indices = tf.constant([[[1], [0], [2]], [[3], [3], [0]]])

    def loop(p, i):
        return tf.while_loop(
            lambda k, x: k < 2,
            lambda k, x: (
                k + 1,
                tf.ensure_shape(
                    x + tf.expand_dims(tf.gather_nd(x, i, batch_dims=2), -1), [None] * 3
                ),
            ),
            [0, p],
        )

    check(loop, (params, indices), {"GatherNd": 1}, {"MyGatherNd": 1}, static=False)


def test_index_grid_that_pairs_other_rows_is_kept():
    """What the built-in op gives for batch shapes that disagree stays as it is."""
    params, indices = tf.reshape(tf.range(12.0), [2, 3, 2]), tf.ones([3, 2, 1], tf.int32)
    check(
        lambda p, i: tf.gather_nd(p, i, batch_dims=2),
        (params, indices),
        {"GatherNd": 1},
        {"MyGatherNd": 1},
        static=False,
    )


def with_columns(*columns):
    """Lookups behind what looks like an index grid, made by hand."""
    return lambda p, i: tf.gather_nd(p, tf.concat([tf.stack(columns, -1), i], -1))


NO_GRIDS = {
    "another_order": with_columns([1, 0]),
    "not_all_rows": with_columns([0, 1]),
    "not_from_zero": with_columns([1, 2]),
    "repeated": with_columns([0, 0]),
    "range_of_another": lambda p, i: tf.gather_nd(
        p, tf.concat([tf.transpose([tf.range(tf.shape(i)[0])]), i], -1)
    ),
}


@pytest.mark.parametrize("case", NO_GRIDS)
def test_other_indices_are_no_grid(case):
    params, indices = tf.reshape(tf.range(12.0), [3, 4]), tf.constant([[2], [3]])
    for static in (True, False):
        check(NO_GRIDS[case], (params, indices), {"GatherNd": 1}, static=static)
        rewrite.reset_stats()


def test_embedding_lookup_over_shards_and_lookup_in_a_variable():
    shards = [tf.Variable(shard) for shard in SHARDS]
    check(
        lambda ids: (
            tf.nn.embedding_lookup(shards, ids),
            tf.gather_nd(shards[0], ids[:2, None] % 4),
        ),
        (tf.constant([0, 5, 3, 7, 11]),),
        {"ParallelDynamicStitch": 1, "ResourceGatherNd": 1},
    )


def test_a_dataset_inside_a_function():
    def total(x):
        rows = tf.data.Dataset.from_tensor_slices(x).map(lambda row: tf.gather_nd(row, FLIP))
        return rows.reduce(tf.zeros([2]), lambda a, b: a + b)

    check(total, (tf.constant([[1.0, 2.0], [3.0, 4.0]]),), {"GatherNd": 1})


def test_a_bad_index_is_still_an_error():
    lookup = tf.function(lambda p, i: tf.gather_nd(p, i))
    with rewrite.enabled(), fails("indices[1] = [2] does not index into param shape [2]"):
        lookup(VECTOR, [[0], [2]])
    assert rewrite.stats().replaced == {"GatherNd": 1}


def test_what_xla_compiles_is_left():
    inner = tf.function(lambda x: tf.gather_nd(x, FLIP), jit_compile=True, autograph=False)
    expected, got = run_both(lambda x: inner(x) + tf.gather_nd(x, [[0], [0]]), (VECTOR,))
    same(got[0], expected[0])
    stats = rewrite.stats()
    if not rewrite.xla_knows_our_ops():
        assert stats.replaced == {"GatherNd": 1}
        assert stats.skipped == {("GatherNd", "XLA compiles it, and does not know our ops"): 1}


def test_enable_disable_and_what_was_set_before():
    before = tf.config.optimizer.get_experimental_options()

    def lookups():
        tf.function(lambda x: tf.gather_nd(x, FLIP), autograph=False)(VECTOR)
        return sum(rewrite.stats().replaced.values())

    assert lookups() == 0
    rewrite.enable()
    try:
        assert lookups() == 1
        tf.config.optimizer.set_jit(False)  # Makes the options anew.
        assert lookups() == 2
        with rewrite.enabled():
            assert lookups() == 3
        assert lookups() == 4
    finally:
        rewrite.disable()
    assert lookups() == 4
    rewrite.disable()
    assert tf.config.optimizer.get_experimental_options() == before


def test_a_new_thread_uses_the_pass():
    lookup = tf.function(lambda x: tf.gather_nd(x, FLIP), autograph=False)
    with rewrite.enabled(), concurrent.futures.ThreadPoolExecutor(1) as pool:
        same(pool.submit(lookup, VECTOR).result(), np.array([2, 1], np.float32))
    assert rewrite.stats().replaced == {"GatherNd": 1}


def test_keras_fit_and_predict():
    import keras

    class Lookup(keras.layers.Layer):
        def build(self, shape):
            self.table = self.add_weight(shape=(5, 2), initializer="ones")

        def call(self, ids):
            return tf.gather_nd(self.table + 0.0, tf.cast(ids, tf.int32)[..., None])

    def trained():
        keras.utils.set_random_seed(1)
        model = keras.Sequential([Lookup()])
        model.compile("sgd", "mse")
        ids = np.array([[0, 1], [3, 3]])
        model.fit(ids, np.zeros([2, 2, 2], np.float32), epochs=2, verbose=0)
        return model.predict(ids, verbose=0)

    expected = trained()
    assert rewrite.stats().replaced == {}
    with rewrite.enabled():
        same(trained(), expected)
    assert rewrite.stats().replaced["GatherNd"] >= 2
    assert rewrite.stats().replaced["ScatterNd"] >= 1


def test_session_keeps_names_devices_and_control_edges():
    with tf.Graph().as_default() as graph, tf.device("/CPU:0"):
        x = tf.compat.v1.placeholder(tf.float32, [2], "x")
        flip = tf.constant(FLIP)
        counter = tf.compat.v1.get_variable("counter", [], tf.int32, use_resource=True)
        with tf.control_dependencies([counter.assign_add(1)]):
            rows = tf.gather_nd(x, flip, name="rows")
        table = tf.compat.v1.get_variable("table", initializer=[7.0, 8.0], use_resource=False)
        looked_up = tf.gather_nd(table, flip)
        total = tf.add(rows, tf.scatter_nd(FLIP, x, [2], name="sums"), name="total")
        config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
        config.experimental.executor_type = ""
        with tf.compat.v1.Session(config=rewrite.session_config(config)) as session:
            session.run([counter.initializer, table.initializer])
            run_options = tf.compat.v1.RunOptions(output_partition_graphs=True)
            metadata = tf.compat.v1.RunMetadata()
            values = session.run(
                [total, "rows:0"], {x: [1.0, 2.0]}, options=run_options, run_metadata=metadata
            )
            assert session.run(counter) == 1
            assert session.run(looked_up).tolist() == [8.0, 7.0]
            # A value that is fed takes the place of what the node would give.
            assert session.run(total, {x: [0.0, 0.0], rows: [5.0, 6.0]}).tolist() == [5.0, 6.0]
        assert not config.graph_options.rewrite_options.custom_optimizers
    assert [v.tolist() for v in values] == [[4.0, 2.0], [2.0, 1.0]]
    nodes = {n.name: n for part in metadata.partition_graphs for n in part.node}
    assert nodes["rows"].op == "MyGatherNd"
    assert nodes["sums"].op == "MyScatterNd"
    assert nodes["rows"].device.endswith("CPU:0")
    assert any(source.startswith("^") for source in nodes["rows"].input)
    assert graph.get_operation_by_name("rows").type == "GatherNd"


def test_a_cluster_of_one_server():
    """In a process of its own: TensorFlow cannot stop a server, nor its hundred threads."""
    code = """
import tensorflow as tf
from tf_stitch_gather import rewrite

server = tf.distribute.Server(
    tf.train.ClusterSpec({"local": ["localhost:0"]}),
    config=rewrite.session_config(),
    start=True,
)
with tf.Graph().as_default():
    x = tf.compat.v1.placeholder(tf.int32, [3])
    rows = tf.gather_nd(x, [[2], [0]])
    with tf.compat.v1.Session(server.target, config=rewrite.session_config()) as session:
        values = session.run(rows, {x: [10, 20, 30]}).tolist()
print(values, rewrite.stats().replaced, flush=True)
"""
    assert child(code) == "[30, 10] {'GatherNd': 1}"


# ---------------------------------------------------------------- the rewriting itself


def graph_of(*nodes):
    graph = graph_pb2.GraphDef()
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    for name, op, inputs, types in nodes:
        node = graph.node.add(name=name, op=op, input=inputs)
        for attr, dtype in types.items():
            node.attr[attr].type = dtype.as_datatype_enum
    return graph


def rewritten(graph, to_builtin=False, xla=False):
    data, outcomes = _native.rewrite_graph(graph.SerializeToString(), to_builtin, xla)
    return graph_pb2.GraphDef.FromString(data), outcomes


PLACEHOLDERS = (
    ("p", "Placeholder", [], {"dtype": tf.float32}),
    ("i", "Placeholder", [], {"dtype": tf.int32}),
)
TYPES = {"Tparams": tf.float32, "Tindices": tf.int32}


def gather_node(**changes):
    graph = graph_of(*PLACEHOLDERS, ("g", "GatherNd", ["p", "i", "^p"], TYPES))
    node = graph.node[2]
    node.device = changes.pop("device", "")
    for name, value in changes.items():
        node.attr[name].CopyFrom(value)
    return graph


def attr(**value):
    return tf.compat.v1.AttrValue(**value)


SKIPPED = {
    "unknown_attribute": (gather_node(mode=attr(s=b"fast")), "the attribute mode is unknown"),
    "reference": (
        gather_node(Tparams=attr(type=tf.float32._as_ref.as_datatype_enum)),
        "must not have reference type",
    ),
    "wrong_type": (gather_node(Tindices=attr(type=tf.uint8.as_datatype_enum)), "Tindices"),
    "tpu": (gather_node(_tpu_replicate=attr(s=b"cluster")), "it runs on a TPU"),
    "xla": (gather_node(_XlaMustCompile=attr(b=True)), "XLA compiles it"),
    "inputs": (graph_of(*PLACEHOLDERS, ("g", "GatherNd", ["p"], TYPES)), "inputs"),
}


@pytest.mark.parametrize("case", SKIPPED)
def test_skipped_with_a_reason(case):
    graph, reason = SKIPPED[case]
    after, outcomes = rewritten(graph)
    assert after == graph
    ((kind, function, node, op, why),) = outcomes
    assert (kind, function, node, op) == ("skipped", "", "g", "GatherNd")
    assert reason in why


def test_a_gpu_without_our_kernel_is_not_moved_to():
    graph = gather_node(device="/device:GPU:0")
    _, ((kind, *_, why),) = rewritten(graph)
    if sg.build_info()["cuda"] is None:
        assert (kind, why) == ("skipped", "MyGatherNd has no kernel for its type on GPU")
    else:
        assert kind == "replaced"


def test_what_stays_and_what_is_added():
    graph = gather_node(device="/CPU:0", _class=attr(s=b"x"), bad_indices_policy=attr(s=b"IGNORE"))
    after, ((kind, *_),) = rewritten(graph)
    assert kind == "replaced"
    node, before = after.node[2], graph.node[2]
    assert node.op == "MyGatherNd"
    assert (node.name, list(node.input), node.device) == ("g", ["p", "i", "^p"], "/CPU:0")
    assert before.attr.items() <= node.attr.items()
    assert node.attr["batch_dims"].i == 0
    back, ((kind, *_),) = rewritten(after, to_builtin=True)
    assert kind == "replaced"
    assert back == graph


def test_every_pair_of_ops_agrees():
    """Inputs and outputs have the same names and order, so that a node fits as it is."""
    from tensorflow.python.framework import op_def_registry

    for builtin, ours in {
        "DynamicStitch": "MyDynamicStitch",
        "ParallelDynamicStitch": "MyDynamicStitch",
        "GatherNd": "MyGatherNd",
        "ResourceGatherNd": "MyResourceGatherNd",
        "ScatterNd": "MyScatterNd",
    }.items():
        a, b = op_def_registry.get(builtin), op_def_registry.get(ours)
        for kind in ("input_arg", "output_arg"):
            assert [x.name for x in getattr(a, kind)] == [x.name for x in getattr(b, kind)]
        assert {x.name for x in a.attr} <= {x.name for x in b.attr}


def test_broken_graphs_do_no_harm():
    with pytest.raises(ValueError, match="cannot be read"):
        _native.rewrite_graph(b"\xff" * 50, False, False)
    rings = graph_of(
        ("a", "Identity", ["b"], {"T": tf.int32}),
        ("b", "Identity", ["a"], {"T": tf.int32}),
        ("s", "Sub", ["s", "s"], {"T": tf.int32}),
        ("c", "ConcatV2", ["a", "s", "s"], {"T": tf.int32, "Tidx": tf.int32}),
        ("p", "Placeholder", [], {"dtype": tf.float32}),
        ("g", "GatherNd", ["p", "c"], TYPES),
        ("h", "GatherNd", ["nobody:7", "c:x"], TYPES),
        ("", "GatherNd", ["", ""], TYPES),
    )
    rings.node[3].attr["N"].i = 2
    after, outcomes = rewritten(rings)
    assert len(after.node) == len(rings.node)
    assert {kind for kind, *_ in outcomes} <= {"replaced", "skipped"}


def test_random_bytes_of_a_graph_do_no_harm(rng):
    """Bytes of a real graph, changed: an error or a graph, never the end of the process."""
    function = tf.function(
        lambda p, i: tf.gather_nd(p, i, batch_dims=2),
        input_signature=[tf.TensorSpec([None] * 4), tf.TensorSpec([None] * 4, tf.int32)],
    ).get_concrete_function()
    data = np.frombuffer(function.graph.as_graph_def().SerializeToString(), np.uint8)
    for _ in range(200):
        changed = data.copy()
        at = rng.integers(0, len(data), 3)
        changed[at] = rng.integers(0, 256, 3)
        try:
            _native.rewrite_graph(changed.tobytes(), bool(rng.integers(2)), False)
        except ValueError as error:
            assert "cannot be read" in str(error)


# ---------------------------------------------------------------- drop_in


def op_types(fn):
    graph = tf.function(fn, autograph=False).get_concrete_function().graph
    return {op.type for op in graph.get_operations()}


def test_drop_in_under_every_public_name():
    params = [[1, 2], [3, 4]]
    programs = {
        "MyGatherNd": [
            lambda: tf.gather_nd(params, [[1], [0]], 1),
            lambda: tf.compat.v1.gather_nd(params, [[1]], "name", 0),
            lambda: tf.compat.v1.manip.gather_nd(params, [[1]]),
            lambda: tf.compat.v2.gather_nd(params, [[1]], bad_indices_policy="IGNORE"),
        ],
        "MyScatterNd": [
            lambda: tf.scatter_nd([[1]], [1], [2]),
            lambda: tf.compat.v1.manip.scatter_nd([[1]], [1], [2], "name"),
        ],
        "MyDynamicStitch": [
            lambda: tf.dynamic_stitch([[0]], [[1]], "name"),
            lambda: tf.compat.v1.dynamic_stitch([[0]], [[1]]),
        ],
    }
    originals = (tf.gather_nd, tf.compat.v1.gather_nd, tf.scatter_nd, tf.dynamic_stitch)
    with sg.drop_in():
        for op, functions in programs.items():
            for function in functions:
                assert op in op_types(function)
        with sg.drop_in():
            assert "MyScatterNd" in op_types(programs["MyScatterNd"][0])
        assert "MyScatterNd" in op_types(programs["MyScatterNd"][0])
        ragged = tf.ragged.constant([[1, 2], [3]])
        same(tf.gather_nd(ragged, [[1]]).to_tensor(), np.array([[3]], np.int32))
        same(sg.gather_nd(ragged, [[1]]).to_tensor(), np.array([[3]], np.int32))
        mapped = tf.data.Dataset.from_tensors([1, 2]).map(lambda x: tf.gather_nd(x, FLIP))
        same(next(iter(mapped)), np.array([2, 1], np.int32))
    assert (
        tf.gather_nd,
        tf.compat.v1.gather_nd,
        tf.scatter_nd,
        tf.dynamic_stitch,
    ) == originals
    assert "GatherNd" in op_types(programs["MyGatherNd"][1])
    undone = sg.drop_in()
    undone.undo()
    undone.undo()
    assert tf.gather_nd is originals[0]


def test_the_library_of_another_path_is_refused(tmp_path):
    """A second copy of the library would end the process."""
    line = child(
        "import shutil, sys, importlib.util, pathlib\n"
        "import tensorflow as tf\n"
        "package = pathlib.Path(importlib.util.find_spec('tf_stitch_gather').origin).parent\n"
        "copy = shutil.copy(package / 'libtf_stitch_gather.so', sys.argv[1])\n"
        "tf.load_op_library(copy)\n"
        "import tf_stitch_gather as sg\n"
        "try:\n"
        "    sg.rewrite.stats()\n"
        "except ImportError as error:\n"
        "    print(error)\n",
        str(tmp_path / "copy.so"),
    )
    assert "loaded from another file" in line


def test_the_page(capsys):
    page = Path(__file__).resolve().parent.parent / "docs" / "drop-in.md"
    rewrite.reset_stats()
    run_page(page)
    assert capsys.readouterr().out.strip() in page.read_text("utf-8")
