"""Hosts of URLs, as pages are counted and paced by them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
#: Ports of one host name that are remembered.
_MOST_PORTS: Final = 64


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


class SeenHosts:
    """Hosts of the URLs that were seen, by host name: one name may have several ports. The oldest are forgotten.

    Parameters
    ----------
    most : int
        Host names that are remembered.

    Examples
    --------
    >>> seen = SeenHosts(most=1)
    >>> seen.note("http://a.example/"), seen.note("http://a.example:8080/"), seen.of("a.example")
    (None, None, ['a.example', 'a.example:8080'])
    >>> seen.note("http://b.example/"), seen.of("a.example")
    (None, [])
    """

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._hosts: dict[str, list[str]] = {}

    def note(self, url: str) -> None:
        """Remember the host of a URL; raises ValueError where that cannot be parsed."""
        name, host = names_of(url)
        hosts = self._hosts.get(name)
        if hosts is None:
            if len(self._hosts) >= self._most:
                del self._hosts[next(iter(self._hosts))]
            hosts = self._hosts[name] = []
        if host not in hosts:
            hosts.append(host)
            del hosts[:-_MOST_PORTS]

    def of(self, name: str) -> list[str]:
        """Return the hosts, with their ports, of a host name."""
        return self._hosts.get(name, [])
