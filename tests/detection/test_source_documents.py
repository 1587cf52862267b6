"""What sources announce: every format, in good and in bad shape; any bytes are read without an exception."""

from __future__ import annotations

import gzip
import json
import random
import resource
import time
from urllib.parse import urljoin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.detection import source_documents
from optimal_frontier.detection.source_documents import MOST_REMEMBERED, Source, read_source
from optimal_frontier.detection.source_entries import Entry
from optimal_frontier.settings import SourceLimits

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
TIME = ("2024-03-05T10:00:00+00:00", (1709632800.0, 60.0))
DAY = ("2024-03-05", (1709640000.0, 86400.0))

SITEMAP = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {NAMESPACE} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
  <!-- made by a plugin at 2024-03-06 -->
  <url><loc> http://a.org/1?x=1&amp;y=2 </loc><lastmod>2024-03-05</lastmod><priority>0.8</priority>
       <image:image><image:loc>http://a.org/1.png</image:loc></image:image></url>
  <url><loc>http://a.org/2</loc><lastmod>last week</lastmod><priority>high</priority></url>
  <url><lastmod>2024-03-05</lastmod></url>
  <url><loc>http://a.org/1?x=1&amp;y=2</loc><lastmod>2024-03-05</lastmod><priority>0.8</priority></url>
</urlset>""".encode()
INDEX = (
    f"""<sitemapindex {NAMESPACE}><sitemap><loc>http://a.org/1.xml.gz</loc><lastmod>{TIME[0]}</lastmod></sitemap></sitemapindex>""".encode()
)
RSS = b"""<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>
<title>News</title><link>http://a.org/</link><lastBuildDate>Wed, 06 Mar 2024 00:00:00 GMT</lastBuildDate>
<image><url>http://a.org/logo.png</url></image>
<item><title>1</title><link>/1</link><pubDate>Tue, 05 Mar 2024 11:00:00 +0100</pubDate></item>
<item><guid>http://a.org/2</guid><dc:date>2024-03-05</dc:date></item>
<item><guid isPermaLink="false">http://a.org/none</guid></item>
<item><link>mailto:someone</link></item>
</channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><updated>2024-03-06T00:00:00Z</updated><link href="http://a.org/"/>
<entry><link rel="replies" href="http://a.org/1/comments"/><link href="/1"/><published>2020-01-01T00:00:00Z</published>
<updated>2024-03-05T10:00:00+00:00</updated></entry>
<entry><link rel="alternate" href="http://a.org/2"/><published>2024-03-05</published></entry></feed>"""
RDF = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel/>
<item rdf:about="http://a.org/1"><link>http://a.org/1</link></item></rdf:RDF>"""
JSON_FEED = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "items": [
            {"id": "1", "url": "http://a.org/1", "date_published": "2020-01-01T00:00:00Z", "date_modified": TIME[0]},
            {"id": "2", "external_url": "http://a.org/2", "date_published": "2024-03-05"},
        ],
    }
).encode()
TWO = [Entry("http://a.org/1", *TIME), Entry("http://a.org/2", *DAY)]


def entries_of(body: bytes, url: str = "http://a.org/source") -> list[Entry]:
    source = read_source(body, url)
    assert source is not None
    return source.entries


def test_a_sitemap() -> None:
    """Each URL once, white space and entities resolved; nonsense in lastmod and priority is none; an entry without a loc is none."""
    source = read_source(SITEMAP)
    assert source is not None
    assert source.kind == "sitemap"
    assert source.is_whole
    assert source.entries == [Entry("http://a.org/1?x=1&y=2", *DAY, 0.8), Entry("http://a.org/2")]


def test_an_index() -> None:
    source = read_source(INDEX)
    assert source is not None
    assert (source.kind, source.entries) == ("index", [Entry("http://a.org/1.xml.gz", *TIME)])


@pytest.mark.parametrize("body", [RSS, ATOM, JSON_FEED], ids=["rss", "atom", "json"])
def test_feeds(body: bytes) -> None:
    """Relative links, permalinks, dates of mail and of ISO 8601; updated goes before published."""
    source = read_source(body, "http://a.org/feed")
    assert source is not None
    assert source.kind == "feed"
    assert source.is_whole
    assert source.entries == TWO


def test_links_of_atom_begin_at_their_xml_base() -> None:
    """It may be relative itself, and an entry may have another one than the feed; one that is no address counts for nothing."""
    bases = ("", " xml:base='x/'", " xml:base='http://b.org/'", " xml:base='http://[/'", " xml:base='file:///etc/'")
    entries = "".join(f"<entry{base}><link href='1'/></entry>" for base in bases)
    body = f"<feed xmlns='http://www.w3.org/2005/Atom' xml:base='/blog/'>{entries}</feed>".encode()
    assert [entry.url for entry in entries_of(body)] == [f"http://{path}/1" for path in ("a.org/blog", "a.org/blog/x", "b.org", "a.org")]


def test_an_rss_1_feed() -> None:
    assert entries_of(RDF) == [Entry("http://a.org/1")]


def test_spaces_of_a_url_are_written_as_browsers_do_and_other_texts_are_none() -> None:
    items = "".join(f"<item><guid>{guid}</guid></item>" for guid in ("http://a.org/my file.pdf", "123 at http://a.org/"))
    assert entries_of(f"<rss>{items}</rss>".encode()) == [Entry("http://a.org/my%20file.pdf")]


def test_a_text_of_urls() -> None:
    assert entries_of(b"\xef\xbb\xbfhttp://a.org/1\r\n\r\n  http://a.org/2\n") == [Entry("http://a.org/1"), Entry("http://a.org/2")]


def test_the_sitemaps_of_a_robots_txt() -> None:
    body = b"User-agent: *\nDisallow: /x\nSitemap: http://a.org/1.xml # the first\nSITEMAP:/2.xml\nSitemap:\n\xff\xfe"
    source = read_source(body, "http://a.org/robots.txt")
    assert source is not None
    assert source.kind == "robots"
    assert [entry.url for entry in source.entries] == ["http://a.org/1.xml", "http://a.org/2.xml"]


def test_encodings() -> None:
    text = "<urlset><url><loc>http://a.org/\u00e9</loc></url></urlset>"
    for encoding in ("utf-8", "utf-16", "iso-8859-1"):
        body = f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode(encoding)
        assert entries_of(body) == [Entry("http://a.org/\u00e9")]


def test_a_robots_txt_of_many_agents_and_rules_takes_linear_time() -> None:
    """A parser that keeps the rules of each agent needs minutes."""
    body = b"\xef\xbb\xbfSitemap: http://a.org/1.xml\n" + b"".join(b"User-agent: %d\n" % at for at in range(50_000))
    body += b"Allow: /\n" * 50_000 + b"Sitemap:/2.xml"
    before = time.process_time()
    assert [entry.url for entry in entries_of(body, "http://a.org/robots.txt")] == ["http://a.org/1.xml", "http://a.org/2.xml"]
    assert time.process_time() - before < 5.0


PIECES = [*"/?#;:@[].% \t\u00e9\u2100", "http:", "https:", "HTTP:", "//", "a.org", "..", "b", "=1", "\u3000"]


def test_links_are_resolved_as_urljoin_does() -> None:
    """Also those that are absolute, which take a shorter way, and whose spaces are written as such.

    4,000 links at random: hypothesis takes longer to draw one than this does.
    """
    rng = random.Random(1)
    for _ in range(4000):
        link = rng.choice(["", "http://"]) + "".join(rng.choices(PIECES, k=rng.randrange(8)))
        body = json.dumps({"version": "https://jsonfeed.org/version/1", "items": [{"url": link}]}).encode()
        link = link.strip()
        try:
            is_absolute = link.startswith(("http://", "https://"))
            expected = urljoin("http://a.org/feed", link.replace(" ", "%20") if is_absolute else link)
        except ValueError:
            expected = ""
        is_url = len(expected) > len("https://") and expected.startswith(("http://", "https://")) and expected.split() == [expected]
        assert entries_of(body, "http://a.org/feed") == ([Entry(expected)] if is_url and link else []), link


def test_zipped_also_in_several_members() -> None:
    assert entries_of(gzip.compress(SITEMAP[:300]) + gzip.compress(SITEMAP[300:])) == entries_of(SITEMAP)


def test_thousands_of_empty_members_take_linear_time() -> None:
    """30 seconds for each MB, growing with its square, it was."""
    body = gzip.compress(b"") * 200_000 + gzip.compress(SITEMAP)
    before = time.process_time()
    source = read_source(body)
    assert source is not None
    assert source.is_whole
    assert time.process_time() - before < 10.0


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "zipped"])
def test_of_a_damaged_one_what_can_be_read_is_read(zipped: bool) -> None:
    noise = random.Random(1)
    loc = "".join(f"<url><loc>http://a.org/{noise.random()}</loc></url>" for _ in range(20_000))
    body = f"<urlset {NAMESPACE}>{loc}</urlset>".encode()
    body = gzip.compress(body) if zipped else body
    source = read_source(body[: len(body) // 2])
    assert source is not None
    assert not source.is_whole
    assert 9_000 < len(source.entries) < 11_000
    assert source.entries == entries_of(body)[: len(source.entries)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"<html><body><a href='http://a.org/'>x</a></body></html>",
        b"<",
        b"{",
        b'{"items": []}',
        b"[]",
        b"some text\nhttp://a.org/\nmore",
    ],
)
def test_what_is_no_source_is_none(body: bytes) -> None:
    assert read_source(body) is None


def test_an_empty_source_is_one() -> None:
    assert entries_of(f"<urlset {NAMESPACE}/>".encode()) == []


def test_no_entity_is_expanded_and_nothing_is_fetched() -> None:
    """A billion laughs, at which the parser stops, and a local file."""
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    body = f'<!DOCTYPE urlset [<!ENTITY l0 "ha">{laughs}<!ENTITY file SYSTEM "file:///etc/passwd">]>'
    for entity in ("l9", "file"):
        source = read_source(f"{body}<urlset><url><loc>http://a.org/&{entity};</loc></url></urlset>".encode())
        assert source is None or all(len(entry.url) < 100 for entry in source.entries)


@pytest.mark.parametrize(
    ("limits", "met"),
    [
        (SourceLimits(bytes=100_000), "bytes"),
        (SourceLimits(ratio=10.0), "ratio"),
        (SourceLimits(seconds=1e-9), "seconds"),
        (SourceLimits(entries=1), "entries"),
    ],
)
def test_a_bomb_is_cut_short(limits: SourceLimits, met: str) -> None:
    body = gzip.compress(b"<urlset>" + b"<url><loc>http://a.org/1</loc></url>" * 100_000)
    source = read_source(body, limits=limits)
    if met == "seconds":
        assert source is None
        return
    assert source is not None
    assert source.limit == met
    assert source.entries == [Entry("http://a.org/1")]


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("kind", ["xml", "text", "json", "robots", "index"])
def test_entries_are_as_many_as_the_limit_allows(kind: str, zipped: bool) -> None:
    urls = [f"http://a.org/{at}" for at in range(50)]
    body = {
        "xml": f"<urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>",
        "index": f"<sitemapindex>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>",
        "text": "\n".join(urls),
        "robots": "\n".join(f"Sitemap: {url}" for url in urls),
        "json": json.dumps({"version": "https://jsonfeed.org/version/1", "items": [{"url": url} for url in urls]}),
    }[kind].encode()
    limits = SourceLimits(sources=7) if kind in ("robots", "index") else SourceLimits(entries=7)
    source = read_source(gzip.compress(body) if zipped else body, "http://a.org/robots.txt" if kind == "robots" else "", limits)
    assert source is not None
    assert [entry.url for entry in source.entries] == urls[:7]
    assert (source.limit, source.is_whole) == ("entries", False)


def test_what_has_no_entries_is_not_read_to_its_end() -> None:
    """A tree of elements that are none would take gigabytes."""
    elements, lines = gzip.compress(b"<urlset>" + b"<x/>" * 5_000_000), gzip.compress(b"no url\n" * 5_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source = read_source(elements)
    assert source is not None
    assert (source.limit, source.entries) == ("ratio", [])
    source = read_source(b"<urlset>" + b"<x/>" * 5_000_000)
    assert source is not None
    assert (source.limit, source.entries) == ("bytes", [])
    assert read_source(lines) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_entries_that_a_source_does_not_speak_for_are_counted() -> None:
    source = read_source(SITEMAP + b"<!-- -->", refusal=lambda url: "foreign" if url.endswith("y=2") else "")
    assert source is not None
    (count, example) = source.dropped["foreign"]
    assert count >= 1
    assert example.endswith("y=2")
    assert all(not entry.url.endswith("y=2") for entry in source.entries)


def test_the_fingerprint_is_that_of_the_entries() -> None:
    """Not of their order, of build dates, of how they are written; but of URLs and last changes."""
    prints = {
        name: read_source(body, "http://a.org/feed").fingerprint  # type: ignore[union-attr]
        for name, body in {
            "rss": RSS,
            "built": RSS.replace(b"06 Mar 2024", b"07 Mar 2024").replace(b"News", b"Olds"),
            "atom": ATOM,
            "moved": RSS.replace(b"11:00:00", b"12:00:00"),
            "other": RSS.replace(b"/1<", b"/3<"),
        }.items()
    }
    assert prints["rss"] == prints["built"] == prints["atom"]
    assert len({prints[name] for name in ("rss", "moved", "other")}) == 3


def test_news_are_entries_that_are_new_or_moved() -> None:
    before, now = read_source(SITEMAP), read_source(SITEMAP.replace(b"last week", b"2024-03-05").replace(b"a.org/1", b"a.org/3"))
    assert before is not None
    assert now is not None
    assert before.news(b"") == before.entries
    assert before.news(before.remembered) == []
    assert now.news(before.remembered) == now.entries
    assert now.news(now.remembered[:8] + before.remembered) != now.entries


def test_a_source_that_was_rebuilt_announces_new_entries_only() -> None:
    """Nearly all have another last change, as where that is always now: it says nothing, and the content has not changed."""

    def sitemap(day: int, moved: int, more: str = "") -> Source:
        urls = (f"<url><loc>http://a.org/{at}</loc><lastmod>2024-03-{day if at < moved else 1:02}</lastmod></url>" for at in range(2000))
        source = read_source(f"<urlset>{''.join(urls)}{more}</urlset>".encode())
        assert source is not None
        return source

    first = sitemap(2, 2000)
    second = sitemap(3, 2000).since(first.remembered)
    third = sitemap(4, 2000, "<url><loc>http://a.org/new</loc></url>").since(second.remembered)
    assert second.is_rebuilt
    assert second.news(first.remembered) == []
    assert [entry.url for entry in third.news(second.remembered)] == ["http://a.org/new"]
    assert sitemap(4, 2000).since(second.remembered).fingerprint == second.fingerprint != third.fingerprint
    some = sitemap(3, 1700).since(sitemap(2, 1700).remembered)
    assert not some.is_rebuilt
    assert len(some.news(sitemap(2, 1700).remembered)) == 1700
    assert not first.since(b"").is_rebuilt


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries beyond the bound are news at every visit."""
    monkeypatch.setattr(source_documents, "MOST_REMEMBERED", 3)
    body = "\n".join(f"http://a.org/{at}" for at in range(5)).encode()
    source = read_source(body)
    assert source is not None
    assert len(source.remembered) == 24 < 8 * MOST_REMEMBERED
    assert [entry.url for entry in source.news(source.remembered)] == ["http://a.org/3", "http://a.org/4"]


FRAGMENTS = st.sampled_from(
    [
        SITEMAP,
        INDEX,
        RSS,
        ATOM,
        RDF,
        JSON_FEED,
        gzip.compress(SITEMAP),
        b"<urlset>",
        b"<url><loc>",
        b"http://[::1",
        b"</loc>",
        b"&#0;",
        b"\x00",
    ]
)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(
    st.lists(FRAGMENTS | st.binary(max_size=60), max_size=4),
    st.integers(0, 400),
    st.sampled_from(["", "http://a.org/robots.txt", "http://[", "x"]),
)
def test_any_bytes_are_read(parts: list[bytes], cut: int, url: str) -> None:
    """Whatever is read can be remembered, and every entry is an absolute URL."""
    source = read_source(b"".join(parts)[cut:], url)
    if source is not None:
        assert all(entry.url.startswith(("http://", "https://")) for entry in source.entries)
        assert source.news(source.remembered) == [] or not source.entries
        assert len(source.fingerprint) == 16


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.binary(max_size=30), st.integers(0, len(SITEMAP)), st.sampled_from([SITEMAP, RSS, ATOM, JSON_FEED, gzip.compress(SITEMAP)]))
def test_any_damage_is_survived(noise: bytes, at: int, body: bytes) -> None:
    """Bytes anywhere in a document that was good."""
    read_source(body[:at] + noise + body[at:], "http://a.org/")
