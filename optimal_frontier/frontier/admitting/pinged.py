"""Pings: what other programs write into the stream ``pings``, and what of it is a word about a page."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from optimal_frontier.frontier.admitting.addresses import shown
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.state.messages import Announcement, NewPage, page_of
from optimal_frontier.state.pings import RawPing
from optimal_frontier.state.rows import Row
from optimal_frontier.state.source_lessons import BY_HAND, PING

#: Seconds by which the clock of a site, or of who pings, may differ from ours.
CLOCKS_S: Final = 2.0
#: Longest field of an entry, bytes; and what the name of a source may be.
MOST_BYTES: Final = 8192
_SOURCE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")


class Ping(NamedTuple):
    """A ping that was understood: URL, name of the source, and when the page changed, seconds since the epoch."""

    url: str
    source: str
    at: float


def check_url(url: str) -> None:
    """Refuse what is no URL of a page.

    Raises
    ------
    ValueError
        What is wrong with it, in one line.
    """
    try:
        parts = urlsplit(url)
        is_page = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        # Nobody knows where a password in it ends.
        raise ValueError(f"{shown(url.rpartition('@')[2])!r} is no URL: expected http://host/path or https://host/path") from None
    if "@" in parts.netloc:
        raise ValueError(f"{shown(url)!r}: expected a URL without a user name and a password")
    if not is_page or len(url) > MOST_BYTES:
        raise ValueError(f"{shown(url)!r} is no URL: expected http://host/path or https://host/path, of at most {MOST_BYTES:,} characters")


def check_source(name: str) -> None:
    """Refuse what is no name of a source.

    Raises
    ------
    ValueError
        It is none.
    """
    if _SOURCE.fullmatch(name) is None:
        raise ValueError(
            f"the source {name[:80]!r}: expected 1 to 64 of the characters A-Z a-z 0-9 . _ : - that begin with a letter or digit"
        )


def read_ping(raw: RawPing) -> Ping:
    """Read an entry of the stream.

    Raises
    ------
    ValueError
        What is wrong with it, in one line.

    Examples
    --------
    >>> read_ping(RawPing(b"1700000000500-0", {b"url": b"http://a.org/", b"source": b"hub"}))
    Ping(url='http://a.org/', source='ping hub', at=1700000000.5)
    """
    if b"url" not in raw.fields:
        raise ValueError('expected a field "url"')
    if max(map(len, raw.fields.values())) > MOST_BYTES:
        raise ValueError(f"expected at most {MOST_BYTES:,} bytes in a field")
    try:
        url, source, at = (raw.fields.get(name, b"").decode() for name in (b"url", b"source", b"at"))
    except UnicodeDecodeError as error:
        raise ValueError(f"expected UTF-8 text ({error.reason})") from None
    check_url(url.strip())
    if source:
        check_source(source)
    return Ping(url.strip(), PING + source if source else BY_HAND, _time(at) if at else raw.at)


def _time(text: str) -> float:
    try:
        at = float(text)
    except ValueError:
        at = math.nan
    if not 0.0 < at < math.inf:
        raise ValueError(f"at is {text[:40]!r}: expected seconds since the epoch")
    return at


def word_of(ping: Ping, fingerprint: bytes) -> NewPage:
    """Return what a ping says of the page with this fingerprint, as `word_taking.take_in` takes it; it is never added."""
    announcement = Announcement(ping.source, -1.0)
    return NewPage(page_of(fingerprint), host_of(ping.url), Row(), 0.0, b"", lastmod=(ping.at, CLOCKS_S), announcement=announcement)
