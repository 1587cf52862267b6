"""First passes, played through dispatch, judge and planner: no turn of a host is lost, nothing goes in between but pinned pages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from played_crawl import Play, parse
from timed_namespace import START

from optimal_frontier.state.rows import HUB

PINNED = {"RULES": [{"pattern": r"/pinned$", "interval": 10.0}]}


def test_no_turn_of_a_host_is_lost(space):
    """Sixty pages of one host with a delay of a second, budget auto: a first visit each second, while revisits are due as well."""
    play = Play(space, parse(HOST_DELAY=1.0, MIN_INTERVAL=1.0))
    play.add(60, hosts=1)
    play.until(59.5)
    assert sorted(len(visits) for visits in play.visits.values()) == [1] * 60
    assert np.diff(play.handouts) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("values", [{"HOST_DELAY": 0.5}, {"CRAWL_RATE": 5.0}, {"CRAWL_RATE": 5.0, "HOST_DELAY": 0.5}])
def test_pinned_pages_keep_their_times_in_a_first_pass(space, values):
    """Two pinned pages among 300 of three hosts: no more than two seconds late at any visit, whatever holds the first visits up."""
    play = Play(space, parse(MIN_INTERVAL=1.0, **values, **PINNED))
    pinned = [play.add_page(f"h{host}/pinned", importance=9.0) for host in range(2)]
    play.add(300, hosts=3)
    play.until(50.0)
    first = [visits[0] - START for number, visits in play.visits.items() if number not in pinned]
    assert len(first) > 200
    assert all(len(play.visits[number]) == 1 for number in play.visits if number not in pinned)
    for number in pinned:
        at = np.array(play.visits[number]) - START
        assert len(at) >= 5
        assert np.diff(at).max() < 12.0
        assert np.diff(at).mean() == pytest.approx(10.0, abs=0.6)


class _Calendar(Play):
    """Pages, and from 100 s on a month whose page links to the next one and to its days, for ever; beside that a page of news."""

    def __init__(self, store, settings):
        super().__init__(store, settings, lambda page, at: int(at / 400.0 + page / 20.0))
        self.pages = [self.add_page(f"h/{page}") for page in range(20)]
        self.pinned = [self.add_page(f"h/{page}/pinned") for page in range(3)]
        self.news = self.add_page("h/news")
        self.begun = 0.0

    def judged(self, handout):
        name = self.names[self.numbers[handout.page]]
        if name == "h/news" and handout.row.visits:
            for _ in range(5):
                added = self.add_page(f"h/article/{len(self.names)}", is_link=True)
                self._new[-1] = self.added[added] = replace(self._new[-1], found_on=handout)
        begins = name == "h/0" and self.now > START + 100.0 and not self.begun
        if begins or (name.startswith("h/calendar/") and "-" not in name and not handout.row.visits):
            month = 0 if begins else int(name.rpartition("/")[2]) + 1
            self.begun = self.begun or self.now
            for link in (f"h/calendar/{month}", *(f"h/calendar/{month}-{day}" for day in range(10))):
                self.add_page(link, is_link=True)
        return super().judged(handout)


def test_a_pass_without_an_end_leaves_turns_to_revisits(space):
    """However few pages wait at a time: a calendar took each turn for ever, and no page was fetched again but hubs and pinned ones."""
    play = _Calendar(space, parse(CRAWL_RATE=3.0, MIN_INTERVAL=1.0, RESOLVE_INTERVAL=20.0, **PINNED))
    play.until(700.0)
    assert play.rows()[play.news]["flags"] & HUB
    begun = play.begun + 160.0
    others = [visits for number, visits in play.visits.items() if number not in (*play.pinned, play.news)]
    again = [at for visits in others for at in visits[1:] if at > begun]
    assert 0.15 < len(again) / play.count(begun - START) < 0.25
    for number in play.pinned:
        at = np.array(play.visits[number])
        assert np.diff(at[at > begun]).max() < 13.0
        assert np.diff(at[at > begun]).mean() == pytest.approx(10.0, abs=1.0)
