"""How tables look on terminals of any width."""

from __future__ import annotations

import io
import re
import sys

import pytest

from optimal_frontier.cli.output import show_facts, show_table

NUMBERS = ["0.5373", "2.815e-05", "3.52 min", "1,234/5,678"]


class Terminal(io.StringIO):
    """Standard output that says it is one."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def lines(monkeypatch):
    """A function that shows something on a terminal so many columns wide, and returns its lines."""

    def shown(columns, show, *arguments, **options):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr(sys, "stdout", terminal := Terminal())
        show(*arguments, **options)
        return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()

    return shown


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
@pytest.mark.parametrize("url", ["http://a.example/", "http://a.example/" + "long/" * 60])
def test_a_terminal_of_any_width_shows_whole_numbers_and_the_url(lines, columns, url):
    names = ["importance", "change rate/s", "interval", "changes", "url"]
    written = lines(columns, show_table, names, [[*NUMBERS, url]] * 2)
    text = " ".join(written)
    assert all(text.count(number) == 2 for number in NUMBERS)
    assert all(name in text for name in names)
    last = next(line for line in written if "url" in line).index("url")
    assert "".join(line[last:].strip() for line in written if "─" not in line).count(url) == 2


def test_a_long_value_folds_within_the_terminal(lines):
    written = lines(60, show_facts, [("url", "http://a.example/" + "long/" * 60), ("visits", "7")])
    assert max(map(len, written)) <= 60
    assert "".join(line[8:].strip() for line in written).count("long") == 60


def test_a_table_in_a_pipe_is_that_of_a_wide_terminal(lines, monkeypatch):
    names = ["importance", "change rate/s", "interval", "changes", "url"]
    rows = [[*NUMBERS, "http://a.example/"], [*NUMBERS[::-1], "http://bücher.example/ネコ"]]
    shown = [line.rstrip() for line in lines(200, show_table, names, rows)]
    monkeypatch.setattr(sys, "stdout", pipe := io.StringIO())
    show_table(names, rows)
    assert pipe.getvalue().splitlines() == [line for line in shown if line]
