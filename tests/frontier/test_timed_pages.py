"""Pages with update times in a live crawl, on a clock that the test sets."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_store import START, fingerprint
from played_crawl import Play, parse

from optimal_frontier.frontier.deadlines import deadlines_at_most
from optimal_frontier.frontier.dispatcher import Dispatcher, horizon_s
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.frontier.session import apply_bounds
from optimal_frontier.frontier.timed_pages import probabilities_of
from optimal_frontier.settings import Timetable
from optimal_frontier.state.consistency import check_state
from optimal_frontier.state.records import Observation, Published, UpdateTimes, encode_record
from optimal_frontier.state.update_times import read_update_times

PERIOD = 1000.0
#: START is a multiple of the period.
TIMES = (200.0, 650.0)
RULES = [{"pattern": "/news", "update_times": [200, (650, 1.0)], "period": PERIOD}]
URL = "http://h0/news"


class TimedPlay(Play):
    """A crawl of steady pages and of one that is republished; what its visits tell is the test's word."""

    def add_news(self, url: str = URL, **meta: object) -> int:
        self.store.add(self.dispatcher.new_page(fingerprint(url), url, encode_record({"url": url}), **meta))
        slot = int(self.store.command("HGET", self.store.key("ids"), fingerprint(url)))
        self.posteriors[slot] = (2.0, 500.0)
        return slot

    def check(self) -> None:
        report = check_state(self.store, deadlines_at_most, horizon_s(self.settings), sleep=lambda _: None)
        assert (report.violations, report.warnings) == ([], [])


def phases(play, slot, since=0.0):
    """Times of visits within the period."""
    return np.array([(at - START) % PERIOD for at in play.visits[slot] if at >= START + since])


def started(store, settings, pages=20, **values):
    play = TimedPlay(store, settings)
    play.add(pages)
    return play, play.add_news(**values)


@pytest.mark.parametrize("dispatch", ["edf", "index"])
@pytest.mark.parametrize("rate", [2.0, "auto"])
def test_a_republished_page_is_visited_within_a_second_of_its_times_and_never_before(store, rate, dispatch):
    """At both of them, as both are bought, whatever the dispatch, and with a budget that never idles too."""
    play, slot = started(store, parse(CRAWL_RATE=rate, RULES=RULES, DISPATCH=dispatch), importance=30.0)
    play.until(6000.0)
    at = phases(play, slot, 1000.0)
    nearest = np.array([min(phase - time for time in TIMES if phase >= time) for phase in at])
    assert len(at) == 10
    assert nearest.max() < 1.0
    assert nearest.min() >= 0.05
    play.check()
