"""Pages with update times, played through dispatch, judge and planner on a clock that the test sets."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_namespace import force
from played_crawl import Play, identity, parse
from timed_namespace import START

from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.state.checking import check_state
from optimal_frontier.state.memory import Memory

PERIOD = 1000.0
#: Of crawls of many periods: a look at clocks would come several times a visit there, and cost more. The others have both.
ALONE = {"NEIGHBOURHOODS": False}
#: START is a multiple of the period.
TIMES = (200.0, 650.0)
RULES = [{"pattern": "/news", "update_times": [200, (650, 1.0)], "period": PERIOD}]


def started(space, pages: int = 20, news: int = 1, importance: float = 30.0, **values: object) -> tuple[Play, list[int]]:
    play = Play(space, parse(**({"RULES": RULES} | values)))
    play.look_s = 20.0  # nobody else is there, whose pages it would have to look for
    play.add(pages)
    return play, [play.add_page(f"n{i % 7}/news/{i}", importance=importance) for i in range(news)]


def phases(play: Play, number: int, since: float = 0.0) -> np.ndarray:
    """Times of visits within the period."""
    return np.array([(at - START) % PERIOD for at in play.visits[number] if at >= START + since])


def test_a_republished_page_is_visited_within_a_second_of_its_times_and_never_before(space):
    """At both of them, as both are bought, on a crawler whose budget is spent on other pages."""
    play, (news,) = started(space, CRAWL_RATE=2.0)
    play.until(1300.0)
    at = phases(play, news, 500.0)
    late = np.array([min(phase - time for time in TIMES if phase >= time) for phase in at])
    assert sorted(at // 450) == [0, 1]
    assert late.max() < 1.0
    assert late.min() >= 0.05
    assert play.rates()[news] == pytest.approx(2 / PERIOD)
    assert play.count(500.0, 1300.0) == pytest.approx(1600, rel=0.01)
    assert check_state(space, sleep=lambda _: None).violations == []


def test_the_plan_buys_the_time_that_is_worth_it(space):
    """Of two times only the one that almost always changes the page; the other one is not visited."""
    rules = [{"pattern": "/news", "update_times": [(200, 0.004), (650, 1.0)], "period": PERIOD}]
    play, (news,) = started(space, CRAWL_RATE=0.3, RULES=rules, importance=0.6, **ALONE)
    play.until(3000.0)
    at = phases(play, news, 1000.0)
    assert len(at) == 2
    assert ((at >= 650.0) & (at < 660.0)).all()


def test_a_page_whose_times_are_not_worth_a_visit_is_looked_at_once_in_its_longest_interval(space):
    """At an update time, so that its probabilities go on being learned."""
    rules = [{"pattern": "/news", "update_times": [(200, 0.02)], "period": PERIOD, "max_interval": 2500}]
    play, (news,) = started(space, CRAWL_RATE=0.2, RULES=rules, importance=0.001, **ALONE)
    play.until(7000.0)
    visits = [at - START for at in play.visits[news]]
    assert [at // PERIOD for at in visits][-2:] == [4, 6]
    assert ((phases(play, news, 1500.0) - 200.0) < 10.0).all()


def test_many_pages_that_wait_for_their_times_stand_in_nobodys_way(space):
    """A crawler that never idles goes on with the others; at their time, and not before, all are handed out."""
    play, news = started(space, news=150, importance=1e6, MIN_INTERVAL=1.0)
    play.period = 2.0
    play.until(199.0)
    assert all(len(play.visits[number]) == 1 for number in news)
    assert all(play.visits[number][-1] > START + 195 for number in range(20))
    play.period = 0.05
    play.until(202.0)
    assert all(START + 200.05 <= play.visits[number][-1] <= START + 201.5 for number in news)


def test_a_shut_host_delays_its_own_pages_only(space):
    play, news = started(
        space, news=14, CRAWL_RATE=8.0, importance=1e6, RULES=[{"pattern": "/news", "update_times": [200], "period": PERIOD}]
    )
    play.until(150.0)
    shut = [number for number in news if play.names[number].startswith("n0/")]
    space.hold("n0", 100.0)
    play.until(215.0)
    for number in news:
        visits = [at - START for at in play.visits[number]]
        assert (visits[-1] < 150.0) if number in shut else (200.05 <= visits[-1] < 204.0)
    play.until(260.0)
    assert all(249.9 <= play.visits[number][-1] - START < 256.0 for number in shut)


def test_forced_ones_go_at_once_and_the_next_time_stands(space):
    play, (news,) = started(space, CRAWL_RATE=5.0)
    play.until(120.0)
    assert force(space, [identity(play.names[news])]) == [1]
    play.dispatcher._partitions[0].open_at = 0.0
    play.until(205.0)
    assert [START + 120 <= play.visits[news][-2] < START + 121, START + 200.05 <= play.visits[news][-1] < START + 201] == [True, True]


def test_a_failed_visit_is_tried_again_by_its_backoff_and_at_the_next_time(space):
    """Not in the tenth of the period before it."""
    play, (news,) = started(space, CRAWL_RATE=2.5, **ALONE)
    down = {"is": False}
    fetched = play.fetched

    def failing(number: int, handout: object) -> Visit:
        return Visit(handout.received, "503") if number == news and down["is"] else fetched(number, handout)

    play.fetched = failing
    play.until(150.0)
    down["is"] = True
    play.until(649.0)
    tries = phases(play, news, 150.0)
    assert len(tries) >= 5
    assert tries[0] == pytest.approx(200.2, abs=1.0)
    assert (np.diff(tries)[1:] > np.diff(tries)[:-1]).all()
    assert tries[-1] < 550.0 + 1.0
    down["is"] = False
    play.until(655.0)
    assert phases(play, news, 600.0)[-1] == pytest.approx(650.5, abs=0.8)


def test_probabilities_are_learned_from_bits_and_change_what_is_bought(space):
    """Two times that were told to be alike: at one the page hardly ever changes, at the other almost always."""
    rng, chances = np.random.default_rng(4), (0.05, 0.95)
    changed = rng.random((80, 2)) < chances
    at = (np.arange(80)[:, None] * PERIOD + TIMES)[changed]
    rules = [{"pattern": "/news", "update_times": [(200, 0.5), (650, 0.5)], "period": PERIOD}]
    play, (news,) = started(space, pages=4, importance=3.0, CRAWL_RATE=0.05, RULES=rules, RESOLVE_INTERVAL=500, **ALONE)
    play.look_s = 100.0
    play.site = lambda page, now: int(np.searchsorted(at, now)) if page == news else None
    play.until(30_000.0)
    raw = space.command("HGET", space.key("memory"), play.added[news].page)
    betas = Memory.unpack(raw).betas
    learned = [a / (a + b) for a, b in betas]
    assert learned == pytest.approx(chances, abs=0.2)
