"""Names that can be imported from where users know them, though their code is in `papers`; it is loaded when a name is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def from_papers(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that re-exports names of `papers`.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    modules : mapping of str to str
        Name -> module within `papers` that has it.

    Examples
    --------
    >>> find, names = from_papers("optimal_frontier.optimization", {"solve_discrete": "azar.discrete"})
    >>> find("solve_discrete").__module__
    'optimal_frontier.papers.azar.discrete'
    >>> "solve_discrete" in names()
    True
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"optimal_frontier.papers.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next time it is found without asking
        return value

    def names() -> list[str]:
        return sorted(vars(sys.modules[package]).keys() | modules.keys())

    return find, names
