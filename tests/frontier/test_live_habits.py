"""A live crawl, on a clock that the test sets, of pages whose habits change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clocked_store import START, new_page
from played_crawl import parse

from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.frontier.planner import Planner

TAG = 7


class Changing:
    """A site whose pages change as they are told to, crawled with the judgement of a crawler; fetches take no time."""

    def __init__(self, store, rates: np.ndarray, half_life: float | None = None) -> None:
        self.store, self.rates, self.half_life = store, rates, half_life
        self.settings = parse(CRAWL_RATE=2.0, RESOLVE_INTERVAL=30, MAX_INTERVAL=1e6, HALF_LIFE=half_life)
        self.dispatcher, self.planner = Dispatcher(store, self.settings), Planner(store, self.settings)
        self.rng = np.random.default_rng(5)
        self.versions, self.drawn_until = np.zeros(len(rates), int), np.full(len(rates), START)
        store.add(*(new_page(f"h/{i}", max_rate=10.0) for i in range(len(rates))))

    def content(self, page: int, now: float) -> bytes:
        """The version of a page, drawn up to now at its present rate."""
        self.versions[page] += self.rng.poisson(self.rates[page] * (now - self.drawn_until[page]))
        self.drawn_until[page] = now
        return int(self.versions[page]).to_bytes(16, "little")

    def set_rates(self, rates: np.ndarray) -> None:
        for page in range(len(rates)):
            self.content(page, self.store.time())
        self.rates = rates

    def run(self, seconds: float) -> None:
        """Go on for so many seconds."""
        now, end, ended = self.store.time(), self.store.time() + seconds, []
        while now < end:
            if (wait := self.planner.due_in()) is not None and wait <= 0:
                self.planner.plan()
            outcome = self.dispatcher.exchange(Exchange(observations=ended, want=10))
            # The clock of the test stands in the future: what passed is in `elapsed`.
            ended = [
                replace(
                    judge_visit(
                        replace(h, received=0.0), self.content(h.slot, now), TAG, 0.0, self.dispatcher.published, half_life=self.half_life
                    ),
                    responded=float("inf"),
                )
                for h in outcome.handouts
            ]
            now = self.store.set_time(now + (1e-4 if ended else min(max(outcome.wait or 0.0, 1e-3), 5.0)))
        self.dispatcher.exchange(Exchange(observations=ended))

    def medians(self) -> np.ndarray:
        (seen,) = self.store.columns("seen")
        return posterior_median(seen["shape"], seen["time"])


def test_a_page_whose_habits_change_is_learned_anew(store):
    """Half of the pages change ten times as often all of a sudden, or a tenth as often; the others stay what they are."""
    before = np.full(40, 0.02)
    before[20:] = 0.1
    site = Changing(store, before)
    site.run(900.0)
    assert np.abs(np.log(np.median(site.medians()[:20]) / 0.02)) < 0.4
    early = store.counts().get("relearned", 0)
    after = before.copy()
    after[:10], after[30:] = 0.2, 0.01
    site.set_rates(after)
    site.run(900.0)
    (watch,) = store.columns("watch")
    relearned = watch["relearned"] > 0
    assert early <= 1
    assert relearned[:10].sum() + relearned[30:].sum() >= 17
    assert relearned[10:30].sum() <= 2
    assert store.counts()["relearned"] == watch["relearned"].sum()
    median = site.medians()
    for pages, rate in ((slice(0, 10), 0.2), (slice(10, 20), 0.02), (slice(20, 30), 0.1), (slice(30, 40), 0.01)):
        assert np.abs(np.log(np.median(median[pages]) / rate)) < 0.7


def test_a_half_life_keeps_what_is_known_small(store):
    """The time of a posterior stays near half-life / log 2, however long the crawl."""
    site = Changing(store, np.full(20, 0.01), half_life=200.0)
    site.run(1000.0)
    (seen,) = store.columns("seen")
    assert np.median(seen["time"]) < 1.3 * 200.0 / np.log(2)
    assert np.median(seen["time"]) > 0.6 * 200.0 / np.log(2)
