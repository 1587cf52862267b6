"""What a crawl learns while it goes by the price, played through dispatch, judge and planner: exploration, habits, siblings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from played_crawl import Play, parse
from timed_namespace import START, TimedNamespace

from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.planning.exploring import Progress
from optimal_frontier.scheduling import LOAD

#: No longest interval: exploration asks for one.
FOREVER = 3e38


class DrawnSite:
    """Pages that change by Poisson processes, whose rates may be set anew."""

    def __init__(self, rates: np.ndarray, seed: int = 5) -> None:
        self.rates, self.rng = np.asarray(rates, float), np.random.default_rng(seed)
        self.editions, self.drawn_until = np.zeros(len(rates), int), np.zeros(len(rates))

    def __call__(self, page: int, at: float) -> int:
        self.editions[page] += self.rng.poisson(self.rates[page] * (at - self.drawn_until[page]))
        self.drawn_until[page] = at
        return int(self.editions[page])

    def set_rates(self, rates: np.ndarray, at: float) -> None:
        for page in range(len(self.rates)):
            self(page, at)
        self.rates = np.asarray(rates, float)


def learned(play: Play) -> np.ndarray:
    """Believed change rates, by number."""
    rows = play.rows()
    return posterior_median(np.maximum(rows["shape"], 1e-3).astype(float), np.maximum(rows["time"], 1e-3).astype(float))


@pytest.mark.parametrize("exploration", ["median", "epsilon"])
def test_lemma_2_visits_never_thin_out(space: TimedNamespace, exploration: str) -> None:
    """A page that seems 200 times too fast is visited at bounded intervals, so both sums of Lemma 2 go on growing."""
    play = Play(space, parse(CRAWL_RATE=6, EXPLORATION=exploration, RESOLVE_INTERVAL=5, MAX_INTERVAL=FOREVER))
    fast = play.add_page("h/fast", 200.0, 1.0)
    play.add(2)
    longest = 100 * 3 / 6.0 / LOAD
    play.until(4.5 * longest)
    gaps = play.gaps(fast, since=2.0)
    assert len(gaps) >= 3
    assert gaps.max() <= longest * 1.05 + 5


def test_lemma_2_explorations_never_cease(space: TimedNamespace) -> None:
    """Explore-then-commit leaves that page alone while it goes by the price, and sees it at even intervals in every stretch anew."""
    site = DrawnSite(np.full(10, 0.3))
    settings = parse(CRAWL_RATE=20, EXPLORATION="explore-then-commit", RESOLVE_INTERVAL=5, MAX_INTERVAL=FOREVER)
    play = Play(space, settings, lambda page, at: site(page, at) if page else int(at * 1e6))
    play.add_page("h/fast", 2e6, 1e4)
    play.add(9)
    stretches: dict[int, int] = {}
    for second in range(2, 80):
        before = len(play.visits[0])
        play.until(float(second))
        number = Progress.of_plan(space.hash("plan")).number
        stretches[number] = stretches.get(number, 0) + len(play.visits[0]) - before
    assert max(stretches) >= 6
    assert all(count >= 2 for key, count in stretches.items() if 2 < key < max(stretches))
    even = 10 / (LOAD * 20.0)
    gaps = play.gaps(0)
    assert gaps.max() > 4 * even
    short = [sum(1 for _ in group) for is_short, group in itertools.groupby(gaps < 2 * even) if is_short]
    assert len(short) >= 3


def test_pages_whose_habits_change_are_learned_anew(space: TimedNamespace) -> None:
    """Half of them change ten times as often all of a sudden, or a tenth as often; the others stay what they are."""
    before = np.repeat([0.02, 0.1], 20)
    site = DrawnSite(before)
    play = Play(space, parse(CRAWL_RATE=2.0, RESOLVE_INTERVAL=30, MAX_INTERVAL=1e6), site)
    for number in range(40):
        play.add_page(f"h/{number}")
    play.until(500.0)
    assert np.abs(np.log(np.median(learned(play)[:20]) / 0.02)) < 0.4
    early = space.counts().get("relearned", 0)
    after = before.copy()
    after[:10], after[30:] = 0.2, 0.01
    site.set_rates(after, play.now - START)
    play.until(1250.0)
    relearned = play.rows()["relearned"] > 0
    assert early <= 1
    assert relearned[:10].sum() + relearned[30:].sum() >= 16
    assert relearned[10:30].sum() <= 3
    for pages, rate in ((slice(0, 10), 0.2), (slice(10, 20), 0.02), (slice(20, 30), 0.1), (slice(30, 40), 0.01)):
        assert np.abs(np.log(np.median(learned(play)[pages]) / rate)) < 0.7


def test_newcomers_start_from_what_their_siblings_taught(space: TimedNamespace) -> None:
    """Before their first bit: those of a fast section are visited sooner than those of a slow one, which is left to wait."""
    rates = np.concatenate([np.full(20, 0.2), np.full(20, 0.004), np.full(3, 0.2), np.full(3, 0.004)])
    play = Play(space, parse(CRAWL_RATE=2.0, RESOLVE_INTERVAL=20, MAX_INTERVAL=1e6), DrawnSite(rates))
    for section in ("fast", "slow"):
        for number in range(20):
            play.add_page(f"h/{section}/{number}")
    play.until(300.0)
    fast = [play.add_page(f"h/fast/{number}") for number in range(100, 103)]
    slow = [play.add_page(f"h/slow/{number}") for number in range(100, 103)]
    play.until(500.0)
    seconds = {number: play.gaps(number)[0] if len(play.visits[number]) > 1 else np.inf for number in fast + slow}
    assert max(seconds[number] for number in fast) < min(seconds[number] for number in slow)


def test_pages_that_are_alike_are_visited_in_turn_and_another_one_is_not(space: TimedNamespace) -> None:
    """Few bits make some of them seem three times as quick as others; one among them is five times as quick."""
    play = Play(space, parse(CRAWL_RATE=4.0, RESOLVE_INTERVAL=20, MAX_INTERVAL=1e6), DrawnSite(np.append(np.full(60, 0.01), 0.05)))
    for number in range(60):
        play.add_page(f"h/section/{number}")
    play.until(400.0)
    quick = play.add_page("h/section/1000")
    play.until(1000.0)
    rates = play.rates()
    own = np.sort(learned(play)[:60])
    assert own[53] > 2.0 * own[6]
    assert np.nanquantile(rates[:60], 0.9) < 1.35 * np.nanquantile(rates[:60], 0.1)
    assert rates[quick] > 1.5 * np.nanmedian(rates[:60])
    gaps = [np.mean(play.gaps(number, since=800.0)) for number in (*range(60), quick)]
    assert gaps[-1] < np.mean(gaps[:60]) / 1.3
