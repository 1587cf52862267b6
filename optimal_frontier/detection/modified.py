"""When a page last changed, by its own word: HTTP's Last-Modified, and the lastmod of a sitemap."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import mktime_tz, parsedate_tz
from functools import lru_cache
from typing import Any, Final

#: Resolution of Last-Modified, seconds.
HEADER_RESOLUTION_S: Final = 1.0
#: Seconds by which a last change may lie in the future: two clocks of one site, as behind a load balancer. It counts as now.
SKEW_S: Final = 5.0
#: Earlier last changes mean nothing, seconds since the epoch: 1990, before there was a web. Zeroed clocks and files say 1970 or 1980.
EARLIEST: Final = 631_152_000.0

#: Resolution of a lastmod with a time, seconds: the site's clock is not the crawler's.
_CLOCKS_S: Final = 60.0
_DAY_S: Final = 86_400.0
_YEAR_OR_MONTH: Final = re.compile(r"(\d{4})(?:-(\d{2}))?")


def modified_age(headers: Any, now: float) -> float | None:
    """Return how long before the answer the page last changed, by its ``Last-Modified``.

    Parameters
    ----------
    headers : mapping
        Of names to values, text or bytes, or lists of them (the last counts); Scrapy's headers, for one. Names in any case.
    now : float
        Local wall-clock time, seconds since the epoch; for answers without a ``Date``.

    Returns
    -------
    float or None
        Seconds, >= 0: Date + Age - Last-Modified, so that only the site's clock matters; ``Age`` is what the answer spent in caches. None
        where there is no such header, it cannot be read, lies in the future by more than `SKEW_S`, or before `EARLIEST`.

    Examples
    --------
    >>> headers = {b"Date": [b"Tue, 05 Mar 2024 10:00:00 GMT"], b"Last-Modified": [b"Tue, 05 Mar 2024 09:58:20 GMT"]}
    >>> modified_age(headers, 0.0)
    100.0
    >>> modified_age({"Last-Modified": "yesterday"}, 0.0) is None
    True
    """
    found = _fields(headers, ("last-modified", "date", "age"))
    modified = http_date(found.get("last-modified", ""))
    if modified is None or modified < EARLIEST:
        return None
    told = http_date(found.get("date", ""))
    age = (now if told is None else told + _seconds(found.get("age", ""))) - modified
    return max(age, 0.0) if -SKEW_S <= age < math.inf else None


def parse_lastmod(value: Any) -> tuple[float, float]:
    """Read the ``lastmod`` of a sitemap.

    Parameters
    ----------
    value : str, int or float
        A date or a date and time, ISO 8601 as sitemaps have it (``2024``, ``2024-03``, ``2024-03-05``, ``2024-03-05T10:00:00+01:00``), or
        seconds since the epoch.

    Returns
    -------
    time, resolution : float
        Seconds since the epoch, in the middle of the day, month or year where only that is given; and how long that is, a day also for
        times without a time zone, a minute at least.

    Raises
    ------
    ValueError
        It is none of these, or lies before 1990.

    Examples
    --------
    >>> parse_lastmod("2024-03-05"), parse_lastmod("2024-03-05T10:00:00+01:00")
    ((1709640000.0, 86400.0), (1709629200.0, 60.0))
    """
    if isinstance(value, str):
        time, resolution = _iso_time(value.strip())
    elif isinstance(value, int | float) and not isinstance(value, bool):
        time, resolution = (float(value) if abs(value) < 1e12 else math.inf), _CLOCKS_S
    else:
        raise ValueError("expected a date, a date and time, or seconds since the epoch")
    if not EARLIEST <= time < math.inf:
        raise ValueError("expected a time since 1990, in seconds")
    return time, resolution


def _iso_time(text: str) -> tuple[float, float]:
    rough = _YEAR_OR_MONTH.fullmatch(text)
    if rough is not None:
        year, month = int(rough[1]), int(rough[2] or 1)
        begin = datetime(year, month, 1, tzinfo=UTC)
        lasts = (calendar.monthrange(year, month)[1] if rough[2] else 365 + calendar.isleap(year)) * _DAY_S
        return begin.timestamp() + lasts / 2, lasts
    time = datetime.fromisoformat(text)
    if time.tzinfo is not None:
        try:
            return time.timestamp(), _CLOCKS_S
        except OverflowError as error:  # the zone takes it out of the calendar
            raise ValueError(str(error)) from error
    time = time.replace(tzinfo=UTC)
    is_date = len(text) <= len("2024-03-05")
    return time.timestamp() + (_DAY_S / 2 if is_date else 0.0), _DAY_S


@lru_cache(maxsize=1024)  # many answers come in one second
def http_date(text: str) -> float | None:
    """Return seconds since the epoch of a date as HTTP and mail write it, or None."""
    # The parser of mail dates takes all three forms of HTTP, and what servers make of them; anything may come in, also huge numbers.
    try:
        parsed = parsedate_tz(text)
        if parsed is None:
            return None
        # HTTP knows no other zone than GMT; without one mktime_tz would take local time.
        return float(calendar.timegm(parsed[:9])) if parsed[9] is None else float(mktime_tz(parsed))
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0


def _fields(headers: Any, names: tuple[str, ...]) -> dict[str, str]:
    """The last values of some header fields, by lower-case name."""
    found = {}
    if isinstance(headers, Mapping):
        for name in headers:
            known = _text(name).lower()
            if known in names:
                value = headers[name]
                found[known] = _text(value[-1] if isinstance(value, list | tuple) and value else value).strip()
    return found


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""
