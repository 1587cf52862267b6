"""Pages that are gone: retired one by one, held where a host loses most of its pages at once."""

from __future__ import annotations

import numpy as np
import pytest
from handed_out import OLD, again, context, handed, judged, planned, wait_of

from optimal_frontier.frontier.judging.backoff import backoff_s
from optimal_frontier.frontier.judging.gone import GONE_FOR_GOOD, HELD_FAILURES, is_held
from optimal_frontier.state.messages import KEEP, REST, Handout, Observation
from optimal_frontier.state.rows import ACTIVE, RETIRED

DAY_S = 86_400.0


class Pages:
    """Pages of one host, each fetched once."""

    def __init__(self, n: int, **values: object) -> None:
        self.context = context()
        self.handouts = [handed(page=bytes([at]) * 12, **values) for at in range(n)]
        self.last: list[Observation | None] = [None] * n

    def visit(self, at: int, came: str | bytes) -> Observation:
        last = self.last[at]
        handout = self.handouts[at] if last is None else again(last)
        # Observations of other pages of the host have been stored meanwhile.
        handout.words = self.words if hasattr(self, "words") else handout.words
        self.last[at] = observation = judged(handout, came, self.context)
        if observation.words is not None:
            self.words = observation.words
        return observation

    @property
    def is_held(self) -> bool:
        return hasattr(self, "words") and is_held(self.words.good, self.words.missing)


def test_a_page_is_retired_at_the_second_404_and_not_asked_for_at_once():
    pages = Pages(2)
    first = pages.visit(0, "404")
    assert (first.op, first.row.state, first.row.gone, first.outcome) == (KEEP, ACTIVE, 1, "gone")
    assert wait_of(first) >= backoff_s(first.handout.page, 1)
    second = pages.visit(0, "410")
    assert (second.op, second.row.state, second.row.gone) == (REST, RETIRED, 2)
    assert second.counters == {"failures": 1, "failures_gone": 1, "retired": 1}


def test_another_failure_in_between_begins_the_count_anew():
    pages = Pages(1)
    assert [pages.visit(0, came).row.gone for came in ("404", "500", "404", "404")] == [1, 0, 1, 2]
    assert pages.last[0].row.state == RETIRED


def test_a_page_of_long_intervals_is_looked_at_again_later():
    """A tenth of its interval, at most an hour: a site may be down for some minutes."""
    for interval, wait in ((7200.0, 720.0), (1e6, 3600.0)):
        dear = context(planned(50.0), MAX_INTERVAL=interval)
        assert wait_of(judged(handed(log_price=50.0), "404", dear)) == pytest.approx(wait)
        pinned = context(RULES=[{"host": "h", "interval": interval}])
        assert wait_of(judged(handed(), "404", pinned)) == interval / 2  # a pinned page comes back no sooner
    assert wait_of(judged(handed(), "404", context(planned(number=0)))) == pytest.approx(max(1.0, backoff_s(handed().page, 1)))


def test_a_host_that_loses_its_pages_is_held():
    """None is retired from then on; those that were just before come back; all are asked for again minutes later."""
    pages = Pages(12)
    brought_back = []
    for at in range(12):
        observation = pages.visit(at, "404")
        if at < 3:
            assert pages.visit(at, "404").row.state == RETIRED
        brought_back.append(observation.brings_back)
        if at >= 3:
            assert observation.row.failures >= HELD_FAILURES
            assert wait_of(observation) >= 256.0
            assert observation.counters["gone_held"] == 1
            assert pages.visit(at, "404").row.state == ACTIVE
    assert pages.is_held
    assert brought_back == [at == 3 for at in range(12)]
    for at in range(3, 12):
        pages.visit(at, OLD)
    assert not pages.is_held
    pages.visit(3, "404")
    assert pages.visit(3, "404").row.state == RETIRED


@pytest.mark.parametrize(("part", "share"), [(0.5, 0.09), (0.75, 0.6), (0.9, 0.94)])
def test_a_host_whose_pages_come_and_go_is_seldom_held(part, share):
    """Part of what is visited is gone for good, as adverts are; each held page would take thirteen visits from the others."""
    held = 0
    for draws in np.random.default_rng(1).random((8, 250)):
        pages = Pages(250)
        for at in range(250):
            pages.visit(at, "404" if draws[at] < part else OLD)
            held += pages.is_held
    assert held / 2000 == pytest.approx(share, abs=0.04)


def test_a_host_that_stays_dead_loses_its_pages_after_some_days():
    """Asked for less and less, once a day in the end."""
    pages = Pages(6)
    for at in range(6):
        pages.visit(at, "404")
    days, asked = [], 0
    for at in range(3, 6):
        began = pages.last[at].row.b
        while pages.visit(at, "404").row.state == ACTIVE:
            asked += 1
        assert pages.last[at].row.failures >= GONE_FOR_GOOD
        days.append((pages.last[at].row.b - began) / 1e6 / DAY_S)
    assert all(3 < day < 8 for day in days)
    assert asked <= 24 * 3


def test_pages_that_were_never_there_do_not_count_against_their_host():
    """Dead links are retired, however many."""
    pages = Pages(20, visits=0)
    for at in range(20):
        pages.visit(at, "404")
        assert pages.visit(at, "404").row.state == RETIRED
    assert not pages.is_held


def test_a_few_gone_pages_among_many_do_not_hold_a_host():
    """A tenth of all visits; chance would have to be very bad."""
    rng = np.random.default_rng(4)
    pages = Pages(60)
    for at in range(60):
        if rng.random() < 0.1:
            pages.visit(at, "404")
            assert pages.visit(at, "404").row.state == RETIRED
        else:
            pages.visit(at, OLD)
        assert not pages.is_held


@pytest.mark.parametrize(("in_a_row", "seen"), [(4, 0), (5, 4), (4, 25)])
def test_so_many_gone_pages_in_a_row_hold_a_host(in_a_row, seen):
    """Four where no page was gone lately, five where one was."""
    pages = Pages(10)
    if seen:
        pages.visit(9, "404")
        for at in range(seen):
            pages.visit(at % 9, OLD)
    for at in range(in_a_row):
        assert not pages.is_held
        pages.visit(at, "404")
    assert pages.is_held


def test_only_hosts_with_gone_pages_have_counts():
    """They fade with good visits until nothing is left."""
    pages = Pages(1)
    assert pages.visit(0, OLD).words is None
    pages.visit(0, "404")
    assert (pages.words.good, pages.words.missing) == (4.5, 1.0)
    for _ in range(40):
        pages.visit(0, OLD)
    assert (pages.words.good, pages.words.missing) == (0.0, 0.0)


def test_pages_in_flight_together_hold_their_host_all_the_same():
    """All handed out before the first 404 was known: counts of this process go on from each other."""
    within = context()
    handouts: list[Handout] = [handed(page=bytes([at]) * 12) for at in range(6)]
    held = [judged(handout, "404", within).counters.get("gone_held", 0) for handout in handouts]
    assert held == [0, 0, 0, 1, 1, 1]
