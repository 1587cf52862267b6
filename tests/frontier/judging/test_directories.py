"""The directory of a page: made of its URL when it is added, and at its next visit where a row has none."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from optimal_frontier.frontier.admitting.pages import directory_number

URL = "http://a.example/news/2026/1.html"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.example/news/1.html", "https://b.example:8080/news/2.html?page=/x/y#z/"),
        ("http://a.example", "http://a.example/index.html"),
        ("http://a.example?x=/a/b", "http://a.example/?y"),
        ("http://a.example/news/", "http://a.example/news/1"),
    ],
)
def test_pages_of_a_directory_have_one_number(one: str, other: str) -> None:
    assert directory_number(one) == directory_number(other)


def test_deeper_directories_share_their_first_two_segments() -> None:
    numbers = [directory_number(f"http://a.example/a/b{deep}/1") for deep in ("", "/c", "/c/d", "x")]
    tops, whole = [number & 0xFFFF for number in numbers], [number >> 16 for number in numbers]
    assert tops[0] == tops[1] == tops[2] != tops[3]
    assert len(set(whole)) == 4
    assert all(tops)
    assert all(whole)


def test_no_directory_has_a_number_of_none() -> None:
    """A half of 0 would say that there is none; the hash of this path is 0."""
    assert blake2b(b"/d38683/", digest_size=2).digest() == bytes(2)
    assert directory_number("http://a.example/d38683/1") == 1 << 16 | 1


def test_a_row_without_one_gets_it_at_its_next_visit(judged) -> None:
    """As of an export that a former version made."""
    judged.add(URL)
    assert judged.row(URL).directory == 0
    judged.see(judged.lease(URL))
    assert judged.row(URL).directory == directory_number(URL)
