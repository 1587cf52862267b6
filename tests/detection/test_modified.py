"""Last-Modified and lastmod: what they say, in every form that servers and sitemaps use, and in forms that mean nothing."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.http import Headers

from optimal_frontier.detection import modified_age, parse_lastmod
from optimal_frontier.detection.modified import EARLIEST, SKEW_S

DATE = "Tue, 05 Mar 2024 10:00:00 GMT"
NOW = 1_709_632_800.0  # the same in seconds

bounded = settings(max_examples=100, derandomize=True, deadline=None, database=None)


def age(modified, date=DATE, now=0.0, **others):
    headers = {"Last-Modified": modified, **({"Date": date} if date is not None else {}), **others}
    return modified_age(headers, now)


@pytest.mark.parametrize(
    "modified",
    [
        "Tue, 05 Mar 2024 09:58:20 GMT",
        "Tuesday, 05-Mar-24 09:58:20 GMT",
        "Tue Mar  5 09:58:20 2024",
        "Tue, 05 Mar 2024 09:58:20",
        "Tue, 05 Mar 2024 10:58:20 +0100",
        " 05 Mar 2024 09:58:20 gmt ",
    ],
)
def test_all_forms_of_a_date_are_read(modified):
    """The three of HTTP, and what servers make of them; always GMT unless a zone is named."""
    assert age(modified) == 100.0


@pytest.mark.parametrize("kind", [Headers, dict, lambda d: {k.lower().encode(): [b"x", v.encode()] for k, v in d.items()}])
def test_headers_of_every_make_are_read(kind):
    """Scrapy's, plain ones, and bytes with lists, of which the last counts."""
    headers = kind({"Date": DATE, "Last-Modified": "Tue, 05 Mar 2024 09:58:20 GMT", "Age": "20"})
    assert modified_age(headers, 0.0) == 120.0


def test_what_an_answer_spent_in_caches_is_added():
    assert age("Tue, 05 Mar 2024 09:58:20 GMT", Age="3600") == 3700.0
    assert age("Tue, 05 Mar 2024 09:58:20 GMT", Age="soon") == 100.0


@pytest.mark.parametrize("date", [None, "", "now"])
def test_without_a_date_the_local_clock_counts(date):
    assert age("Tue, 05 Mar 2024 09:58:20 GMT", date, NOW + 7.0) == 107.0


@pytest.mark.parametrize(
    "modified",
    ["", "0", "-1", "never", "Tue, 05 Mar 2024", "Thu, 01 Jan 1970 00:00:00 GMT", "Tue, 01 Jan 1980 00:00:00 GMT", "5 Foo 2024 1:2:3 GMT"],
)
def test_what_means_nothing_is_none(modified):
    assert age(modified) is None


def test_the_future_is_now_within_the_skew_of_two_clocks_and_nothing_beyond():
    assert age("Tue, 05 Mar 2024 10:00:05 GMT") == 0.0
    assert SKEW_S == 5.0
    assert age("Tue, 05 Mar 2024 10:00:06 GMT") is None


@pytest.mark.parametrize("headers", [{}, {"Date": DATE}, None, "Last-Modified", [("Last-Modified", DATE)], {"Last-Modified": None}, {1: 2}])
def test_no_header_is_no_age(headers):
    assert modified_age(headers, NOW) is None


texts = st.one_of(
    st.text(),
    st.binary(),
    st.from_regex(r"\w{3}, \d{1,3} (Jan|Feb|Mar|Foo) \d{1,20} \d{1,3}:\d{1,3}:\d{1,3} (GMT|[+-]\d{1,25}|)", fullmatch=True),
    st.datetimes(min_value=datetime(1, 1, 1), timezones=st.just(UTC)).map(lambda at: format_datetime(at, usegmt=True)),
    st.lists(st.binary()),
    st.none(),
    st.integers(),
)


@bounded
@given(modified=texts, date=texts, age=texts)
def test_whatever_a_header_holds_the_age_is_a_time_or_none(modified, date, age):
    for headers in ({"Last-Modified": modified, "Date": date, "Age": age}, {b"last-modified": [modified], b"date": [date]}):
        found = modified_age(headers, NOW)
        assert found is None or 0.0 <= found < math.inf


@bounded
@given(at=st.integers(int(EARLIEST), 4_000_000_000), back=st.integers(0, 10**9))
def test_a_server_that_keeps_to_the_rules_is_read_to_the_second(at, back):
    date, modified = (format_datetime(datetime.fromtimestamp(time, UTC), usegmt=True) for time in (at, max(at - back, int(EARLIEST))))
    assert age(modified, date) == min(back, at - EARLIEST)


@pytest.mark.parametrize(
    ("value", "expected", "resolution"),
    [
        ("2024-03-05T10:00:00Z", NOW, 60.0),
        ("2024-03-05T11:00+01:00", NOW, 60.0),
        (" 2024-03-05T10:00:00.25Z\n", NOW + 0.25, 60.0),
        ("2024-03-05T10:00:00", NOW, 86_400.0),
        ("2024-03-05", NOW + 7200.0, 86_400.0),
        ("2024-03", datetime(2024, 3, 16, 12, tzinfo=UTC).timestamp(), 31 * 86_400.0),
        ("2024", datetime(2024, 7, 2, tzinfo=UTC).timestamp(), 366 * 86_400.0),
        (NOW, NOW, 60.0),
        (int(NOW), NOW, 60.0),
    ],
)
def test_lastmod_is_read_with_its_resolution(value, expected, resolution):
    """Dates mean the middle of the day; a time without a zone may be anywhere."""
    assert parse_lastmod(value) == (expected, resolution)


BAD = [
    "",
    "soon",
    "2024-13",
    "2024-02-30",
    "05.03.2024",
    "0000",
    "1970-01-01",
    None,
    True,
    float("nan"),
    -1.0,
    NOW * 1000,
    10**400,
    [],
    b"2024",
]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_a_lastmod_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match=r"."):
        parse_lastmod(value)


@bounded
@given(st.one_of(st.text(), st.integers(), st.floats(), st.datetimes(timezones=st.timezones()).map(lambda at: at.isoformat()), st.binary()))
def test_whatever_lastmod_is_it_is_a_time_or_a_value_error(value):
    try:
        time, resolution = parse_lastmod(value)
    except ValueError:
        return
    assert EARLIEST <= time < math.inf
    assert resolution >= 60.0
