"""How the package is built, installed and loaded.

What loads the library anew runs in a process of its own, as a process loads it once.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import venv
import zipfile
from concurrent import futures
from pathlib import Path

import pytest
import tensorflow as tf
import tf_stitch_gather

PACKAGE = Path(tf_stitch_gather.__file__).resolve().parent
ROOT = Path(__file__).resolve().parents[1]
OP_NAMES = tf_stitch_gather.raw_ops.__all__

needs_checkout = pytest.mark.skipif(
    not (ROOT / "Makefile").exists() or shutil.which("make") is None,
    reason="needs the sources and make",
)


def run_python(code: str, *search: Path, cwd: Path, arguments: tuple[str, ...] = ()) -> str:
    """Runs code in a new interpreter, with ``search`` first on its path; returns its output."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, search)))
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, f"status {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def copy_package(parent: Path) -> Path:
    target = parent / "tf_stitch_gather"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def run_make(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess:
    inherited = {
        k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return subprocess.run(
        [shutil.which("make"), "--no-print-directory", *arguments],
        cwd=cwd,
        env={**inherited, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


# ---------------------------------------------------------------- what is stated


def test_build_info():
    info = tf_stitch_gather.build_info()
    assert set(info) == {
        "compiler",
        "cuda",
        "cxx11_abi",
        "cxx_standard",
        "tensorflow",
        "version",
        "xla",
    }
    assert info["version"] == tf_stitch_gather.__version__
    assert info["tensorflow"].split(".")[:2] == tf.__version__.split(".")[:2]
    assert info["compiler"]["id"] in ("gcc", "clang")
    assert re.fullmatch(r"\d+\.\d+\.\d+", info["compiler"]["version"])
    assert info["cxx11_abi"] == tf.sysconfig.CXX11_ABI_FLAG
    assert info["cxx_standard"].startswith("c++")


def test_build_info_is_a_copy():
    tf_stitch_gather.build_info()["tensorflow"] = "changed"
    assert tf_stitch_gather.build_info()["tensorflow"] != "changed"


def test_library_path():
    path = tf_stitch_gather.library_path()
    assert isinstance(path, str)
    assert os.path.isabs(path)
    assert path == os.path.realpath(path)
    assert os.path.isfile(path)


def test_package_names():
    for name in tf_stitch_gather.__all__:
        assert hasattr(tf_stitch_gather, name)
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize("name", OP_NAMES)
def test_raw_ops_take_keywords_only(name):
    with pytest.raises(TypeError, match="positional"):
        getattr(tf_stitch_gather.raw_ops, name)([[0]], [[0]])


# ---------------------------------------------------------------- the library file


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf of binutils")
def test_library_needs_tensorflow_framework_and_system_libraries_only():
    dynamic = subprocess.run(
        ["readelf", "--dynamic", "--wide", tf_stitch_gather.library_path()],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    framework = [name for name in needed if "tensorflow" in name]
    assert framework == ["libtensorflow_framework.so.2"]
    system = r"lib(c|m|stdc\+\+|gcc_s|pthread|dl|rt)\.so\.\d+|ld-linux-x86-64\.so\.2"
    assert [n for n in needed if n not in framework and not re.fullmatch(system, n)] == []
    assert "RPATH" not in dynamic
    assert "RUNPATH" not in dynamic
    assert "BIND_NOW" in dynamic or "FLAGS_1) Flags: NOW" in dynamic


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm of binutils")
def test_library_exports_the_rewriting_alone():
    symbols = subprocess.run(
        ["nm", "--dynamic", "--defined-only", tf_stitch_gather.library_path()],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert {line.split()[-1] for line in symbols.splitlines()} == {
        "TsgFree",
        "TsgResetRewriteStats",
        "TsgRewriteGraph",
        "TsgRewriteStats",
    }


# ---------------------------------------------------------------- loading

CHECK = """
    import numpy as np
    import tensorflow as tf

    def check(sg):
        assert sg.gather_nd([1.0, 2.0, 3.0], [[2], [0]]).numpy().tolist() == [3.0, 1.0]
        params = tf.Variable([1.0, 2.0, 3.0])
        with tf.GradientTape() as tape:
            rows = sg.gather_nd(params, [[2], [0], [2]])
            total = tf.reduce_sum(sg.dynamic_stitch([[0, 1, 0]], [rows]))
        gradient = tf.convert_to_tensor(tape.gradient(total, params))
        assert gradient.numpy().tolist() == [1.0, 0.0, 1.0], gradient
"""


def test_a_second_import_and_a_second_copy_reuse_the_ops(tmp_path):
    """Reloaded, imported anew, and imported from another copy of the package and its library."""
    copy_package(tmp_path / "copy")
    code = (
        CHECK
        + """
    import importlib
    import sys

    def forget():
        for name in [n for n in sys.modules if n.split(".")[0] == "tf_stitch_gather"]:
            del sys.modules[name]

    import tf_stitch_gather as first
    check(first)
    importlib.reload(first._loader)
    importlib.reload(first.raw_ops)
    importlib.reload(first)
    check(first)

    forget()
    import tf_stitch_gather as again
    assert again is not first
    check(again)

    forget()
    sys.path.insert(0, sys.argv[1])
    import tf_stitch_gather as copy
    assert copy.library_path().startswith(sys.argv[1])
    assert copy.library_path() != first.library_path()
    check(copy)
    check(first)

    module = tf.load_op_library(first.library_path())
    assert module.my_gather_nd([1, 2], [[1]]).numpy().tolist() == [2]
    print("all checked")
    """
    )
    output = run_python(
        code, PACKAGE.parent, cwd=tmp_path, arguments=(str((tmp_path / "copy").resolve()),)
    )
    assert output.endswith("all checked\n")


@pytest.mark.parametrize(
    ("load", "spelling"),
    [
        ("load_op_library", "same path"),
        ("load_op_library", "symbolic link"),
        ("load_op_library", "relative path"),
        ("load_library", "copied file"),
    ],
)
def test_ops_that_are_loaded_already_are_reused(tmp_path, load, spelling):
    library = Path(tf_stitch_gather.library_path())
    other = {
        "same path": library,
        "symbolic link": tmp_path / "linked.so",
        "relative path": Path(os.path.relpath(library, tmp_path)),
        "copied file": tmp_path / "copied.so",
    }[spelling]
    if spelling == "symbolic link":
        other.symlink_to(library)
    elif spelling == "copied file":
        shutil.copy(library, other)
    code = (
        CHECK
        + f"""
    import sys
    tf.{load}(sys.argv[1])
    import tf_stitch_gather
    check(tf_stitch_gather)
    print("all checked")
    """
    )
    output = run_python(code, PACKAGE.parent, cwd=tmp_path, arguments=(str(other),))
    assert output.endswith("all checked\n")


def test_package_behind_a_symbolic_link(tmp_path):
    (tmp_path / "tf_stitch_gather").symlink_to(PACKAGE)
    code = (
        CHECK
        + """
    import tf_stitch_gather
    check(tf_stitch_gather)
    print(tf_stitch_gather.library_path())
    """
    )
    output = run_python(code, tmp_path, cwd=tmp_path)
    assert output.splitlines()[-1] == tf_stitch_gather.library_path()


def test_spawned_process(tmp_path):
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import multiprocessing

        import tf_stitch_gather as sg

        def gather(place):
            return sg.gather_nd([10, 20, 30], [[place]]).numpy().tolist()

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(gather(1), pool.map(gather, [0, 2]))
        """)
    )
    code = "import runpy; runpy.run_path('program.py', run_name='__main__')"
    output = run_python(code, PACKAGE.parent, tmp_path, cwd=tmp_path)
    assert output.splitlines()[-1] == "[20] [[10], [30]]"


def test_import_changes_nothing_in_tensorflow(tmp_path):
    code = """
    import json
    import logging
    import os
    import sys
    import warnings

    import tensorflow as tf
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session
    from tensorflow.python.framework import kernels, ops

    def op_defs():
        serialized = pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
        return {op.name: op for op in op_def_pb2.OpList.FromString(serialized).op}

    def state():
        kernel_list = kernels.get_all_registered_kernels().kernel
        gradients = ops.gradient_registry
        return {
            "ops": {name: op.SerializeToString() for name, op in op_defs().items()},
            "kernels": sorted(k.SerializeToString() for k in kernel_list if k.op[:2] != "My"),
            "gradients": {n: gradients.lookup(n) for n in gradients.list() if n[:2] != "My"},
            "raw_ops": {n: getattr(tf.raw_ops, n) for n in dir(tf.raw_ops)},
            "tf": {n: getattr(tf, n) for n in dir(tf)},
            "functions": [tf.gather_nd, tf.dynamic_stitch, tf.scatter_nd, tf.gather],
            "environment": dict(os.environ),
            "warnings": list(warnings.filters),
            "logging": (logging.root.level, tf.get_logger().level, list(logging.root.handlers)),
            "devices": (tf.config.get_visible_devices(), tf.config.list_logical_devices()),
            "threads": (
                tf.config.threading.get_inter_op_parallelism_threads(),
                tf.config.threading.get_intra_op_parallelism_threads(),
            ),
            "placement": tf.config.get_soft_device_placement(),
            "optimizer": tf.config.optimizer.get_experimental_options(),
            "eager": tf.executing_eagerly(),
        }

    def values():
        tf.random.set_seed(5)
        drawn = tf.random.uniform([4])
        gathered = tf.gather_nd(drawn, [[3], [1]])
        merged = tf.dynamic_stitch([[0, 2], [1]], [gathered, [7.0]])
        return merged.numpy().tobytes()

    # The first use of the devices registers kernels of TensorFlow's own.
    state(), values()
    before, values_before = state(), values()
    tf.random.set_seed(5)
    import tf_stitch_gather
    drawn = tf.random.uniform([4])
    tf.random.set_seed(5)
    assert drawn.numpy().tolist() == tf.random.uniform([4]).numpy().tolist()
    after, values_after = state(), values()

    added = sorted(set(after["ops"]) - set(before["ops"]))
    for name in added:
        del after["ops"][name]
    for part in before:
        assert after[part] == before[part], part
    assert values_after == values_before
    print(json.dumps(added))
    """
    output = run_python(code, PACKAGE.parent, cwd=tmp_path)
    assert json.loads(output.splitlines()[-1]) == OP_NAMES


# ---------------------------------------------------------------- loading fails


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    """The messages of ImportError for packages that are broken in several ways, by way.

    They are imported one after another in one process, which then imports the whole package.
    """
    folder = tmp_path_factory.mktemp("broken").resolve()

    other_tensorflow = copy_package(folder / "other_tensorflow")
    info = dict(tf_stitch_gather.build_info(), tensorflow="2.7.4")
    (other_tensorflow / "_build_info.json").write_text(json.dumps(info))

    in_checkout = folder / "in_checkout"
    shutil.copytree(other_tensorflow, in_checkout / "python" / "tf_stitch_gather")
    (in_checkout / "Makefile").touch()
    (in_checkout / "tf_ops").mkdir()

    (copy_package(folder / "no_library") / "libtf_stitch_gather.so").unlink()
    (copy_package(folder / "no_build_info") / "_build_info.json").unlink()
    (copy_package(folder / "bad_library") / "libtf_stitch_gather.so").write_bytes(b"not a library")

    # Comes last: it finds the ops of the whole package, and does not fit them.
    other_version = copy_package(folder / "other_version") / "raw_ops.py"
    text = other_version.read_text("utf-8")
    assert "num_rows: Any" in text
    other_version.write_text(text.replace("num_rows: Any", "row_count: Any"))

    code = (
        CHECK
        + """
    import json
    import sys

    messages = {}
    for way in ["other_tensorflow", "in_checkout/python", "no_library", "no_build_info",
                "bad_library", "whole", "other_version"]:
        sys.path[0] = sys.argv[2] if way == "whole" else f"{sys.argv[1]}/{way}"
        for name in [n for n in sys.modules if n.split(".")[0] == "tf_stitch_gather"]:
            del sys.modules[name]
        try:
            import tf_stitch_gather
        except ImportError as error:
            assert type(error) is ImportError
            messages[way] = str(error)
        else:
            assert way == "whole", way
            check(tf_stitch_gather)
    print(json.dumps(messages))
    """
    )
    output = run_python(code, cwd=folder, arguments=(str(folder), str(PACKAGE.parent)))
    return folder, json.loads(output.splitlines()[-1])


def test_library_of_another_tensorflow(failures):
    message = failures[1]["other_tensorflow"]
    assert "2.7.4" in message
    assert tf.__version__ in message
    assert f"{sys.executable} -m pip install 'tensorflow==2.7.*'" in message


def test_library_of_another_tensorflow_in_a_checkout(failures):
    folder, messages = failures
    message = messages["in_checkout/python"]
    assert "2.7.4" in message
    assert tf.__version__ in message
    assert f"make -C {folder / 'in_checkout'} PYTHON={sys.executable}" in message


@pytest.mark.parametrize(
    ("way", "file"),
    [("no_library", "libtf_stitch_gather.so"), ("no_build_info", "_build_info.json")],
)
def test_library_that_was_not_built(failures, way, file):
    message = failures[1][way]
    assert f"{file} is missing" in message
    assert "Build it: " in message


def test_library_that_does_not_load(failures):
    message = failures[1]["bad_library"]
    assert "does not load" in message
    assert "libtf_stitch_gather.so" in message
    assert "Build it again: " in message


def test_loaded_ops_of_another_version(failures):
    message = failures[1]["other_version"]
    assert "MyGatherNdSparseGrad" in message
    assert "'num_rows'" in message
    assert "'row_count'" in message


def test_a_failed_import_spoils_nothing(failures):
    assert "whole" not in failures[1]


# ---------------------------------------------------------------- make


def fake_python(folder: Path, body: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def error_line(result: subprocess.CompletedProcess) -> str:
    """The one line of the output that is not make's own closing line."""
    assert result.returncode != 0, result.stdout
    closing = re.compile(r"make(\[\d+\])?: \*\*\* \[.*\] Error \d+$")
    lines = [line for line in result.stdout.splitlines() if not closing.match(line)]
    assert len(lines) == 1, result.stdout
    return lines[0]


@needs_checkout
class TestUnfitMachine:
    """One line says what to install."""

    def test_no_compiler(self, tmp_path):
        line = error_line(run_make(f"BUILD={tmp_path}", "CXX=no-such-compiler"))
        assert "no-such-compiler" in line
        assert "apt-get install g++" in line

    def test_no_interpreter(self, tmp_path):
        line = error_line(run_make(f"BUILD={tmp_path}", "PYTHON=no-such-python"))
        assert "no-such-python" in line
        assert "install Python 3.10 to 3.13" in line

    def test_old_interpreter(self, tmp_path):
        line = error_line(
            run_make(f"BUILD={tmp_path}", f"PYTHON={fake_python(tmp_path, 'exit 1')}")
        )
        assert "install Python 3.10 to 3.13" in line

    def test_no_python_at_all(self, tmp_path):
        tools = tmp_path / "tools"
        tools.mkdir()
        for name in ("bash", "make", "env", "g++", "head", "mkdir", "nproc"):
            (tools / name).symlink_to(shutil.which(name))
        result = run_make(
            f"BUILD={tmp_path}", f"VENV={tmp_path}/venv", "PYTHON=", PATH=str(tools), PYTHON=""
        )
        line = error_line(result)
        assert "apt-get install python3 python3-venv" in line

    def test_no_venv_module(self, tmp_path):
        tools = tmp_path / "tools"
        tools.mkdir()
        for name in ("bash", "make", "env", "g++", "head", "mkdir", "nproc", "sh"):
            (tools / name).symlink_to(shutil.which(name))
        broken = fake_python(tmp_path, 'case "$2" in *ensurepip*) exit 1;; esac')
        (tools / "python3").symlink_to(broken)
        result = run_make(
            f"BUILD={tmp_path}", f"VENV={tmp_path}/venv", "PYTHON=", PATH=str(tools), PYTHON=""
        )
        assert "apt-get install python3-venv" in error_line(result)

    def test_no_tensorflow(self, tmp_path):
        venv.create(tmp_path / "venv", with_pip=False)
        python = tmp_path / "venv" / "bin" / "python"
        line = error_line(run_make(f"BUILD={tmp_path}", f"PYTHON={python}", PYTHONPATH=""))
        assert "has no tensorflow" in line
        assert f"{python} -m pip install 'tensorflow>=2.18,<2.22'" in line

    def test_old_tensorflow(self, tmp_path):
        (tmp_path / "tensorflow").mkdir()
        (tmp_path / "tensorflow" / "__init__.py").write_text(
            textwrap.dedent("""
            __version__ = "2.15.1"
            class version:
                GIT_VERSION = "v2.15.1"
            class sysconfig:
                CXX11_ABI_FLAG = 1
                get_compile_flags = lambda: ["-I/include"]
                get_link_flags = lambda: ["-l:libtensorflow_framework.so.2"]
            """)
        )
        result = run_make(
            f"BUILD={tmp_path}/b", f"PYTHON={sys.executable}", PYTHONPATH=str(tmp_path)
        )
        line = error_line(result)
        assert "TensorFlow 2.15.1" in line
        assert "install TensorFlow 2.18 to 2.21" in line

    def test_tensorflow_that_does_not_import(self, tmp_path):
        (tmp_path / "tensorflow").mkdir()
        (tmp_path / "tensorflow" / "__init__.py").write_text("raise RuntimeError('half installed')")
        result = run_make(
            f"BUILD={tmp_path}/b", f"PYTHON={sys.executable}", PYTHONPATH=str(tmp_path)
        )
        line = error_line(result)
        assert "half installed" in line
        assert "install TensorFlow 2.18 to 2.21" in line


@pytest.fixture
def small_tree(tmp_path):
    """The Makefile over a core of one file, with a test that passes."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for folder in ("core", "cpu", "tests"):
        (tmp_path / "tf_ops" / folder).mkdir(parents=True)
    (tmp_path / "tf_ops" / "core" / "one.h").write_text("int One();\n")
    (tmp_path / "tf_ops" / "core" / "one.cc").write_text(
        '#include "tf_ops/core/one.h"\nint One() { return 1; }\n'
    )
    (tmp_path / "tf_ops" / "tests" / "one_test.cc").write_text(
        '#include "tf_ops/core/one.h"\nint main() { return One() - 1; }\n'
    )
    return tmp_path


@needs_checkout
class TestIncrementalBuild:
    """On a small tree; `core-test` goes without TensorFlow."""

    def built(self, tree: Path, *arguments: str) -> set[str]:
        result = run_make("core-test", *arguments, cwd=tree)
        assert result.returncode == 0, result.stdout
        assert "RUN build/core-abi1/tf_ops/tests/one_test" in result.stdout
        return {line for line in result.stdout.splitlines() if line.startswith(("CXX", "LINK"))}

    def test_only_what_changed_is_built(self, small_tree):
        core, test = "CXX tf_ops/core/one.cc", "CXX tf_ops/tests/one_test.cc"
        link = "LINK build/core-abi1/tf_ops/tests/one_test"
        assert self.built(small_tree) == {core, test, link}
        assert self.built(small_tree) == set()
        (small_tree / "tf_ops" / "tests" / "one_test.cc").touch()
        assert self.built(small_tree) == {test, link}
        (small_tree / "tf_ops" / "core" / "one.h").touch()
        assert self.built(small_tree) == {core, test, link}
        assert self.built(small_tree, "EXTRA_CXXFLAGS=-DNEW_FLAG") == {core, test, link}
        assert self.built(small_tree, "EXTRA_CXXFLAGS=-DNEW_FLAG") == set()
        assert self.built(small_tree) == {core, test, link}

    def test_a_failing_test_fails(self, small_tree):
        (small_tree / "tf_ops" / "tests" / "two_test.cc").write_text("int main() { return 1; }\n")
        assert run_make("core-test", cwd=small_tree).returncode != 0

    def test_a_warning_fails_unless_told_otherwise(self, small_tree):
        (small_tree / "tf_ops" / "core" / "two.cc").write_text("void F(int unused) {}\n")
        result = run_make("core-test", cwd=small_tree)
        assert result.returncode != 0
        assert "unused" in result.stdout
        assert run_make("core-test", "WERROR=", cwd=small_tree).returncode == 0

    def test_core_does_not_see_tensorflow(self, small_tree):
        (small_tree / "tf_ops" / "core" / "two.cc").write_text(
            '#include "tensorflow/core/framework/types.h"\n'
        )
        result = run_make("core-test", cwd=small_tree)
        assert result.returncode != 0
        assert "tensorflow/core/framework/types.h: No such file" in result.stdout

    @pytest.mark.skipif(shutil.which("flock") is None, reason="needs flock")
    def test_of_two_at_once_one_waits(self, small_tree):
        """The second finds all built, and says what it waited for."""
        (small_tree / "tf_ops" / "tests" / "one_test.cc").write_text(
            '#include "tf_ops/core/one.h"\n#include <unistd.h>\n'
            "int main() { sleep(1); return One() - 1; }\n"
        )
        with futures.ThreadPoolExecutor(2) as pool:
            calls = [
                pool.submit(run_make, "core-test", cwd=small_tree, MAKE_HOLDS_LOCK="")
                for _ in range(2)
            ]
            results = [call.result() for call in calls]
        assert [result.returncode for result in results] == [0, 0], results
        output = "".join(result.stdout for result in results)
        assert output.count("CXX tf_ops/core/one.cc") == 1
        assert output.count("Waiting for the make that builds in build") == 1

    def test_clean(self, small_tree):
        self.built(small_tree)
        assert run_make("clean", cwd=small_tree).returncode == 0
        assert not (small_tree / "build").exists()


# ---------------------------------------------------------------- packing


def call_build_backend(call: str, target: Path) -> str:
    """Runs a hook of the build backend, as pip does without build isolation; returns its result."""
    code = f"""
    import sys
    import setuptools.build_meta as backend
    print(backend.{call})
    """
    return run_python(code, cwd=ROOT, arguments=(str(target),)).splitlines()[-1]


def has_setuptools() -> bool:
    try:
        import setuptools
    except ImportError:
        return False
    return int(setuptools.__version__.split(".")[0]) >= 77


needs_setuptools = pytest.mark.skipif(not has_setuptools(), reason="needs setuptools 77 or later")


@needs_checkout
@needs_setuptools
def test_wheel(tmp_path):
    """Its name and metadata, and that it works from where it is unpacked."""
    in_place = ROOT / "python" / "tf_stitch_gather" / "libtf_stitch_gather.so"
    linked_at = in_place.stat().st_mtime_ns if in_place.exists() else None
    name = call_build_backend("build_wheel(sys.argv[1])", tmp_path)
    version = tf_stitch_gather.__version__
    assert re.fullmatch(rf"tf_stitch_gather-{re.escape(version)}-py3-none-linux_\w+\.whl", name)
    assert (in_place.stat().st_mtime_ns if in_place.exists() else None) == linked_at

    site = tmp_path / "site"
    with zipfile.ZipFile(tmp_path / name) as wheel:
        wheel.extractall(site)
        members = wheel.namelist()
    package = {
        member
        for member in members
        if member.startswith("tf_stitch_gather/") and not member.endswith("/")
    }
    sources = {
        f"tf_stitch_gather/{p.name}" for p in (ROOT / "python/tf_stitch_gather").glob("*.py")
    }
    headers = {
        f"tf_stitch_gather/include/{path.relative_to(ROOT)}"
        for path in (ROOT / "tf_ops" / "cc").glob("*.h")
    }
    cmake = {
        f"tf_stitch_gather/cmake/{path.name}"
        for path in (ROOT / "python" / "tf_stitch_gather" / "cmake").glob("*.cmake")
    }
    built = {
        "_build_info.json",
        "libtf_stitch_gather.so",
        "libtf_stitch_gather_xla.so",
        "py.typed",
    }
    assert package == sources | headers | cmake | {f"tf_stitch_gather/{name}" for name in built}
    assert {member.split("/")[0] for member in members} == {
        "tf_stitch_gather",
        f"tf_stitch_gather-{version}.dist-info",
    }

    metadata = (site / f"tf_stitch_gather-{version}.dist-info" / "METADATA").read_text("utf-8")
    major, minor = map(int, tf.__version__.split(".")[:2])
    required = re.findall(r"^Requires-Dist: ([^;\n]+)$", metadata, re.MULTILINE)
    tensorflow = next(r for r in required if r != "numpy")
    assert len(required) == 2
    assert f">={major}.{minor}" in tensorflow
    assert f"<{major}.{minor + 1}" in tensorflow

    code = (
        CHECK
        + """
    import tf_stitch_gather
    check(tf_stitch_gather)
    print(tf_stitch_gather.library_path())
    """
    )
    output = run_python(code, site, cwd=tmp_path)
    assert output.splitlines()[-1].startswith(str(site.resolve()))


@needs_checkout
@needs_setuptools
def test_source_distribution_has_what_the_build_needs(tmp_path):
    name = call_build_backend("build_sdist(sys.argv[1])", tmp_path)
    with tarfile.open(tmp_path / name) as archive:
        members = {member.partition("/")[2] for member in archive.getnames()}
    needed = {"Makefile", "setup.py", "pyproject.toml", "LICENSE", "README.md"}
    for pattern in ("tf_ops/**/*.cc", "tf_ops/**/*.h", "tools/*.py", "python/**/*.py"):
        needed |= {str(path.relative_to(ROOT)) for path in ROOT.glob(pattern)}
    assert needed - members == set()
    assert [m for m in members if m.endswith((".so", ".o", "_build_info.json"))] == []
