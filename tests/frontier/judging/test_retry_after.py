"""What a host's answer says about when to come again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimal_frontier.frontier.judging.retry_after import DEFAULT_HOLD_S, LONGEST_HOLD_S, hold_s, is_back_later
from optimal_frontier.state.rows import ACTIVE, ONCE, TRANSIENT, Row


@pytest.mark.parametrize(
    ("status", "header", "expected"),
    [
        (200, b"10", None),
        (500, b"10", None),
        (429, b"10", 10.0),
        (503, b" 0 ", 0.0),
        (503, b"999999999999", LONGEST_HOLD_S),
        (429, None, DEFAULT_HOLD_S),
        (429, b"soon", DEFAULT_HOLD_S),
        (429, b"-5", DEFAULT_HOLD_S),
        (429, "٣".encode(), DEFAULT_HOLD_S),
        (503, b"Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        (503, b"Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ],
)
def test_seconds_dates_and_nonsense(status: int, header: bytes | None, expected: float | None) -> None:
    assert hold_s(status, header, now=10.0) == expected


@pytest.mark.parametrize("off_s", [-600.0, 0.0, 600.0])
def test_a_date_is_told_by_the_clock_of_the_site(off_s: float) -> None:
    """A crawler whose clock is fast would not wait at all, one whose clock is slow ten minutes too long."""
    answered, again = b"Thu, 01 Jan 1970 00:20:00 GMT", b"Thu, 01 Jan 1970 00:20:30 GMT"
    assert hold_s(429, again, answered, 1200.0 + off_s) == 30.0
    assert hold_s(429, again, b"just now", 1200.0) == 30.0


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_no_header_breaks_it(header: bytes, date: bytes) -> None:
    held = hold_s(503, header, date, now=1e9)
    assert held is not None
    assert 0 <= held <= LONGEST_HOLD_S


@pytest.mark.parametrize("value", [b"99999999999999999999", b"Fri, 31 Dec 9999 23:59:59 GMT"])
def test_absurd_holds_are_bounded(value):
    """By an hour."""
    assert hold_s(429, value, now=2e9) == LONGEST_HOLD_S


@pytest.mark.parametrize("value", [b"-1", b"soon", b"1e9", b"", b"\xff", b"Fri, 31 Dec 99999 23:59:59 GMT"])
def test_what_is_no_time_counts_as_none(value):
    assert hold_s(503, value, now=2e9) == DEFAULT_HOLD_S


@pytest.mark.parametrize(
    ("state", "status", "hold", "expected"),
    [
        (ACTIVE, 429, 5.0, True),
        (ACTIVE, 429, 0.0, False),
        (ACTIVE, 503, 600.0, False),
        (ONCE, 429, 5.0, True),
        (TRANSIENT, 429, 5.0, False),
    ],
)
def test_what_comes_again_by_itself_is_not_sent_again_at_once(state: int, status: int, hold: float, expected: bool) -> None:
    assert is_back_later(Row(state=state), status, hold) is expected
