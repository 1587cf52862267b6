"""Search logs in files, one result shown a row: CSV with a header, or JSON lines; and the importance of pages that follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, Final

from optimal_frontier.cli.page_identity import Identify, identity
from optimal_frontier.cli.page_lists import RejectedLineError, as_number, csv_cells, json_page, page_url, parsed_lines
from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.papers.wolf.result_counts import LEAST_IMPORTANCE, ResultCounts, importance_of_weights

_NEEDED: Final = ("url", "position", "clicked")
_COLUMNS: Final = (*_NEEDED, "page", "incorrect")
#: Most result pages and positions: beyond it a number is something else, a time for instance.
_LAST: Final = 1_000_000
_WORDS: Final = {"false": 0.0, "true": 1.0}
_JSON: Final = '{"url": ..., "position": ..., "clicked": ...}'


@dataclass(frozen=True)
class Result:
    """A row: ``url`` as the log writes it; result page and position count from 1; ``incorrect`` None where the row has none."""

    url: str
    place: tuple[int, int]
    clicked: bool
    incorrect: float | None = None


@dataclass(frozen=True)
class WeighedPages:
    """Pages of a search log.

    Attributes
    ----------
    importance : dict
        By URL; above 0, the mean is 1. A page that the log writes in several ways is there once, as it was first written.
    counts : ResultCounts
    embarrassing : float
        Clicks per query on copies that turn out to be wrong, were all copies stale: the sum of the weights.
    least : int
        Pages that have `LEAST_IMPORTANCE`, for their weight is about 0.
    """

    importance: dict[str, float]
    counts: ResultCounts
    embarrassing: float
    least: int


def weigh_pages(stream: IO[bytes], name: str, shown: str, identify: Identify = identity) -> WeighedPages:
    """Read a search log to its end, and weigh its pages by eq. 8 of Wolf et al.

    Parameters
    ----------
    stream : binary file
        UTF-8, one result a line; read as it goes. Memory is for pages and places, not for rows.
    name : str
        Its name, for the format.
    shown : str
        What messages call it.
    identify : callable
        URL -> identity of its page.

    Raises
    ------
    InvalidProblemError
        A row is none, or no weight is above 0; the message names file and line, and what was expected.
    """
    counts, pages = ResultCounts(), _Pages(identify)
    for line, row in parsed_lines(stream, name, _CsvResults, _json_result_parser):
        try:
            if isinstance(row, RejectedLineError):
                raise row
            counts.add(pages.number(row.url), row.place, clicked=row.clicked, incorrect=row.incorrect)
        except RejectedLineError as error:
            raise InvalidProblemError(f"{shown}:{line}: {error}") from error
    weights = counts.weights()
    if not weights.any():
        found = "no result" if not counts.rows else "no click" if not counts.clicks else "incorrect 0 wherever clicks are"
        raise InvalidProblemError(f"{shown}: expected results that were shown and clicks on them, found {found}")
    importance = importance_of_weights(weights)
    return WeighedPages(
        dict(zip(pages.urls, importance.tolist(), strict=True)), counts, float(weights.sum()), int((importance <= LEAST_IMPORTANCE).sum())
    )


class _Pages:
    """Numbers pages, by what the crawl takes for one page. Each way to write a URL is looked at once."""

    def __init__(self, identify: Identify) -> None:
        self.urls: list[str] = []
        self._identify = identify
        self._numbers: dict[str, int] = {}
        self._identities: dict[bytes, int] = {}

    def number(self, text: str) -> int:
        known = self._numbers.get(text)
        if known is not None:
            return known
        url = page_url(text)
        number = self._identities.setdefault(self._identify(url), len(self.urls))
        if number == len(self.urls):
            self.urls.append(url)
        self._numbers[text] = number
        return number


class _CsvResults:
    """Parses line by line; the first one names the columns."""

    def __init__(self) -> None:
        self._at: dict[str, int] | None = None

    def __call__(self, text: str) -> Result | None:
        cells = csv_cells(text, ",".join(_NEEDED))
        if self._at is None:
            names = [cell.lower() for cell in cells]
            if not set(_NEEDED) <= set(names):
                raise RejectedLineError(f"expected a header that names {', '.join(_NEEDED)}, got {text[:200]!r}")
            self._at = {name: names.index(name) for name in _COLUMNS if name in names}
            return None
        return _result({name: cells[at] for name, at in self._at.items() if at < len(cells)})


def _json_result_parser() -> Callable[[str], Result]:
    return lambda text: _result(json_page(text, _JSON))


def _result(values: dict[str, Any]) -> Result:
    url, page, incorrect = values.get("url", ""), values.get("page"), values.get("incorrect")
    return Result(
        url.strip(),
        (1 if page in (None, "") else _place("page", page), _place("position", values.get("position"))),
        _clicked(values.get("clicked")),
        None if incorrect in (None, "") else _probability(incorrect),
    )


def _place(name: str, value: Any) -> int:
    number = as_number(value)
    if not (1 <= number <= _LAST and number.is_integer()):
        raise RejectedLineError(f"expected a {name} that is a whole number from 1, got {_got(value)}")
    return int(number)


def _clicked(value: Any) -> bool:
    number = _WORDS.get(str(value).lower(), as_number(value))
    if number not in (0, 1):
        raise RejectedLineError(f"expected clicked to be 0 or 1, got {_got(value)}")
    return number == 1


def _probability(value: Any) -> float:
    number = as_number(value)
    if not 0 <= number <= 1:
        raise RejectedLineError(f"expected an incorrect that is a probability, 0 to 1, got {_got(value)}")
    return number


def _got(value: Any) -> str:
    return "nothing" if value in (None, "") else repr(str(value)[:200])
