"""Hosts of URLs, as pages are counted and paced by them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def host_of(url: str) -> str:
    """Return the lower-case host name of ``url``, with the port where it is not the default of its scheme.

    Examples
    --------
    >>> host_of("http://Example.org:80/a"), host_of("https://example.org:8443/")
    ('example.org', 'example.org:8443')
    """
    return names_of(url)[1]


def names_of(url: str) -> tuple[str, str]:
    """Return the host name of ``url``, which Scrapy's downloader takes for one slot, and the host as in `host_of`."""
    # Few origins, many URLs: up to the path they are the same text.
    end = url.find("/", url.find("://") + 3)
    return _names_of_origin(url if end < 0 else url[:end])


@lru_cache(maxsize=4096)
def _names_of_origin(origin: str) -> tuple[str, str]:
    parts = urlsplit(origin)
    name = parts.hostname or ""
    try:
        port = parts.port
    except ValueError:
        port = None
    return name, name if port is None or port == _DEFAULT_PORTS.get(parts.scheme) else f"{name}:{port}"
