"""What fetches that show nothing are called, and how each is counted."""

from __future__ import annotations

import numpy as np
import pytest
from handed_out import RECEIVED, TAG, again, context, handed, judged, visit, wait_of

from optimal_frontier.frontier.judging.backoff import backoff_s, wait_after_failures
from optimal_frontier.frontier.judging.outcomes import (
    CAUSES,
    cause_of,
    counters_of,
    error_of_dropped,
    error_of_exception,
    error_of_response,
    outcome_of,
)
from optimal_frontier.state.rows import Row


@pytest.mark.parametrize(
    ("error", "outcome", "counters"),
    [
        ("", "ok", {}),
        ("404", "gone", {}),
        ("410", "gone", {}),
        ("released", "released", {}),
        ("IgnoreRequest", "refused", {}),
        ("RobotsDenied", "refused", {"failures_robots": 1}),
        ("429", "failed", {"failures_throttled": 1}),
        ("503", "failed", {"failures_server": 1}),
        ("502", "failed", {"failures_server": 1}),
        ("403", "failed", {"failures_client": 1}),
        ("301", "failed", {"failures_client": 1}),
        ("DownloadTimeoutError", "failed", {"failures_timeout": 1}),
        ("CannotResolveHostError", "failed", {"failures_dns": 1}),
        ("ConnectionRefusedError", "failed", {"failures_connection": 1}),
        ("ReadTimeout", "failed", {"failures_timeout": 1}),
        ("gaierror", "failed", {"failures_dns": 1}),
        ("URLError", "failed", {"failures_connection": 1}),
        ("TooManyRedirects", "failed", {"failures_redirects": 1}),
        ("ResponseDataLossError", "failed", {"failures_truncated": 1}),
        ("blocked", "failed", {"blocked_pages": 1}),
        ("dropped", "failed", {"failures_other": 1}),
        ("ValueError", "failed", {"failures_other": 1}),
    ],
)
def test_every_ending_has_an_outcome_and_one_counter_at_most(error, outcome, counters):
    assert outcome_of(error) == outcome
    assert counters_of(error) == counters
    assert cause_of(error) in CAUSES


@pytest.mark.parametrize("error", ["500", "DNSLookupError", "blocked", "truncated", "IgnoreRequest", "no such name"])
def test_a_failure_gives_no_bit_and_says_why(error):
    """What is known of the page stays; the row has its cause until the page is seen."""
    handout = handed()
    observation = judged(handout, error)
    row = observation.row
    outcome = outcome_of(error)
    assert (observation.outcome, observation.bit, observation.change) == (outcome, -1, None)
    assert observation.counters == {"failures": 1, f"failures_{outcome}": 1, **counters_of(error)}
    assert (row.shape, row.time, row.visits, row.content) == (3.0, 100.0, 4, handout.row.content)
    assert (row.failed, CAUSES[row.cause]) == (1, cause_of(error))
    assert judged(again(observation), visit()).row.cause == 0


def test_a_page_that_fails_again_and_again_is_no_more_urgent_than_its_interval_says():
    """One that is visited every ten hours, or more seldom, is tried again in seconds once, then in an hour, two hours, four."""
    page, row = b"page at an h", Row(visits=3, cause=CAUSES.index("server"))
    waits = [wait_after_failures(page, row._replace(failures=failures), 1.0, 400_000.0) for failures in range(1, 30)]
    assert waits[0] == backoff_s(page, 1)
    for wait, longest in zip(waits[1:], [3600.0 * 2**n for n in range(6)], strict=False):
        assert 0.5 * longest <= wait <= longest
    assert sum(np.cumsum(waits) < 400_000.0) <= 9
    assert max(waits) <= 400_000.0
    assert waits[-1] == 400_000.0  # and takes no more of the budget than it would if it were there
    assert wait_after_failures(page, row._replace(failures=3), 1.0, None) == backoff_s(page, 3)
    # One that may not be fetched has waited for long from the first time on: its next ones double from there.
    refused = [row._replace(failures=failures, cause=CAUSES.index("refused")) for failures in (1, 2)]
    assert [wait_after_failures(page, one, 1.0, 3600.0) for one in refused] == [backoff_s(page, 12), backoff_s(page, 13)]


def test_failures_double_the_wait():
    """Up to a day; a page that may not be fetched waits for more than half an hour at once."""
    observation = judged(handed(), "500")
    for failures in range(1, 20):
        assert observation.row.failures == failures
        backoff = max(backoff_s(observation.handout.page, failures), 1.0)
        # A page with an interval of seconds is as urgent as the first pages are.
        assert wait_of(observation) == pytest.approx(backoff, rel=1e-6) if failures == 1 else backoff <= wait_of(observation) <= 86_400.0
        observation = judged(again(observation), "500")
    assert 43_200.0 <= wait_of(observation) <= 86_400.0
    for error in ("RobotsDenied", "IgnoreRequest"):
        refused = judged(handed(), error)
        assert refused.row.failures == 1
        assert 1800.0 < wait_of(refused) < wait_of(judged(again(refused), error)) <= 86_400.0


def test_backoff_lies_between_half_and_all_of_powers_of_two():
    """And pages that failed together do not come again together."""
    waits = [[backoff_s(bytes([page]) * 12, failures) for failures in range(1, 40)] for page in range(50)]
    for failures in range(1, 40):
        most = min(2.0**failures, 86_400.0)
        of_pages = [wait[failures - 1] for wait in waits]
        assert all(most / 2 <= wait <= most for wait in of_pages)
        assert max(of_pages) - min(of_pages) > 0.4 * most


def test_least_interval_stands_after_a_failure():
    observation = judged(handed(), "500", context(MIN_INTERVAL=300.0))
    assert wait_of(observation) == 300.0


class IgnoreRequest(Exception):  # noqa: N818
    """Of Scrapy's name."""


class DroppedByMiddleware(IgnoreRequest):
    pass


def test_endings_are_called_by_what_they_stand_for():
    assert error_of_exception(IgnoreRequest("Forbidden by robots.txt")) == "RobotsDenied"
    assert error_of_exception(DroppedByMiddleware("filtered")) == "IgnoreRequest"
    assert error_of_exception(ValueError()) == "ValueError"
    assert [error_of_response(status) for status in (200, 206, 301, 500)] == ["", "", "301", "500"]
    assert error_of_response(200, ["cached", "dataloss"]) == "truncated"
    assert error_of_dropped({"redirect_times": 3, "redirect_ttl": 9}, 3) == "TooManyRedirects"
    assert error_of_dropped({"redirect_times": 1, "redirect_ttl": 0}, 3) == "TooManyRedirects"
    assert error_of_dropped({"redirect_times": 1, "redirect_ttl": 9}, 3) == error_of_dropped({}, 3) == "dropped"


def test_what_may_be_cut_off_is_looked_at_again_before_it_counts():
    """A response without a length that differs; the second time in a row it is what the page is now."""
    first = judged(handed(), visit(b"n" * 16, is_partial=True))
    assert (first.outcome, CAUSES[first.row.cause], first.row.content) == ("failed", "truncated", b"o" * 16)
    second = judged(again(first), visit(b"n" * 16, is_partial=True))
    assert (second.outcome, second.bit) == ("ok", 1)
    assert judged(handed(), visit(is_partial=True)).bit == 0
    assert judged(handed(tag=TAG + 1), visit(b"n" * 16, RECEIVED, is_partial=True)).outcome == "ok"
