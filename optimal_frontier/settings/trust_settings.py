"""Settings about what is believed: schemes, callbacks that stored requests may name, and how much a source may say."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings.parsing import ascii_host, fail, from_json, listed, number

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")
_HOST: Final = re.compile(r"\*|(?:\*\.)?[^\s/*@]+")
#: Schemes whose URLs name no place: what such a URL shows never changes.
NO_PLACES: Final = frozenset({"about", "blob", "data", "javascript", "mailto", "sms", "tel"})


@dataclass(frozen=True)
class SourceLimits:
    """SOURCE_LIMITS: how much of a sitemap or feed is read; what is beyond is left out.

    Attributes
    ----------
    entries : int
        Most entries of a document; the protocol of sitemaps allows 50,000.
    bytes : int
        Most bytes of a document, unzipped; the protocol allows 50 MB.
    ratio : float
        Most bytes for each byte of a zipped document, from the first MiB on. Text of sitemaps is zipped to a twentieth or so.
    seconds : float
        Longest time that one document is read for.
    sources : int
        Most sources that an index or a robots.txt names.
    nesting : int
        Most steps from a source that was named by the spider or SOURCES to one that is read: robots.txt, index, sitemap are two.
    """

    entries: int = 50_000
    bytes: int = 50 * 2**20
    ratio: float = 200.0
    seconds: float = 10.0
    sources: int = 1000
    nesting: int = 3


def parse_source_limits(name: str, value: object) -> SourceLimits:
    """Return SOURCE_LIMITS parsed: a dict of some of the limits, the others as they are by default. A string is JSON.

    Examples
    --------
    >>> parse_source_limits("SOURCE_LIMITS", '{"entries": 10}').entries
    10
    """
    if isinstance(value, str):
        value = from_json(name, value, "a dict, or the same as JSON")
    if not isinstance(value, Mapping):
        raise fail(name, value, "a dict")
    known = {field.name: field.type for field in fields(SourceLimits)}
    parsed: dict[str, Any] = {}
    for key, limit in value.items():
        if key not in known:
            raise ConfigurationError(f"{name}: unknown key {key!r}; known are {', '.join(known)}")
        where = f"{name}[{key!r}]"
        if key in ("ratio", "seconds"):
            parsed[key] = number(where, limit, "a number above 0", lambda x: 0 < x < math.inf)
        elif key == "nesting":
            parsed[key] = int(number(where, limit, "a whole number, 0 or more", lambda x: 0 <= x < 2**53 and x == int(x)))
        else:
            parsed[key] = int(number(where, limit, "a whole number, 1 or more", lambda x: 1 <= x < 2**53 and x == int(x)))
    return SourceLimits(**parsed)


def parse_schemes(name: str, value: object) -> tuple[str, ...]:
    """Return SCHEMES: schemes of URLs that may be pages, in lower case.

    Examples
    --------
    >>> parse_schemes("SCHEMES", "https,ftp")
    ('https', 'ftp')
    """
    expected = "a list of schemes of URLs, such as http"
    schemes = tuple(each.lower() if isinstance(each, str) else "" for each in listed(name, value, expected))
    if not schemes or not all(_SCHEME.fullmatch(each) for each in schemes):
        raise fail(name, value, expected)
    no_places = sorted(NO_PLACES.intersection(schemes))
    if no_places:
        raise fail(name, value, f"{expected}; {', '.join(no_places)} name no place, and are never pages")
    return schemes


def parse_callbacks(name: str, value: object) -> tuple[str, ...] | None:
    """Return CALLBACKS: names of methods, or None."""
    if value is None or value == "None":
        return None
    expected = "a list of names of the spider's methods, or None"
    names = listed(name, value, expected)
    if not all(isinstance(each, str) and each.isidentifier() for each in names):
        raise fail(name, value, expected)
    return tuple(names)


def parse_source_hosts(name: str, value: object) -> tuple[str, ...]:
    """Return SOURCE_HOSTS: host names as in URLs, ``*.name`` for all below a name, ``*`` for all.

    Examples
    --------
    >>> parse_source_hosts("SOURCE_HOSTS", "*.Example.org")
    ('*.example.org',)
    """
    expected = "a list of host names, with *.name for all hosts below a name and * for all"
    hosts = listed(name, value, expected)
    if not all(isinstance(each, str) and _HOST.fullmatch(each) for each in hosts):
        raise fail(name, value, expected)
    return tuple(map(ascii_host, hosts))
