"""Eager calls that leave out attributes, which have their default values then.

TensorFlow's generated wrappers state every attribute, and each is parsed and hashed on every call;
each Python function above TensorFlow's call costs as well, since it records the stack. Together
that was 1.1 us of a small gather's 9.2, where an op that does nothing takes 7.8 (2026-12-02,
TensorFlow 2.21). A function that calls `execute(context, op_type, None, *inputs)` itself, where
`eager_context()` gives one, saves both. A tape that recorded such a call knows no attributes:
gradients ask `attribute` for them.
"""

from __future__ import annotations

from typing import Any

# What the generated wrappers use; TensorFlow has no public way to leave out an attribute.
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context
from tensorflow.python.eager.core import _NotOkStatusException
from tensorflow.python.framework import ops

execute = pywrap_tfe.TFE_Py_FastPathExecute


def eager_context() -> Any:
    """The context of eager execution, or None where the caller is building a graph."""
    # The functions that ask the same cost a fifth of what is saved.
    current = context._context
    if current is not None and current._thread_local_data.is_eager:
        return current
    return None


def raise_if_failed(error: Exception) -> None:
    """Raises what `execute` raised, if it is that the op failed, as the generated wrappers do.

    Otherwise the wrapper is to be called, which converts the inputs or says what is wrong with
    them. An op that failed is not run again: for memory TensorFlow may have waited ten seconds.
    """
    if isinstance(error, _NotOkStatusException):
        ops.raise_from_not_ok_status(error, None)


def attribute(op: Any, name: str, default: Any) -> Any:
    """The attribute `name` of an operation in a graph, or of a call that a tape recorded."""
    try:
        return op.get_attr(name)
    except KeyError:
        return default
