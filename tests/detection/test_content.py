"""Reading responses of any class."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.http import HtmlResponse, Response, TextResponse

from optimal_frontier.detection import fingerprint
from optimal_frontier.detection.content import body_bytes, decoded_text, has_text, media_type


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Content-Type": "Text/HTML; charset=utf-8"}, "text/html"),
        ({b"content-type": [b"text/plain"]}, "text/plain"),
        ({"CONTENT-TYPE": b" image/png "}, "image/png"),
        ({"Content-Type": ""}, ""),
        ({"Content-Type": "html"}, ""),
        ({"Content-Type": "; charset=utf-8"}, ""),
        ({"Content-Type": None}, ""),
        ({"Content-Type": []}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_media_type_is_found_whatever_the_headers_are_made_of(headers: Any, expected: str) -> None:
    assert media_type(SimpleNamespace(body=b"", headers=headers)) == expected


def test_a_response_without_headers_has_no_media_type() -> None:
    assert media_type(SimpleNamespace(body=b"")) == ""


def test_scrapy_responses_give_their_type_and_say_whether_they_are_text() -> None:
    page = HtmlResponse("http://a.example", headers={"Content-Type": "text/html; charset=latin-1"}, body="é".encode("latin-1"))
    assert media_type(page) == "text/html"
    assert has_text(page)
    assert decoded_text(page) == "é"
    assert not has_text(Response("http://a.example", body=b"\x89PNG"))


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/html; charset=latin-1", b"\xe9", "é"),
        ("text/html", "é".encode(), "é"),
        ("text/html", b"<meta charset=latin-1>\xe9", "<meta charset=latin-1>é"),
        ("text/html; charset=utf-8", "\ufeffé".encode("utf-16-le"), "é"),
        ("text/html; charset=no-such-codec", "é".encode(), "é"),
        ("text/html; charset=utf-8", b"a\xffb", "a\ufffdb"),
    ],
)
def test_without_text_the_encoding_is_found_as_browsers_do(content_type: str, body: bytes, text: str) -> None:
    assert decoded_text(SimpleNamespace(body=body, headers={"Content-Type": content_type})) == text


def test_an_encoding_that_python_does_not_know_does_not_raise() -> None:
    response = TextResponse("http://a.example", body="é".encode(), encoding="no-such-codec")
    assert isinstance(decoded_text(response), str)


@pytest.mark.parametrize(
    ("body", "expected"), [(b"x", b"x"), (bytearray(b"x"), b"x"), (memoryview(b"x"), b"x"), ("é", "é".encode()), (None, b""), (b"", b"")]
)
def test_a_body_becomes_bytes(body: Any, expected: bytes) -> None:
    assert body_bytes(SimpleNamespace(body=body)) == expected


def test_an_encoding_that_nobody_states_is_not_guessed_anew_at_every_visit():
    """Scrapy's guess goes by statistics of the whole body: the order of attributes is enough for another one."""
    order = itertools.permutations([b'class="a"', b'id="b"', b'lang="de"'])
    bodies = [b"<html><body><p %s>Page 1 in its edition 3 <b>caf\xe9<i>" % b" ".join(attributes) for attributes in order]
    responses = [HtmlResponse("http://h/", body=body, headers={"Content-Type": "text/html; charset=no-such"}) for body in bodies]
    assert len({fingerprint(response) for response in responses}) == 1
    assert fingerprint(responses[0]) != fingerprint(responses[0].replace(body=bodies[0].replace(b"\xe9", b"\xe8")))
