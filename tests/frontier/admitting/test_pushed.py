"""Entries that other programs push: what is understood, and what is refused in one line."""

from __future__ import annotations

import json

import pytest

from optimal_frontier.frontier.admitting.pushed import MOST_BYTES, PushedUrl, read_entry
from optimal_frontier.state.url_keys import Entry


@pytest.mark.parametrize(
    ("raw", "score", "expected"),
    [
        (b" http://a.org/ \n", 0.0, PushedUrl("http://a.org/")),
        (b"http://a.org/", 2.6, PushedUrl("http://a.org/", 3)),
        (b"http://a.org/", 1.7e9, PushedUrl("http://a.org/", 32_767)),
        (b"http://a.org/", float("-inf"), PushedUrl("http://a.org/", -32_767)),
        (b'{"url": "http://a.org/", "priority": 7}', 2.0, PushedUrl("http://a.org/", 7)),
        (b'{"url": "http://a.org/", "priority": NaN}', 0.0, PushedUrl("http://a.org/")),
        (
            b'{"url": "http://a.org/", "dont_filter": true, "q": ["a", 1]}',
            0.0,
            PushedUrl("http://a.org/", 0, {"dont_filter": True}, {"q": ["a", 1]}),
        ),
    ],
)
def test_entries_that_are_understood(raw, score, expected):
    assert read_entry(Entry(raw, score)) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\xff\xfe", "UTF-8"),
        (b"{", "JSON object"),
        (b"{" * 100_000, "JSON object"),
        (b'{"uri": "http://a.org/"}', '"url"'),
        (b'{"url": null}', '"url"'),
        (json.dumps({"url": "http://a.org/", "importance": 0}).encode(), "'importance' is 0"),
        (b'{"url": "http://a.org/", "importance": NaN}', "'importance'"),
        (b'{"url": "http://a.org/", "importance": 1' + b"0" * 400 + b"}", "'importance' is 1000"),
        (b'{"url": "http://a.org/", "method": "FOO BAR"}', "'method' is 'FOO BAR'"),
        (b'{"url": "http://a.org/", "importance": true}', "expected int or float"),
        (b'{"url": "http://a.org/", "meta": [1]}', "'meta' is"),
        (b'{"url": "http://a.org/", "callback": 5}', "expected str"),
        (b'{"url": "http://a.org/", "dont_filter": 1}', "expected bool"),
        (b'{"url": "http://a.org/", "form": {"a": 1}}', "'form' is"),
        (b"x" * (MOST_BYTES + 1), "bytes"),
    ],
)
def test_entries_that_are_refused(raw, expected):
    with pytest.raises(ValueError, match=r".") as caught:
        read_entry(Entry(raw))
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)
