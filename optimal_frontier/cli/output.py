"""How answers look: tables for people, JSON for programs, and numbers with their units."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import click
import numpy as np
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from optimal_frontier.frontier.admitting.addresses import without_passwords

#: Columns where standard output is no terminal: nothing is cut off there.
_PIPE_WIDTH: Final = 10_000
#: Columns that a text has at least on a terminal, unless it is shorter.
_TEXT_WIDTH: Final = 24
#: Columns between two of a table.
_BETWEEN: Final = 3
_UNITS: Final = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))

NOTHING: Final = "–"


def show_json(value: Any) -> None:
    """Write a value as JSON; what is not finite becomes null."""
    click.echo(_json(value, indent=2))


def show_json_line(value: Any) -> None:
    """Write a value as one line of JSON."""
    click.echo(_json(value))


def show_facts(rows: Iterable[tuple[str, str]]) -> None:
    """Write names and values, aligned; a value that is too long goes on in the next line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(printable(value)))
    _show(table)


def show_table(names: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> None:
    """Write a table whose last ``left`` columns are texts and whose others are numbers, which are never cut off."""
    cells = [[printable(value) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    texts = len(names) - left
    if not sys.stdout.isatty():
        click.echo("\n".join(_lines(names, cells, widths, texts)))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    least = 0
    for at, (name, width) in enumerate(zip(names, widths, strict=True)):
        text = at >= texts
        shortest = min(width, _TEXT_WIDTH) if text else width
        least += shortest + _BETWEEN
        table.add_column(name, justify="left" if text else "right", overflow="fold", no_wrap=not text, min_width=shortest)
    for row in cells:
        table.add_row(*map(Text, row))
    _show(table, least)


def _lines(names: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int], texts: int) -> Iterator[str]:
    """Yield a table as a terminal that is wide enough shows it; rich takes milliseconds a row, and a program may ask for all pages."""
    for row in (names, *cells):
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        padded = (cell + gap if at >= texts else gap + cell for at, (cell, gap) in enumerate(zip(row, gaps, strict=True)))
        yield f" {(' ' * _BETWEEN).join(padded)}".rstrip()
        if row is names:
            yield f" {'─' * (sum(widths) + _BETWEEN * (len(widths) - 1))}"


def printable(text: str) -> str:
    """Return ``text`` with what would steer a terminal made visible, and without the passwords of URLs.

    Examples
    --------
    >>> printable("a\\x1b[2Jb"), printable("http://user:secret@a.example/")
    ('a\\\\x1b[2Jb', 'http://a.example/')
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in without_passwords(text))


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with so many significant digits.

    Examples
    --------
    >>> number(0.0123456), number(1234567), number(None)
    ('0.01235', '1,234,567', '–')
    """
    if value is None or math.isnan(value):
        return NOTHING
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.{digits}g}"


def per_second(value: float | None) -> str:
    """Return a rate.

    Examples
    --------
    >>> per_second(0.25), per_second(None)
    ('0.25/s', '–')
    """
    return NOTHING if value is None or math.isnan(value) else f"{number(value)}/s"


def duration(seconds: float | None) -> str:
    """Return a time span in a unit that suits it.

    Examples
    --------
    >>> duration(0.25), duration(90), duration(7200), duration(-3)
    ('0.25 s', '1.5 min', '2 h', '-3 s')
    """
    if seconds is None or math.isnan(seconds):
        return NOTHING
    if math.isinf(seconds):
        return "never"
    for size, unit in _UNITS:
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def size(count: int) -> str:
    """Return a number of bytes in a unit that suits it.

    Examples
    --------
    >>> size(999), size(1500), size(2_340_000_000)
    ('999 B', '1.5 kB', '2.34 GB')
    """
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} TB"


def moment(epoch_s: float | None) -> str:
    """Return a time of day, local, with its date; of a number that is none nothing, as what is stored may be anything."""
    try:
        return NOTHING if epoch_s is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(epoch_s))
    except (OverflowError, ValueError, OSError):
        return NOTHING


def _show(table: Table, least: int = 0) -> None:
    """Write a table. A row that needs more columns than the terminal has takes several lines, as rich would cut off what is there."""
    if sys.stdout.isatty():
        terminal = Console(highlight=False)
        terminal.width *= max(1, math.ceil(least / terminal.width))
        terminal.print(table)
        return
    console = Console(highlight=False, width=_PIPE_WIDTH)
    with console.capture() as capture:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n"))


def _json(value: Any, indent: int | None = None) -> str:
    # Other encodings lack letters, and what takes their place in a text would be no JSON, or another value.
    return json.dumps(_plain(value), indent=indent, ensure_ascii=not (sys.stdout.encoding or "").lower().startswith("utf"))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
