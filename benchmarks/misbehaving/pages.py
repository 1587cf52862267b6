"""The true pages: when each of them changes."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

#: Changes per second, log-uniform between the two.
SLOWEST, FASTEST = 0.02, 0.4


@dataclass(frozen=True)
class TruePage:
    """A page that changes at random.

    Attributes
    ----------
    host : str
        Name of the behaviour of its host.
    number : int
        Within the host.
    rate : float
        Changes per second of its Poisson process.
    changes : tuple of float
        When it changes, seconds since the site began.
    """

    host: str
    number: int
    rate: float
    changes: tuple[float, ...]

    def edition(self, at: float) -> int:
        """Return how often it has changed until `at`, seconds since the site began."""
        return bisect_right(self.changes, at)

    def modified(self, at: float) -> float:
        """Return when it last changed before `at`, seconds since the site began; an hour before that if it never did."""
        edition = self.edition(at)
        return self.changes[edition - 1] if edition else -3600.0


def make_pages(hosts: list[str], pages: int, seconds: float, seed: int) -> dict[tuple[str, int], TruePage]:
    """Draw `pages` pages for each host, with the changes of so many seconds."""
    rng = np.random.default_rng(seed)
    made = {}
    for host in hosts:
        for number in range(pages):
            rate = float(np.exp(rng.uniform(np.log(SLOWEST), np.log(FASTEST))))
            count = int(rng.poisson(rate * seconds))
            made[host, number] = TruePage(host, number, rate, tuple(np.sort(rng.uniform(0.0, seconds, count)).tolist()))
    return made
