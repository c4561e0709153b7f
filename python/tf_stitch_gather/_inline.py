"""Puts the nodes of a traced function in the place of one node of a graph or of a function."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

# TensorFlow has no public names for its own messages, nor for what ops and kernels are registered.
from tensorflow.core.framework import attr_value_pb2, function_pb2, graph_pb2, node_def_pb2
from tensorflow.python.framework import kernels, op_def_registry

from tf_stitch_gather import _builtin


class UnconvertibleError(ValueError):
    """A node for which no built-in ops stand in."""


class Body:
    """The nodes of a graph, or of a function of its library."""

    def __init__(self, owner: graph_pb2.GraphDef | function_pb2.FunctionDef) -> None:
        self.owner = owner
        self.is_function = isinstance(owner, function_pb2.FunctionDef)
        self.name = owner.signature.name if self.is_function else ""
        self.nodes = owner.node_def if self.is_function else owner.node
        self.arguments = [arg.name for arg in owner.signature.input_arg] if self.is_function else []

        self._names = {*self.arguments, *(node.name for node in self.nodes)}

    def check(self) -> None:
        """Raises ValueError where an input is made by no node."""
        known = self._names
        where = f"function {self.name}" if self.is_function else "the graph"
        if len(known) < len(self.arguments) + len(self.nodes):
            raise ValueError(f"{where} has two nodes of one name")
        uses = [(node.name, source) for node in self.nodes for source in node.input]
        if self.is_function:
            uses += [("its results", source) for source in self.owner.ret.values()]
        for user, source in uses:
            if base_name(source) not in known:
                raise ValueError(f"{where} has no node {base_name(source)}, which {user} uses")

    def unused_scope(self, scope: str, names: Iterable[str]) -> str:
        """`scope`, or it with a number behind, in which none of `names` is taken; they now are."""
        names = list(names)
        for candidate in itertools.chain([scope], (f"{scope}_{n}" for n in itertools.count(1))):
            wanted = {f"{candidate}/{name}" for name in names}
            if wanted.isdisjoint(self._names):
                break
        self._names |= wanted
        return candidate


def base_name(source: str) -> str:
    """The node or argument that an input such as `^node`, `node:1` or `node:output:0` names."""
    return source.removeprefix("^").partition(":")[0]


def bodies(graph: graph_pb2.GraphDef) -> list[Body]:
    return [Body(graph), *(Body(function) for function in graph.library.function)]


def _attributes(node: node_def_pb2.NodeDef) -> dict[str, attr_value_pb2.AttrValue]:
    """The attributes of a node, those that are left out because of their defaults included."""
    op_def = op_def_registry.get(node.op)
    values = {attr.name: attr.default_value for attr in op_def.attr}
    return values | dict(node.attr)


def _flat_types(
    args: Iterable[Any], attributes: Mapping[str, attr_value_pb2.AttrValue]
) -> list[tuple[str, list[int]]]:
    """Of each argument in an op's definition, its name and the types of its tensors."""
    result = []
    for arg in args:
        dtype = attributes[arg.type_attr].type if arg.type_attr else arg.type
        count = attributes[arg.number_attr].i if arg.number_attr else 1
        result.append((arg.name, [dtype] * count))
    return result


@functools.cache
def _traced(op: str, inputs: tuple[Any, ...], attributes: tuple[Any, ...], lite: bool) -> Any:
    function = functools.partial(_builtin.COMPOSITES[op], **dict(attributes), lite=lite)
    specs = [
        [tf.TensorSpec(None, dtype) for dtype in part]
        if isinstance(part, tuple)
        else tf.TensorSpec(None, part)
        for part in inputs
    ]
    traced = tf.function(function, input_signature=specs, autograph=False)
    return traced.get_concrete_function()


def _trace(node: node_def_pb2.NodeDef, op: str, lite: bool) -> Any:
    """The composite of a node of `op` for the types and attributes of this one."""
    ours = op_def_registry.get(op)
    attributes = {attr.name: attr.default_value for attr in ours.attr} | _attributes(node)
    definition = op_def_registry.get(node.op)
    inputs = []
    for arg, (_, types) in zip(
        definition.input_arg, _flat_types(definition.input_arg, attributes), strict=True
    ):
        dtypes = tuple(tf.as_dtype(dtype) for dtype in types)
        inputs.append(dtypes if arg.number_attr else dtypes[0])
    values: list[tuple[str, Any]] = []
    for name in ("batch_dims", "bad_indices_policy", "dtype"):
        if name in attributes:
            value = attributes[name]
            kind = value.WhichOneof("value")
            plain = getattr(value, kind)
            values.append(
                (name, plain.decode() if kind == "s" else tf.as_dtype(plain))
                if kind in ("s", "type")
                else (name, plain)
            )
    return _traced(op, tuple(inputs), tuple(values), lite)


def has_cpu_kernel(node: node_def_pb2.NodeDef) -> bool:
    """Whether this TensorFlow can run the node on the CPU."""
    attributes = _attributes(node)
    for kernel in kernels.get_registered_kernels_for_op(node.op).kernel:
        if kernel.device_type in ("CPU", "DEFAULT") and all(
            not limit.allowed_values.list.type
            or attributes[limit.name].type in limit.allowed_values.list.type
            for limit in kernel.constraint
        ):
            return True
    return False


def replace(body: Body, node: node_def_pb2.NodeDef, op: str, lite: bool) -> None:
    """Puts what stands in for a node of our `op` in the place of `node`, which gives its results.

    Raises:
      UnconvertibleError: if there is nothing for its types.
    """
    try:
        function = _trace(node, op, lite)
    except (TypeError, ValueError, tf.errors.OpError) as error:
        first_line = str(error).strip().partition("\n")[0]
        raise UnconvertibleError(first_line) from None
    if body.is_function:
        _replace_in_function(body, node, function.function_def)
    else:
        _replace_in_graph(body, node, function)


def _controls(node: node_def_pb2.NodeDef) -> list[str]:
    return [source for source in node.input if source.startswith("^")]


def _add(
    body: Body,
    node: node_def_pb2.NodeDef,
    nodes: Iterable[node_def_pb2.NodeDef],
    renamed: Mapping[str, str],
    results: list[str],
) -> None:
    """Adds copies of `nodes` with their inputs `renamed`; `node` then hands on the results."""
    data = [source for source in node.input if not source.startswith("^")]
    waits = _controls(node)
    # A constant in the body of a loop of TensorFlow 1 has to wait for something of that loop.
    if any(other.op == "Enter" for other in body.nodes):
        waits = waits or ["^" + base_name(data[0])]
    inner_nodes = list(nodes)
    prefix = body.unused_scope(f"{node.name}/builtin", [inner.name for inner in inner_nodes])
    for inner in inner_nodes:
        if not has_cpu_kernel(inner):
            raise UnconvertibleError(f"{inner.op} has no kernel for its type")
        copy = body.nodes.add()
        copy.CopyFrom(inner)
        copy.name = f"{prefix}/{inner.name}"
        copy.device = node.device
        del copy.input[:]
        copy.input.extend(_renamed(source, prefix, renamed) for source in inner.input)
        if not inner.input or inner.op == "ReadVariableOp":
            copy.input.extend(waits)
    types = [
        dtype
        for _, dtypes in _flat_types(op_def_registry.get(node.op).output_arg, _attributes(node))
        for dtype in dtypes
    ]
    if body.is_function:
        _rename_outputs(body, node)
    sources = [_renamed(source, prefix, renamed) for source in results]
    node.op = "Identity" if len(sources) == 1 else "IdentityN"
    controls = _controls(node)
    del node.input[:]
    node.input.extend([*sources, *controls])
    for name in [name for name in node.attr if not name.startswith("_")]:
        del node.attr[name]
    if len(sources) == 1:
        node.attr["T"].type = types[0]
    else:
        node.attr["T"].list.type.extend(types)


def _renamed(source: str, prefix: str, renamed: Mapping[str, str]) -> str:
    if source.startswith("^"):
        return f"^{prefix}/{source[1:]}"
    name, colon, rest = source.partition(":")
    return renamed.get(name, f"{prefix}/{name}{colon}{rest}")


def _replace_in_graph(body: Body, node: node_def_pb2.NodeDef, function: Any) -> None:
    data = [source for source in node.input if not source.startswith("^")]
    arguments = [tensor.op.name for tensor in function.inputs]
    nodes = [n for n in function.graph.as_graph_def().node if n.name not in arguments]
    results = [tensor.name.removesuffix(":0") for tensor in function.outputs]
    _add(body, node, nodes, dict(zip(arguments, data, strict=True)), results)


def _replace_in_function(
    body: Body, node: node_def_pb2.NodeDef, function: function_pb2.FunctionDef
) -> None:
    data = [source for source in node.input if not source.startswith("^")]
    arguments = [arg.name for arg in function.signature.input_arg]
    results = [function.ret[arg.name] for arg in function.signature.output_arg]
    _add(body, node, function.node_def, dict(zip(arguments, data, strict=True)), results)


def _rename_outputs(body: Body, node: node_def_pb2.NodeDef) -> None:
    """Has every user of `node` in a function name its n-th tensor `node:output:n`."""
    begins = {}
    begin = 0
    for name, types in _flat_types(op_def_registry.get(node.op).output_arg, _attributes(node)):
        begins[name] = begin
        begin += len(types)

    def renamed(source: str) -> str:
        parts = source.split(":")
        if parts[0] != node.name or len(parts) != 3:
            return source
        return f"{node.name}:output:{begins[parts[1]] + int(parts[2])}"

    for user in body.nodes:
        for place, source in enumerate(user.input):
            if source.startswith(node.name + ":"):
                user.input[place] = renamed(source)
    for name, source in body.owner.ret.items():
        body.owner.ret[name] = renamed(source)
