"""Settings about URLs: sources that announce them, what of them does not count, and which of them are traps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final
from urllib.parse import urlsplit

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings.parsing import fail, from_json, listed, number

#: Differences of URLs that FOLD_URLS knows.
FOLDS: Final = ("scheme", "www", "case", "slash", "index")
#: Parameters that say where a reader came from or which session it is, on any site.
IGNORED: Final = ("utm_*", "gclid", "fbclid", "msclkid", "PHPSESSID", "jsessionid", "sessionid")


@dataclass(frozen=True)
class UrlLimits:
    """URL_LIMITS: a URL beyond one of them is a trap; None is no limit.

    Attributes
    ----------
    length : int or None
        Most characters of a URL; sitemaps allow fewer than 2,048.
    segments : int or None
        Most segments of a path.
    parameters : int or None
        Most parameters of a query.
    repeats : int or None
        2 or more: as many times in a row the same segments of a path, or as many times the same ``name=value`` in a query, are a trap.
    """

    length: int | None = 2048
    segments: int | None = 32
    parameters: int | None = 64
    repeats: int | None = 3


NO_LIMITS: Final = UrlLimits(None, None, None, None)


def parse_limits(name: str, value: object) -> UrlLimits:
    """Return URL_LIMITS parsed: a dict of some of the limits, the others as they are by default; None for none. A string is JSON."""
    if isinstance(value, str) and value != "None":
        value = from_json(name, value, "a dict, or the same as JSON, or None")
    if value is None or value == "None":
        return NO_LIMITS
    if not isinstance(value, Mapping):
        raise fail(name, value, "a dict, or None for no limits")
    known = [field.name for field in fields(UrlLimits)]
    for key in value:
        if key not in known:
            raise ConfigurationError(f"{name}: unknown key {key!r}; known are {', '.join(known)}")
    return UrlLimits(**{key: _limit(f"{name}[{key!r}]", value[key], 2 if key == "repeats" else 1) for key in value})


def page_limit(name: str, value: object) -> int | None:
    """Return a whole number of 1 or more, or None."""
    return _limit(name, value, 1)


def _limit(name: str, value: object, least: int) -> int | None:
    if value is None or value == "None":
        return None
    return int(number(name, value, f"a whole number, {least} or more, or None", lambda x: least <= x < math.inf and x == int(x)))


def parse_names(name: str, value: object) -> tuple[str, ...]:
    """Return IGNORED_PARAMETERS: a list of names, which may have wildcards; a string is JSON, or names with commas between them."""
    expected = "a list of names of parameters, which may have the wildcards * and ?"
    names = listed(name, value, expected)
    if not all(isinstance(each, str) and each for each in names):
        raise fail(name, value, expected)
    return tuple(names)


def parse_folds(name: str, value: object) -> tuple[str, ...]:
    """Return FOLD_URLS: some of `FOLDS`, as a list, as JSON, or with commas between them."""
    expected = f"a list of some of {', '.join(FOLDS)}"
    folds = listed(name, value, expected)
    if not all(each in FOLDS for each in folds):
        raise fail(name, value, expected)
    return tuple(folds)


def parse_sources(name: str, value: object) -> tuple[str, ...]:
    """Return SOURCES, URLs of sitemaps and feeds; a string is JSON, or URLs separated by blanks.

    Examples
    --------
    >>> parse_sources("SOURCES", "http://a.org/sitemap.xml http://a.org/feed")
    ('http://a.org/sitemap.xml', 'http://a.org/feed')
    """
    urls = listed(name, value, "a list of http or https URLs", separator=None)
    for at, url in enumerate(urls):
        try:
            is_url = isinstance(url, str) and urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
        except ValueError:
            is_url = False
        if not is_url:
            raise fail(f"{name}[{at}]", url, "a URL, http://host/path or https://host/path")
    return tuple(urls)


def parse_url_keys(name: str, value: object) -> tuple[str, ...]:
    """Return URL_KEYS: names of Redis keys, each once; a string is JSON, or names with commas between them."""
    expected = "a list of names of Redis keys"
    keys = listed(name, value, expected)
    if not all(isinstance(each, str) and each.strip() for each in keys):
        raise fail(name, value, expected)
    if any("%(" in each.replace("%(name)s", "") for each in keys):
        raise fail(name, value, f"{expected}; %(name)s stands for the spider, and nothing else does")
    return tuple(dict.fromkeys(keys))
