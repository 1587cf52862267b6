"""Which page a response names as its canonical form, and whether that is for it to say."""

from __future__ import annotations

from typing import Any

import pytest
from optimal_frontier.frontier.dispatcher import host_of
from optimal_frontier.integrations.scrapy.canonical_links import canonical_url, follow_canonical
from scrapy import Request
from scrapy.http import HtmlResponse, TextResponse
from scrapy.utils.request import fingerprint

from optimal_frontier.integrations.frontera.requests import FrontierRequest
from optimal_frontier.integrations.scrapy.lease import Lease
from optimal_frontier.settings import UrlLimits
from optimal_frontier.state.records import Handout, Observation

PAGE = "http://a.example/list/x?sort=up"


def html(head: str, body: str = "", url: str = PAGE, **headers: Any) -> HtmlResponse:
    text = f"<!DOCTYPE html><html><head><title>x</title>{head}</head><body>{body}</body></html>"
    return HtmlResponse(url, body=text.encode(), encoding="utf-8", headers=headers)


def link(href: str, rel: str = "canonical") -> str:
    return f'<link rel="{rel}" href="{href}">'


@pytest.mark.parametrize(
    ("response", "url"),
    [
        (html(link("/list/x")), "http://a.example/list/x"),
        (html(link(" x \n")), "http://a.example/list/x"),
        (html(link("http://A.example/list/x#top")), "http://a.example/list/x"),
        (html(link("/x", "Alternate  CANONICAL")), "http://a.example/x"),
        (html('<base href="http://b.example/"><link href="x" rel=canonical>'), "http://b.example/x"),
        (html("", Link='</x>; rel="canonical"'), "http://a.example/x"),
        (html("", Link='<style.css>; rel=preload; as=style, </x>; title="a, b"; REL=canonical'), "http://a.example/x"),
        (html(link("/x"), Link='<http://a.example/x>; rel="canonical"'), "http://a.example/x"),
        (TextResponse("http://a.example/x.pdf", headers={"Link": '<x.html>; rel="canonical"'}), "http://a.example/x.html"),
        (html(link("/é")), "http://a.example/%C3%A9"),
        (html(link("/x"), Link='</y>; rel="canonical"'), None),
        (html(link("/x") + link("/y")), None),
        (html("", link("/x")), None),
        (html(link("")), None),
        (html(link("javascript:x()")), None),
        (html(link("http://[::1/")), None),
        (html(link("mailto:x@a.example")), None),
        (html(link("/x", "canonical-not")), None),
        (html("", Link='</x>; rel="prev"; title="canonical"'), None),
        (html("<!-- " + link("/x") + " -->"), None),
        (html("<title>canonical</title>"), None),
        (TextResponse(PAGE, body=link("/x").encode()), None),
        (HtmlResponse(PAGE, body=b"\xff\xfe canonical \x00", encoding="utf-8"), None),
    ],
)
def test_what_is_named(response, url):
    """In the head or in a header, by an http URL, and one only."""
    assert canonical_url(response) == url


def test_a_large_page_is_parsed_as_far_as_its_head():
    """And a thousand ways to name one page are none."""
    large = html(link("/x"), "<p>word" * 700_000)
    assert canonical_url(large) == "http://a.example/x"
    assert large._cached_selector is None
    assert canonical_url(html("".join(link(f"/x#{n}") for n in range(3)))) == "http://a.example/x"
    assert canonical_url(html("".join(link(f"/x#{n}") for n in range(1000)))) is None


def told(target: str, url: str = PAGE, **values: Any) -> Lease:
    """A lease after the page has named ``target``."""
    handout = Handout(0, b"t", None, 1.0, 1.0, 0.0, 1.0, 1, 0.0, 0.0, 3, 3, 0.0, False, 0, b"", {"url": url}, 0.0)
    values = {"observation": Observation(0, b"t", "ok", 0.0, 0, counters={"known": 1})} | values
    lease = Lease(handout, FrontierRequest(url), Request(url), **values)
    follow_canonical(lease, html(link(target), url=url), fingerprint, UrlLimits())
    return lease


@pytest.mark.parametrize(
    ("target", "url", "counter"),
    [
        ("/list/x", PAGE, ""),
        ("https://a.example/list/x", PAGE, ""),
        ("/", "http://a.example/?ref=1", ""),
        ("/", "http://a.example/index.html", ""),
        (PAGE, PAGE, "itself"),
        ("/list/x?sort=up#top", PAGE, "itself"),
        ("http://b.example/list/x", PAGE, "canonical_offhost"),
        ("http://www.a.example/list/x", PAGE, "canonical_offhost"),
        ("http://a.example:8080/list/x", PAGE, "canonical_offhost"),
        ("/", PAGE, "canonical_refused"),
        ("/index.php", PAGE, "canonical_refused"),
        ("/a/b/a/b/a/b", PAGE, "canonical_refused"),
    ],
)
def test_what_is_followed_and_what_is_counted(target, url, counter):
    """A page of the same host, not the front page, not a trap; itself is nothing to speak of."""
    lease = told(target, url)
    assert lease.observation is not None
    if counter == "":
        assert host_of(lease.canonical) == "a.example"
    else:
        assert lease.canonical == ""
    assert lease.observation.counters == {"known": 1} | ({counter: 1} if counter.startswith("canonical") else {})


def test_a_failed_visit_and_the_word_of_another_page_are_not_followed():
    """A redirect leads to a page that speaks for itself."""
    assert told("/list/x", observation=None).canonical == ""
    assert told("/list/x", moved="http://a.example/z").canonical == ""
    lease = told("/list/x")
    lease.canonical = ""
    follow_canonical(lease, html(link("/list/y"), url="http://a.example/other"), fingerprint, UrlLimits())
    assert lease.canonical == ""
