"""include, exclude and ignore: what counts of a page, in HTML, JSON and XML alike."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from cssselect import HTMLTranslator
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

from optimal_frontier.detection import fingerprint, settings_tag
from optimal_frontier.detection.content import PARSED_BYTES
from optimal_frontier.detection.fingerprint import take
from optimal_frontier.detection.recipe import make_recipe
from optimal_frontier.detection.selecting import selection_of
from optimal_frontier.errors import InvalidProblemError

bounded = settings(max_examples=100, derandomize=True, deadline=None, database=None)

PAGE = """<html><head><title>Shop</title><script id=state>{"price": 5}</script></head><body>
<header>12 visitors <b class=clock>10:01</b></header><main><h1>Lamp</h1><p class=price>5 <i class=cur>EUR</i></p>
<div class=ad>Buy <p class=price>1 USD</p></div>in stock</main></body></html>"""


def html(markup: str) -> Any:
    return SimpleNamespace(body=markup.encode(), headers={"Content-Type": "text/html"})


def json_of(text: str) -> Any:
    return SimpleNamespace(body=text.encode(), headers={"Content-Type": "application/json"})


def xml(text: str) -> Any:
    return SimpleNamespace(body=text.encode(), headers={"Content-Type": "application/xml"})


def same(one: str, other: str, make: Any = html, **options: Any) -> bool:
    return fingerprint(make(one), **options) == fingerprint(make(other), **options)


@pytest.mark.parametrize(
    ("options", "old", "new", "is_same"),
    [
        ({"exclude": ["header"]}, "12 visitors", "13 visitors", True),
        ({"exclude": [".clock"]}, "10:01", "10:02", True),
        ({"exclude": [".clock"]}, "12 visitors", "13 visitors", False),
        ({"exclude": [".clock"]}, "<b class=clock>10:01</b>", "", True),
        ({"exclude": [".ad"]}, "1 USD", "2 USD", True),
        ({"exclude": [".ad"]}, "in stock", "sold out", False),
        ({"include": ["main"]}, "12 visitors", "13 visitors", True),
        ({"include": ["main"]}, "Shop", "Store", True),
        ({"include": ["main"]}, "Lamp", "Lantern", False),
        ({"include": [".price", "h1"]}, "in stock", "sold out", True),
        ({"include": [".price", "h1"]}, "5 <i", "6 <i", False),
        ({"include": [".price"], "exclude": [".ad"]}, "1 USD", "2 USD", True),
        ({"include": [".price"], "exclude": [".ad"]}, "5 <i", "6 <i", False),
        ({"include": ["main", ".ad .price"], "exclude": [".ad"]}, "1 USD", "2 USD", True),
        ({"include": ["main", "main p"]}, "5 <i", "6 <i", False),
        ({"include": ["script#state"]}, '"price": 5', '"price": 6', False),
        ({"include": ["script#state"]}, "Lamp", "Lantern", True),
        ({"ignore": [r"\d+ visitors"]}, "12 visitors", "13 visitors", True),
        ({"ignore": [r"\d+ visitors"]}, "10:01", "10:02", False),
        ({"ignore": [r"visitors \d+:\d+"]}, "10:01", "10:02", True),
        ({"exclude": ["$.price"]}, "5 <i", "6 <i", False),
        ({"kind": "body", "ignore": [r"\d+ visitors"]}, "12 visitors", "13 visitors", True),
        ({"kind": "body", "ignore": [r"\d+ visitors"]}, "class=clock", "class=watch", False),
    ],
)
def test_parts_of_a_page(options: dict[str, Any], old: str, new: str, is_same: bool) -> None:
    assert old in PAGE
    assert same(PAGE, PAGE.replace(old, new), **options) is is_same


def test_where_nothing_is_found_to_include_all_of_the_page_counts() -> None:
    """And it is not taken for the same as without the option, nor are all such pages equal."""
    options: dict[str, Any] = {"include": ["article"], "exclude": ["header"]}
    taken = take(html(PAGE), make_recipe("text", **options))
    assert taken.missed
    assert not take(html(PAGE), make_recipe("text", ["main"])).missed
    assert taken.digest != fingerprint(html(PAGE), exclude=["header"])
    assert not same(PAGE, PAGE.replace("Lamp", "Lantern"), **options)
    assert same(PAGE, PAGE.replace("12 visitors", "13 visitors"), **options)
    assert not take(html(PAGE), make_recipe("text", ["$.items"])).missed
    near, found = (fingerprint(html(PAGE), kind="near", include=include) for include in (["article"], ["html"]))
    assert near != found


DOCUMENT = (
    """{"meta": {"generated": "10:01", "n": 1}, "items": [{"name": "a", "views": 7, "tags": [{"views": 1}]}, {"name": "b", "views": 8}]}"""
)


@pytest.mark.parametrize(
    ("options", "old", "new", "is_same"),
    [
        ({"exclude": ["$.meta.generated"]}, "10:01", "10:02", True),
        ({"exclude": ["$.meta.generated"]}, '"n": 1', '"n": 2', False),
        ({"exclude": ["$['meta']"]}, "10:01", "10:02", True),
        ({"exclude": ["$.items[*].views"]}, '"views": 8', '"views": 9', True),
        ({"exclude": ["$.items[*].views"]}, '"views": 1', '"views": 2', False),
        ({"exclude": ["$..views"]}, '"views": 1', '"views": 2', True),
        ({"exclude": ["$..views"]}, '"views": 8', '"views": 9', True),
        ({"exclude": ["$.items[-1]"]}, '"views": 8', '"views": 9', True),
        ({"exclude": ["$.items[0]"]}, '"views": 8', '"views": 9', False),
        ({"exclude": ["$.items.*"]}, '"views": 8', '"views": 9', True),
        ({"include": ["$.items"]}, "10:01", "10:02", True),
        ({"include": ["$.items"]}, '"views": 8', '"views": 9', False),
        ({"include": ["$.items"], "exclude": ["$..views"]}, '"views": 8', '"views": 9', True),
        ({"include": ["$.nowhere"]}, '"views": 8', '"views": 9', False),
        ({"exclude": ["$.items.views", "$.nowhere[3]..x", "$.items[9]"]}, '"views": 8', '"views": 9', False),
        ({"exclude": ["main", ".views"]}, '"views": 8', '"views": 9', False),
        ({"ignore": [r'"generated":"[^"]*"']}, "10:01", "10:02", True),
    ],
)
def test_parts_of_json(options: dict[str, Any], old: str, new: str, is_same: bool) -> None:
    assert old in DOCUMENT
    assert same(DOCUMENT, DOCUMENT.replace(old, new), json_of, **options) is is_same


@pytest.mark.parametrize(
    ("options", "old", "new", "is_same"),
    [
        ({"exclude": ["stock"]}, "<stock>3", "<stock>4", True),
        ({"exclude": ["stock"]}, "<name>Lamp", "<name>Lantern", False),
        ({"exclude": ["product > stock"]}, "tail", "other", False),
        ({"exclude": ["root"]}, "<name>Lamp", "<name>Lantern", True),
        ({"include": ["name"]}, "<stock>3", "<stock>4", True),
        ({"include": ["name", "product"]}, "<name>Lamp", "<name>Lantern", False),
        ({"include": ["product"], "exclude": ["name", "product"]}, "<name>Lamp", "<name>Lantern", True),
        ({"include": ["nothing"]}, "<name>Lamp", "<name>Lantern", False),
        ({"exclude": ["$.stock"]}, "<stock>3", "<stock>4", False),
    ],
)
def test_parts_of_xml(options: dict[str, Any], old: str, new: str, is_same: bool) -> None:
    """Names go without their prefix."""
    document = '<s:root xmlns:s="urn:s"><product><s:name>Lamp</s:name><s:stock>3</s:stock>tail</product></s:root>'
    old, new = (text.replace("<name", "<s:name").replace("<stock", "<s:stock") for text in (old, new))
    assert old in document
    assert same(document, document.replace(old, new), xml, **options) is is_same


def test_selectors_for_one_language_leave_the_others_alone() -> None:
    mixed: dict[str, Any] = {"include": ["main", "$.items"], "exclude": [".ad", "$..views"]}
    assert same(PAGE, PAGE.replace("1 USD", "2 USD"), **mixed)
    assert same(DOCUMENT, DOCUMENT.replace('"views": 8', '"views": 9'), json_of, **mixed)
    assert not same("a b", "a c", lambda text: SimpleNamespace(body=text.encode(), headers={"Content-Type": "text/plain"}), **mixed)


@bounded
@given(
    names=st.permutations(["class=p", "id=x", "data-n='1'", "title=t"]),
    space=st.sampled_from(["", " ", "\n\t", "\u00a0 "]),
    script=st.text(alphabet="ab1;={}\n", max_size=20),
)
def test_what_no_reader_sees_never_counts(names: list[str], space: str, script: str) -> None:
    other = f"<body><script>{script}</script><main {' '.join(names)}>{space}<p>a{space or ' '} b</p>{space}</main><!--{script}--></body>"
    for options in ({}, {"include": ["main"]}, {"exclude": ["h1"]}, {"ignore": ["z"]}):
        assert same("<body><main><p>a b</p></main></body>", other, **options)


def test_large_pages_are_read_in_part_and_count_to_the_end() -> None:
    padding = "<p title='a long one that nobody sees'>word</p>" * (PARSED_BYTES // 44)
    old, new = "<p class=a>x</p>" + padding, "<p class=b>x</p>" + padding
    assert same(old, new)
    assert not same(old, new + "<p>new</p>")
    assert not same(old, new.replace("x</p>", "y</p>", 1))
    assert not same(old, new + "<p>new</p>\n" * 30_000, kind="near")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"include": "main"}, r"^include must be a sequence of str, got 'main'"),
        ({"include": ["a", 5]}, r"^include\[1\] must be a str that is not empty, got 5"),
        ({"exclude": ["a", " "]}, r"^exclude\[1\] must be a str"),
        ({"exclude": ["a", "p["]}, r"^exclude\[1\] must be a CSS selector or a JSON path, got 'p\['"),
        ({"include": ["p::text"]}, r"^include\[0\] .* part of an element, ::text"),
        ({"include": ["p::attr(x)"]}, r"^include\[0\] .* part of an element, ::attr"),
        ({"include": ["$"]}, r"^include\[0\] .* whole document"),
        ({"include": ["$.a..", "b"]}, r"^include\[0\] .* position 5"),
        ({"include": ["$.a[b]"]}, r"^include\[0\] .* position 4"),
        ({"ignore": ["a", "("]}, r"^ignore\[1\] must be a regular expression, got '\('"),
        ({"kind": "json.nothing"}, r"'json.nothing' cannot be imported \(AttributeError"),
        ({"kind": "no_such_module.f"}, r"cannot be imported \(ModuleNotFoundError"),
        ({"kind": "string.digits"}, r"'string.digits' is a str"),
    ],
)
def test_an_option_that_is_none_is_refused_by_name_and_index(options: dict[str, Any], message: str) -> None:
    for make in (lambda **given: fingerprint(html(PAGE), **given), lambda **given: settings_tag(given.pop("kind", "text"), **given)):
        with pytest.raises(InvalidProblemError, match=message):
            make(**options)


def test_every_option_has_a_part_in_the_tag() -> None:
    ways: list[dict[str, Any]] = [{}, {"include": ["a"]}, {"exclude": ["a"]}, {"ignore": ["a"]}, {"include": ["a"], "exclude": ["a"]}]
    tags = {settings_tag(kind, **way) for kind in ("text", "near", "body", "json.dumps") for way in ways}
    assert len(tags) == 20
    assert settings_tag("text", include=("a",)) == settings_tag("text", include=["a"])


def test_selectors_that_look_at_siblings_are_not_tried_on_endless_lists() -> None:
    """Such a page counts to the byte."""
    long, short = ("<ul>" + "<li>x" * count for count in (1_001, 1_000))
    for selector in ("li + li", "li ~ li", "li:nth-child(2)"):
        assert fingerprint(html(long), exclude=[selector]) == fingerprint(html(long), kind="body")
        assert same(short, short.replace("<li>", "<li class=a>"), exclude=[selector])
    assert same(long, long.replace("<li>", "<li class=a>"), exclude=["li"])


def test_what_is_below_something_is_found_in_linear_time_however_deep_that_is_nested() -> None:
    """libxml2 itself takes minutes for 'div p' on the larger page."""
    times = []
    for count in (5_000, 20_000):
        page = "<div>" * 1500 + "<p>x</p>" * count
        before = time.process_time()
        assert same(page + "<i>", page.replace("x", "y", 9) + "<b>", exclude=["div p"])
        times.append(time.process_time() - before)
    assert times[1] < 5.0, times


def test_paths_that_look_at_every_depth_twice_take_linear_time() -> None:
    """What lies in many of the elements found on the way is gone through once."""
    times = []
    for depth in (5, 5, 200):  # the first one warms up
        text = '{"items":' * depth + "[" + '{"views":1},' * 6_000 + "0]" + "}" * depth
        before = time.process_time()
        assert same(text, text.replace("1", "2"), json_of, exclude=["$..items..views"])
        times.append(time.process_time() - before)
    assert times[2] < 3 * times[1], times
    nested = '{"a": {"a": {"b": 1, "c": %d}}, "b": 2}'
    assert same(nested % 3, nested % 4, json_of, include=["$..a..b"])
    assert not same(nested % 3, nested.replace("1", "5") % 3, json_of, include=["$..a..b"])


@pytest.mark.parametrize(
    "selector",
    [
        "div p",
        "div div.a p",
        "div > div p, p p",
        "body div > p",
        "div.a :not(.b)",
        "div.a * p",
        "div:has(> div p) b",
        "ul li:first-child p",
    ],
)
def test_selectors_taken_step_by_step_find_what_xpath_finds(selector: str) -> None:
    page = "<div class=a><p>1</p><div><p>2<div class=a><b class=b>3</b><p>4</p></div></div></div><p>5<ul><li><p>6</p><li><div><p>7</ul>"
    root = etree.HTML(page)
    ours = selection_of((selector,), (), "html")
    assert ours is not None
    theirs = root.xpath(HTMLTranslator().css_to_xpath(selector))
    assert theirs
    assert set(ours.find(root)[0]) == set(theirs)


def test_what_looks_for_something_inside_is_not_tried_on_endless_pages() -> None:
    """As that takes time by depth and by size at once."""
    large, small = ("<div>" + "<i>x</i>" * count for count in (20_001, 500))
    for selector in ("div:has(.q)", "div:has(> i.q)"):
        assert fingerprint(html(large), exclude=[selector]) == fingerprint(html(large), kind="body")
        assert same(small, small.replace("<i>", "<b>"), exclude=[selector])
