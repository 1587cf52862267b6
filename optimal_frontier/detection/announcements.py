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

import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urljoin

import numpy as np
from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

from optimal_frontier.detection.modified import http_date, parse_lastmod

#: Bytes of a source that are read, unzipped: what the protocol of sitemaps allows.
MOST_BYTES: Final = 50 * 2**20
#: Entries of a source that are remembered; the protocol allows 50,000.
MOST_REMEMBERED: Final = 200_000
#: A source of so many entries is rebuilt where more than this share of those that it had has moved at once: a deploy, or lastmod is always now.
REBUILT_ENTRIES: Final = 1000
REBUILT_SHARE: Final = 0.9
#: Low bits of a digest that are those of the last change; the others are those of the URL.
_LASTMOD_BITS: Final = 24
#: Bytes of a longer URL are no entry.
_LONGEST_URL: Final = 2048

#: What a source is. Each kind has its own way of being wrong.
Kind = Literal["index", "sitemap", "feed", "robots"]

_GZIP: Final = b"\x1f\x8b"
#: Root element of a document -> its kind, and the element that is an entry.
_ROOTS: Final[dict[str, tuple[Kind, str]]] = {
    "urlset": ("sitemap", "url"),
    "sitemapindex": ("index", "sitemap"),
    "rss": ("feed", "item"),
    "RDF": ("feed", "item"),
    "feed": ("feed", "entry"),
}
_ENTRIES: Final = tuple(f"{{*}}{name}" for name in ("url", "sitemap", "item", "entry"))
#: Children of an entry that say when it last changed, the best word first.
_DATES: Final = ("lastmod", "updated", "modified", "published", "pubDate", "date", "issued")


class Entry(NamedTuple):
    """One entry of a source.

    Attributes
    ----------
    url : str
        Absolute.
    lastmod : str
        When it last changed, for ``meta["lastmod"]``: ISO 8601; empty where nothing is said that can be read.
    modified : tuple of float or None
        The same in seconds since the epoch, and its resolution (s).
    priority : float or None
        Of a sitemap's entry, from 0 to 1.
    """

    url: str
    lastmod: str = ""
    modified: tuple[float, float] | None = None
    priority: float | None = None


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
        return replace(
            self, is_rebuilt=len(before) >= REBUILT_ENTRIES and moved.sum() > REBUILT_SHARE * max(was_there.sum(), REBUILT_ENTRIES)
        )

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
        read = "robots", list(_robots_entries(text, url)), True
    elif start.startswith(b"{"):
        read = _read_json(text, url)
    elif start.startswith((b"<", b"\xff\xfe", b"\xfe\xff")) or b"\x00<" in start or b"<\x00" in start:
        read = _read_xml(text, url)
    else:
        # A line that was cut off is another URL.
        read = _read_text(text if is_whole else text.rpartition(b"\n")[0])
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
    room = MOST_BYTES
    while body.startswith(_GZIP) and room > 0:  # a zip file may have several members
        member = zlib.decompressobj(wbits=31)
        try:
            # In pieces, as what came before an error would be lost with it.
            for at in range(0, len(body), 2**16):
                parts.append(member.decompress(body[at : at + 2**16], room))
                room -= len(parts[-1])
                if room <= 0 or member.eof:
                    break
        except zlib.error:
            return b"".join(parts), False
        if not member.eof:
            return b"".join(parts), False
        body = member.unused_data + body[at + 2**16 :]
    return b"".join(parts), room > 0 or not body


def _read_xml(text: bytes, url: str) -> tuple[Kind, list[Entry], bool] | None:
    # Nothing is fetched and no entity is expanded; the parser's own limits on depth and sizes stand.
    parsing = etree.iterparse(
        io.BytesIO(text),
        events=("end",),
        tag=_ENTRIES,
        recover=True,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )
    entries: list[Entry] = []
    known: tuple[Kind, str] | None = None
    try:
        for _, element in parsing:
            if known is None:
                known = _ROOTS.get(_name(element.getroottree().getroot()))
                if known is None:
                    return None
            if _name(element) != known[1]:
                continue
            entry = _xml_entry(element, url)
            if entry is not None:
                entries.append(entry)
            # The memory of what was read is free at once: a document may have a million elements.
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
        is_sound = not len(parsing.error_log)
    except (etree.LxmlError, ValueError, LookupError):
        is_sound = False
    root = parsing.root
    if known is None and root is not None:
        known = _ROOTS.get(_name(root))
    if known is None:
        return None
    if not is_sound and not text.rstrip(b"\x00 \t\r\n").endswith(b">"):
        # The parser has closed what was cut off: the URL in it may be another one.
        del entries[-1:]
    return known[0], entries, is_sound


def _name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _xml_entry(element: Any, base: str) -> Entry | None:
    values: dict[str, str] = {}
    href = ""
    for child in element:
        name = _name(child)
        if name == "link" and child.get("href"):
            # Atom: the page itself, not its comments or its enclosure; an RSS item may have an Atom link too.
            if not href and child.get("rel", "alternate") == "alternate":
                href = child.get("href")
        elif name == "guid" and child.get("isPermaLink", "true") != "true":
            continue
        elif child.text and name not in values:
            values[name] = child.text.strip()
    return _entry(values.get("loc") or values.get("link") or href or values.get("guid", ""), base, values)


def _entry(link: str, base: str, values: dict[str, str]) -> Entry | None:
    url = _absolute(link.strip(), base)
    if url is None:
        return None
    lastmod, modified = "", None
    for name in _DATES:
        if values.get(name):
            lastmod, modified = _when(values[name])
            if modified is not None:
                break
    return Entry(url, lastmod, modified, _priority(values.get("priority", "")))


def _absolute(link: str, base: str) -> str | None:
    if not link or len(link) > _LONGEST_URL:
        return None
    try:
        url = urljoin(base, link)
    except ValueError:  # brackets that are no IPv6 address
        return None
    return url if url.startswith(("http://", "https://")) and len(url) > len("https://") and not any(map(str.isspace, url)) else None


def _when(said: str) -> tuple[str, tuple[float, float] | None]:
    """ISO 8601 of a date as sitemaps and Atom (ISO 8601) or RSS (RFC 822) write it, and what it stands for."""
    try:
        return said, parse_lastmod(said)
    except ValueError:
        pass
    seconds = http_date(said)
    if seconds is None:
        return "", None
    try:
        iso = datetime.fromtimestamp(seconds, UTC).isoformat()
        return iso, parse_lastmod(iso)
    except (ValueError, OverflowError, OSError):
        return "", None


def _priority(said: str) -> float | None:
    try:
        value = float(said)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _read_json(text: bytes, url: str) -> tuple[Kind, list[Entry], bool] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list) or not str(document.get("version", "")).startswith("https://jsonfeed.org/"):
        return None
    entries = []
    for item in items:
        values = {"updated": item.get("date_modified"), "published": item.get("date_published")} if isinstance(item, dict) else {}
        link = item.get("url") or item.get("external_url") if isinstance(item, dict) else None
        entry = _entry(link, url, {k: v for k, v in values.items() if isinstance(v, str)}) if isinstance(link, str) else None
        if entry is not None:
            entries.append(entry)
    return "feed", entries, len(entries) == len(items)


def _read_text(text: bytes) -> tuple[Kind, list[Entry], bool] | None:
    """A sitemap of one URL a line; none if most lines are something else."""
    lines = [line for line in (raw.strip() for raw in text.decode("utf-8-sig", "replace").splitlines()) if line]
    entries = [Entry(url) for url in (_absolute(line, "") for line in lines) if url is not None]
    return ("sitemap", entries, len(entries) == len(lines)) if 2 * len(entries) > len(lines) else None


def _robots_entries(text: bytes, url: str) -> Iterator[Entry]:
    for line in text.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(":")
        sitemap = _absolute(value.partition(" #")[0].strip(), url) if name.strip().lower() == "sitemap" else None
        if sitemap is not None:
            yield Entry(sitemap)
