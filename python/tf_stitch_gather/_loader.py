"""Finds the op library that ships in this package and loads it, once per process."""

from __future__ import annotations

import json
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import tensorflow as tf

# TensorFlow has no public way to ask whether an op is registered, nor to wrap one that is.
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import _pywrap_python_op_gen, op_def_registry

OP_NAMES = (
    "MyDynamicStitch",
    "MyDynamicStitchGrad",
    "MyDynamicStitchSized",
    "MyGatherNd",
    "MyGatherNdSparseGrad",
    "MyResourceGatherNd",
    "MyScatterNd",
)

_PACKAGE = Path(__file__).resolve().parent
_LIBRARY = _PACKAGE / "libtf_stitch_gather.so"
_XLA_LIBRARY = _PACKAGE / "libtf_stitch_gather_xla.so"
_BUILD_INFO = _PACKAGE / "_build_info.json"

# Why the ops cannot be compiled by XLA; None where they can.
_without_xla: str | None = "the op library is not loaded"


def library_path() -> str:
    """The absolute path, free of symbolic links, of the op library of this package.

    `tf.load_op_library` wants this path when a program uses the ops without the Python package; the
    same file under another spelling would give it a module without ops.

    >>> import os
    >>> import tf_stitch_gather as sg
    >>> os.path.basename(sg.library_path())
    'libtf_stitch_gather.so'

    Returns:
      A `str`.
    """
    return str(_LIBRARY.resolve())


def build_info() -> dict[str, Any]:
    """What the op library was built with.

    >>> import tf_stitch_gather as sg
    >>> sorted(sg.build_info())
    ['compiler', 'cuda', 'cxx11_abi', 'cxx_standard', 'tensorflow', 'version', 'xla']

    Returns:
      A `dict`: `version` of this package, `tensorflow` (the version built for), `compiler` (a
      `dict` of `id` and `version`), `cxx11_abi` (0 or 1), `cxx_standard`, `cuda` (a `dict` of
      `nvcc`, its version, and `architectures`; `None` in a build without GPU kernels), and `xla` (a
      `dict` of `loaded`, whether XLA can compile the ops in this process, and `reason`, a `str`
      that says why not, or `None`).

    Raises:
      ImportError: if the library was not built.
    """
    try:
        info: dict[str, Any] = json.loads(_BUILD_INFO.read_text("utf-8"))
    except FileNotFoundError:
        raise ImportError(
            f"the op library of tf_stitch_gather was not built: {_BUILD_INFO} is missing. "
            f"Build it: {build_command()}"
        ) from None
    return info | {"xla": {"loaded": _without_xla is None, "reason": _without_xla}}


def load() -> types.ModuleType:
    """Returns the module of Python wrappers that TensorFlow generates for the ops.

    The library is loaded unless its ops are registered already, be it through another copy of this
    package, another spelling of the library's path or `tf.load_library`: a second copy of the same
    kernels would end the process. The kernels for XLA, a library of their own, come with it if they
    can be loaded.

    Raises:
      ImportError: if the library is missing, was built for another TensorFlow, or does not load.
    """
    global _without_xla
    ops = _load_ops()
    _without_xla = _load_xla()
    return ops


def _load_ops() -> types.ModuleType:
    info = build_info()
    warn_without_gpu_kernels(info)
    if _minor(info["tensorflow"]) != _minor(tf.__version__):
        raise ImportError(
            f"the op library of tf_stitch_gather was built for TensorFlow {info['tensorflow']}, "
            f"but this is TensorFlow {tf.__version__}. "
            f"Mend it: {build_command(for_tensorflow=info['tensorflow'])}"
        )
    registered = {name: op_def_registry.get(name) for name in OP_NAMES}
    if any(op_def is not None for op_def in registered.values()):
        missing = [name for name, op_def in registered.items() if op_def is None]
        if missing:
            raise ImportError(
                f"another op library has registered some of the ops of tf_stitch_gather, but not "
                f"{', '.join(missing)}: load one version of the library only"
            )
        return _wrap(registered.values())
    path = library_path()
    if not Path(path).is_file():
        raise ImportError(
            f"the op library of tf_stitch_gather was not built: {path} is missing. "
            f"Build it: {build_command()}"
        )
    try:
        module: types.ModuleType = tf.load_op_library(path)
    except (tf.errors.OpError, RuntimeError) as error:
        raise ImportError(
            f"the op library of tf_stitch_gather does not load: {error}. "
            f"It was built for TensorFlow {info['tensorflow']}; this is {tf.__version__}. "
            f"Build it again: {build_command()}"
        ) from error
    return module


def _load_xla() -> str | None:
    """Loads the kernels for XLA; returns why that cannot be done, or None.

    The library itself sees to it that kernels which are there already are not registered again.
    """
    path = _XLA_LIBRARY.resolve()
    if not path.is_file():
        return f"{path} is missing. Build it: {build_command()}"
    try:
        tf.load_library(str(path))
    except (tf.errors.OpError, RuntimeError) as error:
        return f"{path} does not load: {error}. Build it again: {build_command()}"
    return None


def warn_without_gpu_kernels(info: dict[str, Any]) -> None:
    """Warns where TensorFlow sees a GPU and the library of this `build_info` has no kernels."""
    if info["cuda"] is None and tf.config.list_physical_devices("GPU"):
        warnings.warn(
            "TensorFlow sees a GPU, but the op library of tf_stitch_gather has no GPU kernels: "
            f"its ops run on the CPU. Build them: {build_command(cuda=True)}",
            stacklevel=2,
        )


def _wrap(op_defs: Any) -> types.ModuleType:
    """The module that `tf.load_op_library` would make for ops that are registered already."""
    source = _pywrap_python_op_gen.GetPythonWrappers(
        op_def_pb2.OpList(op=op_defs).SerializeToString()
    )
    module = types.ModuleType("tf_stitch_gather_ops")
    exec(source, module.__dict__)
    # Tells AutoGraph not to convert the wrappers, as in tf.load_op_library.
    module._IS_TENSORFLOW_PLUGIN = True  # type: ignore[attr-defined]
    return module


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def build_command(for_tensorflow: str | None = None, cuda: bool = False) -> str:
    """The command that mends the library or, for an installed wheel, gets its TensorFlow."""
    checkout = _PACKAGE.parents[1]
    if (checkout / "Makefile").is_file() and (checkout / "tf_ops").is_dir():
        return f"make -C {checkout} PYTHON={sys.executable}{' CUDA=1' if cuda else ''}"
    if for_tensorflow is not None:
        return f"{sys.executable} -m pip install 'tensorflow=={_minor(for_tensorflow)}.*'"
    install = f"{sys.executable} -m pip install --force-reinstall --no-deps"
    if cuda:
        return f"CUDA=1 {install} --no-build-isolation --no-binary :all: tf-stitch-gather"
    return f"{install} tf-stitch-gather"
