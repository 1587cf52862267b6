"""A live crawl, on a clock that the test sets, of pages some of which never look the same twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from clocked_store import START, new_page
from played_crawl import parse

from optimal_frontier.detection.sections import Section
from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.frontier.judgement import change_bit, judge_visit
from optimal_frontier.frontier.noisy_pages import PageNoise, notice
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.state.reading import read_memories

TAG = 7
PAGES = 60
#: Changes per second of every page's content.
RATE = 1 / 80
#: Pages with a section that is new on every fetch; of the last of them nothing stays the same.
NOISY, RANDOM = slice(0, 20), slice(15, 20)


class NoisySite:
    """A site crawled with the judgement of a crawler; fetches take no time."""

    def __init__(self, store) -> None:
        self.store = store
        self.settings = parse(CRAWL_RATE=3.0, RESOLVE_INTERVAL=30, MAX_INTERVAL=100, MIN_INTERVAL=1.0)
        self.dispatcher, self.planner = Dispatcher(store, self.settings), Planner(store, self.settings)
        self.rng = np.random.default_rng(11)
        self.versions, self.drawn_until = np.zeros(PAGES, int), np.full(PAGES, START)
        self.fetches = 0
        store.add(*(new_page(f"h/{i}", min_rate=1e-2, max_rate=1.0, gap=1.0) for i in range(PAGES)))

    def fetch(self, page: int, now: float) -> list[Section]:
        self.versions[page] += self.rng.poisson(RATE * (now - self.drawn_until[page]))
        self.drawn_until[page] = now
        self.fetches += 1
        ad = self.fetches if page < NOISY.stop else 0
        article = self.fetches if RANDOM.start <= page < RANDOM.stop else self.versions[page]
        return [Section("h1", int(article).to_bytes(4, "big")), Section("div.ad", int(ad).to_bytes(4, "big"))]

    def judged(self, handout, now: float):
        cut = self.fetch(handout.slot, now)
        content = b"".join(section.digest for section in cut) * 2
        handout = replace(handout, received=0.0)
        noticed = notice(handout, change_bit(handout, content, TAG), handout.elapsed, lambda: cut, self.dispatcher.published.prior_time)
        observation = judge_visit(noticed.shown(handout, content), content, TAG, 0.0, self.dispatcher.published)
        return replace(noticed.applied(handout, observation), responded=float("inf"))

    def run(self, seconds: float) -> None:
        """Go on for so many seconds."""
        now, end, ended = self.store.time(), self.store.time() + seconds, []
        while now < end:
            if (wait := self.planner.due_in()) is not None and wait <= 0:
                self.planner.plan()
            outcome = self.dispatcher.exchange(Exchange(observations=ended, want=10))
            ended = [self.judged(handout, now) for handout in outcome.handouts]
            now = self.store.set_time(now + (1e-3 if ended else min(max(outcome.wait or 0.0, 1e-3), 30.0)))
        self.dispatcher.exchange(Exchange(observations=ended))


def test_noisy_pages_are_found_and_their_rate_is_that_of_the_rest(store):
    """Most of them so far, and no other; those of which nothing stays the same follow the prior, which all others taught."""
    site = NoisySite(store)
    site.run(1_500.0)
    memories = read_memories(store, range(PAGES))
    is_noisy = np.array([bool(memory.noise) and PageNoise.unpack(memory.noise).is_noisy for memory in memories])
    counts = store.counts()
    (seen,) = store.columns("seen")
    has_bits = seen["shape"] > 0
    median = posterior_median(seen["shape"][has_bits], seen["time"][has_bits])
    other = np.arange(PAGES)[has_bits] >= NOISY.stop
    assert is_noisy[NOISY].mean() > 0.6
    assert not is_noisy[NOISY.stop :].any()
    assert counts["noisy"] == is_noisy.sum()
    assert counts["noise_checks"] < 0.2 * counts["visits"]
    for group in (median[~other], median[other]):
        assert abs(np.log(np.median(group) / RATE)) < 0.5
    assert not has_bits[RANDOM][is_noisy[RANDOM]].any()
