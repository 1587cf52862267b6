"""From URLs to patterns: pages of one kind together, pages of different kinds apart, and never many of them."""

from __future__ import annotations

import random
import string

import pytest

from optimal_frontier.frontier.admitting.patterns import pattern_of

HOST = "https://www.example.org"


@pytest.mark.parametrize(
    "paths",
    [
        ("/news/2024/05/17/one-title-of-many.html", "/news/2023/11/02/x.html", "/news/2024-05-17/y.html", "/news/7/z.html"),
        ("/item?id=1", "/item?id=2#comments", "/item?id=anything%20else"),
        ("/item?a=1&b=2", "/item?b=7&a=3", "/item?b=7&a=3&a=4"),
        ("/users/550e8400-e29b-41d4-a716-446655440000/posts/", "/users/0123456789abcdef0123/about/"),
        ("/docs/install.html", "/docs/usage.html"),
        ("/blog/a-title-of-many-words/comments/1", "/blog/another-title-of-words/comments/22"),
        ("/v1.2/api/x", "/v2.10.3/api/y"),
        ("/forum12/thread", "/forum7/other"),
        ("/about/", "/contact/"),
        ("", "/", "/#top"),
    ],
)
def test_pages_of_one_kind_share_a_pattern(paths):
    assert len({pattern_of(HOST + path) for path in paths}) == 1


@pytest.mark.parametrize(
    "paths",
    [
        ("/news/a.html", "/archive/a.html", "/news/sport/a.html", "/a.html", "/"),
        ("/news/a.html", "/news/a.pdf", "/news/a", "/news/a/"),
        ("/item?id=1", "/list?id=1", "/item?page=1", "/item?id=1&page=2", "/item"),
    ],
)
def test_pages_of_different_kinds_do_not(paths):
    assert len({pattern_of(HOST + path) for path in paths}) == len(paths)


def test_scheme_and_host_do_not_count():
    """Patterns are those of a host; the host is stored beside them."""
    assert pattern_of("http://a.example/x/1") == pattern_of("https://b.example:8443/x/2") == "/x/*"


def test_any_text_has_a_short_pattern():
    """Random URLs: none fails, none is long, and what is generalised once stays as it is."""
    rng = random.Random(5)
    for _ in range(3000):
        text = "".join(rng.choice(string.ascii_letters + string.digits + "/////??&&==--__..%#:é") for _ in range(rng.randrange(300)))
        pattern = pattern_of("http://h/" + text)
        assert pattern.startswith("/")
        assert len(pattern) <= 250
        assert pattern_of("http://h" + pattern_of("http://h/" + text).replace("#", "0")) is not None


def test_a_site_of_many_pages_has_few_patterns():
    urls = [f"{HOST}/{section}/{n // 100}/{n}-title.html" for section in ("news", "sport") for n in range(5000)]
    assert len({pattern_of(url) for url in urls}) == 2
