"""The ops themselves: their definitions, and a run of each type that they admit."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import oracle
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import equal, same, tensor
from tensorflow.python.framework import kernels, op_callbacks, op_def_registry

raw = tsg.raw_ops

OPS = (
    "MyDynamicStitch",
    "MyDynamicStitchSized",
    "MyDynamicStitchGrad",
    "MyGatherNd",
    "MyGatherNdSparseGrad",
    "MyScatterNd",
)
BUILT_IN = (
    ("MyDynamicStitch", "DynamicStitch"),
    ("MyDynamicStitch", "ParallelDynamicStitch"),
    ("MyGatherNd", "GatherNd"),
    ("MyScatterNd", "ScatterNd"),
)


def definition(name):
    found = op_def_registry.get(name)
    assert found is not None, f"{name} is not registered"
    return found


def attribute(name, attr):
    return next(a for a in definition(name).attr if a.name == attr)


def admitted(name, attr, otherwise):
    """The types that a type attribute lists; of one that takes any type, ``otherwise``."""
    listed = attribute(name, attr).allowed_values.list.type
    return [tf.as_dtype(t) for t in listed] or list(otherwise)


class TestDefinitions:
    @pytest.mark.parametrize(("ours", "theirs"), BUILT_IN)
    def test_arguments_are_the_built_ins(self, ours, theirs):
        ours, theirs = definition(ours), definition(theirs)
        for field in ("input_arg", "output_arg"):
            got, want = getattr(ours, field), getattr(theirs, field)
            assert [a.name for a in got] == [a.name for a in want]
            assert [a.number_attr for a in got] == [a.number_attr for a in want]
            # Where the built-in has a fixed type, ours has an attribute with that default.
            for g, w in zip(got, want, strict=True):
                assert (
                    g.type_attr == w.type_attr
                    or w.type == attribute(ours.name, g.type_attr).default_value.type
                )

    @pytest.mark.parametrize(("ours", "theirs"), BUILT_IN)
    def test_attributes_begin_with_the_built_ins_and_new_ones_have_defaults(self, ours, theirs):
        ours, theirs = definition(ours), definition(theirs)
        shared = len(theirs.attr)
        for got, want in zip(ours.attr[:shared], theirs.attr, strict=True):
            assert (got.name, got.type, got.minimum) == (want.name, want.type, want.minimum)
            assert got.default_value == want.default_value
            # Ours takes what the built-in takes, and may take more.
            if got.allowed_values.list.type:
                assert set(want.allowed_values.list.type) <= set(got.allowed_values.list.type)
        for new in ours.attr[shared:]:
            assert new.HasField("default_value"), new.name

    def test_signatures(self):
        def arguments(name):
            found = definition(name)
            return [a.name for a in found.input_arg], [a.name for a in found.output_arg]

        assert arguments("MyDynamicStitchSized") == (["size", "indices", "data"], ["merged"])
        assert arguments("MyDynamicStitchGrad") == (["indices", "grad"], ["data_grads"])
        inputs, outputs = arguments("MyGatherNdSparseGrad")
        assert (inputs, outputs) == (["indices", "grad", "num_rows"], ["rows", "values"])

    @pytest.mark.parametrize("name", OPS)
    def test_index_types(self, name):
        want = support.STITCH_INDEX_TYPES if "Stitch" in name else support.GATHER_INDEX_TYPES
        assert set(admitted(name, "Tindices", [])) == set(want)

    @pytest.mark.parametrize("name", OPS)
    def test_is_stateless_and_has_a_kernel(self, name):
        assert not definition(name).is_stateful
        devices = [k.device_type for k in kernels.get_registered_kernels_for_op(name).kernel]
        assert "CPU" in devices

    def test_policy_defaults_to_none_given(self):
        for name in OPS:
            if name != "MyDynamicStitch":
                assert attribute(name, "bad_indices_policy").default_value.s == b""
        for name in ("MyGatherNd", "MyScatterNd"):
            assert attribute(name, "batch_dims").default_value.i == 0


class TestFunctions:
    @pytest.mark.parametrize("name", OPS)
    def test_takes_keywords_only(self, name):
        function = getattr(raw, name)
        parameters = inspect.signature(function).parameters.values()
        assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters)
        with pytest.raises(TypeError):
            function([[0]], [[1.0]])

    @pytest.mark.parametrize("name", OPS)
    def test_names_are_those_of_the_definition(self, name):
        found = definition(name)
        inputs = [a.name for a in found.input_arg]
        attributes = [a.name for a in found.attr if a.type in ("string", "int") and a.name != "N"]
        parameters = inspect.signature(getattr(raw, name)).parameters
        assert list(parameters) == [*inputs, *attributes, "name"]
        for attr in attributes:
            default = attribute(name, attr).default_value
            assert parameters[attr].default == (
                default.s.decode() or default.i or parameters[attr].default
            )
        assert parameters["name"].default is None

    @pytest.mark.parametrize("name", OPS)
    def test_is_listed_and_documented(self, name):
        assert name in dir(raw)
        assert inspect.getdoc(getattr(raw, name))

    def test_stitch_gradient_is_a_list(self):
        got = raw.MyDynamicStitchGrad(indices=[[0], [1]], grad=[1.0, 2.0])
        assert isinstance(got, list) and len(got) == 2
        assert len(raw.MyDynamicStitchGrad(indices=[[0, 1]], grad=[1.0, 2.0])) == 1


class TestEveryAdmittedTypeRuns:
    """Each type and index type that a definition lets through has a kernel, and it is right."""

    def test_stitch(self, rng):
        types = admitted("MyDynamicStitch", "T", support.ALL_TYPES)
        for dtype, index_type in itertools.product(types, support.STITCH_INDEX_TYPES):
            indices, data = np.array([2, 0, 2]), support.array_of(rng, (3, 2), dtype)
            want = oracle.stitch([indices], [data])
            index, rows = tensor(indices, index_type), tensor(data, dtype)
            note = f"{dtype.name}-{index_type.name}"
            same(raw.MyDynamicStitch(indices=[index], data=[rows]), want, note)
            size = tensor(3, index_type)
            merged = raw.MyDynamicStitchSized(size=size, indices=[index], data=[rows])
            same(merged, want, note)

    def test_gather(self, rng):
        types = admitted("MyGatherNd", "Tparams", support.ALL_TYPES)
        for dtype, index_type in itertools.product(types, support.GATHER_INDEX_TYPES):
            params = support.array_of(rng, (3, 2), dtype)
            got = raw.MyGatherNd(
                params=tensor(params, dtype), indices=tensor([[2], [0]], index_type)
            )
            same(got, params[[2, 0]], f"{dtype.name}-{index_type.name}")

    def test_scatter(self, rng):
        types = admitted("MyScatterNd", "T", support.ADDABLE)
        for dtype, index_type in itertools.product(types, support.GATHER_INDEX_TYPES):
            updates = support.numbers_of(rng, (3, 2), dtype)
            index = np.array([[2], [0], [2]])
            got = raw.MyScatterNd(
                indices=tensor(index, index_type),
                updates=tensor(updates, dtype),
                shape=tensor([4, 2], index_type),
            )
            note = f"{dtype.name}-{index_type.name}"
            same(got, oracle.scatter_nd(index, updates, (4, 2)), note)

    def test_stitch_gradient(self, rng):
        types = admitted("MyDynamicStitchGrad", "T", support.ALL_TYPES)
        for dtype, index_type in itertools.product(types, support.STITCH_INDEX_TYPES):
            indices, upstream = np.array([2, 0, 2]), support.array_of(rng, (3, 2), dtype)
            if dtype == tf.string:
                continue
            (got,) = raw.MyDynamicStitchGrad(
                indices=[tensor(indices, index_type)], grad=tensor(upstream, dtype)
            )
            note = f"{dtype.name}-{index_type.name}"
            same(got, oracle.stitch_gradient([indices], upstream)[0], note)

    def test_sparse_gradient(self):
        numbers = [t for t in support.ADDABLE if t not in (tf.bool, tf.string)]
        types = admitted("MyGatherNdSparseGrad", "T", numbers)
        for dtype, index_type in itertools.product(types, support.GATHER_INDEX_TYPES):
            rows, values = raw.MyGatherNdSparseGrad(
                indices=tensor([[2], [0], [2]], index_type),
                grad=tensor([1, 2, 3], dtype),
                num_rows=3,
            )
            equal(rows, [0, 2])
            same(values, support.to_numpy(tensor([2, 4], dtype)), f"{dtype.name}-{index_type.name}")

    @pytest.mark.parametrize(
        "dtype",
        [t for t in support.FIXED_WIDTH if t not in support.ADDABLE],
        ids=lambda t: t.name,
    )
    def test_scatter_of_a_type_that_is_not_added_says_so(self, dtype):
        with pytest.raises(tf.errors.OpError, match=dtype.name):
            raw.MyScatterNd(indices=[[0]], updates=tensor([1], dtype), shape=[2])


# Calls that state no attribute, and of each the same with an index that is an error.
PLAIN_CALLS = {
    "MyDynamicStitch": ({"indices": [[0, 2], [0]], "data": [[[1.0], [2.0]], [[3.0]]]}, -1),
    "MyGatherNd": ({"indices": [[1], [1]], "params": [[1.0], [2.0]]}, 7),
    "MyScatterNd": ({"indices": [[1], [1]], "updates": [1.0, 2.0], "shape": [3]}, 7),
}


@pytest.mark.parametrize("name", PLAIN_CALLS)
class TestCallsWithDefaults:
    """Such a call leaves out the attributes where one with a name states them."""

    @staticmethod
    def with_bad_index(name):
        arguments, bad = PLAIN_CALLS[name]
        indices = tf.nest.map_structure(lambda _: bad, arguments["indices"])
        return arguments | {"indices": indices}

    @pytest.mark.parametrize(
        "source",
        [tf.constant, np.asarray, lambda x: x, tf.Variable],
        ids=["tensor", "array", "list", "variable"],
    )
    def test_gives_what_a_call_with_attributes_gives(self, name, source):
        op = getattr(raw, name)
        arguments = {
            key: [source(part) for part in value] if name == "MyDynamicStitch" else source(value)
            for key, value in PLAIN_CALLS[name][0].items()
        }
        same(op(**arguments), op(**arguments, name="named").numpy())

    @pytest.mark.parametrize("persistent", [False, True], ids=["once", "persistent"])
    def test_has_the_same_first_and_second_gradients(self, name, persistent):
        arguments = dict(PLAIN_CALLS[name][0])
        moved = next(key for key in arguments if key not in ("indices", "shape"))
        x = tf.nest.map_structure(tf.constant, arguments.pop(moved))

        def gradients(**named):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape(persistent=persistent) as inner:
                    inner.watch(x)
                    squares = tf.nest.map_structure(tf.square, x)
                    y = tf.square(getattr(raw, name)(**{moved: squares}, **arguments, **named))
                first = inner.gradient(y, x)
            return tf.nest.flatten([first, outer.gradient(first, x)])

        for got, want in zip(gradients(), gradients(name="named"), strict=True):
            same(got, want.numpy())

    def test_fails_as_the_generated_wrapper_does(self, name):
        arguments = self.with_bad_index(name)
        with pytest.raises(tf.errors.InvalidArgumentError) as got:
            getattr(raw, name)(**arguments)
        with pytest.raises(tf.errors.InvalidArgumentError) as want:
            getattr(raw._ops, name)(**arguments)
        assert str(got.value) == str(want.value)

    def test_is_seen_by_what_follows_every_op(self, name):
        seen = []

        def record(op_type, inputs, attrs, outputs, op_name=None, graph=None):
            seen.append(op_type)

        op_callbacks.add_op_callback(record)
        try:
            getattr(raw, name)(**PLAIN_CALLS[name][0])
        finally:
            op_callbacks.remove_op_callback(record)
        assert tf.compat.as_bytes(name) in map(tf.compat.as_bytes, seen)


def test_names_stay_clear_of_tensorflows():
    """An op library that registers a built-in's name would break the built-in."""
    assert not [name for name in OPS if hasattr(tf.raw_ops, name)]
