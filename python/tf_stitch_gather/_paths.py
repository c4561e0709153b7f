"""Where this package keeps what programs in other languages need of it."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def include_path() -> str:
    """The absolute path of the folder with the C++ headers, for the `-I` option of a compiler.

    >>> import os
    >>> import tf_stitch_gather as sg
    >>> sorted(os.listdir(os.path.join(sg.include_path(), "tf_ops", "cc")))[:2]
    ['client_session.h', 'dynamic_stitch.h']

    Returns:
      A `str`. `#include "tf_ops/cc/ops.h"` is relative to this folder.
    """
    return str(_PACKAGE / "include")


def cmake_path() -> str:
    """The absolute path of the folder with the configuration for CMake's `find_package`.

    Returns:
      A `str`, the value that `tf_stitch_gather_DIR` wants.
    """
    return str(_PACKAGE / "cmake")
