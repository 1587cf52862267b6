"""JSON, XML, feeds and items: equal contents are written alike."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy import Field, Item, Request

from optimal_frontier.detection import fingerprint
from optimal_frontier.detection.folding import fold, folded_bytes
from optimal_frontier.detection.items import canonical_bytes
from optimal_frontier.detection.json_content import UnreadableJsonError, canonical_json
from optimal_frontier.detection.xml_content import UnreadableXmlError, canonical_xml

bounded = settings(max_examples=100, derandomize=True, deadline=None, database=None)


def of_json(text: str) -> str:
    return canonical_json(text)[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[1,2]}', ' {"b": [1, 2],\n"a": 1}'),
        ("[1, 1.0, 1e0, -0.0, 100]", "[1.0, 1, 1, 0, 1e2]"),
        ('["caf\\u00e9"]', '["cafe\u0301"]'),
        ('{"\u00e9":1,"z":2}', '{"z":2,"e\u0301":1}'),
        ('{"a":1,"a":2}', '{"a":2}'),
        ("\ufeff[]", "[]"),
        ("[0.10]", "[1e-1]"),
    ],
)
def test_json_of_equal_content_is_equal(one: str, other: str) -> None:
    assert of_json(one) == of_json(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("[1,2]", "[2,1]"), ("[1]", "[true]"), ('["1"]', "[1]"), ("[NaN]", "[null]"), ('{"a":null}', "{}"), ('["a  b"]', '["a b"]')],
)
def test_json_of_other_content_is_not(one: str, other: str) -> None:
    assert of_json(one) != of_json(other)


@pytest.mark.parametrize("text", ["[NaN, Infinity, -Infinity]", "[" + "9" * 10_000 + "]", "[1e999999]", '["\\ud800"]', '{"":{"":1}}', "5"])
def test_json_of_odd_values_is_read(text: str) -> None:
    assert of_json(text)
    response = SimpleNamespace(body=text.encode(), headers={"Content-Type": "application/json"})
    assert len(fingerprint(response, exclude=["$..x"])) == 16


def test_huge_numbers_count_to_the_last_digit() -> None:
    assert of_json("[" + "9" * 10_000 + "]") != of_json("[" + "9" * 9_999 + "8]")
    assert of_json("[1e999999]") != of_json("[1e999998]")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "{'a': 1}", "[1]x"])
def test_what_is_not_json_is_told(text: str) -> None:
    with pytest.raises(UnreadableJsonError):
        canonical_json(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@bounded
@given(values)
def test_any_json_is_written_alike_however_it_came(value: Any) -> None:
    shuffled = json.dumps(value, indent=2, ensure_ascii=True)
    assert of_json(shuffled) == of_json(json.dumps(value, ensure_ascii=False)) == of_json(of_json(shuffled))


RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><lastBuildDate>{now}</lastBuildDate>
<generator>g {now}</generator>{items}</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><updated>{now}</updated>{items}</feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel><dc>{now}</dc></channel>
{items}</rdf:RDF>"""


@pytest.mark.parametrize(("feed", "name"), [(RSS, "item"), (ATOM, "entry"), (RDF, "item")], ids=["rss", "atom", "rdf"])
def test_of_a_feed_only_the_entries_count(feed: str, name: str) -> None:
    """In any order."""

    def of(now: str, *titles: str) -> str:
        items = "\n".join(f"<{name}><title>{title}</title></{name}>" for title in titles)
        return canonical_xml(feed.format(now=now, items=items).encode())[0]

    assert of("10:01", "a", "b") == of("10:02", "b", "a")
    assert of("10:01", "a", "b") != of("10:01", "a", "c")
    assert of("10:01", "a", "b") != of("10:01", "a")
    assert of("10:01") == of("10:02")


def test_entries_of_a_feed_can_be_chosen_from() -> None:
    """A selector of an include may also name what the channel says of itself."""
    items = "<item><title>a</title><pubDate>{}</pubDate></item>"
    old, new = (RSS.format(now=now, items=items.format(now)).encode() for now in ("1", "2"))
    assert canonical_xml(old, exclude=["pubDate"]) == canonical_xml(new, exclude=["pubDate"])
    assert canonical_xml(old, exclude=["title"]) != canonical_xml(new, exclude=["title"])
    assert canonical_xml(old, ["channel > title"]) == canonical_xml(new, ["channel > title"])
    assert canonical_xml(old, ["generator"]) != canonical_xml(new, ["generator"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<a x='1' y='2'/>", '<a  y="2" x="1"></a>'),
        ("<a><b>x</b></a>", "<a>\n  <b> x </b><!-- c --><?p?>\n</a>"),
        ("<a><![CDATA[x]]></a>", "<a>x</a>"),
        ("<a>cafe\u0301</a>", "<a>caf\u00e9</a>"),
        ("<!DOCTYPE a><a/>", "<a/>"),
        ("<a>x &nbsp; y</a>", "<a>x  &nbsp;  y</a>"),
    ],
)
def test_xml_of_equal_content_is_equal(one: str, other: str) -> None:
    assert canonical_xml(one.encode()) == canonical_xml(other.encode())


def test_xml_in_another_encoding_is_equal() -> None:
    text = "<?xml version='1.0' encoding='{}'?><a>caf\u00e9</a>"
    assert canonical_xml(text.format("iso-8859-1").encode("latin-1")) == canonical_xml(text.format("utf-8").encode())


@pytest.mark.parametrize("body", [b"", b"<a>", b"<a></b>", b"<a><b></a>", b"text", b"<a/><b/>", b"<a>" * 5_000, b"\x00\x01", b"<a\x00/>"])
def test_xml_that_is_not_well_formed_is_told(body: bytes) -> None:
    with pytest.raises(UnreadableXmlError):
        canonical_xml(body)


def test_entities_are_neither_expanded_nor_loaded() -> None:
    body = '<!DOCTYPE a [<!ENTITY l "lol"><!ENTITY f SYSTEM "file:///etc/passwd">]><a>&l;&f;</a>'
    assert canonical_xml(body.encode())[0] == "<a>&l;&f;</a>"
    laughs = "".join(f'<!ENTITY l{at + 1} "{f"&l{at};" * 10}">' for at in range(12))
    with pytest.raises(UnreadableXmlError):  # libxml2 gives up by itself
        canonical_xml(f'<!DOCTYPE a [<!ENTITY l0 "lol">{laughs}]><a>&l12;</a>'.encode())


@dataclass
class Lamp:
    name: str
    price: float


class LampItem(Item):  # type: ignore[misc]
    name = Field()
    price = Field()


class Colour(Enum):
    RED = "red"


def test_an_item_counts_by_its_fields_whatever_it_is() -> None:
    written = canonical_bytes({"price": 2, "name": "x"})
    for item in (Lamp("x", 2.0), LampItem(name="x", price=2), {"name": "x", "price": 2.0}):
        assert canonical_bytes(item) == written
        assert canonical_bytes([item]) == canonical_bytes(each for each in [item]) == canonical_bytes((item,))
    assert canonical_bytes(Lamp("x", 2.5)) != written


def test_values_of_items_are_written_alike() -> None:
    assert canonical_bytes({"a": {3, 1, 2}}) == canonical_bytes({"a": frozenset([2, 3, 1])})
    assert canonical_bytes({"a": Colour.RED, "d": date(2024, 3, 5), "n": Decimal("1.10")}) == b'{"a":"red","d":"2024-03-05","n":"1.10"}'
    assert canonical_bytes({"a": "cafe\u0301"}) == canonical_bytes({"a": "caf\u00e9"})
    assert canonical_bytes(b"raw") == b"raw"
    assert canonical_bytes({"a": b"x", "b": 10**5_000, "c": float("inf"), 5: None})
    assert canonical_bytes({"a": 2**70}) != canonical_bytes({"a": 2**70 + 1})


def nested() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


@pytest.mark.parametrize(
    "value", [None, Request("http://a"), [Request("http://a")], object(), {"a": object()}, nested(), {("a",): 1}, Lamp]
)
def test_what_is_no_content_is_told(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_bytes(value)


@bounded
@given(st.text(alphabet=st.characters(), max_size=40) | st.text(alphabet="ab \u00a0\u2003\u3000\n\x1c\x85e\u0301\ud800", max_size=40))
def test_both_ways_to_fold_are_one(text: str) -> None:
    assert folded_bytes(text) == fold(text).encode("utf-8", "surrogatepass")
