"""Paths into JSON (RFC 9535): what they lead to, which ones are refused, and what a hostile page can make of them."""

from __future__ import annotations

import json
import time
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.detection.json_content import UnreadableJsonError, canonical_json
from optimal_frontier.detection.sections import sections
from optimal_frontier.settings.json_paths import is_json_path, parse_json_path

DOCUMENT = {
    "meta": {"updated-at": "10:01", "it's": 1, 'say "x"': 2, "n": 3},
    "items": [
        {"kind": "page", "id": 1, "views": 7},
        {"kind": "ad", "id": 2, "views": 8},
        {"kind": "page", "id": 3, "views": 9, "inside": [{"kind": "ad", "id": 4}]},
    ],
    "title": "some text",
}


def included(*paths: str, document: Any = DOCUMENT, exclude: tuple[str, ...] = ()) -> Any:
    """What the paths lead to, in their order; None if that is nothing."""
    written, missed = canonical_json(json.dumps(document), [parse_json_path(p) for p in paths], [parse_json_path(p) for p in exclude])
    return None if missed else json.loads(written)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.items[*].id", [1, 2, 3]),
        ("$..id", [1, 2, 3, 4]),
        ("$.items[-1].id", [3]),
        ("$.items[0:2].id", [1, 2]),
        ("$.items[::-2].id", [3, 1]),
        ("$.items[0,2].id", [1, 3]),
        ("$.items[0]['id','views']", [1, 7]),
        ("$.items[?@.kind == 'ad'].id", [2]),
        ("$..[?@.kind == 'ad'].id", [2, 4]),
        ("$.items[?@.inside].id", [3]),
        ("$.items[?!@.inside && @.views > 7].id", [2]),
        ("$.items[?search(@.kind, '^p')].id", [1, 3]),
        ("$.items[?@.id == $.meta.n].views", [9]),
        ("$.meta.updated-at", ["10:01"]),
        (r"$.meta['it\'s']", [1]),
        ('$.meta["it\'s"]', [1]),
        ("""$.meta['say "x"']""", [2]),
        ("$.meta['\\u006e']", [3]),
        ("$.title[0:2]", None),
        ("$.title[0]", None),
        ("$.items.id", None),
        ("$.items[9]", None),
        ("$.items['0']", None),
        ("$.meta[0]", None),
    ],
)
def test_what_a_path_leads_to(path: str, found: Any) -> None:
    """Filters, slices and lists of names as the RFC has them; a text has no elements, a list no names."""
    assert included(path) == found


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("$", "whole document"),
        ("$x", "position 1"),
        ("$.a[", "position"),
        ("$.a ", "white ?space"),
        ("$.a | $.b", "position 4"),
        ("$.a.~", "position 4"),
        ("$.@type", "position 2"),
        ("$[99999999999999999999]", "out of range"),
        ("$" + "[?@.a" * 300 + "]" * 300, "recursion"),
        ("$[?nothing(@.a)]", "nothing"),
        ("$[?@..a]", r"query @\.\..* one value"),
        ("$[?count(@.*) > 1]", "one value"),
        ("$[?@.a[?@.b]]", "one value"),
        ("$[?match(@.a, @.b)]", "no literal"),
    ],
)
def test_what_is_no_path_is_refused_in_one_line(path: str, message: str) -> None:
    assert is_json_path(path)
    with pytest.raises(ValueError, match=message) as refused:
        parse_json_path(path)
    assert "\n" not in str(refused.value)


def test_every_path_is_looked_for_in_the_page_as_it_is() -> None:
    """Whatever the order, also where one leads into what another one takes away, or asks for it in a filter."""
    assert included("$.items[?@.kind == 'ad']", exclude=("$..kind",)) == [{"id": 2, "views": 8}]
    for exclude in (("$..kind", "$.items[?@.kind == 'ad']"), ("$.items[?@.kind == 'ad']", "$..kind"), ("$..kind", "$.items[1]")):
        assert [item["id"] for item in included("$.items", exclude=exclude)[0]] == [1, 3]
    assert included("$..id", exclude=("$.items[2]",)) == [1, 2]
    assert included("$..id", exclude=("$.items[2].inside", "$.items[0].id")) == [2, 3]
    assert included("$.items", exclude=("$.items",)) == []


names = st.sampled_from("abc")
documents = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | names,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=3),
    max_leaves=25,
)
steps = st.sampled_from([".a", "..b", "[*]", "..*", "[0]", "..[-1]", "[1:]", "[?@.a]", "..[?@.b == 1]", "['a','c']", ".c"])


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(documents, st.lists(steps, min_size=1, max_size=4))
def test_a_path_leads_to_the_places_of_the_librarys_own_search(document: Any, parts: list[str]) -> None:
    """Though ours goes through what lies in several nodes but once."""
    path = parse_json_path("$" + "".join(parts))
    text = json.dumps(document)
    theirs = {match.parts: match.obj for match in path.finditer(json.loads(text)) if not _in_a_text(match)}
    ours, missed = canonical_json(text, [path])
    assert missed is not bool(theirs)
    if theirs:
        listed = [json.dumps(value, sort_keys=True) for value in json.loads(ours)]
        assert set(listed) == {json.dumps(value, sort_keys=True) for value in theirs.values()}


def _in_a_text(match: Any) -> bool:
    """The library takes slices of texts, too, which RFC 9535 does not."""
    return match is not None and (isinstance(match.parent and match.parent.obj, str) or _in_a_text(match.parent))


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(st.text(max_size=8) | st.text(alphabet="a.[]'\"\\*$\n\ud800 ", max_size=8))
def test_the_name_of_a_section_is_a_path_to_it(key: str) -> None:
    body = json.dumps({"a": [{key: "x"}, {key: "y"}], "b": 1}).encode()
    (name,) = {section.selector for section in sections(SimpleNamespace(headers={"Content-Type": "application/json"}, body=body))} - {"$.b"}
    assert canonical_json(body.decode(), [parse_json_path(name)])[0] == '["x","y"]'


def test_a_page_of_long_names_takes_no_more_memory_than_it_has_bytes() -> None:
    """A node of the library carries its path as text: here 2 MB each."""
    text = json.dumps({"k" * 2_000_000: [{"views": at} for at in range(10_000)]})
    path = parse_json_path("$..views")
    tracemalloc.start()
    try:
        before = time.process_time()
        canonical_json(text, (), [path])
        assert time.process_time() - before < 2.0
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()


def test_a_path_at_any_depth_reaches_as_deep_as_json_is_read() -> None:
    text = '{"a":' * 400 + '{"views":%d}' + "}" * 400
    path = parse_json_path("$..views")
    assert canonical_json(text % 1, (), [path]) == canonical_json(text % 2, (), [path])
    with pytest.raises(UnreadableJsonError):
        canonical_json('{"a":' * 100_000, (), [path])
