"""Which page a response names as its canonical form; whether that is for it to say is for the judge."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, TextResponse
from scrapy.utils.request import fingerprint

from optimal_frontier.integrations.frontera.canonical_links import canonical_url, other_page

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


@pytest.mark.parametrize(
    ("target", "named"),
    [("/list/x", "http://a.example/list/x"), (PAGE, ""), ("/list/x?sort=up#top", ""), ("", ""), ("//b.example/", "http://b.example/")],
)
def test_a_page_that_names_itself_names_no_other(target, named):
    assert other_page(html(link(target)), lambda url: fingerprint(Request(url)) == fingerprint(Request(PAGE))) == named
