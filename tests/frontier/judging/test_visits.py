"""Visits: what is read of a response, and what of one that is no good one."""

from __future__ import annotations

import gzip
import random
from types import SimpleNamespace
from typing import Any

import pytest
from handed_out import AT, RECEIVED, URL, context, handed, judged, parse

from optimal_frontier.detection import fingerprint
from optimal_frontier.frontier.judging.fingerprinting import FAILED, Fingerprint, Fingerprinting
from optimal_frontier.frontier.judging.judge import conditions_of
from optimal_frontier.frontier.judging.validators import NO_VALIDATORS, Validators
from optimal_frontier.frontier.judging.visits import (
    Visit,
    failed_visit,
    hashed_content,
    hashed_visit,
    is_cut_off,
    not_modified_visit,
    visit_of,
)
from optimal_frontier.state.memory import Memory

FINGERPRINTING = Fingerprinting(parse())
WAY = FINGERPRINTING.way(URL)
HEADERS = {
    b"Content-Type": b"text/html",
    b"ETag": b'"1"',
    b"Date": b"Tue, 05 Mar 2024 10:00:00 GMT",
    b"Last-Modified": b"Tue, 05 Mar 2024 09:58:20 GMT",
}
BOTH = Validators(b'"1"', HEADERS[b"Last-Modified"])


def response(body: bytes = b"<h1>Hello</h1><p>world", status: int = 200, *flags: str, **headers: bytes) -> Any:
    said = HEADERS | {name.encode(): value for name, value in headers.items()}
    return SimpleNamespace(body=body, status=status, headers=said, flags=list(flags))


def visited(came: Any) -> Visit:
    return visit_of(came, URL, FINGERPRINTING, RECEIVED, AT)


def test_a_good_response_is_read():
    came = response()
    visit = visited(came)
    assert visit.fingerprint == Fingerprint(fingerprint(came), WAY.tag, 0, {}, is_summed=True)
    assert (visit.error, visit.status, visit.age, visit.validators, visit.size) == ("", 200, 100.0, BOTH, len(came.body))
    assert (visit.is_cached, visit.is_partial, visit.is_not_modified) == (False, False, False)
    assert visit.sections is not None
    assert {section.selector for section in visit.sections()} >= {"body > h1"}
    assert visited(response(b"x", 200, "partial")).is_partial


@pytest.mark.parametrize("body", [b"", b"<p>cut off anywh"])
def test_a_download_that_the_spider_stopped_shows_no_content(body):
    """By bytes it stops wherever the network has cut the body, by headers before it: no bit, and the known content stays."""
    known = handed(tag=WAY.tag, content=fingerprint(response(body)))
    stopped = visited(response(body, 200, "download_stopped"))
    observation = judged(known, stopped)
    assert (observation.outcome, observation.bit, observation.row.visits) == ("ok", -1, known.row.visits + 1)
    assert (observation.row.content, observation.row.tag) == (known.row.content, known.row.tag)
    assert judged(known, visited(response(body))).bit == 0


@pytest.mark.parametrize(
    ("came", "error"),
    [
        (response(status=404), "404"),
        (response(b"", 304), "304"),
        (response(b"x", 200, "dataloss"), "truncated"),
        (response(status=301), "301"),
    ],
)
def test_of_a_bad_response_nothing_is_read(came, error):
    visit = visited(came)
    assert (visit.error, visit.fingerprint, visit.validators, visit.age) == (error, None, NO_VALIDATORS, None)
    assert judged(handed(), visit).outcome in ("failed", "gone")


def test_validators_of_a_part_and_headers_of_a_cache_say_nothing():
    assert visited(response(b"x", 206)).validators == NO_VALIDATORS
    cached = visited(response(b"x", 200, "cached"))
    assert (cached.validators, cached.age, cached.is_cached) == (NO_VALIDATORS, None, True)
    cached.is_downloaded = False
    assert cached.shows_nothing_new


def test_a_page_is_asked_and_answers():
    """One round: a full answer leaves validators, which are sent; a 304 to them is an unchanged bit."""
    within = context()
    first = judged(handed(visits=0), visited(response()), within)
    assert first.memory == Memory(etag=b'"1"', last_modified=BOTH.last_modified, size=22)
    handout = handed(memory=first.memory, tag=first.row.tag, content=first.row.content)
    asked = conditions_of(handout, WAY.tag, within)
    assert asked == BOTH
    answer = not_modified_visit({b"ETag": b'"2"'}, asked, RECEIVED, AT)
    assert answer.is_not_modified
    second = judged(handout, answer, within)
    assert (second.bit, second.memory.etag, second.counters["bytes_saved"]) == (0, b'"2"', 22)


def test_what_is_left_of_a_response_in_plain_frontera():
    """A fingerprint; none where none could be made; an unchanged page where the fetcher says so."""
    digest = b"d" * 16
    made = hashed_content(digest, URL, FINGERPRINTING)
    assert made == Fingerprint(digest, WAY.tag, 0, {})
    page = {"content": digest, "tag": WAY.tag}
    assert judged(handed(**page), hashed_visit(200, {}, made, RECEIVED, AT)).bit == 0
    assert judged(handed(**page), hashed_visit(200, {}, hashed_content(b"e" * 16, URL, FINGERPRINTING), RECEIVED, AT)).bit == 1
    assert judged(handed(**page), hashed_visit(304, {}, None, RECEIVED, AT)).bit == 0
    failed = judged(handed(**page), hashed_visit(200, {}, hashed_content(b"", URL, FINGERPRINTING), RECEIVED, AT))
    assert (failed.outcome, failed.bit, failed.counters[FAILED]) == ("ok", -1, 1)
    assert judged(handed(**page), hashed_visit(500, {}, None, RECEIVED, AT)).outcome == "failed"
    assert hashed_visit(200, {"Last-Modified": "Tue, 05 Mar 2024 09:58:20 GMT"}, made, RECEIVED, 1709632800.0).age == 100.0


def test_a_failure_is_its_name_and_its_time():
    assert failed_visit("DNSLookupError", RECEIVED) == Visit(RECEIVED, "DNSLookupError")


@pytest.mark.parametrize("size", [0, 1, 4096, 300_000])
def test_a_missing_end_of_what_gzip_packed_is_seen(size: int) -> None:
    """Wherever it begins. What follows the end, or comes in several parts, is none; nor is what gzip has not packed."""
    body = random.Random(1).randbytes(size // 2) + bytes(size - size // 2)
    packed = gzip.compress(body)
    assert not is_cut_off(packed, size)
    assert not any(is_cut_off(whole, size + 7) for whole in (packed, packed + b"after the end", packed + gzip.compress(b"another")))
    assert all(is_cut_off(packed[:end], size - 1) for end in {1, 9, len(packed) // 2, len(packed) - 8, len(packed) - 1})
    assert not is_cut_off(b"nothing that gzip knows", 5)
