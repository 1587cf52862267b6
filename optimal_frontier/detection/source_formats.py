"""The formats of sitemaps and feeds: XML, JSON, text, robots.txt -> entries. What can be read of a damaged document is read."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, Final, Literal
from urllib.parse import urljoin

from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

from optimal_frontier.detection.modified import http_date, parse_lastmod
from optimal_frontier.detection.source_entries import Collected, Entry
from optimal_frontier.detection.source_references import NumberedReferences
from optimal_frontier.detection.source_streams import SourceStream

#: Bytes of a longer URL are no entry.
_LONGEST_URL: Final = 2048
#: URLs that `urljoin` returns as they are, whatever the base.
_ABSOLUTE: Final = re.compile(r"https?://[A-Za-z0-9._:@%~-]+(?:/[^\s\[\]#;]*)?(?<![?])")

#: Bytes of a longer JSON Feed are not read: parsing it would hold up all threads.
_MOST_JSON: Final = 4 * 2**20

#: What a source is. Each kind has its own way of being wrong.
Kind = Literal["index", "sitemap", "feed", "robots"]


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


def read_xml(stream: SourceStream, url: str, found: Collected) -> tuple[Kind, bool] | None:
    """Read a sitemap, an index or a feed into ``found``: its kind, and whether it is sound; None if it is none of them."""
    # Nothing is fetched and no entity is expanded; the parser's own limits on depth and sizes stand.
    parsing = etree.iterparse(
        NumberedReferences(stream),
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
    known: tuple[Kind, str] | None = None
    try:
        for _, element in parsing:
            if known is None:
                known = _ROOTS.get(_name(element.getroottree().getroot()))
                if known is None:
                    return None
                if known[0] == "index":
                    found.names_sources()
            if _name(element) != known[1]:
                continue
            entry = _xml_entry(element, url)
            if entry is not None and not found.add(entry):
                break
            # The memory of what was read is free at once: a document may have a million elements.
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
        is_sound = stream.is_whole and not len(parsing.error_log)
    except (etree.LxmlError, ValueError, LookupError):
        is_sound = False
    root = parsing.root
    if known is None and root is not None:
        known = _ROOTS.get(_name(root))
    if known is None:
        return None
    if not is_sound and stream.limit != "entries" and stream.last != b">":
        # The parser has closed what was cut off: the URL in it may be another one.
        found.drop_last()
    return known[0], is_sound


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
    if href:
        base = _absolute(element.base or "", base) or base  # xml:base, see RFC 4287, section 2
    return _entry(values.get("loc") or values.get("link") or href or values.get("guid", ""), base, values)


def _entry(link: str, base: str, values: dict[str, str]) -> Entry | None:
    link = link.strip()
    if " " in link and link.startswith(("http://", "https://")):  # as browsers do; what else has spaces is no link
        link = link.replace(" ", "%20")
    url = _absolute(link, base)
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
    # Most links are absolute, and joining one takes longer than everything else that is read of its entry.
    if _ABSOLUTE.fullmatch(link) and len(link) > len("https://"):
        return link
    try:
        url = urljoin(base, link)
    except ValueError:  # brackets that are no IPv6 address
        return None
    return url if url.startswith(("http://", "https://")) and len(url) > len("https://") and url.split() == [url] else None


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
        return datetime.fromtimestamp(seconds, UTC).isoformat(), parse_lastmod(seconds)
    except (ValueError, OverflowError, OSError):
        return "", None


def _priority(said: str) -> float | None:
    try:
        value = float(said)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def read_json(stream: SourceStream, url: str, found: Collected) -> tuple[Kind, bool] | None:
    """Read a JSON Feed; results as in `read_xml`."""
    try:
        document = json.loads(stream.rest(_MOST_JSON))
    except (ValueError, RecursionError):
        return None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list) or not str(document.get("version", "")).startswith("https://jsonfeed.org/"):
        return None
    are_all = True
    for item in items:
        values = {"updated": item.get("date_modified"), "published": item.get("date_published")} if isinstance(item, dict) else {}
        link = item.get("url") or item.get("external_url") if isinstance(item, dict) else None
        entry = _entry(link, url, {k: v for k, v in values.items() if isinstance(v, str)}) if isinstance(link, str) else None
        are_all &= entry is not None
        if entry is not None and not found.add(entry):
            break
    return "feed", are_all


def read_text(stream: SourceStream, found: Collected) -> tuple[Kind, bool] | None:
    """A sitemap of one URL a line; none if most lines are something else."""
    lines = good = 0
    for line in filter(None, map(str.strip, stream.lines())):
        lines += 1
        url = _absolute(line, "")
        good += url is not None
        if url is not None and not found.add(Entry(url)):
            break
    return ("sitemap", good == lines) if 2 * good > lines else None


def read_robots(stream: SourceStream, url: str, found: Collected) -> tuple[Kind, bool]:
    """Read the sitemaps that a robots.txt names."""
    found.names_sources()
    # Protego takes 16 s for 85 kB: it makes a rule for each pair of an agent and a path, though nothing is asked of them here.
    for line in stream.lines():
        name, _, value = line.partition(":")
        sitemap = _absolute(value.partition(" #")[0].strip(), url) if name.strip().lower() == "sitemap" else None
        if sitemap is not None and not found.add(Entry(sitemap)):
            break
    return "robots", True
