"""Registering with TensorFlow what another copy of the package may have registered before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def unless_taken(register: Decorator, taken: type[Exception]) -> Decorator:
    """The decorator `register`, but for the name's having been registered, which raises `taken`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return register(function)
        except taken:
            return function

    return decorate
