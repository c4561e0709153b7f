"""The examples in the docstrings of the public functions."""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest
import tensorflow as tf
import tf_stitch_gather as tsg

FUNCTIONS = {
    **{
        name: getattr(tsg, name)
        for name in (
            "check_cluster",
            "drop_in",
            "dynamic_stitch",
            "gather_nd",
            "scatter_nd",
            "sharded_lookup",
        )
    },
    **{
        f"rewrite.{name}": getattr(tsg.rewrite, name)
        for name in tsg.rewrite.__all__
        if inspect.isfunction(getattr(tsg.rewrite, name))
    },
    **{
        f"raw_ops.{name}": function
        for name, function in inspect.getmembers(tsg.raw_ops, inspect.isfunction)
        if name.startswith("My")
    },
}
CLASSES = {f"keras.{name}": getattr(tsg.keras, name) for name in tsg.keras.__all__}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_examples(name):
    names = {"tf": tf, "np": np, "tf_stitch_gather": tsg, "tsg": tsg}
    tests = doctest.DocTestFinder(recurse=False).find(
        {**FUNCTIONS, **CLASSES}[name], name, globs=names
    )
    assert sum(len(t.examples) for t in tests) >= 1, f"{name} has no example"
    for test in tests:
        report: list[str] = []
        result = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append)
        assert result.failed == 0, "".join(report)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_names_each_argument(name):
    text = inspect.getdoc(FUNCTIONS[name])
    sections = (
        ("Args:", "Returns:") if inspect.signature(FUNCTIONS[name]).parameters else ("Returns:",)
    )
    for section in sections:
        assert section in text
    missing = [p for p in inspect.signature(FUNCTIONS[name]).parameters if f"\n  {p}:" not in text]
    assert not missing


@pytest.mark.parametrize("name", CLASSES)
def test_docstring_names_each_argument_of_a_class(name):
    text = inspect.getdoc(CLASSES[name])
    parameters = inspect.signature(CLASSES[name].__init__).parameters.values()
    shown = [f"**{p.name}" if p.kind == p.VAR_KEYWORD else p.name for p in parameters]
    assert [name for name in shown[1:] if f"\n  {name}:" not in text] == []


def test_signatures_follow_tensorflow():
    """The arguments and defaults of the TensorFlow function; all in its order for tf.gather_nd."""
    for ours, theirs in (
        (tsg.gather_nd, tf.gather_nd),
        (tsg.scatter_nd, tf.scatter_nd),
        (tsg.dynamic_stitch, tf.dynamic_stitch),
    ):
        got, want = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
        required = [p for p in want if want[p].default is inspect.Parameter.empty]
        assert list(got)[: len(required)] == required
        assert set(want) <= set(got)
        for name, parameter in want.items():
            if parameter.default is not inspect.Parameter.empty:
                assert got[name].default == parameter.default, name
        for name in got.keys() - want.keys():
            assert got[name].default is not inspect.Parameter.empty, name
    assert list(inspect.signature(tsg.gather_nd).parameters) == list(
        inspect.signature(tf.gather_nd).parameters
    )
