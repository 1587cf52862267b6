"""Sections: what they are called, that they are bounded, and how their differences are counted."""

from __future__ import annotations

import json
import time
import tracemalloc
from types import SimpleNamespace

import cssselect
import pytest
from corpus import CASES, Fetch
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from optimal_frontier.detection import sections
from optimal_frontier.detection.noisy_sections import join_places, noise_of
from optimal_frontier.detection.recipe import make_recipe
from optimal_frontier.detection.section_history import MOST_ROWS, SectionHistory, key_of
from optimal_frontier.detection.sections import MOST_BYTES, MOST_SECTIONS, OWN_TEXT, REST, WHOLE, Section
from optimal_frontier.settings.json_paths import parse_json_path


def page(body: str, media: str = "text/html") -> SimpleNamespace:
    return SimpleNamespace(headers={"Content-Type": media}, body=body.encode())


def names(body: str, media: str = "text/html", **options) -> list[str]:
    return [section.selector for section in sections(page(body, media), make_recipe("text", **options))]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<title>T</title><p>a", ["title", "body > p:nth-of-type(1)"]),
        ("<div id=main><h1>a</h1><p>b<p>c <b>d</b></div>", ["#main > h1", "#main > p:nth-of-type(1)", "#main > p:nth-of-type(2)"]),
        ("<div class='is-open card'>a</div><div class='card'>b</div>", ["div.card"]),
        ("<div id=post-48121 class='css-1x2y3z'>a</div>", ["body > div:nth-of-type(1)"]),
        ("<footer>a <time>b</time></footer>", ["footer", "footer > time"]),
        ("<main><article class=a><span class=by>x</span></article></main>", ["main article.a span.by"]),
        ("<font><p>a</p></font><p>b", ["body > font:nth-of-type(1) > p:nth-of-type(1)", "body > p:nth-of-type(1)"]),
        ("<p>a<script>b</script><style>c</style><!-- d -->e", ["body > p:nth-of-type(1)"]),
    ],
)
def test_a_section_has_the_name_that_a_person_would_give_it(markup, expected):
    assert sorted(names(markup)) == sorted(expected)


def test_every_name_of_the_corpus_is_a_selector_that_finds_its_section():
    """As CSS, or as a path; what the element found holds is at least the section's text."""
    for case in CASES:
        response = case.response(0, Fetch(1, 1e9))
        for selector, *_ in sections(response):
            name = selector.removesuffix(OWN_TEXT)
            if name.startswith("$"):
                assert parse_json_path(name)
            elif case.media.startswith("text/html"):
                xpath = cssselect.HTMLTranslator().css_to_xpath(name)
                found = html.document_fromstring(response.body.decode()).xpath(xpath)
                assert any(element.text_content().strip() for element in found), (case.name, selector)


def test_leaving_a_section_out_leaves_no_other_one_out():
    """The other sections of the page are the same without it, but for those inside of it."""
    for case in CASES:
        response = case.response(0, Fetch(1, 1e9))
        whole = sections(response)
        for selector, *_ in whole[:6]:
            if selector.endswith(OWN_TEXT) or selector in (REST, WHOLE) or not case.media.startswith("text/html"):
                continue
            left = sections(response, make_recipe("text", exclude=(selector,)))
            gone = {section.selector.removesuffix(OWN_TEXT) for section in whole} - {s.selector.removesuffix(OWN_TEXT) for s in left}
            assert selector in gone, (case.name, selector)
            inner = {name for name in gone if name != selector}
            assert all(name.startswith(selector) or selector.split()[-1] in name for name in inner), (case.name, selector, inner)


def test_text_of_a_container_is_apart_from_what_it_holds():
    markup = f"<div class=all>loose <p>{'word ' * 80}</p></div>"
    assert names(markup) == ["div.all" + OWN_TEXT, "div.all > p:nth-of-type(1)"]
    assert names("<div class=all>loose <p>little</p></div>") == ["div.all", "div.all > p:nth-of-type(1)"]


def test_what_the_fingerprint_leaves_out_is_in_no_section():
    markup = "<main><p>a</p><p class=ad>b</p></main><footer>12:30</footer>"
    assert names(markup, exclude=[".ad"]) == ["main > p:nth-of-type(1)", "footer"]
    assert names(markup, include=["main"], exclude=[".ad"]) == ["main > p:nth-of-type(1)"]
    assert names(markup, ignore=[r"\d+:\d+"]) == ["main > p:nth-of-type(1)", "main p.ad"]
    data = '{"a": {"t": 1, "b c": [2, 3]}}'
    assert names(data, "application/json") == ["$.a['b c'][*]", "$.a.t"]
    assert names(data, "application/json", exclude=["$.a.t"]) == ["$.a['b c'][*]"]
    assert names(data, "application/json", include=["$.a"]) == [WHOLE]
    feed = "<rss><channel><lastBuildDate>now</lastBuildDate><item><title>x</title></item></channel></rss>"
    assert names(feed, "application/rss+xml") == ["item > title"]


@pytest.mark.parametrize("kind", ["body", "collections.Counter"])
def test_a_page_that_is_not_judged_by_its_text_is_one_section(kind):
    (section,) = sections(page("<p>a<p>b"), make_recipe(kind))
    assert section.selector == WHOLE


@pytest.mark.parametrize(
    "response",
    [
        page("", "text/html"),
        page("{not json", "application/json"),
        page("<a><b></a>", "text/xml"),
        SimpleNamespace(headers={"Content-Type": "image/png"}, body=b"\x89PNG"),
        page("<p>a" * (MOST_BYTES // 3)),
        page("<b>" * 5000),
    ],
)
def test_what_cannot_be_cut_is_one_section(response):
    assert [section.selector for section in sections(response)] == [WHOLE]


@pytest.mark.parametrize(
    ("body", "media"),
    [
        ("".join(f"<div><p>{at}</p><p>x{at}</p></div>" for at in range(9000)), "text/html"),
        ("".join(f"<div class=c{chr(97 + at % 26)}{chr(97 + at // 26 % 26)}><p>{at}</p></div>" for at in range(5000)), "text/html"),
        (json.dumps({f"k{at}": {f"x{at}": at} for at in range(9000)}), "application/json"),
        ("<a>" + "".join(f"<n{at}><m>{at}</m></n{at}>" for at in range(9000)) + "</a>", "text/xml"),
    ],
)
def test_sections_are_few_and_cutting_takes_bounded_time(body, media):
    begun = time.process_time()
    cut = sections(page(body, media))
    assert 1 <= len(cut) <= MOST_SECTIONS
    assert len({section.selector for section in cut}) == len(cut)
    assert time.process_time() - begun < 5.0


@pytest.mark.parametrize(
    ("body", "media"),
    [
        (('{"' + "k" * 2_500 + '":') * 60 + "[" + "0," * 10_000 + "0]" + "}" * 60, "application/json"),
        (('{"' + "k" * 500 + '":') * 60 + json.dumps({f"a{at}": at for at in range(3_000)}) + "}" * 60, "application/json"),
        ("<div id=abc><" + "x" * 100_000 + " class=abc>" + "".join(f"<q{at}>x</q{at}>" for at in range(3_000)), "text/html"),
        ("<div id=abc>" + "<b>x" * 1_500, "text/html"),
    ],
)
def test_names_stay_short_and_so_does_what_they_take(body, media):
    """Each of many values under a long path had a copy of it: gigabytes."""
    tracemalloc.start()
    try:
        found = sections(SimpleNamespace(body=body.encode(), headers={"Content-Type": media}))
        assert tracemalloc.get_traced_memory()[1] < 200 * len(body) + 1e7
    finally:
        tracemalloc.stop()
    assert all(len(section.selector) < 3_000 for section in found)


@given(
    st.text(alphabet=st.sampled_from("<>/ab c=\"'&;#divspan!-[]{}:,1\x00\ud800é"), max_size=400),
    st.sampled_from(["text/html", "application/json", "text/xml", ""]),
)
def test_nothing_that_is_sent_raises(body, media):
    response = SimpleNamespace(headers={"Content-Type": media}, body=body.encode("utf-8", "surrogatepass"), text=body)
    cut = sections(response)
    assert 1 <= len(cut) <= MOST_SECTIONS
    assert cut == sections(response)


def cut_of(**texts: int) -> list[Section]:
    return [Section(name, value.to_bytes(4, "big")) for name, value in texts.items()]


def test_counts_of_a_history():
    """b on every visit, c at one of them, quick pairs apart; where only b differs it is alone."""
    history = SectionHistory()
    for turn in range(5):
        history = history.follow(cut_of(a=0, b=turn, c=turn // 3), quick=turn == 4)
    assert (history.pairs, history.quick_pairs) == (4, 1)
    assert {row.selector: row[1:] for row in history.rows} == {"b": (4, 3, 1), "c": (1, 0, 0)}


def test_a_section_that_comes_and_goes_differs_each_time_it_is_known_by_name():
    history = SectionHistory()
    for turn in range(7):
        history = history.follow(cut_of(a=0, b=1) if turn % 2 else cut_of(a=0))
    assert {row.selector: row.differed for row in history.rows} == {"b": 6}


def test_a_section_that_got_another_name_does_not_differ():
    history = SectionHistory().follow(cut_of(a=0, old=5)).follow(cut_of(a=0, new=5))
    assert (history.pairs, history.rows) == (1, ())


def test_memory_is_constant_and_old_visits_fade():
    history = SectionHistory()
    for turn in range(500):
        noise = {f"n{at}": turn * 100 + at for at in range(60)}
        history = history.follow(cut_of(a=0, late=turn if turn > 400 else 0, **noise))
    assert len(history.rows) == MOST_ROWS
    assert history.pairs < 50
    assert all(row.differed == history.pairs for row in history.rows)
    assert SectionHistory.unpacked(history.packed()) == history


def test_places_are_joined_only_where_all_of_them_are_noise():
    items = [f"ul.x > li:nth-of-type({at})" for at in (1, 2, 3)]
    keys = {key_of(name) for name in items}
    assert set(join_places(items, keys).values()) == {"ul.x > li"}
    assert set(join_places(items[:2], keys).values()) == set(items[:2])
    cells = [f"table > tr:nth-of-type({row}) > td:nth-of-type(3)" for row in (1, 2, 3, 4)]
    others = [f"table > tr:nth-of-type({row}) > td:nth-of-type(1)" for row in (1, 2, 3, 4)]
    assert set(join_places(cells, {key_of(name) for name in cells + others}).values()) == {"table > tr > td:nth-of-type(3)"}


def test_a_frequent_edit_is_not_called_noise():
    """Half of the visits find one; beside a section that is always new."""
    history = SectionHistory()
    for turn in range(20):
        history = history.follow(cut_of(h1=turn // 2, ad=turn))
    assert noise_of(history).exclude == ("ad",)
