"""The Lua scripts: loaded from the package once, each with the shared prelude in front of it, and what else it shares."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

#: Parts that stand between the prelude and a script.
_PARTS: Final = {
    "dispatch": ("_by_price",),
    "observe": ("_gone",),
    "add_pages": ("_identities",),
    "move_page": ("_identities",),
    "forget_page": ("_identities",),
}


@cache
def source(name: str) -> str:
    """Return the source of the script ``name``, prelude included."""
    folder = files("optimal_frontier.state") / "lua"
    return "".join((folder / f"{part}.lua").read_text() for part in ("_prelude", *_PARTS.get(name, ()), name))
