"""Inputs that no one would mean: each comes to an end at once, in a result or an exception.

After the classes of faults that were published for the gathers, scatters, stitches and partitions
of TensorFlow: sizes and products that overflow, empty inputs, types and handles of another kind,
graphs and saved models that no client wrote, memory that is not there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.eager import context
from tensorflow.python.eager.execute import execute
from tensorflow.python.framework import op_def_registry

raw = tsg.raw_ops

# Walked one by one, so many tuples take hours.
MANY = 2**40


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16, tf.string], ids=lambda d: d.name)
def test_gather_of_many_tuples_that_hold_nothing(dtype):
    params = tf.reshape(tf.constant([], dtype), [MANY, 0])
    indices = tf.zeros([MANY, 0], tf.int32)
    assert tsg.gather_nd(params, indices, batch_dims=1).shape == (MANY, 0)
    assert tsg.gather_nd(tf.reshape(params, [0]), indices).shape == (MANY, 0)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float16], ids=lambda d: d.name)
def test_scatter_of_many_tuples_that_hold_nothing(dtype):
    indices, updates = tf.zeros([MANY, 0], tf.int64), tf.zeros([MANY, 0], dtype)
    assert tsg.scatter_nd(indices, updates, [0]).shape == (0,)
    scattered = tsg.raw_ops.MyScatterNd(
        indices=indices, updates=updates, shape=tf.constant([MANY, 0], tf.int64), batch_dims=1
    )
    assert scattered.shape == (MANY, 0)


def test_gradient_of_many_tuples_that_hold_nothing():
    params = tf.zeros([MANY, 0])
    with tf.GradientTape() as tape:
        tape.watch(params)
        rows = tsg.gather_nd(params, tf.zeros([MANY, 0], tf.int32), batch_dims=1)
    # The ones that an eager tape starts from would have the shape [0, 0], whatever the op.
    assert tape.gradient(rows, params, output_gradients=rows).shape == (MANY, 0)


@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_the_greatest_index_is_never_a_negative_size(in_function):
    def stitch():
        return tsg.dynamic_stitch([tf.constant([tf.int64.max], tf.int64)], [[1.0]])

    with pytest.raises((tf.errors.OpError, ValueError)) as raised:
        (tf.function(stitch) if in_function else stitch)()
    assert "Dimension -" not in str(raised.value)
    assert isinstance(
        raised.value, (tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError)
    )


# ---------------------------------------------------------------- shapes that no memory holds

HUGE = 2**61


@pytest.mark.parametrize(
    "dtype", [tf.float64, tf.complex128, tf.string, tf.half], ids=lambda d: d.name
)
def test_a_slice_whose_bytes_do_not_fit_64_bits(dtype):
    """The tensors exist, since they hold no element; a row of theirs could not."""
    empty = tf.reshape(tf.constant([], dtype), [0, HUGE])
    none = tf.zeros([0, 1], tf.int64)
    for fn in (
        lambda: tsg.gather_nd(empty, none),
        lambda: tsg.scatter_nd(none, empty, [0, HUGE]),
        lambda: tsg.dynamic_stitch([none[:, 0]], [empty]),
        lambda: tsg.dynamic_stitch([none[:, 0]], [empty], size=0),
        lambda: raw.MyDynamicStitchGrad(indices=[none[:, 0]], grad=empty),
        lambda: raw.MyGatherNdSparseGrad(indices=none, grad=empty, num_rows=0),
    ):
        with pytest.raises(tf.errors.ResourceExhaustedError):
            fn()


@pytest.mark.parametrize("policy", ["ERROR", "IGNORE"])
def test_row_counts_up_to_the_greatest(policy):
    """Of rows without elements there may be any number."""
    top = 2**63 - 1
    index = tf.constant([[top - 1], [0]], tf.int64)
    params = tf.zeros([top, 0])
    assert tsg.gather_nd(params, index, bad_indices_policy=policy).shape == (2, 0)
    assert tsg.scatter_nd(index, tf.zeros([2, 0]), [top, 0], None, policy).shape == (top, 0)
    merged = raw.MyDynamicStitchSized(
        size=tf.constant(top, tf.int64),
        indices=[index[:, 0]],
        data=[tf.zeros([2, 0])],
        bad_indices_policy=policy,
    )
    assert merged.shape == (top, 0)
    (grad,) = raw.MyDynamicStitchGrad(indices=[index[:, 0]], grad=params, bad_indices_policy=policy)
    assert grad.shape == (2, 0)
    rows, values = raw.MyGatherNdSparseGrad(
        indices=index, grad=tf.zeros([2, 0]), num_rows=top, bad_indices_policy=policy
    )
    assert rows.numpy().tolist() == [0, top - 1] and values.shape == (2, 0)


@pytest.mark.parametrize(
    "shape",
    [[-1], [2**62, 4], [2**31, 2**31, 2], [1] * 255, [-(2**63)], [2, -3]],
    ids=["negative", "product", "product of three", "rank 255", "least", "second negative"],
)
def test_shapes_that_cannot_be(shape):
    depth = min(len(shape), 2)
    for updates_rank in (1, len(shape)):
        with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.ResourceExhaustedError)):
            raw.MyScatterNd(
                indices=tf.zeros([1, depth], tf.int64),
                updates=tf.ones([1] * min(updates_rank, 200)),
                shape=tf.constant(shape, tf.int64),
            )


PLAIN = {
    tf.qint8: tf.int8,
    tf.quint8: tf.uint8,
    tf.qint16: tf.int16,
    tf.quint16: tf.uint16,
    tf.qint32: tf.int32,
}


@pytest.mark.parametrize(("dtype", "plain"), PLAIN.items(), ids=[d.name for d in PLAIN])
def test_quantised_types_move_as_they_are(dtype, plain):
    values = np.arange(6).reshape(3, 2)
    tensors = [tf.constant(values[:2], dtype), tf.constant(values[2:], dtype)]
    gathered = tsg.gather_nd(tensors[0], [[1], [0], [1]])
    support.equal(tf.bitcast(gathered, plain), values[[1, 0, 1]])
    support.equal(tf.bitcast(tsg.dynamic_stitch([[1, 0], [2]], tensors), plain), values[[1, 0, 2]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be added"):
        tsg.scatter_nd([[0]], tensors[1], [1, 2])


# ---------------------------------------------------------------- graphs that nobody would build

NODES = {
    "MyGatherNd": {"Tparams": tf.float32, "Tindices": tf.int32},
    "MyScatterNd": {"T": tf.float32, "Tindices": tf.int32},
    "MyDynamicStitch": {"N": 2, "T": tf.float32, "Tindices": tf.int32},
    "MyDynamicStitchSized": {"N": 2, "T": tf.float32, "Tindices": tf.int32},
    "MyDynamicStitchGrad": {"N": 2, "T": tf.float32, "Tindices": tf.int32},
    "MyGatherNdSparseGrad": {"T": tf.float32, "Tindices": tf.int32},
    "MyResourceGatherNd": {"dtype": tf.float32, "Tindices": tf.int32},
}
#: Values of each attribute that do not fit, or mean what no node was meant to.
ABSURD = {
    "N": [0, 1, 3, -1, 2**31, 2**62, -(2**63)],
    "T": [0, 7, 19, 20, 21, 99, 101, 9999],
    "Tindices": [0, 1, 5, 7, 20, 9999],
    "batch_dims": [-1, 1, 2, 300, 2**31, 2**63 - 1, -(2**63)],
    "bad_indices_policy": [b"clamp", b"\0", b"\xff\xfe", b"I" * 100_000],
}
ABSURD["Tparams"] = ABSURD["dtype"] = ABSURD["T"]


def inputs_of(op_type):
    """The constants that a node of this op takes, and the names of its inputs."""
    f, i = np.float32, np.int32
    arrays = {
        "MyGatherNd": [np.ones([2, 2], f), np.zeros([3, 1], i)],
        "MyScatterNd": [np.zeros([3, 1], i), np.ones([3, 2], f), np.array([2, 2], i)],
        "MyDynamicStitch": [*2 * [np.array([0, 1], i)], *2 * [np.ones([2, 2], f)]],
        "MyDynamicStitchSized": [
            np.array(2, i),
            *2 * [np.array([0, 1], i)],
            *2 * [np.ones([2, 2], f)],
        ],
        "MyDynamicStitchGrad": [*2 * [np.array([0, 1], i)], np.ones([2, 2], f)],
        "MyGatherNdSparseGrad": [np.zeros([3, 1], i), np.ones([3, 2], f), np.array(2, np.int64)],
        "MyResourceGatherNd": [np.ones([2, 2], f), np.zeros([3, 1], i)],
    }[op_type]
    return arrays


def graph_of(op_type, change):
    """A graph of constants and one node of `op_type`, which `change` has spoiled."""
    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    node = tf.compat.v1.NodeDef(name="node", op=op_type)
    for number, array in enumerate(inputs_of(op_type)):
        constant = graph.node.add(name=f"in{number}", op="Const")
        constant.attr["dtype"].type = tf.as_dtype(array.dtype).as_datatype_enum
        constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
        node.input.append(constant.name)
    for name, value in NODES[op_type].items():
        if isinstance(value, int):
            node.attr[name].i = value
        else:
            node.attr[name].type = value.as_datatype_enum
    change(node)
    graph.node.append(node)
    return graph


def set_attribute(node, name, value):
    node.attr[name].Clear()
    if isinstance(value, bytes):
        node.attr[name].s = value
    elif name in ("N", "batch_dims"):
        node.attr[name].i = value
    else:
        node.attr[name].type = value


def run_graph(graph_def):
    """Imports and runs a graph; whatever it is, the answer is a value or an exception."""
    with tf.Graph().as_default() as graph:
        try:
            tf.graph_util.import_graph_def(graph_def, name="")
            with tf.compat.v1.Session(graph=graph) as session:
                return session.run("node:0")
        except (ValueError, TypeError, KeyError, tf.errors.OpError) as error:
            return error


@pytest.mark.parametrize("op_type", NODES)
def test_graphs_with_absurd_attributes(op_type):
    good = run_graph(graph_of(op_type, lambda node: None))
    # A float is no resource, which the import finds out.
    assert isinstance(good, np.ndarray) == (op_type != "MyResourceGatherNd"), good
    attributes = {a.name: a for a in op_def_registry.get(op_type).attr}
    spoiled = 0
    for name, attribute in attributes.items():
        optional = attribute.HasField("default_value")
        for value in ABSURD[name]:
            answer = run_graph(graph_of(op_type, lambda n, k=name, v=value: set_attribute(n, k, v)))
            fits = name == "batch_dims" and value == 1
            assert isinstance(answer, Exception) or fits, (name, value, answer)
            spoiled += 1
        for change in (
            lambda node, k=name: node.attr[k].list.i.extend([1, 2]),
            lambda node, k=name: setattr(node.attr[k], "f", 0.5),
            lambda node, k=name: setattr(node.attr[k], "placeholder", "x"),
        ):
            answer = run_graph(graph_of(op_type, change))
            assert isinstance(answer, Exception), (name, answer)
            spoiled += 1
        for change in (
            lambda node, k=name: node.attr[k].Clear(),
            lambda node, k=name: node.attr.pop(k, None),
        ):
            answer = run_graph(graph_of(op_type, change))
            assert optional or isinstance(answer, Exception), (name, answer)
            spoiled += 1
    for change in (
        lambda node: node.input.pop(),
        lambda node: node.input.append("in0"),
        lambda node: node.input.reverse(),
        lambda node: node.input.__setitem__(0, "node"),
        lambda node: node.input.__setitem__(0, "in0:7"),
        lambda node: node.input.__setitem__(0, "^in0"),
        lambda node: setattr(node, "op", op_type + "X"),
        lambda node: setattr(node, "device", "/device:TPU:3"),
    ):
        answer = run_graph(graph_of(op_type, change))
        # The parts of a list of stitches of equal shapes may change places.
        assert isinstance(answer, Exception | np.ndarray), answer
        spoiled += 1
    assert spoiled > 30


def confused_tensors():
    """Tensors of kinds that stand for memory in quite different ways."""
    plain = [tf.constant("text"), tf.constant(1.5j), tf.constant(True), tf.constant(3, tf.qint8)]
    handle = tf.Variable(1.0).handle
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0).resource_handle
    variant = tf.raw_ops.EmptyTensorList(
        element_shape=-1, max_num_elements=1, element_dtype=tf.float32
    )
    return [*plain, handle, table, variant, tf.constant(2, tf.int8), tf.constant(2.0, tf.float64)]


@pytest.mark.parametrize("op_type", NODES)
def test_tensors_of_another_kind_than_the_attributes_say(op_type):
    """By the function of TensorFlow's C API that the eager ops call, which is handed all of it."""

    def call(inputs, attributes):
        outputs = {"MyGatherNdSparseGrad": 2, "MyDynamicStitchGrad": 2}.get(op_type, 1)
        pairs = [
            part
            for name, value in attributes.items()
            for part in (name, value if isinstance(value, int) else value.as_datatype_enum)
        ]
        return execute(op_type, outputs, inputs, tuple(pairs), context.context())

    good = [tf.constant(array) for array in inputs_of(op_type)]
    if op_type == "MyResourceGatherNd":
        variable = tf.Variable(good[0])
        good[0] = variable.handle
    call(good, NODES[op_type])
    tried = errors = 0
    for place in range(len(good)):
        for other in confused_tensors():
            if other.dtype == good[place].dtype == tf.resource and other.shape == []:
                continue  # A variable of another shape or type: tests/test_variables.py.
            for confused in (other, tf.fill(good[place].shape, other)):
                inputs = [*good[:place], confused, *good[place + 1 :]]
                try:
                    # TensorFlow takes a type from the tensor, whatever the attribute says.
                    assert call(inputs, NODES[op_type])[-1].dtype == other.dtype
                except (tf.errors.OpError, TypeError, ValueError):
                    errors += 1
                tried += 1
    # One input more than the op has ends the process in TensorFlow, of its own ops as well.
    for inputs in (good[:-1], [], good[::-1]):
        with pytest.raises((tf.errors.OpError, TypeError, ValueError)):
            call(inputs, NODES[op_type])
    right = call(good, NODES[op_type])[-1]
    for name in NODES[op_type]:
        for value in ABSURD[name]:
            try:
                support.equal(call(good, {**NODES[op_type], name: value})[-1], right)
            except (tf.errors.OpError, TypeError, ValueError):
                errors += 1
    assert tried >= 30 and errors > tried // 2


def test_saved_models_that_were_tampered_with(tmp_path):
    """A changed or cut file gives an exception, or a model whose calls do."""

    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1], tf.int32)])
        def look_up(self, params, indices):
            rows = tsg.gather_nd(params, indices)
            return tsg.dynamic_stitch([indices[:, 0]], [rows])

    tf.saved_model.save(Model(), str(tmp_path / "model"))
    path = tmp_path / "model" / "saved_model.pb"
    whole = path.read_bytes()

    def answer():
        try:
            loaded = tf.saved_model.load(str(tmp_path / "model"))
            return loaded.look_up(tf.ones([2, 2]), tf.constant([[1], [0]])).numpy()
        except Exception as error:  # Whatever the loader raises, as long as it raises.
            return error

    assert isinstance(answer(), np.ndarray)
    errors = 0
    for op_type in ("MyGatherNd", "MyDynamicStitch"):
        for name in (a.name for a in op_def_registry.get(op_type).attr):
            for value in ABSURD[name]:
                proto = saved_model_pb2.SavedModel.FromString(whole)
                nodes = [
                    node
                    for meta in proto.meta_graphs
                    for function in meta.graph_def.library.function
                    for node in function.node_def
                    if node.op == op_type
                ]
                assert nodes
                for node in nodes:
                    set_attribute(node, name, value)
                path.write_bytes(proto.SerializeToString())
                errors += isinstance(answer(), Exception)
    assert errors > 30
    for length in range(0, len(whole), len(whole) // 12):
        path.write_bytes(whole[:length])
        assert isinstance(answer(), Exception)


# ---------------------------------------------------------------- compiled by XLA

TOP = 2**63 - 1
BEYOND = [[TOP], [-TOP - 1], [3], [-1], [1]]

# What a compiled function makes of each: an index out of range cannot be an error in it.
COMPILED = {
    "gather beyond": (lambda x, i: tsg.gather_nd(x, i), [0, 0, 0, 0, 2]),
    "scatter beyond": (lambda x, i: tsg.scatter_nd(i, tf.ones([5]), [3]), [0, 1, 0]),
    "stitch beyond": (
        lambda x, i: tsg.dynamic_stitch([i[:, 0]], [tf.ones([5])], size=3),
        [0, 1, 0],
    ),
    "gather nothing": (lambda x, i: tsg.gather_nd(x, i[:0]), []),
    "gather from nothing": (
        lambda x, i: tsg.gather_nd(x[:0], i, bad_indices_policy="IGNORE"),
        [0, 0, 0, 0, 0],
    ),
    "scatter nothing": (lambda x, i: tsg.scatter_nd(i[:0], x[:0], [0]), []),
    "stitch nothing": (lambda x, i: tsg.dynamic_stitch([i[:0, 0]], [x[:0]], size=0), []),
}
REFUSED = {
    "gather from no rows": lambda x, i: tsg.gather_nd(x[:0], i),
    "depth beyond the rank": lambda x, i: tsg.gather_nd(x, tf.concat([i, i], 1)),
    "batches of other sizes": lambda x, i: tsg.gather_nd(x, i, batch_dims=1),
    "batch_dims beyond the rank": lambda x, i: raw.MyGatherNd(params=x, indices=i, batch_dims=TOP),
    "negative batch_dims": lambda x, i: raw.MyGatherNd(params=x, indices=i, batch_dims=-TOP),
    "absurd policy": lambda x, i: raw.MyGatherNd(params=x, indices=i, bad_indices_policy="\0"),
    "negative shape": lambda x, i: tsg.scatter_nd(i, tf.ones([5]), [-3]),
    "product of the shape": lambda x, i: tsg.scatter_nd(i, tf.ones([5, 4, 4]), [2**61, 4, 4]),
    "updates of another shape": lambda x, i: tsg.scatter_nd(i, tf.ones([4]), [3]),
    "lists of other lengths": lambda x, i: raw.MyDynamicStitch(indices=[i[:, 0]], data=[x, x]),
    "slices of other shapes": lambda x, i: tsg.dynamic_stitch([0, [1]], [x, tf.ones([1, 4])]),
    "negative size": lambda x, i: tsg.dynamic_stitch([0], [x], size=-TOP),
    "greatest index": lambda x, i: tsg.dynamic_stitch([tf.constant([TOP], tf.int64)], [x[:1]]),
    "negative constant index": lambda x, i: tsg.dynamic_stitch([[-1]], [x[:1]]),
    "strings": lambda x, i: tsg.gather_nd(tf.as_string(x), i),
}
compiles = pytest.mark.skipif(
    not tsg.build_info()["xla"]["loaded"], reason="built without the kernels for XLA"
)


def compiled(function):
    x, indices = tf.constant([1.0, 2.0, 3.0]), tf.constant(BEYOND, tf.int64)
    return tf.function(function, jit_compile=True, autograph=False)(x, indices)


@compiles
@pytest.mark.parametrize(("function", "want"), COMPILED.values(), ids=COMPILED)
def test_compiled_calls(function, want):
    assert compiled(function).numpy().tolist() == want


@compiles
@pytest.mark.parametrize("function", REFUSED.values(), ids=REFUSED)
def test_calls_that_do_not_compile(function):
    with pytest.raises((tf.errors.OpError, TypeError, ValueError)):
        compiled(function)


# ---------------------------------------------------------------- memory that runs out

MEMORY_LIMIT = """
import resource

import numpy as np
import tensorflow as tf

import tf_stitch_gather as tsg

raw = tsg.raw_ops
params, column = tf.ones([4096, 64]), tf.zeros([2**21, 1], tf.int32)
tsg.gather_nd(params, column[:2**16])
lines = open("/proc/self/status").read().splitlines()
used = next(int(s.split()[1]) for s in lines if s.startswith("VmSize")) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, resource.RLIM_INFINITY))
large = (
    lambda: tsg.gather_nd(params, column),
    lambda: tsg.gather_nd(params, tf.zeros([2**12, 0], tf.int32)),
    lambda: tsg.scatter_nd(column[:1], tf.ones([1]), [2**30]),
    lambda: tsg.dynamic_stitch([[2**30]], [[1.0]]),
    lambda: tsg.dynamic_stitch([[0]], [[1.0]], size=2**30),
    lambda: tsg.dynamic_stitch([[2**40]], [[1.0]]),
    lambda: raw.MyDynamicStitchGrad(indices=[column[:, 0]], grad=params),
    lambda: tsg.dynamic_stitch([[2**31 - 1]], [["text"]]),
)
failed = 0
for _ in range(20):
    for call in large:
        try:
            call()
        except tf.errors.ResourceExhaustedError:
            failed += 1
    rows = tsg.gather_nd(params, column[:3])
    merged = tsg.dynamic_stitch([[2, 0]], [rows[:2]])
    assert np.array_equal(merged, np.ones([3, 64]) * [[1], [0], [1]])
print(failed == 20 * len(large), failed)
"""


@pytest.mark.skipif(support.UNDER_ASAN, reason="ASan needs the addresses")
def test_allocations_that_fail():
    """Each is an exception, 160 of them, and the small calls between them are right."""
    # With oneDNN TensorFlow's allocator waits ten seconds for memory before it gives up.
    assert support.child(MEMORY_LIMIT, env={"TF_ENABLE_ONEDNN_OPTS": "0"}) == "True 160"


@pytest.mark.skipif(
    "LD_PRELOAD" in os.environ or shutil.which("g++") is None, reason="preloads a library itself"
)
def test_each_small_allocation_of_ours_fails_once(tmp_path):
    """Kernels, shape functions, the pass and XLA's kernels: what ours asks for, not TensorFlow."""
    library = tmp_path / "failing_new.so"
    source = Path(__file__).parent / "failing_new.cc"
    subprocess.run(["g++", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
    program = Path(__file__).parent / "out_of_memory_program.py"
    failed = support.child(program, str(library), env={"LD_PRELOAD": str(library)})
    assert int(failed) > 300


def test_a_step_that_is_cancelled():
    """A lookup whose step ends before its input comes leaves nothing behind."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        queue = tf.queue.FIFOQueue(10, [tf.int32], [[2, 1]])
        rows = tsg.gather_nd(tf.ones([50, 8]), queue.dequeue())
        merged = tsg.dynamic_stitch([[1, 0]], [rows])
        put = queue.enqueue([[[3], [4]]])
        limit = tf.compat.v1.RunOptions(timeout_in_ms=30)
        for _ in range(5):
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(merged, options=limit)
            session.run(put)
            support.equal(session.run(merged), np.ones([2, 8]))
