"""The Lua scripts: loaded from the package once, each with the shared part in front of it, layouts filled in from `rows` and `layouts`."""

from __future__ import annotations

import hashlib
import re
import struct
from functools import cache
from importlib.resources import files
from typing import Final

from optimal_frontier.scheduling.price_law import FEWEST, FURTHER, STARVED
from optimal_frontier.state.layouts import BELIEVED_S, LACKING_BYTES, REMEMBERED_S, STATE_FIELDS, TURN_FIELDS, PartitionState
from optimal_frontier.state.messages import KEPT_CHANGES, PAGE_BYTES
from optimal_frontier.state.rows import FIELDS, HEAD_BYTES, HELD, HUB, NUMBERS_AT, NUMBERS_BYTES, QUEUE, SIGNALLED, TIMED
from optimal_frontier.state.visit_log import KEPT_ENTRIES, VISIT

#: Pages of a shut host that come up at one of its turns, to be ranked.
RIVALS: Final = 4
#: Pages of the queue that one dispatch looks at, about: it takes no longer than that.
MOST_LOOKED_AT: Final = 128
#: First visits are owed their share of the handouts of so many seconds in which their hosts had no turn.
SAVED_S: Final = 60
#: Seconds by which a host may catch up with its mean period; after which one is looked at again whose fetch has not begun.
CATCH_UP_S: Final = 0.02
AWAITED_S: Final = 0.05
#: Seconds until a turn of a host that is taken ahead of its time, at most: nobody waits for a later one.
LONGEST_TURN_S: Final = 180
#: Seconds after the next opening of a host within which its late pages are put off. Turns that would come later begin again in front: the
#: delay that they were found under may be another by then.
TURNS_END_S: Final = 3600

_LUA_CODES: Final = {"I": "I4", "H": "I2", "B": "B", "d": "d", "f": "f"}
#: Parts in front of a script: that of all, and that of scripts that add, move and forget pages.
_SHARED: Final = "_rows"
_OF_PAGES: Final = "_pages"
_WITH_PAGES: Final = frozenset({"add_pages", "adopt", "become_alias", "forget", "revise", "take_turns"})


def _at(name: str) -> int:
    """Return where a field of the head begins, counted from 1 as Lua does."""
    codes = ""
    for field, code, _ in FIELDS:
        if field == name:
            return struct.calcsize("<" + codes) + 1
        codes += code
    raise KeyError(name)


#: What stands in ``${...}`` in the scripts.
CONSTANTS: Final = {
    "HEAD_BYTES": HEAD_BYTES,
    "PAGE_BYTES": PAGE_BYTES,
    "NUMBERS_BYTES": NUMBERS_BYTES,
    "NUMBERS_AT": NUMBERS_AT + 1,
    "QUEUE_FORMAT": "<" + "".join(_LUA_CODES[code] for _, code, _ in FIELDS[:QUEUE]),
    "STATE_AT": _at("state"),
    "FLAGS_AT": _at("flags"),
    "RANK_AT": _at("a"),
    "LEAST_AT": _at("min_interval"),
    "MOST_AT": _at("max_interval"),
    "VISITS_AT": _at("visits"),
    "PATTERN_AT": _at("pattern"),
    "SPARE": FURTHER,
    "FEWEST": FEWEST,
    "STARVED": STARVED,
    "RIVALS": RIVALS,
    "SAVED": SAVED_S,
    "CATCH_UP": CATCH_UP_S,
    "AWAITED": AWAITED_S,
    "MOST_LOOKED_AT": MOST_LOOKED_AT,
    "LONGEST_TURN": LONGEST_TURN_S,
    "TURNS_END": TURNS_END_S,
    "TIMED": TIMED,
    "SIGNALLED": SIGNALLED,
    "HUB": HUB,
    "HELD": HELD,
    "VISIT_BYTES": VISIT.itemsize,
    "KEPT_ENTRIES": KEPT_ENTRIES,
    "KEPT_CHANGES": KEPT_CHANGES,
    "STATE_FORMAT": "<" + "d" * len(STATE_FIELDS),
    "TURNS_FORMAT": "<" + "d" * len(TURN_FIELDS),
    "TURNS_BYTES": 8 * len(TURN_FIELDS),
    "LACKING_BYTES": LACKING_BYTES,
    "BELIEVED": BELIEVED_S,
    "REMEMBERED": REMEMBERED_S,
    "FRESH_STATE": ", ".join(f"{value:g}" for value in PartitionState()),
    # Where each field of ``d`` stands among them: D_AT, D_TOKENS, ...; those of ``opens``, and what dispatch has of a host behind them.
    **{f"D_{name.upper()}": number for number, (name, _) in enumerate(STATE_FIELDS, 1)},
    **{f"T_{name.upper()}": number for number, (name, _) in enumerate(TURN_FIELDS, 1)},
    "OPENS": len(TURN_FIELDS) + 1,
    "ROOM": len(TURN_FIELDS) + 2,
    "MOVED": len(TURN_FIELDS) + 3,
}


@cache
def source(name: str) -> str:
    """Return the source of the script ``name``, the shared part included.

    Raises
    ------
    FileNotFoundError
        There is no such script.
    KeyError
        It names a constant that is not in `CONSTANTS`.
    """
    folder = files("optimal_frontier.state") / "lua"
    parts = (_SHARED, _OF_PAGES, name) if name in _WITH_PAGES else (_SHARED, name)
    text = "".join((folder / f"{part}.lua").read_text() for part in parts)
    return re.sub(r"\$\{(\w+)\}", lambda match: str(CONSTANTS[match[1]]), text)


def commands_at(digest: str, line: int) -> list[str]:
    """Return the commands of Redis that a line (from 1) of the script with a digest (SHA-1, hexadecimal) may call; none of one that is not
    ours. The line of ``many`` calls what it is given.
    """
    for path in (files("optimal_frontier.state") / "lua").iterdir():
        text = source(path.name.removesuffix(".lua"))
        if hashlib.sha1(text.encode()).hexdigest() == digest:
            lines = text.splitlines()
            here = lines[line - 1] if 0 < line <= len(lines) else ""
            return re.findall(r"call\('([A-Z]+)'", here) or re.findall(r"many\('([A-Z]+)'", text)
    return []
