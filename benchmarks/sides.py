"""A problem as the calls that are timed against each other.

How a case is called, on both sides alike:

* `gather_nd` without `batch_dims`, `scatter_nd` and `dynamic_stitch`: the raw op, eagerly.
* `gather_nd` with `batch_dims`, and gradients: the public function inside `tf.function`. `params`
  (or the data of a stitch) and the upstream gradient are inputs of that function. The forward
  output is not used, so TensorFlow prunes it and the backward alone is timed. A sparse gradient is
  made dense inside the function.

`mode` overrides this: `"eager"` or `"graph"` for every case. An eager gradient is taken from a
persistent tape that recorded the forward once, so again the backward alone is timed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from benchmarks.cases import GRADIENT_OPS, Case
from benchmarks.problems import Problem
from benchmarks.results import Mode

Function = Callable[..., Any]

_SUM_EXACT = frozenset(
    f"{kind}{bits}"
    for kind, widths in (("float", (32, 64)), ("complex", (64, 128)), ("int", (8, 16, 32, 64)))
    for bits in widths
) | {"uint8", "uint16", "uint32", "uint64"}


@dataclasses.dataclass(frozen=True)
class Side:
    """One call that is timed. `checked`: its result must equal the problem's expected one."""

    name: str
    call: Callable[[], Any]
    checked: bool = False


@dataclasses.dataclass(frozen=True)
class Sides:
    """The calls of one case.

    `deepcopy` and `call` are the limits: a copy of as many bytes as the output has, and an op
    (inside `tf.function`: a function) that does nothing with as many inputs. `function` and
    `inputs` are what `ours` calls, for building it into another graph.
    """

    builtins: list[Side]
    ours: Side
    deepcopy: Side
    call: Side
    function: Function
    inputs: tuple[Any, ...]


def in_graph(case: Case, mode: Mode) -> bool:
    """Whether `case` runs inside `tf.function` under `mode`."""
    return mode == "graph" or (mode == "rules" and not case.is_raw)


def build_sides(
    problem: Problem, ours: Any, mode: Mode = "rules", variables: bool = False
) -> Sides:
    """The calls of `problem`.

    Args:
      problem: inputs and expected outputs.
      ours: the module under test: `tf_stitch_gather`, or what stands in for it.
      mode: see the module.
      variables: differentiate `gather_nd` by a `tf.Variable` in place of a function input; its
        gradient is sparse where the op's rules say so, and made dense like the others.
    """
    case = problem.case
    inputs = tf.nest.map_structure(tf.constant, problem.inputs)
    graph = in_graph(case, mode)
    builtins, own = _functions(case, ours)
    variables = variables and case.op == "gather_nd_grad"
    wanted: Any = tf.Variable(inputs[0]) if variables else inputs[0]

    def bind(function: Function) -> tuple[Function, tuple[Any, ...]]:
        """The function to call and its arguments, by way of the gradient where the case asks."""
        if case.op not in GRADIENT_OPS:
            return function, inputs
        if not graph:
            return _eager_backward(function, wanted, inputs), ()
        if variables:
            return functools.partial(_backward, function, wanted), inputs[1:]
        return functools.partial(_backward, function), inputs

    def side(name: str, function: Function, checked: bool) -> Side:
        bound, arguments = bind(function)
        if graph:
            bound = tf.function(bound, autograph=False)
        return Side(name, functools.partial(bound, *arguments), checked)

    own_bound, own_inputs = bind(own)
    return Sides(
        builtins=[side(name, fn, _is_checked(problem, name)) for name, fn in builtins],
        ours=side("ours", own, True),
        deepcopy=_deepcopy_side(problem, own_inputs, graph),
        call=_call_side(problem, own_inputs, graph),
        function=own_bound,
        inputs=own_inputs,
    )


def _functions(case: Case, ours: Any) -> tuple[list[tuple[str, Function]], Function]:
    """The built-ins by name, and ours: functions of the inputs less the upstream gradient."""
    raw, own = tf.raw_ops, ours.raw_ops
    if case.op == "scatter_nd":
        return [("ScatterNd", lambda i, u, s: raw.ScatterNd(indices=i, updates=u, shape=s))], (
            lambda i, u, s: own.MyScatterNd(indices=i, updates=u, shape=s)
        )
    if case.op == "gather_nd" and case.is_raw:
        return [("GatherNd", lambda p, i: raw.GatherNd(params=p, indices=i))], (
            lambda p, i: own.MyGatherNd(params=p, indices=i)
        )
    if case.op in ("gather_nd", "gather_nd_grad"):
        b = case.batch_dims
        return [("tf.gather_nd", lambda p, i: tf.gather_nd(p, i, batch_dims=b))], (
            lambda p, i: ours.gather_nd(p, i, batch_dims=b)
        )
    if case.op == "dynamic_stitch":
        return [
            ("DynamicStitch", _int32_indices(case, raw.DynamicStitch)),
            ("ParallelDynamicStitch", _int32_indices(case, raw.ParallelDynamicStitch)),
        ], (lambda i, d: own.MyDynamicStitch(indices=i, data=d))
    # The gradient is by the data, so the data come first.
    builtin = _int32_indices(case, raw.DynamicStitch)
    return [("tf.dynamic_stitch", lambda d, i: builtin(i, d))], (
        lambda d, i: ours.dynamic_stitch(i, d)
    )


def _int32_indices(case: Case, op: Function) -> Function:
    """`op`, which takes int32 indices only: for other types it gets a copy made beforehand."""
    if case.index == "int32":
        return lambda i, d: op(indices=i, data=d)
    converted: list[Any] = []

    def call(indices: Any, data: Any) -> Any:
        if not tf.executing_eagerly():
            return op(indices=[tf.cast(i, tf.int32) for i in indices], data=data)
        if not converted:
            converted.extend(tf.cast(i, tf.int32) for i in indices)
        return op(indices=converted, data=data)

    return call


def _is_checked(problem: Problem, name: str) -> bool:
    """Whether a built-in's result must be right: it is not where its own rules differ."""
    case = problem.case
    if name == "ParallelDynamicStitch" or case.op == "dynamic_stitch_grad":
        return case.duplicates == 0.0
    return not problem.sums or case.dtype in _SUM_EXACT


def _backward(function: Function, wanted: Any, others: Any, upstream: Any) -> Any:
    """The dense gradient of `function(wanted, others)` by `wanted`."""
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(wanted)
        output = function(wanted, others)
    return _dense(tape.gradient(output, wanted, output_gradients=upstream))


def _eager_backward(function: Function, wanted: Any, inputs: Sequence[Any]) -> Function:
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(wanted)
        output = function(wanted, inputs[1])
    return lambda: _dense(tape.gradient(output, wanted, output_gradients=inputs[2]))


def _dense(gradient: Any) -> Any:
    if isinstance(gradient, (list, tuple)):
        return [tf.convert_to_tensor(part) for part in gradient]
    return tf.convert_to_tensor(gradient)


def _deepcopy_side(problem: Problem, inputs: tuple[Any, ...], graph: bool) -> Side:
    if problem.case.dtype == "string":
        source = tf.constant(problem.expected[0])
    else:
        source = tf.zeros([-(-problem.output_bytes // 4)], tf.float32)

    def copy(x: Any, *_: Any) -> Any:
        return tf.raw_ops.DeepCopy(x=x)

    if not graph:
        return Side("deepcopy", functools.partial(copy, source))
    # A function is handed all inputs, whatever it does with them.
    return Side("deepcopy", functools.partial(tf.function(copy, autograph=False), source, *inputs))


def _call_side(problem: Problem, inputs: tuple[Any, ...], graph: bool) -> Side:
    if graph:
        outputs = len(problem.expected)

        def nothing(*arguments: Any) -> list[Any]:
            tensors = tf.nest.flatten(arguments)
            return [tf.identity(tensors[n % len(tensors)]) for n in range(outputs)]

        return Side("call", functools.partial(tf.function(nothing, autograph=False), *inputs))
    true = tf.constant(True)
    others = tf.nest.flatten(tf.nest.map_structure(tf.constant, problem.inputs))[1:]
    return Side("call", lambda: tf.raw_ops.Assert(condition=true, data=others))
