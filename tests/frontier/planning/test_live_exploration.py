"""EXPLORATION live: what plans are made from, how far exploration is, and that neither restarts nor other planners start over."""

from __future__ import annotations

import numpy as np
import pytest
from crawled import Crawl, new_page, parse

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.planning.exploring import Progress
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.optimization import freshness_periodic
from optimal_frontier.scheduling import LOAD

BUDGET = 20.0
LIVE = ("median", "epsilon", "explore-then-commit")


def pass_rounds(crawl: Crawl, rounds: float, pages: int) -> None:
    """Let bits be counted that nothing was learned from."""
    crawl.namespace.command("HINCRBY", crawl.namespace.key("stats"), "observations", round(rounds * pages))


def planned(crawl: Crawl, **values: object):
    planner = Planner(crawl.namespace, parse(CRAWL_RATE=BUDGET, **values))
    return planner, planner.plan()


def progress(crawl: Crawl) -> Progress:
    return Progress.of_plan(crawl.plan())


def long_past(crawl: Crawl) -> None:
    crawl.set_plan(first_time="0")


@pytest.mark.parametrize("exploration", ["mean", "thompson"])
def test_what_a_live_crawl_does_not_do_is_refused(exploration):
    with pytest.raises(ConfigurationError, match="EXPLORATION"):
        parse(EXPLORATION=exploration)


@pytest.mark.parametrize("exploration", LIVE)
@pytest.mark.parametrize("rounds", [1.0, 5.5])
def test_freshness_is_told_by_the_medians_whatever_is_explored(crawl, exploration, rounds):
    crawl.crawled(80)
    pass_rounds(crawl, rounds - 1, 80)
    planner, report = planned(crawl, EXPLORATION=exploration)
    pages = planner.crawl.tables[0].pages
    median = posterior_median(pages["shape"].astype(float), pages["time"].astype(float))
    importance = pages["importance"].astype(float)
    assert report.estimated_freshness == pytest.approx(freshness_periodic(importance, median, planner.rates) / importance.sum(), rel=1e-9)
    plan = crawl.plan()
    assert plan["exploration"] == exploration
    assert float(plan["exploration_rounds"]) == pytest.approx(rounds)
    assert float(plan["change_rate_p50"]) == pytest.approx(np.median(median))


@pytest.mark.parametrize("exploration", LIVE)
def test_a_plan_made_again_is_the_same_one(crawl, exploration):
    """By the same planner, and by another process after a restart: nothing is drawn anew, no phase begins again."""
    crawl.crawled(60)
    pass_rounds(crawl, 4.5, 60)
    planner, _ = planned(crawl, EXPLORATION=exploration)
    first, before = planner.rates.copy(), progress(crawl)
    rows = {page: head.tobytes() for page, head in crawl.rows().items()}
    for again in (planner, Planner(crawl.namespace, planner.settings)):
        assert again.plan().queued == 0
        np.testing.assert_allclose(again.rates, first, rtol=1e-5, atol=1e-10)
        assert progress(crawl) == before
        assert {page: head.tobytes() for page, head in crawl.rows().items()} == rows


def test_epsilon_visits_its_picks_at_even_intervals_for_a_phase(crawl):
    """Half of the pages in the first, a quarter in the second: their longest wait is the even interval, whatever is learned meanwhile."""
    crawl.crawled(400, min_interval=1e-3)
    planner, _ = planned(crawl, EXPLORATION="epsilon")
    even = 400 / BUDGET / LOAD

    def picked() -> set[bytes]:
        planner.plan()
        return {page for page, head in crawl.rows().items() if head["l"] == pytest.approx(even, rel=1e-5)}

    first = picked()
    assert 150 < len(first) < 250
    rates = dict(zip(planner.crawl.tables[0].pages["id"].tolist(), planner.rates, strict=True))
    assert min(rates[page] for page in first) >= 1 / even * (1 - 1e-6)
    assert crawl.plan()["exploration_number"] == "1"
    pass_rounds(crawl, 1.0, 400)
    second = picked()
    assert crawl.plan()["exploration_number"] == "2"
    assert 60 < len(second) < 140
    assert second - first


def test_rounds_are_counted_in_bits_and_never_go_back(crawl):
    """Downtime is no time, and pages that join do not begin a phase again."""
    rng = crawl.crawled(50)
    planner, _ = planned(crawl, EXPLORATION="epsilon")
    assert crawl.plan()["exploration_rounds"] == "1.0"
    crawl.advance(1e6)
    planner.plan()
    assert crawl.plan()["exploration_rounds"] == "1.0"
    pass_rounds(crawl, 0.5, 50)
    planner.plan()
    assert float(crawl.plan()["exploration_rounds"]) == 1.5
    crawl.add(*(new_page(f"new/{i}") for i in range(950)))
    firsts = crawl.firsts()
    crawl.observe_many([(handout, {"shape": rng.uniform(1, 9), "time": 100.0}) for handout in firsts])
    planner.plan()
    assert crawl.plan()["pages"] == "1000"
    assert float(crawl.plan()["exploration_rounds"]) == 1.5
    pass_rounds(crawl, 0.5, 1000)
    planner.plan()
    assert float(crawl.plan()["exploration_rounds"]) == 2.0


def test_it_explores_evenly_then_goes_by_the_price_and_explores_again(crawl):
    """Whichever planner it is; and the price is set when visits begin to answer to it."""
    crawl.crawled(60)

    def plan() -> np.ndarray:
        planner, report = planned(crawl, EXPLORATION="explore-then-commit")  # each time another process
        assert report is not None
        return planner.rates

    even = LOAD * BUDGET / 60
    assert plan() == pytest.approx(even, rel=1e-6)  # round 1: the second stretch, all of which is explored
    assert progress(crawl).is_exploring
    assert all(head["s"] == 0 and head["l"] == pytest.approx(1 / even, rel=1e-5) for head in crawl.rows().values())
    pass_rounds(crawl, 4.5, 60)
    rates = plan()
    assert not progress(crawl).is_exploring
    assert rates.sum() == pytest.approx(BUDGET)
    assert rates.std() > 0.1
    assert crawl.log_price() == pytest.approx(np.log(float(crawl.plan()["multiplier"])))
    assert sum(head["s"] > 0 for head in crawl.rows().values()) > 30
    pass_rounds(crawl, 2.0, 60)
    assert plan() == pytest.approx(even, rel=1e-6)  # round 7
    assert progress(crawl).is_exploring


def test_with_close_after_the_horizon_is_known(crawl):
    """Nine rounds: three of them are explored, the first visits among them, and never again."""
    crawl.crawled(40)
    planner = Planner(crawl.namespace, parse(CRAWL_RATE=BUDGET, EXPLORATION="explore-then-commit", CLOSE_AFTER=9))
    found = []
    for _ in range(12):
        planner.plan()
        found.append(progress(crawl).is_exploring)
        pass_rounds(crawl, 1.0, 40)
    assert found == [True, True, *[False] * 10]


def test_exploring_is_not_kept_up_for_longer_than_meant(crawl):
    """The next plan is due when even intervals end, not only after RESOLVE_INTERVAL, and no sooner than a tenth of that."""
    crawl.crawled(60)
    waits = {}
    for exploration in ("median", "explore-then-commit"):
        planner, _ = planned(crawl, EXPLORATION=exploration)
        long_past(crawl)
        waits[exploration] = planner.due_in()
    assert waits["median"] == pytest.approx(60, abs=0.1)
    assert waits["explore-then-commit"] == pytest.approx(max(6.0, 2 * 60 / (LOAD * BUDGET)), abs=0.1)
    pass_rounds(crawl, 1.99, 60)
    planner.plan()
    long_past(crawl)
    assert planner.due_in() == pytest.approx(6.0, abs=0.1)


def test_exploration_may_change_between_two_runs(crawl):
    """A plan is due at once; rounds go on."""
    crawl.crawled(60)
    pass_rounds(crawl, 4.5, 60)
    for exploration in ("median", "explore-then-commit", "epsilon", "explore-then-commit", "median"):
        planner = Planner(crawl.namespace, parse(CRAWL_RATE=BUDGET, EXPLORATION=exploration))
        if crawl.plan():
            long_past(crawl)
            assert planner.due_in() <= 1.0
        planner.plan()
        assert (progress(crawl).exploration, progress(crawl).rounds) == (exploration, 5.5)
        long_past(crawl)
        assert planner.due_in() > 1.0


@pytest.mark.parametrize("exploration", LIVE)
@pytest.mark.parametrize("policy", ["periodic", "poisson"])
def test_pins_and_slow_hosts_go_before_exploration(crawl, exploration, policy):
    """And what they leave is shared out."""
    crawl.crawled(80, hosts=4)
    crawl.add(*(new_page(f"p/{i}", min_interval=50.0, max_interval=50.0) for i in range(20)))
    firsts = crawl.firsts()
    crawl.observe_many([(handout, {"shape": 2.0, "time": 100.0}) for handout in firsts])
    planner, report = planned(crawl, EXPLORATION=exploration, HOST_MAX_RATE=2.0, POLICY=policy)
    pages = planner.crawl.tables[0].pages
    pinned = pages["min_interval"] == 50.0
    assert report.feasible
    assert planner.rates[pinned] == pytest.approx(0.02)
    assert np.bincount(pages["host"], weights=planner.rates).max() <= 2.0 * (1 + 1e-9)
    if exploration == "explore-then-commit":
        assert planner.rates[~pinned] == pytest.approx(LOAD * 8.4 / 100, rel=0.3)


def test_lemma_2_a_page_without_a_longest_wait_is_looked_at_all_the_same(crawl):
    """A hundredth of even visits keeps it learned; pages with a longest interval are held to no other."""
    crawl.crawled(40, max_interval=3e38)
    planner, _ = planned(crawl)
    even = LOAD * BUDGET / 40
    assert planner.rates.min() == pytest.approx(0.01 * even, rel=1e-6)
    assert max(head["l"] for head in crawl.rows().values()) == pytest.approx(100 / even, rel=1e-5)
