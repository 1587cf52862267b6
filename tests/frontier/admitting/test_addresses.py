"""Which addresses may be pages."""

from __future__ import annotations

import pytest

from optimal_frontier.frontier.admitting.addresses import refusal_of


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("http://a.example/x", ""),
        ("HTTPS://A.example:443/x", ""),
        ("ftp://a.example/x", "scheme"),
        ("http://user@a.example/x", "credentials"),
        ("http://a.example:0/x", "unreadable"),
        ("http:///x", "unreadable"),
        ("http://[/x", "unreadable"),
        ("ftp://[/x", "scheme"),
        ("A1/2", ""),
        ("http:/\n/a.example/x", ""),
        ("http:/\n/user@a.example/x", "credentials"),
        (f"http://{'a' * 400}/x", ""),
        (f"http://user@{'a' * 400}/x", "credentials"),
    ],
)
def test_an_address_is_refused_by_its_origin_the_second_time_as_the_first(url, refused):
    """Origins are remembered; whether a path follows, and how long the origin is, changes nothing."""
    for path in ("", "", "/y", "?q=/z#f"):
        assert refusal_of(url + path, ("http", "https")) == refused


def test_what_is_remembered_of_an_origin_holds_for_other_schemes_that_are_allowed():
    assert [refusal_of("gopher://a.example/x", schemes) for schemes in (("http",), ("gopher",), ("http",))] == ["scheme", "", "scheme"]
