"""The ops from C++ and C: the examples built by make, and by CMake against an installed wheel."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import tf_stitch_gather as sg
from tf_stitch_gather import _cli

ROOT = Path(__file__).resolve().parent.parent
HEADERS = sorted(path.name for path in (ROOT / "tf_ops" / "cc").glob("*.h"))

pytestmark = pytest.mark.skipif(
    not (ROOT / "Makefile").is_file(), reason="the examples are built from a checkout"
)


def run(command: Sequence[str | Path], **variables: str) -> str:
    """The output of a command that must succeed; `make` in it knows nothing of a `make` around."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH")
    }
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "2", **variables}
    result = subprocess.run(
        [str(part) for part in command],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{command}:\n{result.stdout}\n{result.stderr}"
    return result.stdout


def make(goal: str) -> str:
    return run(["make", "--no-print-directory", "-C", ROOT, goal, f"PYTHON={sys.executable}"])


def rows_of(output: str, kind: str) -> list[str]:
    """The rows of an example's table whose name begins with `kind`."""
    return re.findall(rf"^(?:ok|WRONG) +{kind}.*$", output, re.MULTILINE)


def check_cc_table(output: str) -> None:
    assert "WRONG" not in output
    # The ten examples of the reference page and three more.
    assert len(rows_of(output, "gather: ")) == 12
    assert len(rows_of(output, "scatter: ")) == 1
    assert len(rows_of(output, "stitch: ")) == 3
    assert len(rows_of(output, "gradient of ")) == 4
    assert len(rows_of(output, "second gradient of ")) == 1
    assert len(rows_of(output, "error: ")) == 6
    assert output.rstrip().endswith("0 wrong")


def check_c_table(output: str) -> None:
    assert "WRONG" not in output
    for kind in ("gather", "bad rows ignored", "stitch", "a bad policy", "bad rows  "):
        assert len(rows_of(output, kind)) == 1, kind
    assert "indices[1] = [7] does not index into param shape [2,2]" in output
    assert output.rstrip().endswith("0 wrong")


def test_cc_example() -> None:
    check_cc_table(make("cc-example"))


def test_c_example() -> None:
    check_c_table(make("c-example"))


def test_c_example_without_library(tmp_path: Path) -> None:
    make("c-example")
    missing = tmp_path / "libtf_stitch_gather.so"
    result = subprocess.run(
        [ROOT / "build" / "examples" / "c_api", missing],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert f"TF_LoadLibrary: {missing}: cannot open shared object file" in result.stderr


def test_library_needs_framework_only() -> None:
    if shutil.which("readelf") is None:
        pytest.skip("no readelf on PATH")
    needed = re.findall(r"NEEDED.*\[(.*)\]", run(["readelf", "-d", sg.library_path()]))
    assert "libtensorflow_framework.so.2" in needed
    assert not [name for name in needed if name.startswith(("libtensorflow_cc", "libpython"))]


def test_include_path() -> None:
    folder = Path(sg.include_path())
    assert folder.is_absolute()
    assert sorted(path.name for path in (folder / "tf_ops" / "cc").iterdir()) == HEADERS
    for name in HEADERS:
        shipped = (folder / "tf_ops" / "cc" / name).read_text("utf-8")
        assert shipped == (ROOT / "tf_ops" / "cc" / name).read_text("utf-8")


@pytest.mark.parametrize("name", HEADERS)
def test_headers_include_only_what_is_shipped(name: str) -> None:
    text = (ROOT / "tf_ops" / "cc" / name).read_text("utf-8")
    own = re.findall(r'#include "tf_ops/(.*)"', text)
    assert [path for path in own if path.removeprefix("cc/") not in HEADERS] == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cmake-dir", str(Path(sg.__file__).resolve().parent / "cmake")),
        ("include-dir", sg.include_path()),
        ("library-path", sg.library_path()),
    ],
)
def test_command_prints_path(
    command: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _cli.main([command]) == 0
    assert capsys.readouterr().out == expected + "\n"
    assert Path(expected).exists()


def test_command_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["info"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info.pop("here")["library"] == sg.library_path()
    assert info == sg.build_info()


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["info", "surplus"]])
def test_command_refuses(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        _cli.main(arguments)
    assert error.value.code == 2
    assert "usage: tf-stitch-gather" in capsys.readouterr().err


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT])
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the checkout with the installed wheel."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "install", "--no-deps", "--target", folder, wheel])
    return folder


def test_wheel_holds_what_other_languages_need(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (entry_points,) = (name for name in names if name.endswith("/entry_points.txt"))
        commands = archive.read(entry_points).decode()
    folder = "tf_stitch_gather/include/tf_ops/cc/"
    headers = [name.removeprefix(folder) for name in names if name.startswith(folder)]
    assert sorted(headers) == HEADERS
    assert "tf_stitch_gather/cmake/tf_stitch_gatherConfig.cmake" in names
    assert "tf_stitch_gather/cmake/tf_stitch_gatherConfigVersion.cmake" in names
    assert "tf-stitch-gather = tf_stitch_gather._cli:main" in commands


def ask(site: Path, command: str) -> str:
    """What the command prints for the installed package."""
    printed = run(
        [site / "bin" / "tf-stitch-gather", command], PYTHONPATH=str(site), PYTHONSAFEPATH="1"
    )
    return printed.removesuffix("\n")


def cmake() -> str:
    path = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if path is None:
        pytest.skip("no cmake on PATH and none installed by pip")
    return path


def configure(site: Path, build: Path, **variables: str | Path) -> subprocess.CompletedProcess[str]:
    source = build.parent / "source"
    if not source.exists():
        shutil.copytree(ROOT / "examples" / "cc", source)
    defaults: dict[str, str | Path] = {
        "CMAKE_C_FLAGS": "-Wall -Wextra -Werror",
        "CMAKE_CXX_FLAGS": "-Wall -Wextra -Werror",
        "Python3_EXECUTABLE": sys.executable,
        "tf_stitch_gather_DIR": site / "tf_stitch_gather" / "cmake",
    }
    definitions = [f"-D{name}={value}" for name, value in {**defaults, **variables}.items()]
    return subprocess.run(
        [cmake(), "-S", source, "-B", build, *definitions],
        capture_output=True,
        text=True,
        check=False,
    )


def test_cmake_build_against_installed_wheel(site: Path, tmp_path: Path) -> None:
    folder = ask(site, "cmake-dir")
    assert folder == str(site.resolve() / "tf_stitch_gather" / "cmake")
    build = tmp_path / "build"
    configured = configure(site, build, tf_stitch_gather_DIR=folder)
    assert configured.returncode == 0, configured.stdout + configured.stderr
    log = run([cmake(), "--build", build, "--verbose"])
    assert f"-isystem {site.resolve()}/tf_stitch_gather/include" in log
    assert str(ROOT) not in log.replace(str(Path(sys.prefix)), "")
    check_cc_table(run([build / "cc_api"]))
    check_c_table(run([build / "c_api", ask(site, "library-path")]))


def test_cmake_names_missing_tensorflow(site: Path, tmp_path: Path) -> None:
    configured = configure(
        site, tmp_path / "build", tf_stitch_gather_TENSORFLOW_DIR=tmp_path / "nowhere"
    )
    assert configured.returncode != 0
    words = " ".join(configured.stderr.split())
    assert "nowhere/libtensorflow_cc.so.2 is missing: set tf_stitch_gather_TENSORFLOW_DIR" in words


def test_cmake_refuses_another_tensorflow(site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    shutil.copytree(site / "tf_stitch_gather", copy / "tf_stitch_gather")
    info = copy / "tf_stitch_gather" / "_build_info.json"
    info.write_text(json.dumps({**json.loads(info.read_text()), "tensorflow": "1.15.0"}))
    configured = configure(copy, tmp_path / "build")
    assert configured.returncode != 0
    assert "was built for TensorFlow 1.15, but" in " ".join(configured.stderr.split())


@pytest.mark.parametrize(
    ("wanted", "fits"), [("0.1", True), ("0.1.0", True), ("0.2", False), ("1.0", False)]
)
def test_cmake_checks_version(site: Path, tmp_path: Path, wanted: str, fits: bool) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.19)\n"
        "project(versions LANGUAGES C CXX)\n"
        f"find_package(tf_stitch_gather {wanted} REQUIRED)\n"
    )
    configured = configure(site, tmp_path / "build")
    assert (configured.returncode == 0) == fits, configured.stderr
