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

import zlib
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final

import numpy as np

from optimal_frontier.detection.source_formats import Entry, Kind, read_json, read_text, read_xml, robots_entries

#: Bytes of a source that are read, unzipped: what the protocol of sitemaps allows.
MOST_BYTES: Final = 50 * 2**20
#: Entries of a source that are remembered; the protocol allows 50,000.
MOST_REMEMBERED: Final = 200_000
#: A source of so many entries is rebuilt where more than this share of those that it had has moved: a deploy, or lastmod is always now.
REBUILT_ENTRIES: Final = 1000
REBUILT_SHARE: Final = 0.9
#: Low bits of a digest that are those of the last change; the others are those of the URL.
_LASTMOD_BITS: Final = 24
_GZIP: Final = b"\x1f\x8b"
#: Bytes that are unzipped at once.
_PIECE: Final = 2**14


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
        All of it was read: it was neither damaged nor longer than `MOST_BYTES`.
    digests : ndarray of uint64, (entries,)
        Of each entry's URL (40 bits) and last change (24 bits).
    is_rebuilt : bool
        Nearly all entries have moved since the visit before, so that says nothing of any: last changes do not count.
    """

    kind: Kind
    entries: list[Entry]
    is_whole: bool
    digests: np.ndarray = field(repr=False)
    is_rebuilt: bool = False

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


def read_source(body: bytes, url: str = "") -> Source | None:
    """Read a source.

    Parameters
    ----------
    body : bytes
        The document, gzipped or not. Any bytes.
    url : str, optional
        Where it came from: links in feeds may be relative, and a plain text is a robots.txt if that is its name.

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
    text, is_whole = _unzipped(body)
    start = text[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    read: tuple[Kind, list[Entry], bool] | None
    if url.partition("?")[0].endswith("/robots.txt"):
        read = "robots", list(robots_entries(text, url)), True
    elif start.startswith(b"{"):
        read = read_json(text, url)
    elif start.startswith((b"<", b"\xff\xfe", b"\xfe\xff")) or b"\x00<" in start or b"<\x00" in start:
        read = read_xml(text, url)
    else:
        # A line that was cut off is another URL.
        read = read_text(text if is_whole else text.rpartition(b"\n")[0])
    if read is None:
        return None
    kind, found, is_sound = read
    entries = list({entry.url: entry for entry in found}.values())
    digests = np.fromiter((_digest(entry) for entry in entries), np.uint64, len(entries))
    return Source(kind, entries, is_whole and is_sound, digests)


def _digest(entry: Entry) -> int:
    url = blake2b(entry.url.encode("utf-8", "surrogatepass"), digest_size=5).digest()
    modified = blake2b(repr(entry.modified).encode(), digest_size=_LASTMOD_BITS // 8).digest() if entry.modified else b""
    return int.from_bytes(url, "big") << _LASTMOD_BITS | int.from_bytes(modified, "big")


def _urls(digests: np.ndarray) -> np.ndarray:
    urls: np.ndarray = digests >> np.uint64(_LASTMOD_BITS)
    return urls


def _unzipped(body: bytes) -> tuple[bytes, bool]:
    """What is read of a body, and whether that is all of it; also what came before the damage in a broken zip."""
    if not body.startswith(_GZIP):
        return body[:MOST_BYTES], len(body) <= MOST_BYTES
    parts: list[bytes] = []
    room, at = MOST_BYTES, 0
    while body.startswith(_GZIP, at) and room > 0:  # a zip file may have several members
        member = zlib.decompressobj(wbits=31)
        try:
            # In pieces, as what came before an error would be lost with it, and what comes after a member is copied.
            while at < len(body) and room > 0 and not member.eof:
                piece = body[at : at + _PIECE]
                parts.append(member.decompress(piece, room))
                room -= len(parts[-1])
                at += len(piece) - len(member.unused_data)
        except zlib.error:
            return b"".join(parts), False
        if not member.eof:
            return b"".join(parts), False
    return b"".join(parts), room > 0 or at >= len(body)
