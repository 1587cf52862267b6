"""Sections of a site whose pages change together, played through dispatch, judge and planner on a set clock."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from played_crawl import Play, parse
from timed_namespace import START, open_namespace

from optimal_frontier.frontier.planning import clock_keeper
from optimal_frontier.state.checking import check_state

SECTIONS, PAGES = 8, 15
#: Seconds between two events of a section on average; each changes most of its pages.
EVENT_S, TOGETHER = 400.0, 0.9
#: Requests a second, so that a round takes 100 s.
BUDGET = 1.2
LENGTH = 1300.0
#: Of a section or page: they last far longer than the crawl.
EVENTS = 19


class Sections(Play):
    """Page number p is in section p // PAGES; without ``together`` each page has events of its own."""

    def __init__(self, store, *, together: bool = True, **settings: object) -> None:
        super().__init__(store, parse(CRAWL_RATE=BUDGET, RESOLVE_INTERVAL=60, **settings), self.edition)
        rng = np.random.default_rng(3)
        self.changes: list[np.ndarray] = []
        for page in range(SECTIONS * PAGES):
            if page % PAGES == 0 or not together:
                events = np.cumsum(rng.exponential(EVENT_S, EVENTS))
            self.add_page(f"site/s{page // PAGES}/page{page % PAGES}.html")
            self.changes.append(events[rng.random(len(events)) < TOGETHER])

    def edition(self, number: int, at: float) -> int:
        return int(np.searchsorted(self.changes[number], at))

    def staleness(self, begin: float, end: float) -> float:
        """Mean share of pages that are stale between two times, seconds after START."""
        lost = 0.0
        for number, changes in enumerate(self.changes):
            visits = np.array(self.visits[number]) - START
            # A copy is stale from the first change after a visit until the next visit.
            for at, until in zip(visits, np.append(visits[1:], np.inf), strict=True):
                first = changes[np.searchsorted(changes, at, "right")]
                lost += max(0.0, min(until, end) - max(first, begin, at))
        return lost / (end - begin) / len(self.changes)


def exists(store, name: str) -> bool:
    return bool(store.command("EXISTS", store.key(name)))


def test_staleness_falls_where_pages_change_together(space, redis_socket) -> None:
    """By a quarter at least, with no more fetches; what is stored is whole, and nothing is without NEIGHBOURHOODS."""
    with_clocks = Sections(space)
    with_clocks.until(LENGTH)
    assert int(with_clocks.store.hash("plan")["clocks_open"]) == 1
    other = open_namespace(redis_socket, f"{with_clocks.store.name}-off")
    other.command("HSET", other.key("meta"), "opened", repr(other.now()))
    without = Sections(other, NEIGHBOURHOODS=False)
    without.until(LENGTH)
    assert not exists(other, "visited")
    assert not exists(other, "clocks")
    on, off = (play.staleness(LENGTH / 3, LENGTH) for play in (with_clocks, without))
    assert with_clocks.count(0) == pytest.approx(without.count(0), rel=0.01)
    assert on < 0.75 * off
    other.connection.close()
    assert not check_state(with_clocks.store, sleep=lambda _: None).violations


def test_a_planner_that_is_killed_loses_nothing_but_a_look(space) -> None:
    """Another one takes over what was stored with the last plan, and the visits since; then it knows and does the same."""
    play = Sections(space)
    play.is_prompt = True
    # Long after the gate has opened, and no event is just being learned of: of that more is learned in smaller parts.
    play.until(960.0)
    old = play.planner
    planned = float(space.hash("plan")["time"])
    assert old.crawl.now() - planned > 10.0, "some looks after the last plan"
    play.run_by(play.settings)  # the old one is dead
    assert not play.planner.keeper.clocks
    assert play.planner.plan() is not None
    old.keeper.take_in(0, old.crawl.now(), takes_over=False)
    mine, theirs = play.planner.keeper.clocks[0], old.keeper.clocks[0]
    assert mine.last == theirs.last
    at = np.arange(play.planner.crawl.tables[0].pages.count)
    now = play.planner.crawl.now()
    assert mine.is_open
    ahead = [clocks.shifts(play.planner.crawl.tables[0].pages, at, now) for clocks in (mine, theirs)]
    assert np.abs(ahead[1]).max() > 10.0
    assert np.abs(ahead[0] - ahead[1]).max() < 0.05 * np.abs(ahead[1]).max()
    assert old.plan(if_due=True) is None
    looked = play.count(960.0)
    play.until(1060.0)
    assert play.count(960.0) - looked == pytest.approx(100 * BUDGET, abs=5)
    assert int(space.hash("plan")["clocks_open"]) == 1


def test_visits_that_are_taken_in_between_count_for_the_next_look(space, monkeypatch) -> None:
    """By plans, which read a part of a large table, and most of which are made between two looks; or before the log forgets them."""
    play = Sections(space)
    play.until(700.0)
    keeper, pages = play.planner.keeper, play.planner.crawl.tables[0].pages
    for since, is_planned in ((700.0, True), (760.0, False)):
        keeper.look(play.now)
        play._plan_at = math.inf  # no plan and no look
        play.until(since + 60.0)
        counted = play.count(since)
        assert counted > 60
        if is_planned:
            keeper.take_in(0, play.now, takes_over=False)
        else:
            play.planner.due_in()
            play.planner.catch_up()
            space.command("DEL", space.key("visited"))
        rows = dict(zip(pages["id"].tolist(), pages["b"].tolist(), strict=True))
        last = {page: max(play.visits[number]) for page, number in play.numbers.items()}
        assert sum(abs(rows[page] / 1e6 - at) < 1.0 for page, at in last.items()) >= len(last) - play.want, "but for those under way"
        most: list[float] = []
        with monkeypatch.context() as patch, contextlib.suppress(AttributeError):
            patch.setattr(clock_keeper, "_FEW_WRITTEN", 0)
            patch.setattr(clock_keeper, "shifted_pages", lambda *args, most=most: most.append(args[-1]))
            keeper.look(play.now)
        assert most[0] == pytest.approx(0.2 * counted, abs=3)


def test_clocks_that_count_no_more_are_taken_back_by_and_by(space, monkeypatch) -> None:
    """A look writes what is due soon; once no clock is open the others follow, also without a plan."""
    play = Sections(space)
    play.until(700.0)
    keeper, pages = play.planner.keeper, play.planner.crawl.tables[0].pages
    clocks = keeper.clocks[0]._clocks
    pages["written"][:20] = 30.0
    for gates in (clocks.gates, clocks.rhythm_gates):
        for host in range(len(gates.evidence)):
            gates.set(host, -7.0)
    monkeypatch.setattr(clock_keeper, "_MOST_WRITTEN", 0.0)
    monkeypatch.setattr(clock_keeper, "_FEW_WRITTEN", 1)
    monkeypatch.setattr(clock_keeper, "_AHEAD", math.inf)
    taken_back = 0
    for _ in range(5):
        before = np.count_nonzero(pages["written"])
        play.planner.look()
        taken_back += before > np.count_nonzero(pages["written"])
    assert taken_back > 2
