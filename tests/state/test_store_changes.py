"""The change feed: one entry per change, with all that a consumer needs to know which page it is and what it was before."""

from __future__ import annotations

import struct

import pytest
from clocked_store import START, ClockedStore, new_page

from optimal_frontier.state.records import NewPage, decode_record, encode_record


def content(text: bytes) -> bytes:
    return struct.pack("<I16s", 7, text)


def feed(store: ClockedStore) -> list[dict[bytes, bytes]]:
    """Fields of all entries."""
    rows = store.command("XRANGE", store.key("changes"), "-", "+")
    return [fields if isinstance(fields, dict) else dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in rows]


def visit(store: ClockedStore, bit: int, made: bytes) -> None:
    store.run([("force_page", [b"\1" * 20])])
    ((handout,), _) = store.dispatch()
    store.observe(handout, bit=bit, shape=1.0, time=1.0, content=made)


#: Each form in which msgpack writes a text's length.
URLS = ["http://a/", "http://a/" + "x" * 22, "http://a/" + "x" * 23, "http://a/" + "y" * 250, "http://a/é", "http://a/" + "z" * 70_000]


@pytest.mark.parametrize("url", URLS, ids=len)
def test_an_entry_has_the_url_whatever_else_the_record_holds(store, url):
    """Tuples and sets in meta are none of its business."""
    record = {"url": url, "meta": {"where": (1, {2}), "url": "http://not.this/"}}
    store.add(NewPage(b"\1" * 20, "a", encode_record(record)))
    store.visit_all(content=content(b"first"))
    visit(store, 1, content(b"second"))
    (entry,) = feed(store)
    assert entry[b"url"].decode() == url
    assert decode_record(entry[b"record"]) == record


def test_only_changes_are_told_each_with_the_fingerprint_before(store):
    store.add(NewPage(b"\1" * 20, "a", encode_record({"url": "http://a/"})))
    store.visit_all(content=content(b"first"))
    store.advance(10.0)
    visit(store, 0, content(b"first"))
    visit(store, 1, content(b"second"))
    store.advance(10.0)
    visit(store, 1, content(b"\xff" * 16))
    told = feed(store)
    pairs = [(bytes.fromhex(entry[b"previous"].decode()), bytes.fromhex(entry[b"fingerprint"].decode())) for entry in told]
    assert pairs == [(b"first".ljust(16, b"\0"), b"second".ljust(16, b"\0")), (b"second".ljust(16, b"\0"), b"\xff" * 16)]
    assert [float(entry[b"time"]) - START for entry in told] == [pytest.approx(10.0, abs=0.1), pytest.approx(20.0, abs=0.1)]
    assert {entry[b"slot"] for entry in told} == {b"0"}


def test_a_record_without_a_url_in_front_tells_none(store):
    """As nobody here writes them."""
    store.add(new_page("a/1"), NewPage(b"\1" * 20, "a", encode_record({"method": b"GET", "url": "http://a/"})))
    store.visit_all(content=content(b"first"))
    visit(store, 1, content(b"second"))
    assert feed(store)[0][b"url"] == b""
