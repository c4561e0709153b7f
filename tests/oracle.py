"""What the ops compute, in plain NumPy and plain loops: the reference the tests compare with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np


class BadIndexError(Exception):
    """An index vector that points nowhere.

    Attributes:
      position: where the vector stands in ``indices``, without its last dimension.
      vector: its components.
    """

    def __init__(self, position: tuple[int, ...], vector: tuple[int, ...]) -> None:
        super().__init__(f"indices{list(position)} = {list(vector)}")
        self.position = position
        self.vector = vector


def zeros(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """An array of zeros; of empty byte strings where the elements are objects."""
    if dtype.kind == "O":
        return np.full(tuple(shape), b"", object)
    return np.zeros(tuple(shape), dtype)


def stitch_writers(
    indices: Sequence[np.ndarray], size: int | None = None
) -> dict[int, tuple[int, int]]:
    """For each row that is written: list position and flat position of the last that names it."""
    writers = {}
    for m, index in enumerate(indices):
        for i, row in enumerate(np.asarray(index).reshape(-1)):
            if size is None or 0 <= int(row) < size:
                writers[int(row)] = (m, i)
    return writers


def stitch(
    indices: Sequence[np.ndarray], data: Sequence[np.ndarray], size: int | None = None
) -> np.ndarray:
    """Merges rows, the last writer of each row winning; other rows are zero.

    With ``size``, that many rows, and indices outside it are passed over.
    """
    indices = [np.asarray(i) for i in indices]
    data = [np.asarray(d) for d in data]
    row_shape = data[0].shape[indices[0].ndim :]
    writers = stitch_writers(indices, size)
    rows = max(writers, default=-1) + 1 if size is None else size
    merged = zeros((rows, *row_shape), data[0].dtype)
    flat = [d.reshape(i.size, *row_shape) for i, d in zip(indices, data, strict=True)]
    for row, (m, i) in writers.items():
        merged[row] = flat[m][i]
    return merged


def stitch_gradient(
    indices: Sequence[np.ndarray], upstream: np.ndarray, size: int | None = None
) -> list[np.ndarray]:
    """The upstream row for each data row that won its place, zero for the others."""
    row_shape = upstream.shape[1:]
    indices = [np.asarray(i) for i in indices]
    out = [np.zeros((i.size, *row_shape), upstream.dtype) for i in indices]
    for row, (m, i) in stitch_writers(indices, size).items():
        out[m][i] = upstream[row]
    return [o.reshape(i.shape + row_shape) for o, i in zip(out, indices, strict=True)]


def _walk(
    shape: Sequence[int], indices: np.ndarray, batch_dims: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """Yields each position in ``indices`` with the place it points at, None where it is outside."""
    limits = tuple(shape)[batch_dims : batch_dims + indices.shape[-1]]
    for position in np.ndindex(*indices.shape[:-1]):
        vector = tuple(int(v) for v in indices[position])
        inside = all(0 <= v < n for v, n in zip(vector, limits, strict=True))
        yield position, position[:batch_dims] + vector if inside else None


def first_bad(
    shape: Sequence[int], indices: np.ndarray, batch_dims: int = 0
) -> BadIndexError | None:
    """The first index vector, in row-major order, that is outside ``shape``."""
    for position, place in _walk(shape, indices, batch_dims):
        if place is None:
            return BadIndexError(position, tuple(int(v) for v in indices[position]))
    return None


def gather_nd(
    params: np.ndarray, indices: np.ndarray, batch_dims: int = 0, ignore: bool = False
) -> np.ndarray:
    """Slices of ``params``; zeros in place of bad ones where they are to be ignored.

    Raises:
      BadIndexError: the first vector that is out of range, unless ``ignore``.
    """
    params, indices = np.asarray(params), np.asarray(indices)
    depth = batch_dims + indices.shape[-1]
    out = zeros(indices.shape[:-1] + params.shape[depth:], params.dtype)
    for position, place in _walk(params.shape, indices, batch_dims):
        if place is not None:
            out[position] = params[place]
        elif not ignore:
            raise BadIndexError(position, tuple(int(v) for v in indices[position]))
    return out


def _is_small_float(dtype: np.dtype) -> bool:
    return dtype.name in ("float16", "bfloat16") or dtype.name.startswith(("float8", "float4"))


def scatter_nd(
    indices: np.ndarray,
    updates: np.ndarray,
    shape: Sequence[int],
    batch_dims: int = 0,
    ignore: bool = False,
) -> np.ndarray:
    """Adds ``updates`` one after another, in row-major order of ``indices``, onto zeros.

    Floats narrower than 32 bits are added in float32 and rounded once at the end. Integers wrap
    around, truth values are joined by "or", byte strings are concatenated.

    Raises:
      BadIndexError: the first vector that is out of range, unless ``ignore``.
    """
    indices, updates = np.asarray(indices), np.asarray(updates)
    dtype = updates.dtype
    narrow_int = dtype.name in ("int4", "uint4", "int2", "uint2")
    if _is_small_float(dtype):
        out = np.zeros(tuple(shape), np.float32)
        updates = updates.astype(np.float32)
    elif narrow_int:
        out = np.zeros(tuple(shape), np.int32)
        updates = updates.astype(np.int32)
    else:
        out = zeros(shape, dtype)
    for position, place in _walk(shape, indices, batch_dims):
        if place is not None:
            with np.errstate(over="ignore"):
                out[place] = out[place] + updates[position]
        elif not ignore:
            raise BadIndexError(position, tuple(int(v) for v in indices[position]))
    if narrow_int:
        bits = int(dtype.name[-1])
        low = 0 if dtype.name.startswith("u") else -(1 << (bits - 1))
        out = (out - low) % (1 << bits) + low
    return out.astype(dtype)


def merged_rows(
    indices: np.ndarray, upstream: np.ndarray, num_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """The rows that one-column ``indices`` name, ascending and once each, with their sums.

    Rows out of range are left out. Sums are taken in float64 at least.
    """
    rows = np.asarray(indices).reshape(-1).astype(np.int64)
    slices = np.asarray(upstream)
    slices = slices.reshape(rows.size, *slices.shape[np.asarray(indices).ndim - 1 :])
    wide = np.complex128 if slices.dtype.kind == "c" else np.float64
    inside = (rows >= 0) & (rows < num_rows)
    unique = np.unique(rows[inside])
    sums = np.zeros((unique.size, *slices.shape[1:]), wide)
    for row, value in zip(rows[inside], slices[inside].astype(wide), strict=True):
        sums[np.searchsorted(unique, row)] += value
    return unique, sums
