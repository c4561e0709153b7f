"""The same work in NumPy, PyTorch and JAX, where they are installed; float32 cases only.

These libraries have no gather_nd, so a case is put to them as row numbers into a two-dimensional
table (one-dimensional for single elements); turning the indices into row numbers is not timed,
which favours them. A gather is `take`, `index_select` and jitted `take`; a scatter (and the
gradient of a gather) is `index_add_` and jitted `at[].add`.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np

from benchmarks.harness import PeerFactory
from benchmarks.problems import Array, Problem
from benchmarks.results import WrongResultError
from benchmarks.sides import Side


def installed(threads: int) -> dict[str, PeerFactory]:
    """The peers that can be imported, by name, set to `threads`.

    JAX reads its number of threads from the environment when it is imported: see `worker`.
    """
    found: dict[str, PeerFactory] = {"numpy": _numpy}
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(threads)
        found["torch"] = _torch
    with contextlib.suppress(ImportError):
        import jax  # noqa: F401

        found["jax"] = _jax
    return found


def _table(array: Array, rows: int) -> Array:
    """`array` as `rows` rows: one-dimensional when a row is a single element."""
    table = array.reshape(rows, -1)
    return table[:, 0] if table.shape[1] == 1 else table


def _gather(problem: Problem) -> tuple[Array, Array] | None:
    """`(table, row numbers)` of a float32 gather."""
    if problem.rows is None or problem.sums or problem.case.dtype != "float32":
        return None
    rows, linear = problem.rows
    return _table(problem.inputs[0], rows), linear


def _scatter(problem: Problem) -> tuple[int, Array, Array] | None:
    """`(rows, row numbers, updates)` of a float32 sum."""
    if problem.rows is None or not problem.sums or problem.case.dtype != "float32":
        return None
    rows, linear = problem.rows
    updates = problem.inputs[2 if problem.case.op == "gather_nd_grad" else 1]
    return rows, linear, _table(updates, linear.size)


def _numpy(problem: Problem) -> Side | None:
    if (gather := _gather(problem)) is None:
        return None
    table, linear = gather
    return _side("numpy", lambda: np.take(table, linear, axis=0), problem)


def _torch(problem: Problem) -> Side | None:
    import torch

    if (gather := _gather(problem)) is not None:
        table = torch.from_numpy(gather[0])
        index = torch.from_numpy(gather[1].astype(problem.case.index))
        return _side("torch", lambda: torch.index_select(table, 0, index), problem)
    if (scatter := _scatter(problem)) is not None:
        rows = scatter[0]
        index = torch.from_numpy(scatter[1].astype(problem.case.index))
        updates = torch.from_numpy(scatter[2])
        shape = (rows, *updates.shape[1:])
        return _side("torch", lambda: torch.zeros(shape).index_add_(0, index, updates), problem)
    return None


def _jax(problem: Problem) -> Side | None:
    import jax
    import jax.numpy as jnp

    if (gather := _gather(problem)) is not None:
        table, index = jnp.asarray(gather[0]), jnp.asarray(gather[1].astype("int32"))
        take = jax.jit(functools.partial(jnp.take, axis=0))
        return _side("jax", lambda: take(table, index).block_until_ready(), problem)
    if (scatter := _scatter(problem)) is not None:
        rows = scatter[0]
        index, updates = jnp.asarray(scatter[1].astype("int32")), jnp.asarray(scatter[2])

        @jax.jit
        def add(index: Any, updates: Any) -> Any:
            return jnp.zeros((rows, *updates.shape[1:]), updates.dtype).at[index].add(updates)

        return _side("jax", lambda: add(index, updates).block_until_ready(), problem)
    return None


def _side(name: str, call: Any, problem: Problem) -> Side | None:
    """The side, its values found to be right; their shape is the table's, not the case's."""
    if not np.array_equal(np.asarray(call()).ravel(), problem.expected[0].ravel()):
        raise WrongResultError(f"{problem.case.name!r}, {name}: not the expected values")
    return Side(name, call)
