"""What is measured: the cases of a grid file, as checked, immutable records.

A grid is a JSON list of objects. Every case has `name`, `op`, `dtype` (of the data) and `index`
(the index type); the rest depends on `op`:

* `gather_nd`, `gather_nd_grad`: `params` and `indices` (shapes), `batch_dims`, optionally
  `order` (`"random"`, the default, or `"sorted"`).
* `scatter_nd`: `indices` and `shape` (of the output), optionally `order`.
* `dynamic_stitch`, `dynamic_stitch_grad`: `parts`, `rows` (a part's), `slice` (a row's shape) and
  `duplicates`: the share of rows that a later row overwrites.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Shape = tuple[int, ...]

GATHER_OPS = frozenset({"gather_nd", "gather_nd_grad"})
STITCH_OPS = frozenset({"dynamic_stitch", "dynamic_stitch_grad"})
GRADIENT_OPS = frozenset({"gather_nd_grad", "dynamic_stitch_grad"})
OPS = GATHER_OPS | STITCH_OPS | {"scatter_nd"}

DEFAULT_GRID = Path(__file__).with_name("grid.json")

_NEEDED = {
    "gather_nd": {"params", "indices"},
    "gather_nd_grad": {"params", "indices"},
    "scatter_nd": {"indices", "shape"},
    "dynamic_stitch": {"parts", "rows", "slice"},
    "dynamic_stitch_grad": {"parts", "rows", "slice"},
}


class GridError(ValueError):
    """A grid file that does not describe cases."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One case of a grid. Fields that its op does not use keep their defaults."""

    name: str
    op: str
    dtype: str = "float32"
    index: str = "int32"
    params: Shape = ()
    indices: Shape = ()
    batch_dims: int = 0
    shape: Shape = ()
    parts: int = 1
    rows: int = 0
    slice: Shape = ()
    duplicates: float = 0.0
    order: str = "random"

    @property
    def depth(self) -> int:
        """How many dimensions one index picks from (0 for a stitch)."""
        return self.indices[-1] if self.indices else 0

    @property
    def slice_shape(self) -> Shape:
        """The shape of what one index moves."""
        if self.op in STITCH_OPS:
            return self.slice
        if self.op == "scatter_nd":
            return self.shape[self.depth :]
        return self.params[self.batch_dims + self.depth :]

    @property
    def index_count(self) -> int:
        """How many slices the case moves."""
        if self.op in STITCH_OPS:
            return self.parts * self.rows
        return math.prod(self.indices[:-1])

    @property
    def is_raw(self) -> bool:
        """Whether the case is measured as an eager raw op; the others run inside `tf.function`."""
        return self.op not in GRADIENT_OPS and self.batch_dims == 0

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Case:
        """A case from one object of a grid file. Raises GridError that says what is wrong."""
        label = entry.get("name", "?")
        op = entry.get("op")
        if op not in OPS:
            raise GridError(f"case {label!r}: op is {op!r}, expected one of {sorted(OPS)}")
        missing = (_NEEDED[op] | {"name"}) - entry.keys()
        if missing:
            raise GridError(f"case {label!r}: {op} lacks {sorted(missing)}")
        unknown = entry.keys() - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            raise GridError(f"case {label!r}: unknown keys {sorted(unknown)}")
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
        }
        case = cls(**fields)
        case._check()
        return case

    def to_json(self) -> dict[str, Any]:
        """The object that `from_json` makes this case from."""
        return dataclasses.asdict(self)

    def _check(self) -> None:
        if self.order not in ("random", "sorted"):
            raise GridError(f"case {self.name!r}: order is {self.order!r}, not random or sorted")
        if not 0.0 <= self.duplicates < 1.0:
            raise GridError(f"case {self.name!r}: duplicates must be in [0, 1)")
        if self.op in GATHER_OPS:
            b = self.batch_dims
            if self.params[:b] != self.indices[:b] or self.depth > len(self.params) - b:
                raise GridError(
                    f"case {self.name!r}: indices {self.indices} do not fit params {self.params} "
                    f"with batch_dims={b}"
                )
        if self.op == "scatter_nd" and self.depth > len(self.shape):
            raise GridError(
                f"case {self.name!r}: indices {self.indices} do not fit shape {self.shape}"
            )


def load_grid(path: Path | str = DEFAULT_GRID) -> list[Case]:
    """The cases of a grid file, in its order. Raises GridError when it holds anything else."""
    try:
        entries = json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise GridError(f"{path} is not JSON: {error}") from error
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise GridError(f"{path} must hold a list of objects")
    cases = [Case.from_json(entry) for entry in entries]
    names = [case.name for case in cases]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise GridError(f"{path}: names given twice: {repeated}")
    return cases
