"""Fixtures for every test: random numbers with a reported seed, and where the package is found."""

from __future__ import annotations

import importlib.util
import os
import sys
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hypothesis
import numpy as np
import pytest
import tensorflow as tf

if importlib.util.find_spec("tf_stitch_gather") is None:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

tf.get_logger().setLevel("ERROR")

# The same examples on every run, unless HYPOTHESIS_PROFILE=explore asks for many new ones.
hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=80, print_blob=True
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

_SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed", type=int, help="seed of the rng fixture; without it, one made from the test's id"
    )


@pytest.fixture(autouse=True)
def on_the_cpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test does not place itself runs on the CPU, on a machine with a GPU, too."""
    if request.node.path.name == "test_gpu.py":
        yield
    else:
        with tf.device("CPU:0"):
            yield


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers whose seed a failing test reports."""
    seed = request.config.getoption("--seed")
    if seed is None:
        seed = zlib.crc32(request.node.nodeid.rpartition("/")[2].encode())
    request.node.stash[_SEED] = seed
    return np.random.default_rng(seed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    seed = item.stash.get(_SEED, None)
    if report.failed and seed is not None:
        report.sections.append(
            ("random numbers", f"seed {seed}; repeat: pytest --seed {seed} '{item.nodeid}'")
        )
    return report
