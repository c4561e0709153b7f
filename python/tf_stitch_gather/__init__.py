"""DynamicStitch, GatherNd and ScatterNd for TensorFlow, as ops of their own.

The functions take the arguments of the TensorFlow functions of the same names. `raw_ops` holds the
ops themselves, and `keras` layers of them; Keras is imported when `keras` is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from tf_stitch_gather import _gradients as _gradients  # Registers the gradients.
from tf_stitch_gather import _vectorize as _vectorize  # Registers the converters.
from tf_stitch_gather import raw_ops, rewrite
from tf_stitch_gather._api import dynamic_stitch, gather_nd, scatter_nd
from tf_stitch_gather._cluster import check_cluster
from tf_stitch_gather._drop_in import drop_in
from tf_stitch_gather._loader import build_info, library_path
from tf_stitch_gather._paths import include_path
from tf_stitch_gather._sharded import sharded_lookup
from tf_stitch_gather._version import __version__

__all__ = [
    "__version__",
    "build_info",
    "check_cluster",
    "drop_in",
    "dynamic_stitch",
    "gather_nd",
    "include_path",
    "library_path",
    "raw_ops",
    "rewrite",
    "scatter_nd",
    "sharded_lookup",
]


def __getattr__(name: str) -> Any:
    if name == "keras":
        return importlib.import_module("tf_stitch_gather.keras")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
