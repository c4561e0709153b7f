"""Puts the functions of this package in the place of TensorFlow's."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# TensorFlow has no public name for what ragged and other composite tensors have in common.
from tensorflow.python.framework.composite_tensor import CompositeTensor
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

from tf_stitch_gather import _api


def _is_composite(value: Any) -> bool:
    return isinstance(value, CompositeTensor) and not isinstance(value, BaseResourceVariable)


def _unless_composite(original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """`ours` with the signature of `original`, which takes ragged tensors and the like itself."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        values = [*args, *kwargs.values()]
        flat = [x for v in values for x in (v if isinstance(v, list | tuple) else [v])]
        return (original if any(map(_is_composite, flat)) else ours)(*args, **kwargs)

    return call


def _gather_nd_v1(
    params: Any,
    indices: Any,
    name: str | None = None,
    batch_dims: Any = 0,
    bad_indices_policy: str = "",
) -> tf.Tensor:
    return _api.gather_nd(params, indices, batch_dims, name, bad_indices_policy)


def _dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> tf.Tensor:
    return _api.dynamic_stitch(indices, data, name=name)


def _replacements() -> list[tuple[Any, Any]]:
    """TensorFlow's functions and what takes their place."""
    return [
        (original, _unless_composite(original, ours))
        for original, ours in (
            (tf.gather_nd, _api.gather_nd),
            (tf.compat.v1.gather_nd, _gather_nd_v1),
            (tf.scatter_nd, _api.scatter_nd),
            (tf.dynamic_stitch, _dynamic_stitch),
        )
    ]


def _public_modules() -> list[types.ModuleType]:
    """The modules of TensorFlow's public interface, those of `tf.compat` included."""
    return [
        module
        for name, module in list(sys.modules.items())
        if isinstance(module, types.ModuleType)
        and (name == "tensorflow" or name.startswith("tensorflow._api."))
    ]


class DropIn:
    """What `drop_in` returns: undoes it, or ends it at the end of a `with` block."""

    def __init__(self) -> None:
        self._changed: list[tuple[types.ModuleType, str, Any]] = []
        for original, ours in _replacements():
            for module in _public_modules():
                for name, value in list(vars(module).items()):
                    if value is original:
                        self._changed.append((module, name, original))
                        setattr(module, name, ours)

    def undo(self) -> None:
        """Puts TensorFlow's functions back. A second call does nothing."""
        while self._changed:
            module, name, original = self._changed.pop()
            setattr(module, name, original)

    def __enter__(self) -> DropIn:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()


def drop_in() -> DropIn:
    """Puts `gather_nd`, `scatter_nd` and `dynamic_stitch` in the place of TensorFlow's functions.

    That is under every public name: `tf.gather_nd`, `tf.compat.v1.gather_nd`, `tf.manip.gather_nd`
    and so on. What is written with them from then on, in this program and in libraries that look
    them up in `tf`, uses these ops, eager calls and functions of `tf.data` included. A module that
    has copied a function before (`from tensorflow import gather_nd`) keeps it. Ragged tensors go to
    TensorFlow's functions.

    >>> import tensorflow as tf
    >>> import tf_stitch_gather as sg
    >>> with sg.drop_in():
    ...     program = tf.function(lambda: tf.gather_nd([10, 20], [[1]])).get_concrete_function()
    >>> [op.type for op in program.graph.get_operations() if "Gather" in op.type]
    ['MyGatherNd']

    Without `with`, it lasts until `undo` is called:

    >>> replaced = sg.drop_in()
    >>> tf.dynamic_stitch([[1], [0]], [[10], [20]]).numpy().tolist()
    [20, 10]
    >>> replaced.undo()

    Returns:
      An object with a method `undo`, and a context manager.
    """
    return DropIn()
