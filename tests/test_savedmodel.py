"""SavedModels rewritten on disk, and back; the commands rewrite, compare, bench and info."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tf_stitch_gather as sg
from support import child, close, run_page, same
from tf_stitch_gather import _cli, _console, _savedmodel

ROOT = Path(__file__).resolve().parent.parent

IDS = tf.constant([0, 3, 5, 1, 9])
TRAIN_IDS = tf.constant([1, 2, 2, 5])
IMAGES = tf.reshape(tf.range(24.0), [2, 3, 4])


class Sharded(tf.Module):
    """A model written with the built-in ops: two shards, control flow, functions, a train step."""

    def __init__(self, vocabulary):
        rows = np.arange(20, dtype=np.float32).reshape(5, 4)
        self.shards = [tf.Variable(rows + 100 * k) for k in range(2)]
        self.words = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                vocabulary,
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            ),
            -1,
        )

    def lookup(self, ids):
        places = tf.dynamic_partition(tf.range(tf.size(ids)), ids % 2, 2)
        parts = tf.dynamic_partition(ids // 2, ids % 2, 2)
        rows = [tf.gather_nd(s, part[:, None]) for s, part in zip(self.shards, parts, strict=True)]
        return tf.dynamic_stitch(places, rows)

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 3, 4], tf.float32)]
    )
    def serve(self, ids, images):
        first = tf.zeros([tf.shape(images)[0], 2, 1], tf.int32)
        _, looped = tf.while_loop(
            lambda k, y: k < 3,
            lambda k, y: (k + 1, tf.gather_nd(y, [[1], [0]]) + 1.0),
            [0, images[0, :2]],
        )
        return {
            "rows": self.lookup(ids),
            "embedded": tf.nn.embedding_lookup(self.shards, ids),
            "picked": tf.gather_nd(images, first, batch_dims=1),
            "branch": tf.cond(
                tf.reduce_sum(images) > 0,
                lambda: tf.gather_nd(images, [[0], [0]]),
                lambda: tf.scatter_nd([[0]], images[:1], [2, 3, 4]),
            ),
            "looped": looped,
            "word": self.words.lookup(tf.constant(["b", "z"])),
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def train(self, ids):
        with tf.GradientTape() as tape:
            columns = tf.constant([[[1]], [[2]], [[0]], [[0]], [[3]]])
            picked = tf.gather_nd(self.shards[0] + 0.0, columns, batch_dims=1)
            loss = tf.reduce_sum(self.lookup(ids) ** 2) + tf.reduce_sum(picked)
        for shard, gradient in zip(self.shards, tape.gradient(loss, self.shards), strict=True):
            shard.assign_sub(0.01 * tf.convert_to_tensor(gradient))
        return {"loss": loss}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`source`, written with built-in ops, `ours` of it, and `back` of that."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "words.txt").write_text("a\nb\n")
    model = Sharded(str(folder / "words.txt"))
    signatures = {"serving_default": model.serve, "train": model.train}
    tf.saved_model.save(model, str(folder / "source"), signatures=signatures)
    _savedmodel.rewrite_model(folder / "source", folder / "ours")
    _savedmodel.rewrite_model(folder / "ours", folder / "back", "builtin")
    (folder / "words.txt").unlink()
    return folder


@pytest.fixture(scope="module")
def source(folder):
    return folder / "source"


def ops_of(path):
    """How often each op comes in the graphs of a model."""
    counts: dict[str, int] = {}
    for graph in _savedmodel.read(path).meta_graphs:
        functions = graph.graph_def.library.function
        for nodes in (graph.graph_def.node, *(f.node_def for f in functions)):
            for node in nodes:
                counts[node.op] = counts.get(node.op, 0) + 1
        assert {op for op in counts if op.startswith("My")} <= {
            op.name for op in graph.meta_info_def.stripped_op_list.op
        }
    return counts


def our_ops(path):
    return {op: count for op, count in ops_of(path).items() if op in sg.raw_ops.__all__}


def builtin_ops(path):
    names = ("DynamicStitch", "ParallelDynamicStitch", "GatherNd", "ResourceGatherNd", "ScatterNd")
    return {op: count for op, count in ops_of(path).items() if op in names}


def checksum(path):
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(str(file.relative_to(path)).encode() + file.read_bytes())
    return digest.hexdigest()


def results(model):
    served = model.serve(IDS, IMAGES)
    losses = [model.train(TRAIN_IDS)["loss"] for _ in range(2)]
    return {**served, "losses": tf.stack(losses), "shard": model.shards[1]}


def command(capsys, *arguments):
    """The exit status, the output and the errors of the command."""
    status = _cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return status, out, err


# ---------------------------------------------------------------- results


def test_ours_and_back_give_the_same(folder):
    expected = results(tf.saved_model.load(str(folder / "source")))
    assert len(set(expected["losses"].numpy())) == 2
    for name in ("ours", "back"):
        got = results(tf.saved_model.load(str(folder / name)))
        for output, want in expected.items():
            same(got[output], want.numpy(), f"{name} {output}")


def test_each_node_is_replaced(folder):
    assert our_ops(folder / "source") == {}
    assert builtin_ops(folder / "ours") == {}
    assert our_ops(folder / "ours") == {
        "MyDynamicStitch": 3,
        "MyGatherNd": 4,
        "MyResourceGatherNd": 4,
        "MyScatterNd": 2,
    }
    assert our_ops(folder / "back") == {}
    # What the index grids were made of is gone.
    grids = [
        [
            node.name
            for function in _savedmodel.read(folder / name)
            .meta_graphs[0]
            .graph_def.library.function
            for node in function.node_def
            if "BatchGatherND/meshgrid" in node.name and "serve" in function.signature.name
        ]
        for name in ("source", "ours")
    ]
    assert grids[0]
    assert grids[1] == []


def test_files_are_copied_and_signatures_stay(folder):
    names = [
        {str(p.relative_to(folder / name)) for p in (folder / name).rglob("*") if p.is_file()}
        for name in ("source", "ours", "back")
    ]
    assert names[0] == names[1] == names[2]
    before, after = (_savedmodel.read(folder / n).meta_graphs[0] for n in ("source", "ours"))
    assert before.signature_def == after.signature_def
    assert before.object_graph_def == after.object_graph_def
    assert [n.name for n in before.graph_def.node] == [n.name for n in after.graph_def.node]
    prints = [
        tf.saved_model.experimental.read_fingerprint(str(folder / n)) for n in ("source", "ours")
    ]
    assert prints[0].saved_model_checksum != prints[1].saved_model_checksum
    assert prints[0].signature_def_hash == prints[1].signature_def_hash


def test_back_loads_where_the_library_is_not(folder):
    line = child(
        """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
served = model.serve(tf.constant([0, 3, 5, 1, 9]), tf.reshape(tf.range(24.0), [2, 3, 4]))
losses = [float(model.train(tf.constant([1, 2, 2, 5]))["loss"]) for _ in range(2)]
assert "tf_stitch_gather" not in sys.modules
print(json.dumps([losses, served["rows"].numpy().tolist()]))
""",
        str(folder / "back"),
    )
    expected = results(tf.saved_model.load(str(folder / "source")))
    assert json.loads(line) == [
        expected["losses"].numpy().tolist(),
        expected["rows"].numpy().tolist(),
    ]


# ---------------------------------------------------------------- composites


class Ours(tf.Module):
    """What only our ops have: batch dimensions, sizes, policies, exact and sparse gradients."""

    def __init__(self):
        self.table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3))
        self.batched = tf.Variable(np.arange(24, dtype=np.float32).reshape(2, 4, 3))

    @tf.function(
        input_signature=[tf.TensorSpec([None, None, 4, 5]), tf.TensorSpec([None] * 4, tf.int16)]
    )
    def gather(self, params, indices):
        with tf.GradientTape() as tape:
            tape.watch(params)
            slices = sg.gather_nd(params, indices, batch_dims=2)
            total = tf.reduce_sum(slices**2)
        return {"slices": slices, "gradient": tape.gradient(total, params)}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 3]),
            tf.TensorSpec([None], tf.int64),
            tf.TensorSpec([], tf.int64),
        ]
    )
    def stitch(self, data, indices, size):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(data)
            merged = sg.dynamic_stitch([indices, indices + 2], [data, -data])
            sized = sg.dynamic_stitch([indices, indices], [data, 2 * data], size=size)
            ignored = sg.raw_ops.MyDynamicStitchSized(
                size=size - 4,
                indices=[indices, indices - 1],
                data=[data, data + 1],
                bad_indices_policy="IGNORE",
            )
            squares = [tf.reduce_sum(x**2) for x in (merged, sized, ignored)]
        gradients = [tape.gradient(x, data) for x in squares]
        names = ("merged", "sized", "ignored")
        return {
            **dict(zip(names, (merged, sized, ignored), strict=True)),
            **{f"{n}_gradient": g for n, g in zip(names, gradients, strict=True)},
        }

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.int32)])
    def variables(self, indices):
        with tf.GradientTape(persistent=True) as tape:
            rows = sg.gather_nd(self.table, indices)
            ignored = sg.gather_nd(self.table, indices * 2, bad_indices_policy="IGNORE")
            totals = [tf.reduce_sum(rows**2), tf.reduce_sum(ignored**2)]
        sparse, some = (tape.gradient(total, self.table) for total in totals)
        return {
            "rows": rows,
            "ignored": ignored,
            "indices": sparse.indices,
            "values": sparse.values,
            "some_indices": some.indices,
            "some_values": some.values,
            "batched": sg.gather_nd(self.batched, [[[1]], [[2]]], batch_dims=1),
        }

    @tf.function(input_signature=[tf.TensorSpec([2, 3, 1], tf.int64), tf.TensorSpec([2, 3])])
    def scatter(self, indices, updates):
        sums = sg.raw_ops.MyScatterNd(indices=indices, updates=updates, shape=[2, 4], batch_dims=1)
        return {"sums": sums}


@pytest.fixture(scope="module")
def composites(tmp_path_factory):
    folder = tmp_path_factory.mktemp("composites")
    model = Ours()
    names = ("gather", "stitch", "variables", "scatter")
    signatures = {name: getattr(model, name) for name in names}
    tf.saved_model.save(model, str(folder / "source"), signatures=signatures)
    for to in ("builtin", "tflite"):
        _savedmodel.rewrite_model(folder / "source", folder / to, to)
        assert our_ops(folder / to) == {}
    assert "DynamicStitch" not in builtin_ops(folder / "tflite")
    random = np.random.default_rng(7)
    arguments = {
        "gather": (
            tf.constant(random.standard_normal([2, 3, 4, 5]), tf.float32),
            tf.constant(random.integers(0, 4, [2, 3, 6, 2]), tf.int16),
        ),
        "stitch": (
            tf.constant(random.standard_normal([6, 3]), tf.float32),
            tf.constant([0, 2, 5, 2, 0, 7], tf.int64),
            tf.constant(9, tf.int64),
        ),
        "variables": (tf.constant([[1], [3], [1]]),),
        "scatter": (tf.constant([[[1], [0], [1]], [[3], [3], [3]]], tf.int64), tf.ones([2, 3])),
    }
    return folder, model, arguments


@pytest.mark.parametrize("to", ["builtin", "tflite"])
def test_composites_give_the_same(composites, to):
    folder, model, arguments = composites
    loaded = tf.saved_model.load(str(folder / to))
    for name, args in arguments.items():
        expected, got = getattr(model, name)(*args), getattr(loaded, name)(*args)
        assert got.keys() == expected.keys()
        for output, want in expected.items():
            close(got[output], want, note=f"{name} {output}")
    with pytest.raises(tf.errors.InvalidArgumentError):
        data, _, size = arguments["stitch"]
        loaded.stitch(data, tf.constant([0, 2, 5, 2, 0, 17], tf.int64), size)


def test_composites_can_be_differentiated(composites):
    folder, model, arguments = composites
    loaded = tf.saved_model.load(str(folder / "builtin"))
    data, indices, size = arguments["stitch"]
    gradients = []
    for side in (model, loaded):
        with tf.GradientTape() as tape:
            tape.watch(data)
            total = tf.reduce_sum(side.stitch(data, indices, size)["sized_gradient"] ** 2)
        gradients.append(tape.gradient(total, data))
    close(gradients[1], gradients[0].numpy())


def test_tensorflow_lite_takes_it_with_its_own_ops_alone(composites):
    folder, model, arguments = composites
    for name, inputs in (("stitch", ("data", "indices", "size")), ("variables", ("indices",))):
        converter = tf.lite.TFLiteConverter.from_saved_model(
            str(folder / "tflite"), signature_keys=[name]
        )
        interpreter = tf.lite.Interpreter(model_content=converter.convert())
        values = (value.numpy() for value in arguments[name])
        got = interpreter.get_signature_runner(name)(**dict(zip(inputs, values, strict=True)))
        for output, want in getattr(model, name)(*arguments[name]).items():
            close(got[output], want, note=output)


def test_in_a_loop_of_tensorflow_1(tmp_path):
    """The nodes that take a node's place belong to the frame of the loop."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.disable_control_flow_v2()
        try:
            x = tf.compat.v1.placeholder(tf.float32, [2, 3], "x")
            _, y = tf.compat.v1.while_loop(
                lambda k, y: k < 3,
                lambda k, y: (
                    k + 1,
                    sg.gather_nd(y, [[[1], [0], [2]], [[0], [0], [1]]], batch_dims=1)
                    + sg.dynamic_stitch([[1], [0]], [y[:1], y[1:]], size=2),
                ),
                [0, x],
            )
        finally:
            tf.compat.v1.enable_control_flow_v2()
        start = np.arange(6, dtype=np.float32).reshape(2, 3)
        expected = session.run(y, {x: start})
        tf.compat.v1.saved_model.simple_save(session, str(tmp_path / "ours"), {"x": x}, {"y": y})
    assert {"MyGatherNd", "MyDynamicStitchSized"} == our_ops(tmp_path / "ours").keys()
    _savedmodel.rewrite_model(tmp_path / "ours", tmp_path / "builtin", "builtin")
    assert our_ops(tmp_path / "builtin") == {}
    call = tf.saved_model.load(str(tmp_path / "builtin")).signatures["serving_default"]
    same(call(x=tf.constant(start))["y"], expected)


def test_a_type_that_no_builtin_op_takes_is_named(tmp_path, capsys):
    model = tf.Module()
    kind = tf.dtypes.experimental.float8_e5m2
    model.merge = tf.function(
        lambda data: sg.dynamic_stitch([[0, 1]], [data]), input_signature=[tf.TensorSpec([2], kind)]
    )
    tf.saved_model.save(model, str(tmp_path / "model"), signatures=model.merge)
    status, _, err = command(
        capsys, "rewrite", tmp_path / "model", tmp_path / "new", "--to", "builtin"
    )
    assert status == 1
    assert err.count("\n") == 1
    assert "no built-in ops stand in for MyDynamicStitch of function" in err
    assert not (tmp_path / "new").exists()


# ---------------------------------------------------------------- the commands


def test_rewrite_names_what_it_does(source, tmp_path, capsys):
    status, out, err = command(capsys, "rewrite", source, tmp_path / "new", "--verbose")
    assert (status, err) == (0, "")
    assert "replaced GatherNd while/GatherNd of function while_body" in out
    assert "collapsed MyGatherNd BatchGatherND/GatherNd of function __inference_serve" in out
    assert "ScatterNd: 2 replaced\n" in out
    status, out, err = command(capsys, "rewrite", source, tmp_path / "new")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "exists: name another folder, or use --force" in err
    (tmp_path / "new" / "mark").touch()
    status, out, err = command(capsys, "rewrite", source, tmp_path / "new", "--force")
    assert (status, err) == (0, "")
    assert not (tmp_path / "new" / "mark").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["new"]


def test_skipped_nodes_are_named_with_their_reason(tmp_path, capsys):
    model = tf.Module()
    inner = tf.function(lambda x: tf.gather_nd(x, [[1]]), jit_compile=True)
    model.call = tf.function(lambda x: inner(x), input_signature=[tf.TensorSpec([2])])
    tf.saved_model.save(model, str(tmp_path / "model"), signatures=model.call)
    _, out, _ = command(capsys, "rewrite", tmp_path / "model", tmp_path / "new", "--verbose")
    if not sg.rewrite.xla_knows_our_ops():
        assert "skipped GatherNd GatherNd of function __inference_" in out
        assert ": XLA compiles it, and does not know our ops\n" in out
        assert "GatherNd: 1 left as they are (--verbose says why)\n" in out


def test_compare(source, tmp_path, capsys):
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, ids=IDS.numpy(), images=IMAGES.numpy())
    before = checksum(source)
    status, out, err = command(capsys, "compare", source, "--inputs", inputs, "--seconds", "0.1")
    assert (status, err) == (0, "")
    assert "embedded  float32 5x4" in out
    assert "time of a call: built-in" in out
    assert checksum(source) == before
    status, out, _ = command(
        capsys, "compare", source, "--signature", "train", "--seconds", "0.1", "--batch", "3"
    )
    assert status == 0
    assert "loss" in out


def test_compare_finds_a_difference(tmp_path, capsys):
    """1,000 ones in bfloat16 are 256 for the built-in op."""
    model = tf.Module()
    model.call = tf.function(
        lambda n: {
            "sum": tf.scatter_nd(
                tf.zeros([1000, 1], tf.int32), tf.ones([1000], tf.bfloat16) + n, [1]
            )
        },
        input_signature=[tf.TensorSpec([], tf.bfloat16)],
    )
    tf.saved_model.save(model, str(tmp_path / "model"), signatures=model.call)
    np.savez(tmp_path / "zero.npz", n=np.float32(0))
    status, out, err = command(
        capsys,
        *("compare", tmp_path / "model", "--inputs", tmp_path / "zero.npz", "--seconds", "0.1"),
    )
    assert (status, err) == (1, "")
    assert "744" in out


def test_info_and_bench(capsys):
    status, out, _ = command(capsys, "info")
    info = json.loads(out)
    assert status == 0
    assert info["here"]["ops"] == sg.raw_ops.__all__
    assert sg.build_info().items() <= info.items()
    status, out, _ = command(capsys, "bench", "--seconds", "0.1")
    assert status == 0
    assert out.splitlines()[0].split() == [
        *("case", "results", "built-in", "ms", "here", "ms", "ratio")
    ]
    assert len(out.splitlines()) == 5


@pytest.mark.parametrize("rich", [True, False], ids=["rich", "plain"])
def test_tables_and_progress_on_a_terminal(rich, monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(_console, "HAS_RICH", rich)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with _console.progress("rewrite") as progress:
        progress(1, 3, "writing variables")
    _console.table(["output", "type", "largest difference"], [["rows", "float32 2x2", "0"]])
    out, err = capsys.readouterr()
    assert "float32 2x2" in out
    assert rich or "rewrite: writing variables (1/3)" in err


# ---------------------------------------------------------------- bad input


def damaged(tmp_path, source):
    (tmp_path / "model").mkdir()
    data = (source / "saved_model.pb").read_bytes()
    (tmp_path / "model" / "saved_model.pb").write_bytes(data[: len(data) // 2])
    return "cannot be read: it is damaged"


def no_model(tmp_path, source):
    (tmp_path / "model").mkdir()
    return "is no SavedModel: it holds no saved_model.pb"


def no_folder(tmp_path, source):
    return "there is no folder"


def a_file(tmp_path, source):
    (tmp_path / "model").write_text("saved_model.pb")
    return "there is no folder"


def empty(tmp_path, source):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").touch()
    return "it holds no graph"


def in_chunks(tmp_path, source):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.cpb").touch()
    return "is split into chunks"


def lost_node(tmp_path, source):
    model = _savedmodel.read(source)
    functions = model.meta_graphs[0].graph_def.library.function
    nodes = next(f.node_def for f in functions if "train" in f.signature.name and f.node_def)
    del nodes[0]
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").write_bytes(model.SerializeToString())
    return "the graph is broken: function __inference_"


@pytest.mark.parametrize(
    "make",
    [damaged, no_model, no_folder, a_file, empty, in_chunks, lost_node],
    ids=lambda make: make.__name__,
)
def test_a_model_that_cannot_be_read(make, tmp_path, source, capsys):
    message = make(tmp_path, source)
    before = {p.name for p in tmp_path.iterdir()}
    for arguments in (
        ("rewrite", tmp_path / "model", tmp_path / "new"),
        ("compare", tmp_path / "model"),
    ):
        status, out, err = command(capsys, *arguments)
        assert (status, out, err.count("\n")) == (1, "", 1), err
        assert err.startswith("tf-stitch-gather: error: ")
        assert message in err
    assert {p.name for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("destination", "message"),
    [
        ("source", "is the model itself or lies in it"),
        ("source/inside", "is the model itself or lies in it"),
        (".", "holds the model"),
        ("nowhere/new", "there is no folder"),
    ],
    ids=["itself", "inside", "around", "no-parent"],
)
def test_a_bad_destination(destination, message, folder, capsys):
    before = checksum(folder)
    status, _, err = command(capsys, "rewrite", folder / "source", folder / destination, "--force")
    assert (status, err.count("\n")) == (1, 1)
    assert message in err
    assert checksum(folder) == before


def test_bad_inputs_of_compare(source, tmp_path, capsys):
    np.savez(tmp_path / "few.npz", ids=IDS.numpy())
    np.savez(tmp_path / "wrong.npz", ids=IDS.numpy(), images=np.zeros([2, 2]))
    np.savez(tmp_path / "out.npz", ids=np.array([999]), images=IMAGES.numpy())
    (tmp_path / "text.npz").write_text("no arrays")
    for name, message in (
        ("few.npz", "the file of inputs lacks images"),
        ("wrong.npz", "the input images has the shape (2, 2), not (None, 3, 4)"),
        ("text.npz", "it is no .npz file of plain arrays"),
        ("none.npz", "No such file or directory"),
        ("out.npz", "the call fails: "),
    ):
        status, out, err = command(capsys, "compare", source, "--inputs", tmp_path / name)
        assert (status, out, err.count("\n")) == (1, "", 1), err
        assert message in err
    status, _, err = command(capsys, "compare", source, "--signature", "predict")
    assert (status, err.count("\n")) == (1, 1)
    assert "no signature 'predict': name one of " in err


WRITER = """
import os, resource, signal, sys
from pathlib import Path
from tf_stitch_gather import _cli, _savedmodel

source, destination = Path(sys.argv[1]), Path(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))
status = _cli.main(["rewrite", str(source), str(destination), "--force"])
resource.setrlimit(resource.RLIMIT_FSIZE, limit)
assert status == 1
assert sorted(os.listdir(destination.parent)) == ["old"]
assert (destination / "kept").exists()

def kill(done, total, step):
    if step.startswith("writing"):
        os.kill(os.getpid(), signal.SIGKILL)

print("written so far", flush=True)
_savedmodel.rewrite_model(source, destination.parent / "new", progress=kill)
"""


def test_nothing_half_written_on_a_full_disk_or_when_killed(source, tmp_path):
    """A limit on the size of files stands in for the full disk: both fail inside write()."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "kept").touch()
    package = Path(sg.__file__).resolve().parent.parent
    before = checksum(source)
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(source), str(tmp_path / "old")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(package)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout == "written so far\n"
    assert "old cannot be written: File too large" in done.stderr
    assert done.stderr.count("tf-stitch-gather: error: ") == 1
    assert not (tmp_path / "new").exists()
    assert checksum(source) == before


# ---------------------------------------------------------------- pages


def test_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "docs" / "savedmodel.md")
    assert our_ops(Path("ranker-fast")) == {"MyDynamicStitch": 1, "MyResourceGatherNd": 1}
    assert builtin_ops(Path("ranker-plain")) == {"DynamicStitch": 1, "ResourceGatherNd": 1}
    assert builtin_ops(Path("ranker-lite")) == {"GatherNd": 1}


def test_the_first_example_of_the_readme(source, tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text("utf-8")
    lines = re.findall(r"^tf-stitch-gather (.+?)(?: +#.*)?$", text.split("## ")[1], re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["rewrite", "compare"]
    monkeypatch.chdir(tmp_path)
    shutil.copytree(source, lines[0].split()[1])
    for line in lines:
        assert _cli.main(line.split()) == 0
