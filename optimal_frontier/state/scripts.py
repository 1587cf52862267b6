"""The Lua scripts: loaded from the package once, each with the shared prelude in front of it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def source(name: str) -> str:
    """Return the source of the script ``name``, prelude included."""
    folder = files("optimal_frontier.state") / "lua"
    return (folder / "_prelude.lua").read_text() + (folder / f"{name}.lua").read_text()
