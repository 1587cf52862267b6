"""Who learns in a simulated crawl: what is made of bits, and learners that go by more than bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optimal_frontier.simulation.ragged import Floats, Ints


@dataclass(frozen=True)
class Bits:
    """Gamma posteriors learned from bits alone, by the functions of a live crawl (`believing`).

    Attributes
    ----------
    watches : bool
        Whether a recent posterior stands by, and takes over when habits change.
    has_siblings : bool
        Whether pages without a bit start from what their siblings have taught.
    has_neighbourhoods : bool
        Whether the time since a visit runs on the clock of the page's neighbourhood.
    """

    watches: bool = False
    has_siblings: bool = False
    has_neighbourhoods: bool = False


@dataclass(frozen=True)
class Seen:
    """One visit to each of some pages.

    Attributes
    ----------
    pages : ndarray of int (m,)
        Which; each at most once.
    since, until : ndarray (m,)
        When each was visited before, and now.
    changed : ndarray of bool (m,)
        Whether it had changed.
    ages : ndarray (m,)
        How long ago it last changed; NaN where that is not known.
    """

    pages: Ints
    since: Floats
    until: Floats
    changed: np.ndarray
    ages: Floats

    @property
    def intervals(self) -> Floats:
        """Time between the two visits."""
        return self.until - self.since


class Learner(Protocol):
    """A learner that goes by more than bits; it is told every single visit.

    Attributes
    ----------
    shape, time : ndarray (n,)
        Gamma posteriors; shape 0 where a page has no bit yet and the prior of a live crawl is meant.
    """

    @property
    def shape(self) -> Floats:
        """Of the posteriors."""

    @property
    def time(self) -> Floats:
        """Of the posteriors."""

    def learn(self, seen: Seen) -> None:
        """Take in visits."""
