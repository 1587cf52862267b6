"""Lists of pages in files: CSV (url[,importance], with or without a header) and JSON lines ({"url": ..., "importance": ...})."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Final, TypeVar
from urllib.parse import urlsplit

from optimal_frontier.frontier.admitting.addresses import shown
from optimal_frontier.frontier.admitting.pages import stated_importance

#: Bytes that a line may have.
MAX_LINE: Final = 1 << 20
_FORMATS: Final = ("csv", "jsonl")
_T = TypeVar("_T")
_HOST = re.compile(r"[a-z0-9_.:-]+")


class RejectedLineError(ValueError):
    """A line that is no page; the message says what was expected."""


@dataclass(frozen=True)
class ListedPage:
    """A page to import. ``url`` as Scrapy writes it; ``importance`` None where the line has none."""

    url: str
    importance: float | None = None


def format_of(name: str, first_line: bytes) -> str:
    """Return ``csv`` or ``jsonl``: by the name's ending, else by what the file begins with."""
    ending = name.lower().rpartition(".")[2]
    if ending in _FORMATS:
        return ending
    return "jsonl" if first_line.lstrip(b"\xef\xbb\xbf \t").startswith(b"{") else "csv"


def read_rows(stream: IO[bytes], name: str) -> Iterator[tuple[int, ListedPage | RejectedLineError]]:
    """Yield line number and page, or what is wrong with the line; empty lines are passed over.

    Parameters
    ----------
    stream : binary file
        UTF-8, one page a line; read as it goes.
    name : str
        Its name, for the format.
    """
    return parsed_lines(stream, name, _CsvLines, _JsonLines)


def parsed_lines(
    stream: IO[bytes], name: str, csv_lines: Callable[[], Callable[[str], _T | None]], json_lines: Callable[[], Callable[[str], _T | None]]
) -> Iterator[tuple[int, _T | RejectedLineError]]:
    """Yield line number and what a parser makes of the line, or what is wrong with it; empty lines, and headers (None), are passed over.

    Parameters
    ----------
    stream : binary file
        UTF-8; read as it goes.
    name : str
        Its name, for the format.
    csv_lines, json_lines : callable
        Make the parser of a file in that format: called with each line, it raises `RejectedLineError` on one that it cannot use.
    """
    parse: Callable[[str], _T | None] | None = None
    for number, line in _lines(stream):
        try:
            text = _decoded(line)
            if not text.strip():
                continue
            if parse is None:
                parse = json_lines() if format_of(name, line) == "jsonl" else csv_lines()
            row = parse(text)
            if row is not None:
                yield number, row
        except RejectedLineError as error:
            yield number, error


class _CsvLines:
    """Parses line by line, so that an unclosed quote spoils one line and not the rest of the file."""

    def __init__(self) -> None:
        self._url, self._importance = 0, 1
        self._is_first = True

    def __call__(self, text: str) -> ListedPage | None:
        cells = csv_cells(text, "url[,importance]")
        is_first, self._is_first = self._is_first, False
        names = [cell.lower() for cell in cells]
        if is_first and "url" in names:
            self._url = names.index("url")
            self._importance = names.index("importance") if "importance" in names else len(names)
            return None
        url = cells[self._url] if self._url < len(cells) else ""
        importance = cells[self._importance] if self._importance < len(cells) else ""
        return ListedPage(page_url(url), page_importance(importance) if importance else None)


class _JsonLines:
    def __call__(self, text: str) -> ListedPage:
        value = json_page(text, '{"url": ..., "importance": ...}')
        importance = value.get("importance")
        return ListedPage(page_url(value["url"].strip()), page_importance(importance) if importance is not None else None)


def csv_cells(text: str, expected: str) -> list[str]:
    """Return the cells of a line of CSV, stripped.

    Raises
    ------
    RejectedLineError
        It is no CSV; the message says what was expected.
    """
    try:
        return [cell.strip() for cell in next(csv.reader([text], strict=True, skipinitialspace=True))]
    except csv.Error as error:
        raise RejectedLineError(f"expected {expected} as CSV ({error})") from error


def json_page(text: str, expected: str) -> dict[str, Any]:
    """Return the JSON object of a line, whose ``url`` is a string.

    Raises
    ------
    RejectedLineError
        It is no such object; the message says what was expected.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RejectedLineError(f"expected {expected} as JSON ({error})") from error
    if not isinstance(value, dict) or not isinstance(value.get("url"), str):
        raise RejectedLineError(f"expected {expected}")
    return value


def page_url(text: str) -> str:
    """Return a URL as Scrapy's Request writes it.

    Raises
    ------
    RejectedLineError
        It is not http or https, has no usable host or port, or has a user name or a password.
    """
    from scrapy import Request

    try:
        url = str(Request(text).url)
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not _HOST.fullmatch(host) or parts.scheme not in ("http", "https"):
        raise RejectedLineError(f"expected a URL, http://host/path or https://host/path, got {shown(text)!r}")
    if "@" in parts.netloc:
        raise RejectedLineError(f"expected a URL without a user name and a password, got {shown(text)!r}")
    return url


def page_importance(value: Any) -> float:
    """Return an importance.

    Raises
    ------
    RejectedLineError
        It is not a finite number above 0.
    """
    try:
        return stated_importance(as_number(value))
    except ValueError:
        raise RejectedLineError(f"expected an importance above 0, got {str(value)[:200]!r}") from None


def as_number(value: Any) -> float:
    """Return the number that a cell or a JSON value is, nan if it is none."""
    try:
        return float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(MAX_LINE):
        number += 1
        yield number, line
        while len(line) == MAX_LINE and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE)


def _decoded(line: bytes) -> str:
    if len(line) == MAX_LINE and not line.endswith(b"\n"):
        raise RejectedLineError(f"expected a line of less than {MAX_LINE} bytes")
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise RejectedLineError(f"expected UTF-8 text ({error.reason} at byte {error.start})") from error
