"""Deadlines by the one price, played through dispatch, judge and planner on a clock that the test sets: change rates are known."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_namespace import force
from played_crawl import Play, identity, parse
from timed_namespace import START

from optimal_frontier.cli.pages_command import list_pages
from optimal_frontier.optimization import solve_periodic
from optimal_frontier.state.checking import check_state


def assert_whole(play: Play) -> None:
    assert check_state(play.store, sleep=lambda _: None).violations == []


def most_in_a_window(times: list[float], seconds: float) -> int:
    at = np.array(times)
    return int((np.searchsorted(at, at + seconds * (1 - 1e-9)) - np.arange(len(at))).max())


def share_of_best(play: Play, begin: float, end: float, budget: float) -> float:
    return play.freshness(begin, end) / solve_periodic(*play.known(), budget).objective


def test_visits_come_at_the_optimum_of_the_whole_budget(space):
    """Within 0.1%, all of the budget and no more in any window, through plans every ten seconds."""
    play = Play(space, parse(CRAWL_RATE=10, RESOLVE_INTERVAL=10))
    play.add(150)
    play.until(150.0)
    assert 0.999 < share_of_best(play, 60.0, 150.0, 10.0) < 1.003
    assert play.count(30.0, 150.0) == pytest.approx(1200, abs=2)
    assert most_in_a_window(play.handouts, 5.0) <= 10 * 5.0 + 2
    assert_whole(play)


@pytest.mark.parametrize(("factor", "seed"), [(0.5, 1), (0.5, 2), (2.0, 100)])
def test_it_stays_near_the_optimum_when_the_bandwidth_changes(space, factor, seed):
    """Within 0.3% a round or two after it, while plans go on counting with the old one: the price follows the visits."""
    play = Play(space, parse(CRAWL_RATE=8, RESOLVE_INTERVAL=5))
    play.add(100, seed=seed)
    play.until(40.0)
    play.dispatch_by(parse(CRAWL_RATE=8 * factor))
    begin = 40.0 + 25.0
    play.until(begin + 60.0)
    best = solve_periodic(*play.known(), 8 * factor)
    assert 0.997 < play.freshness(begin, begin + 60.0) / best.objective < 1.003
    assert space.state().log_price == pytest.approx(np.log(best.multiplier), abs=0.15)
    assert play.count(begin, begin + 60.0) == pytest.approx(60 * 8 * factor, rel=0.01)
    assert_whole(play)


def test_sixteen_at_a_time_are_as_good(space):
    """At half of the bandwidth that was planned with, of pages that are due less often than sixteen come."""
    play = Play(space, parse(CRAWL_RATE=320, RESOLVE_INTERVAL=1))
    play.add(600)
    play.until(4.0)
    play.dispatch_by(parse(CRAWL_RATE=160))
    play.want, play.period = 16, 0.1
    play.until(20.0)
    assert 0.994 < share_of_best(play, 10.0, 20.0, play.count(10.0, 20.0) / 10.0) < 1.003


def test_an_outage_costs_no_more_than_it_lasts(space):
    """Nobody fetches for two rounds: two rounds later the price is what it was, and so is freshness; no burst at any time."""
    play = Play(space, parse(CRAWL_RATE=10, RESOLVE_INTERVAL=5))
    play.add(100)
    play.until(60.0)
    play.set_time(START + 80.0)
    play.until(140.0)
    assert 0.997 < share_of_best(play, 100.0, 140.0, 10.0) < 1.004
    assert most_in_a_window(play.handouts, 5.0) <= 10 * 5.0 + 2
    assert play.count(80.0, 90.0) == pytest.approx(100, abs=2)


def given_up(play: Play) -> int:
    return int(np.isinf(play.rows()["a"]).sum())


def test_a_crawl_that_stood_still_gives_no_pages_up_for_it(space):
    """Two rounds without a fetch, and a plan while the price is high behind them: pages are given up as before."""
    play = Play(space, parse(CRAWL_RATE=10, RESOLVE_INTERVAL=60))
    play.add(100, seed=2)
    play.until(90.0)
    before, prices = given_up(play), []
    play.set_time(START + 110.0)
    for at in range(112, 132, 2):
        play.until(float(at))
        assert given_up(play) <= before + 3
        prices.append(space.state().log_price - float(space.hash("plan")["log_price"]))
    assert max(prices) > 0.5
    assert START + 110 < float(space.hash("plan")["time"]) < START + 120
    play.until(180.0)
    assert share_of_best(play, 120.0, 180.0, 10.0) > 0.94


def test_pages_are_given_up_where_the_bandwidth_is_less_for_good(space):
    """By the second plan that finds it so, while plans go on counting with the old one. Plan, rows and tables agree on how many."""
    play = Play(space, parse(CRAWL_RATE=10, RESOLVE_INTERVAL=10, MAX_INTERVAL=1e6))
    play.add(100, seed=2)
    play.until(40.0)
    before = given_up(play)
    play.dispatch_by(parse(CRAWL_RATE=5, MAX_INTERVAL=1e6))
    best = np.asarray(solve_periodic(*play.known(), 5.0).rates)
    play.until(81.0)
    assert before + 10 < int((best <= 0).sum()) == pytest.approx(given_up(play), abs=4)
    told = int(space.hash("plan")["given_up"])
    assert told == pytest.approx(given_up(play), abs=2)
    listed = list_pages(space, play.settings, "rate", 0)
    assert sum(one["interval"] == 1e6 for one in listed) == given_up(play)
    assert all((one["due_in_seconds"] > 1e5) == (one["interval"] == 1e6) for one in listed)


def test_an_auto_budget_is_never_idle(space):
    """Whatever is worth most goes at once, down to MIN_INTERVAL."""
    play = Play(space, parse(RESOLVE_INTERVAL=10, MIN_INTERVAL=0.5))
    play.add(20)
    play.until(8.0)
    # Fetches take no time, so that every page is as often fetched as it may be.
    for number in range(20):
        assert play.gaps(number).min() >= 0.5 - 1e-4
        assert len(play.visits[number]) >= 14


def test_pinned_pages_keep_their_intervals_and_forced_ones_go_at_once(space):
    rules = [{"host": "pinned", "interval": 4}]
    play = Play(space, parse(CRAWL_RATE=20, RESOLVE_INTERVAL=15, RULES=rules))
    play.add(60)
    pinned = [play.add_page(f"pinned/{i}", 2.0, 20.0) for i in range(4)]
    play.until(70.0)
    for number in pinned:
        gaps = play.gaps(number, since=10.0)
        assert gaps.mean() == pytest.approx(4.0, rel=0.01)
        assert gaps.std() < 0.2
    rarest = min(range(60), key=lambda number: len(play.visits[number]))
    assert force(space, [identity(play.names[rarest])]) == [1]
    play.dispatcher._partitions[0].open_at = 0.0
    play.until(70.5)
    assert START + 70 <= play.visits[rarest][-1] <= START + 70.2


def test_a_longest_interval_holds(space):
    """MAX_INTERVAL of pages that are not worth a visit, beside others that use the rest of the budget."""
    play = Play(space, parse(CRAWL_RATE=5, RESOLVE_INTERVAL=5, MAX_INTERVAL=30))
    play.add(60)
    poor = [play.add_page(f"poor/{i}", 9.0, 9.0, importance=1e-6) for i in range(30)]
    play.until(130.0)
    for number in poor:
        gaps = play.gaps(number)
        assert len(gaps) >= 3
        assert gaps.max() < 30 * 1.2
    assert play.count(20.0, 130.0) == pytest.approx(550, abs=3)


def test_longest_intervals_that_do_not_fit_are_stretched_alike(space):
    """One and a half budgets are asked for: every page comes once in one and a half intervals, whatever it is worth."""
    play = Play(space, parse(CRAWL_RATE=10, RESOLVE_INTERVAL=5, MAX_INTERVAL=10))
    play.add(150)
    play.until(125.0)
    visits = np.array([sum(at > START + 35 for at in play.visits[number]) for number in range(150)])
    assert visits.mean() == pytest.approx(6.0, abs=0.1)
    assert visits.min() >= 5
    assert visits.max() <= 7


def test_first_visits_go_first(space):
    """By priority and importance; then revisits. New pages of a crawl under way too, while they could be finished soon."""
    play = Play(space, parse(CRAWL_RATE=10, RESOLVE_INTERVAL=10))
    numbers = [
        play.add_page(f"h/{i}", 3.0, 20.0, importance=weight, priority=first) for i, (weight, first) in enumerate([(1, 0), (4, 0), (1, 2)])
    ]
    play.add(40, name="h{host}/page{page}", importance=0.5)
    play.until(20.0)
    order = sorted(numbers, key=lambda number: play.visits[number][0])
    assert order == [numbers[2], numbers[1], numbers[0]]
    assert max(at[0] for at in play.visits.values()) < START + 5.0
    new = play.add(20, name="new{host}/{page}")
    play.until(23.0)
    assert all(play.visits[number][0] < START + 22.2 for number in new)


def test_four_partitions_are_as_good_as_one(four):
    """Each has its share of the budget by the one price; the sum is the budget."""
    play = Play(four, parse(CRAWL_RATE=10, RESOLVE_INTERVAL=5, PARTITIONS=4))
    play.add(200, hosts=40)
    play.until(140.0)
    assert 0.998 < share_of_best(play, 60.0, 140.0, 10.0) < 1.003
    assert play.count(60.0, 140.0) == pytest.approx(800, rel=0.01)
    prices = [four.state(k).log_price for k in range(4)]
    assert np.ptp(prices) < 0.4
    assert_whole(play)


def test_a_host_at_its_limit_gives_its_pages_by_their_worth(space):
    """HOST_MAX_RATE: two hosts share what they may in the best way, at a price of their own."""
    settings = parse(CRAWL_RATE=20, HOST_MAX_RATE=2, RESOLVE_INTERVAL=10)
    play = Play(space, settings)
    play.add(60, hosts=2)
    play.until(150.0)
    importance, rates = play.known()
    best = sum(solve_periodic(importance[host::2], rates[host::2], 2.0).objective for host in range(2))
    assert 0.994 < play.freshness(50.0, 150.0) / best < 1.002
    assert_whole(play)
