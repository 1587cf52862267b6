"""Rows, tails, records, words of hosts and published tables: what is read is what was written, and rubbish is called so."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, defaultdict
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimal_frontier.state.host_words import NOTHING_SAID, HostWords
from optimal_frontier.state.published import PRICES, PRIORS, Published
from optimal_frontier.state.records import decode_record, encode_record, pack_record, unpack_record, url_of_record
from optimal_frontier.state.rows import (
    FIELDS,
    HEAD_BYTES,
    LAYOUT,
    NUMBERS_AT,
    NUMBERS_BYTES,
    TAIL_BYTES,
    Row,
    pack_numbers,
    pack_tail,
    split_tail,
)

singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
COLUMNS = {
    "I": st.integers(0, 2**32 - 1),
    "H": st.integers(0, 2**16 - 1),
    "B": st.integers(0, 255),
    "d": st.floats(allow_nan=False),
    "f": singles,
    "16s": st.binary(min_size=16, max_size=16),
}
rows = st.builds(Row, **{name: COLUMNS[code] for name, code, _ in FIELDS})
plain: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)


@given(row=rows, stated=singles, record=st.binary(max_size=40))
def test_a_row_comes_back(row: Row, stated: float, record: bytes) -> None:
    value = row.pack() + pack_tail(stated, record)
    assert len(row.pack()) == HEAD_BYTES
    assert Row.unpack(value) == row
    assert split_tail(value) == (stated, record)


@given(row=rows)
def test_the_numpy_layout_is_that_of_rows(row: Row) -> None:
    (read,) = np.frombuffer(row.pack(), LAYOUT)
    assert LAYOUT.itemsize == HEAD_BYTES
    assert tuple(read[name].tobytes() if name == "content" else read[name].item() for name in Row._fields) == row


@given(row=rows)
def test_the_numbers_stand_where_plans_write_them(row: Row) -> None:
    packed = pack_numbers(row.b, (row.a, row.s, row.e, row.l))
    assert row.pack()[NUMBERS_AT : NUMBERS_AT + NUMBERS_BYTES] == packed


def test_fields_and_row_have_the_same_names_in_the_same_order() -> None:
    assert tuple(name for name, _, _ in FIELDS) == Row._fields
    assert Row.unpack(Row().pack())._replace(max_interval=Row().max_interval) == Row()
    assert TAIL_BYTES == 4


@pytest.mark.parametrize("size", [0, 1, HEAD_BYTES - 1])
def test_what_is_too_short_is_no_row(size: int) -> None:
    with pytest.raises(ValueError, match=str(HEAD_BYTES)):
        Row.unpack(bytes(size))


@given(
    origin=st.sampled_from(["http://", "https://", "ftp://", "HTTP://"]),
    host=st.sampled_from(["example.org", "example.org:8080"]),
    of_page=st.sampled_from(["example.org", "example.org:8080", "other.org"]),
    path=st.text(),
    more=st.dictionaries(st.text(), plain, max_size=3),
)
def test_a_record_comes_back_whatever_its_url(origin: str, host: str, of_page: str, path: str, more: dict[str, Any]) -> None:
    record = {**more, "url": origin + host + path}
    assert unpack_record(pack_record(record, of_page), of_page) == record


def test_the_origin_of_a_url_is_stored_once_for_the_host() -> None:
    assert len(pack_record({"url": "https://example.org/a"}, "example.org")) == 3
    assert unpack_record(pack_record({"url": "https://example.organic/a"}, "example.org"), "example.org") == {
        "url": "https://example.organic/a"
    }


class Named(NamedTuple):
    price: int


class Colour(StrEnum):
    RED = "red"


MORE = [Named(1), time.gmtime(0), defaultdict(list), Counter("a"), [{"deep": Named(1)}], {Named(1)}]


@pytest.mark.parametrize("value", MORE, ids=lambda value: type(value).__name__)
def test_what_has_names_or_defaults_is_no_plain_data(value: Any) -> None:
    """It would come back without them."""
    with pytest.raises(TypeError, match="a value of type"):
        encode_record(value)


def test_other_subclasses_of_plain_types_are_stored_as_those() -> None:
    assert decode_record(encode_record([Colour.RED, OrderedDict(a=1)])) == ["red", {"a": 1}]


@given(raw=st.binary(max_size=30))
def test_a_damaged_record_is_an_error_and_never_anything_else(raw: bytes) -> None:
    try:
        record = unpack_record(raw, "example.org")
    except ValueError:
        assert url_of_record(raw, "example.org") == ""
    else:
        assert isinstance(record["url"], str)


counts = st.tuples(singles, singles, singles, singles)


@given(words=st.builds(HostWords, header=counts, sitemap=counts, validators=counts, good=singles, missing=singles))
def test_words_of_a_host_come_back(words: HostWords) -> None:
    assert HostWords.unpack(words.pack()) == words


@pytest.mark.parametrize("raw", [None, b"", b"\xc1", b"\x93\x01\x02\x03", b"rubbish"])
def test_words_that_cannot_be_read_are_none(raw: bytes | None) -> None:
    assert HostWords.unpack(raw) == NOTHING_SAID
    assert NOTHING_SAID.pack() == b""


@given(
    priors=st.dictionaries(st.integers(0, 2**32 - 1), st.tuples(singles.map(abs), singles.map(abs)), max_size=5),
    prices=st.dictionaries(st.integers(0, 2**32 - 1), singles, max_size=5),
    log_price=st.floats(allow_nan=False),
)
def test_tables_of_a_plan_come_back(priors: dict[int, tuple[float, float]], prices: dict[int, float], log_price: float) -> None:
    taught = np.array([(pattern, shape, time, 1) for pattern, (shape, time) in priors.items()], PRIORS)
    extra = np.array(list(prices.items()), PRICES)
    read = Published.parse({"number": "3", "log_price": repr(log_price), "prior_time": "9", "x": "5"}, taught.tobytes(), extra.tobytes())
    assert (read.number, read.log_price, read.priors, read.host_prices, read.fields["x"]) == (3, log_price, priors, prices, "5")
    assert read.prior_of(2**32) == (1.0, 9.0)


def test_without_a_plan_nothing_is_believed() -> None:
    assert Published.parse({}, None, None) == Published()
    assert Published().prior_of(1) is None
    assert Published.parse({"number": "nonsense"}, b"odd", b"odd").number == 0
