"""References of XML are read, whatever else is wrong with a document, and wherever it is cut into pieces."""

from __future__ import annotations

from io import BufferedReader, BytesIO

import pytest

from optimal_frontier.detection import source_streams
from optimal_frontier.detection.source_documents import read_source
from optimal_frontier.detection.source_references import NumberedReferences
from optimal_frontier.detection.source_streams import SourceStream
from optimal_frontier.settings import SourceLimits

FEED = (
    b"<rss><channel><title>%s</title><item><link>http://a.org/x?a=1&amp;b=2</link></item>"
    b"<item><link>http://a.org/y?a=1&b=2&copy=3&#38;d=4&#x26;e=5</link></item>"
    b"<item><link><![CDATA[http://a.org/z?a=1&b=2&amp;c=3]]></link></item></channel></rss>"
)
URLS = ["http://a.org/x?a=1&b=2", "http://a.org/y?a=1&b=2&copy=3&d=4&e=5", "http://a.org/z?a=1&b=2&amp;c=3"]


@pytest.mark.parametrize("title", [b"sound", b"a&nbsp;b", b"AT&T", b"a & b", b"a <b> c", b"a\x01b", b"a &#0; b", b"\xff"])
def test_a_fault_of_a_document_spoils_no_url(title: bytes) -> None:
    found = read_source(FEED % title)
    assert found is not None
    assert [entry.url for entry in found.entries] == URLS
    assert found.is_whole is (title in {b"sound", b"AT&T", b"a & b"})


def test_it_is_the_same_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    body = FEED % b"<![CDATA[ ]] AT&T &amp; <![CDATA[ ]]>&lt;&quot;&apos;&gt;<!-- & -->"
    whole = b"".join(iter(NumberedReferences(BufferedReader(BytesIO(body))).read, b""))
    # What is peeked is one piece.
    front = b"<rss>" * 103
    for size in range(1, len(body) + 1):
        monkeypatch.setattr(source_streams, "_PIECE", size)
        reader = NumberedReferences(SourceStream(front + body, SourceLimits()))
        assert b"".join(iter(reader.read, b"")) == front + whole


def test_a_document_of_two_bytes_a_character_is_read_as_it_is() -> None:
    found = read_source(FEED.decode().encode("utf-16"))
    assert found is not None
    assert found.entries[0].url == URLS[0]
