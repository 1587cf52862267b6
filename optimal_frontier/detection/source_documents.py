"""What a source announces: the entries of a sitemap, of a sitemap index or of a feed, and what robots.txt says of sitemaps.

The content of a source is the set of its entries, each a URL and a last change. How they are written, their order, build dates and titles
are not: two documents with the same entries have the same `Source.fingerprint`.

Notes
-----
The documents are sitemaps (https://www.sitemaps.org/protocol.html: ``urlset``, ``sitemapindex``, or one URL a line), RSS 0.9 to 2.0, Atom
(RFC 4287), JSON Feed 1.x, each also gzipped. What can be read of a damaged one is read. Scrapy's own parser of sitemaps stands behind a
framework, builds a dict per entry and knows no feeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final

import numpy as np

from optimal_frontier.detection.source_entries import Collected, Entry
from optimal_frontier.detection.source_formats import Kind, read_json, read_robots, read_text, read_xml
from optimal_frontier.detection.source_streams import SourceStream
from optimal_frontier.settings import SourceLimits

#: Entries of a source that are remembered; the protocol allows 50,000.
MOST_REMEMBERED: Final = 200_000
#: A source of so many entries is rebuilt where more than this share of those that it had has moved: a deploy, or lastmod is always now.
REBUILT_ENTRIES: Final = 1000
REBUILT_SHARE: Final = 0.9
#: Low bits of a digest that are those of the last change; the others are those of the URL.
_LASTMOD_BITS: Final = 24


#: How much is read where nothing else is said.
NO_MORE: Final = SourceLimits()


@dataclass(frozen=True, slots=True)
class Source:
    """What was read of a source.

    Attributes
    ----------
    kind : str
        ``index``, ``sitemap``, ``feed`` or ``robots``.
    entries : list of Entry
        In document order, each URL once.
    is_whole : bool
        All of it was read: it was neither damaged nor beyond a limit.
    digests : ndarray of uint64, (entries,)
        Of each entry's URL (40 bits) and last change (24 bits).
    limit : str
        The limit of SOURCE_LIMITS that it is beyond; empty: none.
    dropped : mapping of str to (int, str)
        Entries that the source does not speak for, by reason: how many, and the URL of the first.
    is_rebuilt : bool
        Nearly all entries have moved since the visit before, so that says nothing of any: last changes do not count.
    """

    kind: Kind
    entries: list[Entry]
    is_whole: bool
    digests: np.ndarray = field(repr=False)
    is_rebuilt: bool = False
    limit: str = ""
    dropped: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def since(self, remembered: bytes) -> Source:
        """Return the source with ``is_rebuilt``, by what a visit has left that was `remembered`."""
        before = np.frombuffer(remembered, "<u8")
        was_there = np.isin(_urls(self.digests), _urls(before))
        moved = was_there & ~np.isin(self.digests, before)
        return replace(self, is_rebuilt=bool(moved.sum() > REBUILT_SHARE * max(was_there.sum(), REBUILT_ENTRIES)))

    @property
    def fingerprint(self) -> bytes:
        """16 bytes that change with the entries only."""
        counting = _urls(self.digests) if self.is_rebuilt else self.digests
        return blake2b(self.kind.encode() + np.unique(counting).tobytes(), digest_size=16).digest()

    @property
    def remembered(self) -> bytes:
        """What to keep for the next visit: 8 bytes an entry, `MOST_REMEMBERED` of them at most."""
        return np.sort(self.digests[:MOST_REMEMBERED]).astype("<u8").tobytes()

    def news(self, remembered: bytes) -> list[Entry]:
        """Return the entries that are new, or whose last change is another one, since a visit that left ``remembered``; all if empty."""
        if not remembered:
            return self.entries
        now, before = self.digests, np.frombuffer(remembered, "<u8")
        is_news = ~np.isin(_urls(now), _urls(before)) if self.is_rebuilt else ~np.isin(now, before)
        return [self.entries[at] for at in is_news.nonzero()[0]]


def read_source(
    body: bytes,
    url: str = "",
    limits: SourceLimits = NO_MORE,
    refusal: Callable[[str], str] | None = None,
    pause: Callable[[], None] | None = None,
) -> Source | None:
    """Read a source.

    Parameters
    ----------
    body : bytes
        The document, gzipped or not. Any bytes.
    url : str, optional
        Where it came from: links in feeds may be relative, and a plain text is a robots.txt if that is its name.
    limits : SourceLimits, optional
        How much of it is read.
    refusal : callable, optional
        URL -> why the source's word does not count for it; empty: it does. All count by default.
    pause : callable, optional
        Called now and then: a thread lets others work.

    Returns
    -------
    Source or None
        None if it is none of the documents that are known: an error page, for one.

    Examples
    --------
    >>> text = b"<urlset><url><loc>http://a.org/</loc><lastmod>2024-03-05</lastmod></url><url><loc>http://a.org/b</loc>"
    >>> source = read_source(text)
    >>> source.kind, source.is_whole
    ('sitemap', False)
    >>> [(entry.url, entry.modified) for entry in source.entries]
    [('http://a.org/', (1709640000.0, 86400.0)), ('http://a.org/b', None)]
    >>> read_source(b"<html><body>Not found</body></html>") is None
    True
    """
    stream = SourceStream(body, limits, pause)
    start = stream.peek().lstrip(b"\xef\xbb\xbf \t\r\n")
    found = Collected(stream, limits, refusal)
    read: tuple[Kind, bool] | None
    if url.partition("?")[0].endswith("/robots.txt"):
        read = read_robots(stream, url, found)
    elif start.startswith(b"{"):
        read = read_json(stream, url, found)
    elif start.startswith((b"<", b"\xff\xfe", b"\xfe\xff")) or b"\x00<" in start or b"<\x00" in start:
        read = read_xml(stream, url, found)
    else:
        read = read_text(stream, found)
    if read is None:
        return None
    kind, is_sound = read
    entries = list(found.entries.values())
    digests = np.fromiter((_digest(entry) for entry in entries), np.uint64, len(entries))
    dropped = {reason: (count, found.examples[reason]) for reason, count in found.dropped.items()}
    return Source(kind, entries, stream.is_whole and is_sound, digests, limit=stream.limit, dropped=dropped)


def _digest(entry: Entry) -> int:
    url = blake2b(entry.url.encode("utf-8", "surrogatepass"), digest_size=5).digest()
    modified = blake2b(repr(entry.modified).encode(), digest_size=_LASTMOD_BITS // 8).digest() if entry.modified else b""
    return int.from_bytes(url, "big") << _LASTMOD_BITS | int.from_bytes(modified, "big")


def _urls(digests: np.ndarray) -> np.ndarray:
    urls: np.ndarray = digests >> np.uint64(_LASTMOD_BITS)
    return urls
