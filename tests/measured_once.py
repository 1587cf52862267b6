"""Figures that are the same for the same arguments, measured once for all tests of a module that ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import pytest


def measured_once(measure: Callable[..., Iterable[Any]]) -> Callable[..., Iterator[Any]]:
    """Return a function that answers as ``measure``, and asks it only for what it was not asked for before."""
    known: dict[str, list[Any]] = {}

    def remembered(*arguments: Any) -> Iterator[Any]:
        asked = repr(arguments)
        if asked not in known:
            known[asked] = list(measure(*arguments))
        return iter(known[asked])

    return remembered


def patch_measures(module: ModuleType, *names: str) -> Iterator[None]:
    """Let a module of commands have these functions of its name measure once, as long as the generator is open."""
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(module, name, measured_once(getattr(module, name)))
        yield
