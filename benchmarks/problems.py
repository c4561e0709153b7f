"""A case's inputs and its right answer, in NumPy alone.

Values are small integers held in the case's dtype, so the sums of a scatter are exact in float32
and wider types whatever the order of the additions, and results are compared for equality. The 16-
and 8-bit floats are the exception: there the expected value is the exact sum rounded once.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from benchmarks.cases import GATHER_OPS, Case, Shape

Array = NDArray[Any]

# A TensorFlow string holds up to 22 bytes in place; the text of a case is shorter than that.
_STRING_BYTES = 24


@dataclasses.dataclass(frozen=True)
class Problem:
    """Inputs and expected outputs of a case.

    Attributes:
      inputs: the op's arguments, in its order: arrays, or lists of them for a stitch. Gradient ops
        have what they differentiate by first, then the indices, then the upstream gradient.
      expected: the outputs.
      sums: whether the outputs are sums (scatter and the gradient of gather).
      rows: for gather and scatter, `(table_rows, linear)`: the case as row numbers `linear` into a
        table of `table_rows` rows, for libraries that have no gather_nd.
    """

    case: Case
    inputs: tuple[Any, ...]
    expected: list[Array]
    sums: bool
    rows: tuple[int, Array] | None

    @property
    def output_bytes(self) -> int:
        """Bytes of the outputs."""
        return sum(_nbytes(array) for array in self.expected)

    @property
    def slice_bytes(self) -> int:
        """Bytes that one index moves."""
        item = _STRING_BYTES if self.case.dtype == "string" else self.expected[0].dtype.itemsize
        return math.prod(self.case.slice_shape) * item

    @property
    def moved_bytes(self) -> int:
        """What GB/s counts: the output for a move; the output and the addends for a sum."""
        addends = self.case.index_count * self.slice_bytes if self.sums else 0
        return self.output_bytes + addends


def make_problem(case: Case, seed: int = 0) -> Problem:
    """The inputs of `case`, the same for the same seed, and what it must give."""
    rng = np.random.default_rng(seed)
    if case.op in GATHER_OPS or case.op == "scatter_nd":
        return _gather_or_scatter(case, rng)
    return _stitch(case, rng)


def _nbytes(array: Array) -> int:
    return array.size * _STRING_BYTES if array.dtype == object else array.nbytes


def _values(rng: np.random.Generator, shape: Shape, dtype: str, limit: int) -> Array:
    """Integers in [-limit, limit), or [0, limit) for unsigned types, as `dtype`."""
    if dtype == "string":
        flat = np.array([b"word %d" % v for v in rng.integers(0, 10**6, math.prod(shape))], object)
        return flat.reshape(shape)
    tf_dtype = tf.as_dtype(dtype)
    low = 0 if tf_dtype.is_unsigned or tf_dtype.is_bool else -limit
    whole = rng.integers(low, limit, shape, dtype=np.int8 if limit < 128 else np.int16)
    return whole.astype(tf_dtype.as_numpy_dtype)


def _sum_rows(updates: Array, linear: Array, table_rows: int) -> Array:
    """Sums the rows of `updates` [n, width] at the row numbers `linear` [n], exactly."""
    wide: Any = np.float64
    if updates.dtype.kind in "iub":
        wide = np.int64
    elif updates.dtype.kind == "c":
        wide = np.complex128
    width = updates.shape[1]
    if width == 1 and wide is np.float64:
        sums = np.bincount(linear, updates[:, 0].astype(wide), table_rows)[:, None]
    else:
        sums = np.zeros((table_rows, width), wide)
        order = np.argsort(linear, kind="stable")
        ascending = linear[order]
        starts = np.flatnonzero(np.diff(ascending, prepend=-1))
        if starts.size:
            sums[ascending[starts]] = np.add.reduceat(updates[order].astype(wide), starts, axis=0)
    return sums.astype(updates.dtype)


def _gather_or_scatter(case: Case, rng: np.random.Generator) -> Problem:
    table = case.params if case.op in GATHER_OPS else case.shape
    batch, depth = case.batch_dims, case.depth
    indexed = table[batch : batch + depth]
    batch_count = math.prod(table[:batch])
    per_batch = case.index_count // max(1, batch_count)

    # A row number inside its batch stands for a whole index; it is unravelled at the end.
    local = rng.integers(0, math.prod(indexed), (batch_count, per_batch), dtype=np.int64)
    if case.order == "sorted":
        local.sort(axis=1)
    linear = (local + np.arange(batch_count)[:, None] * math.prod(indexed)).reshape(-1)
    if depth:
        columns = np.unravel_index(local.reshape(-1), indexed)
        indices = np.stack(columns, axis=-1).astype(case.index)
    else:
        indices = np.zeros((case.index_count, 0), case.index)
    indices = indices.reshape(case.indices)
    table_rows = batch_count * math.prod(indexed)
    width = math.prod(case.slice_shape)
    slices_shape = case.indices[:-1] + case.slice_shape
    rows = (table_rows, linear)

    if case.op == "gather_nd":
        params = _values(rng, table, case.dtype, 128)
        expected = params.reshape(table_rows, width)[linear].reshape(slices_shape)
        return Problem(case, (params, indices), [expected], False, rows)

    updates = _values(rng, slices_shape, case.dtype, 8)
    expected = _sum_rows(updates.reshape(-1, width), linear, table_rows).reshape(table)
    if case.op == "scatter_nd":
        shape = np.array(table, case.index)
        return Problem(case, (indices, updates, shape), [expected], True, rows)
    params = _values(rng, table, case.dtype, 128)
    return Problem(case, (params, indices, updates), [expected], True, rows)


def _stitch(case: Case, rng: np.random.Generator) -> Problem:
    total = case.parts * case.rows
    distinct = max(min(total, 1), total - round(total * case.duplicates))
    # Each of `distinct` rows is named at least once, so just total - distinct rows are overwritten.
    flat = np.concatenate(
        [np.arange(distinct), rng.integers(0, max(distinct, 1), total - distinct)]
    ).astype(case.index)
    if case.order == "sorted":
        flat.sort()
    else:
        rng.shuffle(flat)
    indices = list(flat.reshape(case.parts, case.rows))
    data = _values(rng, (total, *case.slice), case.dtype, 128)
    parts = list(data.reshape(case.parts, case.rows, *case.slice))

    winner = np.zeros(distinct, np.int64)
    winner[flat] = np.arange(total)  # NumPy keeps the last of repeated assignments.
    if case.op == "dynamic_stitch":
        return Problem(case, (indices, parts), [data[winner]], False, None)
    upstream = _values(rng, (distinct, *case.slice), case.dtype, 128)
    grads = upstream[flat]
    grads[winner[flat] != np.arange(total)] = 0
    per_part = list(grads.reshape(case.parts, case.rows, *case.slice))
    # The gradient is by the data, so the data come first.
    return Problem(case, (parts, indices, upstream), per_part, False, None)
