"""From a request to the page that is added: its identity, its host and pattern, and what RULES and the interval bounds say of it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

from optimal_frontier.frontier.admitting.hosts import host_of, names_of
from optimal_frontier.frontier.admitting.patterns import pattern_of
from optimal_frontier.settings import FrontierSettings, PageRule
from optimal_frontier.state.messages import PAGE_BYTES, Announcement, Handout, Move, NewPage, Observation, page_of
from optimal_frontier.state.records import pack_record
from optimal_frontier.state.rows import ACTIVE, APPEARED, FAR_S, LEAST_IMPORTANCE, MOST_IMPORTANCE, ONCE, TIMED, TRANSIENT, Row

__all__ = ["directory_number", "host_of", "move_of", "moved_record", "names_of", "new_page", "pattern_number"]

#: Headers that one site was trusted with, and another is not.
_PRIVATE_HEADERS: Final = frozenset({"authorization", "cookie"})


def pattern_number(host: str, url: str) -> int:
    """Return what rows have of the pattern of a URL: a hash of it and of its host, of 32 bits.

    Examples
    --------
    >>> pattern_number("a.example", "http://a.example/news/1.html") == pattern_number("a.example", "http://a.example/news/2.html")
    True
    """
    return _pattern_number(host, pattern_of(url))


@lru_cache(maxsize=8192)
def _pattern_number(host: str, pattern: str) -> int:
    return int.from_bytes(blake2b(f"{host} {pattern}".encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


def directory_number(url: str) -> int:
    """Return what rows have of the directory of a URL, 32 bits: a hash of its first two path segments below one of all of it.

    Neither hash is 0. The host does not count; a group of pages is known by its host beside them. The last segment names the page, and is
    no directory.

    Examples
    --------
    >>> news, deep = directory_number("http://a.example/news/1.html"), directory_number("http://a.example/news/2026/05/1.html")
    >>> news == directory_number("https://b.example/news/2.html?page=3"), (news ^ deep) >> 16 > 0
    (True, True)
    """
    path = url.partition("?")[0].partition("#")[0]
    begin = path.find("/", path.find("://") + 3)
    return _directory_number(path[begin : path.rfind("/") + 1] if begin >= 0 else "/")


@lru_cache(maxsize=8192)
def _directory_number(path: str) -> int:
    """Return the number of a path that begins and ends with a slash; remembered, as links of one page lead into few directories."""
    top = "/".join(path.split("/", 3)[:3])
    halves = (int.from_bytes(blake2b(part.encode("utf-8", "surrogatepass"), digest_size=2).digest(), "little") or 1 for part in (top, path))
    low, high = halves
    return high << 16 | low


def stored_importance(value: float) -> float:
    """Return an importance within its bounds, 1e-9 to 1e9: no page is worth more than all others together for ever.

    Raises
    ------
    ValueError
        It is no number.

    Examples
    --------
    >>> stored_importance(2), stored_importance(1e300), stored_importance(1e-300)
    (2.0, 1000000000.0, 1e-09)
    """
    try:
        number = float(value)
    except (TypeError, OverflowError):
        raise ValueError(f"importance is {value!r}; expected a number above 0") from None
    if math.isnan(number):
        raise ValueError("importance is nan; expected a number above 0")
    return min(max(number, LEAST_IMPORTANCE), MOST_IMPORTANCE)


def stated_importance(value: Any) -> float:
    """Return an importance that somebody states of a page, within its bounds.

    Raises
    ------
    ValueError
        It is no number above 0.

    Examples
    --------
    >>> stated_importance(2)
    2.0
    >>> stated_importance("2")
    Traceback (most recent call last):
    ValueError: expected a number above 0
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError("expected a number above 0")
    return stored_importance(value)


def importance_of(stated: float, rule: PageRule) -> float:
    """Return the importance of a stored page: what was stated of it (0: nothing was), else what RULES say, else 1; within its bounds."""
    return min(max(stated or rule.importance or 1.0, LEAST_IMPORTANCE), MOST_IMPORTANCE)


def new_page(
    settings: FrontierSettings,
    fingerprint: bytes,
    url: str,
    record: dict[Any, Any],
    *,
    kind: int = ACTIVE,
    importance: float | None = None,
    priority: float = 0.0,
    lastmod: tuple[float, float] | None = None,
    announcement: Announcement | None = None,
    is_link: bool = False,
    found_on: Handout | None = None,
) -> NewPage:
    """Return the page to add, with what RULES and the interval bounds say of it.

    Parameters
    ----------
    settings : FrontierSettings
        Parsed settings.
    fingerprint : bytes
        Of its request; `page_of` makes the identity of it. A transient request gets one of its own.
    url : str
        Its URL.
    record : dict
        What a fetch needs; at least ``url``.
    kind : int
        `ACTIVE`, `ONCE` or `TRANSIENT`. An active page that RULES say is not to be revisited is fetched once.
    importance : float, optional
        That the request itself states; then RULES, then 1.
    priority : float
        Of its first visit; higher goes first.
    lastmod, announcement
        See `NewPage`.
    is_link : bool
        It was found on a page, so HOST_MAX_PAGES and PATTERN_MAX_PAGES hold for it.
    found_on : Handout, optional
        See `NewPage`.

    Raises
    ------
    TypeError, OverflowError, ValueError
        Something in the record is not plain data.
    """
    rule, host = settings.rules.of(url), host_of(url)
    if kind == ACTIVE and not rule.revisit:
        kind = ONCE
    page = secrets.token_bytes(PAGE_BYTES) if kind == TRANSIENT else page_of(fingerprint)
    stated = stored_importance(importance) if importance else 0.0
    shortest, longest = settings.interval_bounds(rule)
    row = Row(
        state=kind,
        flags=(0 if rule.update_times is None else TIMED) | (APPEARED if settings.looks_at_young_pages and _has_appeared(found_on) else 0),
        importance=importance_of(stated, rule),
        min_interval=min(shortest, FAR_S),
        max_interval=min(longest, FAR_S),
        pattern=pattern_number(host, url),
        directory=directory_number(url),
    )
    limits = (settings.host_max_pages or 0, settings.pattern_max_pages or 0) if is_link else (0, 0)
    return NewPage(page, host, row, stated, pack_record(record, host), priority, *limits, lastmod, announcement, found_on=found_on)


def _has_appeared(found_on: Handout | None) -> bool:
    """Tell whether a link was not there at the visit before: after a callback that raised nobody knows that."""
    return found_on is not None and found_on.row.visits > 0 and found_on.memory.lost is None


def move_of(settings: FrontierSettings, observation: Observation, target: bytes, url: str) -> Move:
    """Return the move of a page to ``url``, with what RULES and the interval bounds say of it there.

    Parameters
    ----------
    settings : FrontierSettings
        Parsed settings.
    observation : Observation
        Of the visit that showed it. It counts as any other where the move is refused.
    target : bytes
        Fingerprint of a request of ``url``, otherwise like the page's own.
    url : str
        Where the page is now.
    """
    handout = observation.handout
    stated = handout.stated if handout.stated > 0 else None
    page = new_page(settings, target, url, moved_record(handout.record, url), importance=stated)
    return Move(observation, page, str(handout.record["url"]))


def moved_record(record: Mapping[Any, Any], url: str) -> dict[Any, Any]:
    """Return a record for another URL, without what one site was trusted with where that is of another site.

    Examples
    --------
    >>> moved_record({"url": "http://a.example/", "cookies": {"id": 1}}, "http://b.example/")
    {'url': 'http://b.example/'}
    """
    before = str(record["url"])
    moved = {**record, "url": url}
    if url.partition("://")[0] != before.partition("://")[0] or host_of(url) != host_of(before):
        moved.pop("cookies", None)
        moved["headers"] = {k: v for k, v in (record.get("headers") or {}).items() if _is_shared(k)}
        if not moved["headers"]:
            del moved["headers"]
    return moved


def _is_shared(header: Any) -> bool:
    # Names are kept as they were given, text or bytes.
    name = header.decode("latin-1") if isinstance(header, bytes) else str(header)
    return name.lower() not in _PRIVATE_HEADERS
