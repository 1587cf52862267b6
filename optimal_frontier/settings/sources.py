"""SOURCES: sitemaps and feeds that announce pages."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from optimal_frontier.settings.parsing import fail

_EXPECTED = "a list of http or https URLs"


def parse_sources(name: str, value: object) -> tuple[str, ...]:
    """Return URLs; a string is JSON, or URLs separated by blanks.

    Examples
    --------
    >>> parse_sources("SOURCES", "http://a.org/sitemap.xml http://a.org/feed")
    ('http://a.org/sitemap.xml', 'http://a.org/feed')
    """
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip().startswith("[") else value.split()
        except ValueError as error:
            raise fail(name, value, f"{_EXPECTED}, or the same as JSON ({error})") from error
    if not isinstance(value, list | tuple):
        raise fail(name, value, _EXPECTED)
    for at, url in enumerate(value):
        try:
            is_url = isinstance(url, str) and urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
        except ValueError:
            is_url = False
        if not is_url:
            raise fail(f"{name}[{at}]", url, "a URL, http://host/path or https://host/path")
    return tuple(value)
