"""The codec of messages between Frontera's spiders and workers."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from frontera.core.models import Request, Response
from scrapy.http import Headers

from optimal_frontier.integrations.frontera.bus_codec import Decoder, Encoder
from optimal_frontier.integrations.frontera.requests import HANDOUT, IS_LINK, OBSERVATION, PAGE, TAKEN
from optimal_frontier.state.records import encode_record

GIVEN = Request(
    "http://a.example/é",
    method=b"POST",
    headers={"X": "y"},
    cookies={b"c": "1"},
    meta={b"fingerprint": b"0f", "nested": {b"t": (1, [2.5, None]), b"s": {1}}, b"empty": []},
    body=b"\x00\xff",
)


def parts(request: Any) -> tuple[Any, ...]:
    """All that a request says."""
    return request.url, request.method, request.headers, request.cookies, request.meta, request.body


@pytest.fixture
def encoder() -> Encoder:
    return Encoder(Request, send_body=True)


@pytest.fixture
def decoder() -> Decoder:
    return Decoder(Request, Response)


def test_requests_arrive_as_they_were_sent(encoder: Encoder, decoder: Decoder) -> None:
    """Each value of the type that it had, in all kinds of messages that carry requests."""
    assert parts(decoder.decode_request(encoder.encode_request(GIVEN))) == parts(GIVEN)
    kind, seeds = decoder.decode(encoder.encode_add_seeds([GIVEN, GIVEN]))
    assert (kind, [parts(seed) for seed in seeds]) == ("add_seeds", [parts(GIVEN)] * 2)
    kind, request, error = decoder.decode(encoder.encode_request_error(GIVEN, TimeoutError("late")))
    assert (kind, parts(request), error) == ("request_error", parts(GIVEN), "late")
    kind, request, score, schedule = decoder.decode(encoder.encode_update_score(GIVEN, 0.5, False))
    assert (kind, parts(request), score, schedule) == ("update_score", parts(GIVEN), 0.5, False)


def test_links_are_told_from_seeds(encoder: Encoder, decoder: Decoder) -> None:
    """On their way only: the requests of the caller are left as they are."""
    link = Request("http://a.example/1", meta={b"fingerprint": b"1"})
    kind, request, links = decoder.decode(encoder.encode_links_extracted(GIVEN, [link]))
    assert (kind, parts(request)) == ("links_extracted", parts(GIVEN))
    assert links[0].meta == {b"fingerprint": b"1", IS_LINK: True}
    assert link.meta == {b"fingerprint": b"1"}


@pytest.mark.parametrize("headers", [{"Retry-After": "5"}, Headers({"Retry-After": ["5", "6"]})])
def test_responses_arrive_with_headers_and_body(encoder: Encoder, decoder: Decoder, headers: Any) -> None:
    sent = Response("http://a.example/moved", status_code=503, headers=headers, body=b"\xff", request=GIVEN)
    kind, got = decoder.decode(encoder.encode_page_crawled(sent))
    assert (kind, got.url, got.status_code, got.body) == ("page_crawled", sent.url, 503, b"\xff")
    assert got.headers == dict(headers.items())
    assert parts(got.request) == parts(GIVEN)
    assert decoder.decode(Encoder(Request).encode_page_crawled(sent))[1].body is None


def test_a_callback_that_is_not_named_is_left_out(encoder: Encoder, decoder: Decoder) -> None:
    """Frontera's converter for Scrapy sends None; a record with a callback that is no name would be put aside."""
    meta = {b"scrapy_callback": None, b"scrapy_errback": b"failed"}
    assert decoder.decode_request(encoder.encode_request(Request("http://a.example/", meta=meta))).meta == {b"scrapy_errback": b"failed"}


def test_numbers(encoder: Encoder, decoder: Decoder) -> None:
    """An offset that Frontera's consumer does not know is that of the beginning."""
    assert decoder.decode(encoder.encode_offset(1, 17)) == ("offset", 1, 17)
    assert decoder.decode(encoder.encode_offset(1, None)) == ("offset", 1, 0)
    assert decoder.decode(encoder.encode_new_job_id(3)) == ("new_job_id", 3)


def test_what_is_no_plain_data_is_left_behind(encoder: Encoder, decoder: Decoder, caplog: pytest.LogCaptureFixture) -> None:
    """Companions of a request in one process silently, also by who reads; anything else with one line; nothing else is lost."""
    knot: dict[Any, Any] = {b"plain": 1}
    knot[b"itself"] = knot
    meta = {HANDOUT: object(), TAKEN: object(), b"object": [object(), 1], b"knot": knot, b"kept": 1}
    got = decoder.decode_request(encoder.encode_request(Request("http://a.example/", meta=meta)))
    assert (got.meta[b"object"], got.meta[b"kept"], got.meta[b"knot"][b"plain"]) == ([None, 1], 1, 1)
    assert HANDOUT not in got.meta
    assert TAKEN not in got.meta
    forged = encode_record(["request", ["http://a.example/", b"GET", {}, {}, b"", {OBSERVATION: 1, PAGE: b"named"}]])
    assert decoder.decode_request(forged).meta == {PAGE: b"named"}
    assert [record.getMessage() for record in caplog.records] == [
        "a value of type object cannot be sent, and None is (further ones are not logged)"
    ]


def test_names_that_are_no_plain_data_are_sent_as_none(encoder: Encoder, decoder: Decoder, caplog: pytest.LogCaptureFixture) -> None:
    sent = Request("http://a.example/", meta={b"kept": 1, object(): 2, b"nested": {object(): 3, "kept": 4}})
    assert decoder.decode_request(encoder.encode_request(sent)).meta == {b"kept": 1, None: 2, b"nested": {None: 3, "kept": 4}}
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xc1",
        b"plain text",
        encode_record([]),
        encode_record(["add_seeds"]),
        encode_record(["add_seeds", [["http://a.example/"]]]),
        encode_record(["page_crawled", [1, 2, 3]]),
        encode_record(["unknown", 1]),
        msgpack.packb([b"as", []]),
    ],
)
def test_damaged_messages_are_of_the_error_that_workers_expect(decoder: Decoder, message: bytes) -> None:
    """Frontera's workers log a TypeError and go on; any other ends the batch."""
    with pytest.raises(TypeError, match="message"):
        decoder.decode(message)
    with pytest.raises(TypeError, match="message"):
        decoder.decode_request(message)
