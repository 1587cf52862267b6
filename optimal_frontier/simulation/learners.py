"""Who learns in a simulated crawl: what is made of bits, and learners that go by more than bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from optimal_frontier.simulation.ragged import Floats


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


class Seen(NamedTuple):
    """One visit to a page.

    Attributes
    ----------
    page : int
        Which.
    interval : float
        Time since the visit before.
    at : float
        When it was.
    changed : bool
        Whether the page had changed.
    age : float
        How long ago it last changed; NaN where that is not known.
    """

    page: int
    interval: float
    at: float
    changed: bool
    age: float


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
        """Take in a visit."""
