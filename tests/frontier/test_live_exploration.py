"""EXPLORATION live: what plans are made from, how far exploration is, and that neither restarts nor other planners start over."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from clocked_store import ClockedStore, fingerprint, new_page
from played_crawl import Play, parse

from optimal_frontier.estimation import posterior_median, posterior_quantile
from optimal_frontier.frontier.budget_curve import read_crawl_curve
from optimal_frontier.frontier.exploring import Pages, Progress, choice_of, host_shares
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.optimization import freshness_periodic, solve_periodic
from optimal_frontier.scheduling import LOAD, plan_rates
from optimal_frontier.scheduling.exploration import DRAW_ROUNDS, EXPLORATIONS, choose, learning_rate, page_uniforms, uniform_rate
from optimal_frontier.state.records import Observation

BUDGET = 20.0


def crawled(store: ClockedStore, n: int, **bounds: float) -> np.random.Generator:
    """Pages of four hosts, each fetched once and with a posterior; no bits yet."""
    rng = np.random.default_rng(n)
    store.add(*(new_page(f"h{i % 4}/{i}", importance=float(rng.uniform(0.1, 5)), **({"max_rate": 10.0} | bounds)) for i in range(n)))
    learn(store, store.dispatch(1000)[0], rng, bit=-1)
    return rng


def learn(store: ClockedStore, handouts, rng, bit: int = 1) -> None:
    ended = [Observation(h.slot, h.token, "ok", float("inf"), bit, rng.uniform(0.5, 9), 10 ** rng.uniform(0, 3)) for h in handouts]
    store.run(store.observe_calls(ended, 1e15))
    store.advance(0.001)


def revisit(store: ClockedStore, n: int, rng) -> list[int]:
    """Visit the ``n`` pages that are due first, with a bit and a new posterior each."""
    store.advance(30.0)
    handouts, _ = store.dispatch(n)
    assert len(handouts) == n
    learn(store, handouts, rng)
    return [handout.slot for handout in handouts]


def pass_rounds(store: ClockedStore, rounds: float, pages: int) -> None:
    """Let bits be counted that nothing was learned from."""
    store.command("HINCRBY", store.key("stats"), "observations", round(rounds * pages))


def rates(store: ClockedStore) -> np.ndarray:
    return store.columns("plan")[0]["rate"].copy()


def change_rates(store: ClockedStore, settings) -> np.ndarray:
    """What the last plan was made from."""
    return read_crawl_curve(store, settings).plan(BUDGET).change_rate


@pytest.mark.parametrize("exploration", EXPLORATIONS)
@pytest.mark.parametrize("rounds", [1.0, 5.5])
def test_plans_are_made_by_the_pure_functions_of_the_simulation(store, exploration, rounds):
    """Same choice, same solver; freshness is told by the medians, whatever is explored."""
    crawled(store, 80)
    pass_rounds(store, rounds - 1, 80)
    settings = parse(CRAWL_RATE=BUDGET, EXPLORATION=exploration)
    report = Planner(store, settings).plan()
    page, seen, plan = store.columns("page", "seen", "plan")
    published = store.hash("published")
    shape, time = seen["shape"].copy(), seen["time"].copy()
    numbers = page_uniforms(np.arange(80), int(published["exploration_number"]))
    choice = choose(exploration, shape, time, BUDGET, numbers, rounds)
    bounds = {"change_rate": choice.change_rate, "least_rate": choice.least_rate, "most_rate": choice.most_rate}
    expected = plan_rates(page["importance"].copy(), shape, time, BUDGET, np.zeros(80), page["max_rate"].copy(), **bounds)
    np.testing.assert_allclose(plan["rate"], expected.rates, rtol=1e-6, atol=1e-10)
    assert published["exploration"] == exploration
    assert float(published["exploration_rounds"]) == pytest.approx(rounds)
    by_medians = freshness_periodic(page["importance"], posterior_median(shape, time), plan["rate"]) / page["importance"].sum()
    assert report.estimated_freshness == pytest.approx(by_medians, rel=1e-9)
    assert float(published["change_rate_p50"]) == pytest.approx(np.median(posterior_median(shape, time)))


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_a_plan_made_again_is_the_same_one(store, exploration):
    """By the same planner, and by another process after a restart: nothing is drawn anew, no phase begins again."""
    crawled(store, 60)
    pass_rounds(store, 4.5, 60)
    settings = parse(CRAWL_RATE=BUDGET, EXPLORATION=exploration)
    planner = Planner(store, settings)
    assert planner.plan() is not None
    first, progress = rates(store), Progress.of_plan(store.hash("published"))
    for again in (planner, Planner(store, settings)):
        assert again.plan() is not None
        np.testing.assert_allclose(rates(store), first, rtol=1e-5, atol=1e-10)
        assert Progress.of_plan(store.hash("published")) == progress


def test_thompson_draws_again_after_some_rounds_and_not_before(store):
    """Within a draw only what was learned moves; and the draw is that of slot, generation and number."""
    rng = crawled(store, 100)
    settings = parse(CRAWL_RATE=BUDGET, EXPLORATION="thompson")
    planner = Planner(store, settings)
    planner.plan()
    before, number = change_rates(store, settings), int(store.hash("published")["exploration_number"])
    visited = revisit(store, 10, rng)
    planner.plan()
    assert int(store.hash("published")["exploration_number"]) == number
    after = change_rates(store, settings)
    assert sorted(np.flatnonzero(after != before)) == sorted(visited)
    page, seen = store.columns("page", "seen")
    assert (page["generation"] == 0).all()
    drawn = posterior_quantile(seen["shape"], seen["time"], page_uniforms(np.arange(100), number))
    np.testing.assert_allclose(after, drawn, rtol=1e-12)
    pass_rounds(store, DRAW_ROUNDS, 100)
    planner.plan()
    assert int(store.hash("published")["exploration_number"]) == number + 1
    assert (change_rates(store, settings) != after).all()


def test_another_page_in_the_same_slot_has_a_draw_of_its_own():
    slots = np.zeros(2, int)
    page = Pages(slots, np.array([0, 1]), np.zeros(2), np.ones(2), np.ones(2), np.ones(2))
    one, other = choice_of(Progress("thompson"), page, 1.0).change_rate
    assert one != other


def test_epsilon_keeps_its_picks_for_a_phase(store):
    """Half of the pages in the first, a quarter in the second, whatever is learned meanwhile."""
    rng = crawled(store, 400, max_rate=1e3)
    settings = parse(CRAWL_RATE=BUDGET, EXPLORATION="epsilon")
    planner = Planner(store, settings)

    def picked() -> set[int]:
        planner.plan()
        return set(np.flatnonzero(rates(store) >= uniform_rate(400, BUDGET) * (1 - 1e-9)))

    def held() -> set[int]:
        return {slot for slot in picked() if rates(store)[slot] < uniform_rate(400, BUDGET) * (1 + 1e-9)}

    first = held()
    assert 100 < len(first) < 200
    visited = revisit(store, 20, rng)
    assert first - set(visited) <= picked()
    pass_rounds(store, 1.0, 400)
    assert int(store.hash("published")["exploration_number"]) == 1
    second = held()
    assert int(store.hash("published")["exploration_number"]) == 2
    assert 40 < len(second) < 110
    assert second - first


def test_rounds_are_counted_in_bits_and_never_go_back(store):
    """Downtime is no time, and pages that join do not begin a phase again."""
    rng = crawled(store, 50)
    planner = Planner(store, parse(CRAWL_RATE=BUDGET, EXPLORATION="epsilon"))
    planner.plan()
    assert store.hash("published")["exploration_rounds"] == "1.0"
    store.advance(1e6)
    planner.plan()
    assert store.hash("published")["exploration_rounds"] == "1.0"
    revisit(store, 25, rng)
    planner.plan()
    assert float(store.hash("published")["exploration_rounds"]) == 1.5
    store.add(*(new_page(f"new/{i}", max_rate=10.0) for i in range(950)))
    learn(store, [h for h in store.dispatch(1000)[0] if h.visits == 0], rng, bit=-1)
    planner.plan()
    assert store.hash("published")["pages"] == "1000"
    assert float(store.hash("published")["exploration_rounds"]) == 1.5
    pass_rounds(store, 0.5, 1000)
    planner.plan()
    assert float(store.hash("published")["exploration_rounds"]) == 2.0


def test_it_commits_to_what_it_knew_when_exploring_ended(store):
    """Whatever is learned afterwards, by whichever planner; pages that join go by their own means; then it explores again."""
    rng = crawled(store, 60)
    settings = parse(CRAWL_RATE=BUDGET, EXPLORATION="explore-then-commit")

    def plan() -> Progress:
        assert Planner(store, settings).plan() is not None  # each time another process
        return Progress.of_plan(store.hash("published"))

    assert plan().is_exploring  # round 1: the second stretch, all of which is explored
    assert rates(store)[:60] == pytest.approx(uniform_rate(60, BUDGET), rel=1e-9)
    pass_rounds(store, 4.5, 60)
    seen = store.columns("seen")[0]
    progress = plan()
    assert (progress.is_exploring, progress.number, progress.committed) == (False, 3, 3)
    means = seen["shape"] / seen["time"]
    assert change_rates(store, settings) == pytest.approx(means)
    committed = rates(store)

    visited = revisit(store, 10, rng)
    assert plan().committed == 3
    assert not np.allclose(means[visited], store.columns("seen")[0]["shape"][visited] / store.columns("seen")[0]["time"][visited])
    np.testing.assert_allclose(rates(store), committed, rtol=1e-5, atol=1e-10)

    store.run([("forget_page", [fingerprint(f"h{visited[0] % 4}/{visited[0]}")])])
    store.add(new_page("h0/joins", max_rate=10.0))
    assert store.slot("h0/joins") == visited[0]
    learn(store, [h for h in store.dispatch(100)[0] if h.visits == 0], rng, bit=-1)
    plan()
    seen = store.columns("seen")[0]
    joined = change_rates(store, settings)
    assert joined[visited[0]] == pytest.approx(seen["shape"][visited[0]] / seen["time"][visited[0]])
    assert joined[visited[1:]] == pytest.approx(means[visited[1:]])

    pass_rounds(store, 2.0, 60)
    assert plan().is_exploring  # round 7
    assert rates(store) == pytest.approx(uniform_rate(60, BUDGET), rel=1e-9)
    pass_rounds(store, 3.0, 60)
    assert plan().committed == 4
    assert change_rates(store, settings) == pytest.approx(seen["shape"] / seen["time"])


def test_with_close_after_the_horizon_is_known(store):
    """Nine rounds: three of them are explored, the first visits among them, and never again."""
    crawled(store, 40)
    planner = Planner(store, parse(CRAWL_RATE=BUDGET, EXPLORATION="explore-then-commit", CLOSE_AFTER=9))
    found = []
    for _ in range(12):
        planner.plan()
        found.append(Progress.of_plan(store.hash("published")).is_exploring)
        pass_rounds(store, 1.0, 40)
    assert found == [True, True, *[False] * 10]


def test_exploring_is_not_kept_up_for_longer_than_meant(store):
    """The next plan is due when even intervals end, not only after RESOLVE_INTERVAL, and no sooner than a tenth of that."""
    crawled(store, 60)
    waits = {}
    for exploration in ("median", "explore-then-commit"):
        planner = Planner(store, parse(CRAWL_RATE=BUDGET, EXPLORATION=exploration, RESOLVE_INTERVAL=60))
        planner.plan()
        store.command("HSET", store.key("published"), "first_time", "0")
        waits[exploration] = planner.due_in()
    assert waits["median"] == pytest.approx(60, abs=0.1)
    assert waits["explore-then-commit"] == pytest.approx(2 * 60 / (LOAD * BUDGET), abs=0.1)
    pass_rounds(store, 1.99, 60)
    planner.plan()
    store.command("HSET", store.key("published"), "first_time", "0")
    assert planner.due_in() == pytest.approx(6.0, abs=0.1)


def test_exploration_may_change_between_two_runs(store):
    """A plan is due at once; rounds go on; a commitment ends with its run."""
    crawled(store, 60)
    pass_rounds(store, 4.5, 60)
    for exploration in ("median", "explore-then-commit", "epsilon", "thompson", "mean", "explore-then-commit", "median"):
        settings = parse(CRAWL_RATE=BUDGET, EXPLORATION=exploration)
        planner = Planner(store, settings)
        if "first_time" in store.hash("published"):
            store.command("HSET", store.key("published"), "first_time", "0")
            assert planner.due_in() <= 1.0
        planner.plan()
        progress = Progress.of_plan(store.hash("published"))
        assert (progress.exploration, progress.rounds) == (exploration, 5.5)
        assert progress.committed == (3 if exploration == "explore-then-commit" else -1)
        store.command("HSET", store.key("published"), "first_time", "0")
        assert planner.due_in() > 1.0


def test_state_of_a_crawl_from_before_there_was_a_choice_goes_on(store):
    """Its plan says nothing of exploration: the rounds are those of all its bits, and no plan is due for that."""
    crawled(store, 60)
    pass_rounds(store, 6.0, 60)
    planner = Planner(store, parse(CRAWL_RATE=BUDGET))
    planner.plan()
    names = [name for name in store.hash("published") if name.startswith("exploration")]
    store.command("HDEL", store.key("published"), *names)
    store.command("HSET", store.key("published"), "first_time", "0")
    assert planner.due_in() > 50
    planner.plan()
    assert float(store.hash("published")["exploration_rounds"]) == 7.0


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_the_carried_price_changes_no_plan(store, exploration):
    """Over draws, phases, explorations and commitments."""
    rng = crawled(store, 300)
    settings = parse(CRAWL_RATE=BUDGET, EXPLORATION=exploration)
    planner = Planner(store, settings)
    numbers = set()
    for _ in range(9):
        warm = planner.plan()
        found = rates(store)
        store.command("HDEL", store.key("published"), "multiplier")
        cold = Planner(store, settings).plan()
        np.testing.assert_allclose(found, rates(store), rtol=1e-5, atol=1e-9)
        assert warm.multiplier == pytest.approx(cold.multiplier, rel=1e-6)
        numbers.add((Progress.of_plan(store.hash("published")).number, Progress.of_plan(store.hash("published")).is_exploring))
        revisit(store, 15, rng)
        pass_rounds(store, 0.7, 300)
    assert len(numbers) > (1 if exploration not in ("median", "mean") else 0)


@pytest.mark.parametrize("exploration", EXPLORATIONS)
@pytest.mark.parametrize("policy", ["periodic", "poisson"])
def test_pins_and_slow_hosts_go_before_exploration(store, exploration, policy):
    """And what they leave is shared out evenly by explore-then-commit."""
    store.add(*(new_page(f"p/{i}", min_rate=0.02, max_rate=0.02) for i in range(20)))
    crawled(store, 80)
    settings = parse(CRAWL_RATE=BUDGET, EXPLORATION=exploration, HOST_MAX_RATE=2.0, POLICY=policy)
    report = Planner(store, settings).plan()
    page, plan = store.columns("page", "plan")
    assert report.feasible
    assert plan["rate"][:20] == pytest.approx(0.02)
    by_host = np.bincount(page["host"], weights=plan["rate"])
    assert by_host.max() <= LOAD * 2.0 * (1 + 1e-9)
    assert (plan["rate"] > 0).all()
    if exploration == "explore-then-commit":
        assert plan["rate"][20:] == pytest.approx(LOAD * 2.0 / 20)


def test_what_a_slow_host_cannot_use_is_explored_elsewhere(store):
    """Ten pages on a host that allows 0.1/s, the rest of the budget over the others."""
    low, high = np.zeros(30), np.full(30, np.inf)
    host = np.repeat([0, 1], [10, 20])
    pages = Pages(np.arange(30), np.zeros(30, int), low, high, np.ones(30), np.ones(30))
    choice = choice_of(Progress("explore-then-commit"), pages, 2.0, host_shares(host, np.array([0.1, 50.0])))
    assert choice.least_rate[:10] == pytest.approx(0.01)
    assert choice.least_rate[10:] == pytest.approx((LOAD * 2.0 - 0.1) / 20)


@pytest.mark.parametrize("exploration", EXPLORATIONS)
def test_an_empty_namespace_is_planned(store, exploration):
    report = Planner(store, parse(CRAWL_RATE=5, EXPLORATION=exploration)).plan()
    assert (report.pages, report.queued) == (0, 0)


def uneven(play: Play, n: int) -> None:
    """Pages, one of which seems too fast to follow; its limits ask for no visit."""
    play.add(n)
    play.bit = 1
    play.posteriors[0] = (200.0, 1.0)
    for _ in range(2):
        for slot in range(n):
            play.store.run([("force_page", [fingerprint(f"h{slot % 3}/{slot}")])])
        handouts, _ = play.store.dispatch(n)
        ended = [Observation(h.slot, h.token, "ok", float("inf"), -1, *play.posteriors[h.slot]) for h in handouts]
        play.store.run(play.store.observe_calls(ended, 120.0))
        play.store.advance(1.0)


@pytest.mark.parametrize("exploration", ["median", "mean", "thompson", "epsilon"])
def test_lemma_2_visits_never_thin_out(store, exploration):
    """A page that seems 200 times too fast is visited at bounded intervals, so both sums of Lemma 2 go on growing."""
    play = Play(store, parse(CRAWL_RATE=6, EXPLORATION=exploration, RESOLVE_INTERVAL=5))
    uneven(play, 3)
    longest = 1 / learning_rate(3, 6.0)
    play.until(4 * longest)
    gaps = play.gaps(0, since=2.0)
    assert len(gaps) >= 2
    assert max(gaps) <= longest * 1.05 + 5
    for rate in (1e-3, 1.0 / longest):
        assert np.exp(-rate * gaps).sum() >= len(gaps) * math.exp(-rate * (longest * 1.05 + 5))
    assert (1 - np.exp(-1e-3 * gaps)).sum() > 0


def test_lemma_2_explorations_never_cease(store):
    """Explore-then-commit leaves that page alone while it is committed, and sees it at even intervals in every stretch anew."""
    play = Play(store, parse(CRAWL_RATE=20, EXPLORATION="explore-then-commit", RESOLVE_INTERVAL=5))
    uneven(play, 10)
    stretches: dict[int, int] = {}
    seconds = 2.0
    for _ in range(80):
        seconds += 1.0
        before = len(play.visits[0])
        play.until(seconds)
        progress = Progress.of_plan(store.hash("published"))
        key = progress.number
        stretches[key] = stretches.get(key, 0) + len(play.visits[0]) - before
    assert max(stretches) >= 6
    assert all(count >= 2 for key, count in stretches.items() if 2 < key < max(stretches))
    even = 1 / uniform_rate(10, 20.0)
    gaps = play.gaps(0)
    assert gaps.max() > 4 * even
    short = [sum(1 for _ in group) for is_short, group in itertools.groupby(gaps < 2 * even) if is_short]
    assert len(short) >= 3


@pytest.mark.parametrize("exploration", ["median", "mean", "thompson"])
def test_pages_with_a_longest_interval_are_held_to_no_other(store: ClockedStore, exploration) -> None:
    """MAX_INTERVAL keeps them learned: the plan is the optimum of the chosen change rates under the crawl's own bounds, nothing else."""
    n = 40
    crawled(store, n, min_rate=1e-6)
    settings = parse(CRAWL_RATE=BUDGET, EXPLORATION=exploration)
    report = Planner(store, settings).plan()
    assert report is not None
    (page,) = store.columns("page")
    best = solve_periodic(
        page["importance"],
        change_rates(store, settings),
        LOAD * report.revisit_budget,
        min_rate=page["min_rate"],
        max_rate=page["max_rate"],
    )
    np.testing.assert_allclose(rates(store), best.rates, rtol=1e-6, atol=1e-12)
    assert (rates(store) < 0.5 * learning_rate(n, report.revisit_budget)).any()
