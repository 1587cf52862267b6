"""Renders the tables of docs/redis.md from the one place in the code that has them: `state/keys.py`, `state/layouts.py`, `state/rows.py`.

python docs/render_redis.py            writes them
"""

from __future__ import annotations

import re
from pathlib import Path

from optimal_frontier.state.keys import KEYS
from optimal_frontier.state.layouts import STATE_FIELDS, TURN_FIELDS
from optimal_frontier.state.rows import FIELDS, HEAD_BYTES, LAYOUT

PAGE = Path(__file__).with_name("redis.md")


def key_table() -> str:
    """Every key: one row each."""
    rows = [f"| `P{key.name}` | {key.type} | {key.content.replace('|', chr(92) + '|')} | {key.growth} | {key.writer} |" for key in KEYS]
    return "\n".join(["| key | type | content (unit) | growth bound | writer |", "|---|---|---|---|---|", *rows])


def head_table() -> str:
    """Every field of the head of a row, with where it begins."""
    rows = [f"| {LAYOUT.fields[name][1]} | `{name}` | `{code}` | {meaning} |" for name, code, meaning in FIELDS]
    return "\n".join(["| byte | field | struct | meaning |", "|---|---|---|---|", *rows])


def doubles_table(fields: tuple[tuple[str, str], ...]) -> str:
    """Every double of a packed value, with where it begins."""
    rows = [f"| {8 * at} | `{name}` | {meaning} |" for at, (name, meaning) in enumerate(fields)]
    return "\n".join(["| byte | double | meaning |", "|---|---|---|", *rows])


def rendered(text: str) -> str:
    """Return a page with its tables made anew: what stands between ``<!-- NAME -->`` and ``<!-- end of NAME -->``."""
    tables = {"keys": key_table(), "head": head_table(), "state": doubles_table(STATE_FIELDS), "turns": doubles_table(TURN_FIELDS)}
    for name, table in tables.items():
        between = f"<!-- {name} -->\n\n{table}\n\n<!-- end of {name} -->"
        text = re.sub(rf"<!-- {name} -->.*?<!-- end of {name} -->", lambda _, between=between: between, text, flags=re.DOTALL)
    return text.replace("HEAD_BYTES", str(HEAD_BYTES))


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
