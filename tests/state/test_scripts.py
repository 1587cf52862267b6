"""The scripts as texts: constants filled in, a header on each, and few enough lines to read in one sitting."""

from __future__ import annotations

import re
import struct
from importlib.resources import files

import pytest

from optimal_frontier.state.keys import KEYS
from optimal_frontier.state.rows import FIELDS, HEAD_BYTES, NUMBERS_AT, NUMBERS_BYTES
from optimal_frontier.state.scripts import CONSTANTS, source

TEXTS = {
    path.name.removesuffix(".lua"): path.read_text()
    for path in (files("optimal_frontier.state") / "lua").iterdir()
    if path.name.endswith(".lua")
}
#: Of all scripts, and of those that a visit runs.
MOST_LINES, MOST_LINES_OF_A_VISIT = 600, 300
NAMES = sorted(name for name in TEXTS if not name.startswith("_"))


@pytest.mark.parametrize("name", NAMES)
def test_constants_are_filled_in(name: str) -> None:
    text = source(name)
    assert not re.search(r"\$\{\w+\}", text)
    assert re.search(rf"HEAD.* = {HEAD_BYTES}, 12,", text)


def test_a_constant_that_is_not_there_is_an_error() -> None:
    used = set(re.findall(r"\$\{(\w+)\}", "".join(TEXTS.values())))
    assert used == set(CONSTANTS)


def test_scripts_read_heads_by_the_format_of_the_head() -> None:
    names = {"I4": "I", "I2": "H", "B": "B", "d": "d", "f": "f"}
    codes = re.findall(r"I4|I2|B|d|f", str(CONSTANTS["QUEUE_FORMAT"]))
    assert [names[code] for code in codes] == [code for _, code, _ in FIELDS[: len(codes)]]
    assert struct.calcsize("<" + "".join(names[code] for code in codes)) == NUMBERS_AT + NUMBERS_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_a_script_says_what_it_does_takes_returns_and_costs(name: str) -> None:
    header = "".join(line for line in TEXTS[name].splitlines(keepends=True) if line.startswith("--"))
    assert re.match(r"-- [A-Z].*\.$", header.splitlines()[0]), "one sentence first"
    assert "-- ARGV" in header
    assert "-- Returns " in header
    assert "O(" in header or "O(log n)" in header or "Variadic" in header


@pytest.mark.parametrize("name", NAMES)
def test_no_script_walks_over_all_keys(name: str) -> None:
    assert not re.search(r"call\('(KEYS|SCAN|HGETALL|SMEMBERS|FLUSH\w*)'", TEXTS[name])


@pytest.mark.parametrize("name", NAMES)
def test_keys_of_a_script_are_in_the_table_of_keys(name: str) -> None:
    known = {key.name for key in KEYS}
    for key in re.findall(r"(?:P \.\. |many\('\w+', |read\()'([\w:]+)'", source(name)):
        assert key in known or key + "H" in known, key


def test_all_of_the_lua_is_short() -> None:
    lines = {name: len(text.splitlines()) for name, text in TEXTS.items()}
    assert sum(lines.values()) <= MOST_LINES, lines
    assert lines["dispatch"] + lines["observe"] + lines["_rows"] <= MOST_LINES_OF_A_VISIT, lines
