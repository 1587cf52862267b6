"""A site whose pages change each at its own rate, and all of which show something else at every fetch."""

from __future__ import annotations

import hashlib

import numpy as np
from played_crawl import Play, stale_s
from timed_namespace import START

from optimal_frontier.detection.sections import Section
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint

PAGES = 400
#: Seconds for which the site is played; changes of a page in that time: the median, and the spread of its logarithm.
UNTIL_S = 10_000.0
_CHANGES = 2.0
_SPREAD = 1.5
#: Texts of what all pages show: none, a counter, one of three advertisements.
NOISE = {"none": 1, "advert": 3, "counter": 2**31}


class Noisy(Play):
    """``kind`` of `NOISE`; pages lie in ``directories``, each of which is a pattern; ``spread`` is that of log change rates."""

    def __init__(
        self, store, settings, kind: str = "counter", directories: int = 1, pages: int = PAGES, seed: int = 3, spread: float = _SPREAD
    ) -> None:
        super().__init__(store, settings)
        self.texts = NOISE[kind]
        self.rng = np.random.default_rng(seed)
        changes = self.rng.poisson(_CHANGES * np.exp(self.rng.normal(0.0, spread, pages)))
        self.changes = [np.sort(self.rng.uniform(0.0, UNTIL_S, n)) for n in changes]
        for i in range(pages):
            self.add_page(f"site/d{chr(97 + i % directories // 26)}{chr(97 + i % directories % 26)}/{i}.html")

    def fetched(self, number, handout):
        visit = super().fetched(number, handout)
        edition = int(np.searchsorted(self.changes[number], self.now - START))
        texts = {"h1": number, "div.body": edition, "p.ad": int(self.rng.integers(self.texts))}
        cut = [Section(name, hashlib.md5(b"%d" % text).digest()[:4]) for name, text in texts.items()]
        visit.fingerprint = Fingerprint(hashlib.md5(repr(texts).encode()).digest(), 1)
        visit.sections = lambda: cut
        return visit

    def visit_in_turn(self, budget: float) -> None:
        """As if all pages had been fetched in turn, so many a second."""
        for turn in range(int(UNTIL_S * budget)):
            self.visits[turn % len(self.changes)].append(START + turn / budget)

    def stale(self, since: float, until: float = UNTIL_S) -> float:
        """Share of the time between two times in which copies were not current."""
        lost = sum(stale_s(self.visits[n], np.append(0.0, changes), since, until) for n, changes in enumerate(self.changes))
        return lost / (len(self.changes) * (until - since))
