"""Exploration in a live crawl: how far it is, kept from plan to plan.

Time is counted in rounds: one for the first visits, and another one whenever there were as many change bits as pages that are planned. So
a crawl that stands still does not get on, one that grows does not go back, and neither a restart nor another planner starts over.
Which pages ``epsilon`` picks is a function of the page and of the number of the phase; nothing else has to be stored. What exploration
makes of waits is in `scheduling.exploration.Exploring`, which judges read from what is published here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from optimal_frontier.scheduling.exploration import Exploration, Exploring, explores, phase, stretch, turning_point

#: Rounds of a crawl without a bit: the first visits.
_FIRST_ROUND: Final = 1.0


@dataclass(frozen=True)
class Progress:
    """How far exploration is.

    Attributes
    ----------
    exploration : str
        EXPLORATION.
    rounds : float
        Since the crawl began, whatever EXPLORATION was.
    bits : int
        Change bits that are in `rounds`.
    horizon : float
        Length of the crawl in rounds, CLOSE_AFTER; inf for the doubling trick.
    """

    exploration: Exploration
    rounds: float = _FIRST_ROUND
    bits: int = 0
    horizon: float = math.inf

    @classmethod
    def of_plan(cls, published: Mapping[str, str]) -> Progress:
        """Read what was published with a plan; the beginning where nothing was."""
        return cls(
            published.get("exploration", "median"),  # type: ignore[arg-type]  # one of them, or the plan is from before there was one
            float(published.get("exploration_rounds", _FIRST_ROUND)),
            int(published.get("exploration_bits", 0)),
            float(published.get("exploration_horizon", math.inf)),
        )

    def under(self, exploration: Exploration, close_after: int | None) -> Progress:
        """Return the same under these settings."""
        return replace(self, exploration=exploration, horizon=math.inf if close_after is None else float(close_after))

    def after(self, bits: int, pages: int) -> Progress:
        """Return the progress when there are so many bits, and so many pages to plan."""
        more = max(0, bits - self.bits) / max(pages, 1)
        return replace(self, rounds=self.rounds + more, bits=bits)

    @property
    def number(self) -> int:
        """Of the phase of ``epsilon`` or the stretch of ``explore-then-commit``; 0 for ``median``."""
        if self.exploration == "epsilon":
            return phase(self.rounds)
        return stretch(self.rounds, self.horizon) if self.exploration == "explore-then-commit" else 0

    @property
    def is_exploring(self) -> bool:
        """Whether ``explore-then-commit`` visits at even intervals."""
        return self.exploration == "explore-then-commit" and explores(self.rounds, self.horizon)

    @property
    def rounds_left(self) -> float:
        """Rounds until ``explore-then-commit`` begins or ceases to explore; inf for the others."""
        if self.exploration != "explore-then-commit":
            return math.inf
        return turning_point(self.rounds, self.horizon) - self.rounds

    def waits(self, round_s: float) -> Exploring:
        """Return what it makes of waits; ``round_s``: seconds in which all pages can be visited once."""
        return Exploring.of({name: str(value) for name, value in self.fields().items()}, round_s)

    def fields(self) -> dict[str, Any]:
        """Return what is published."""
        return {
            "exploration": self.exploration,
            "exploration_rounds": repr(self.rounds),
            "exploration_bits": self.bits,
            "exploration_horizon": repr(self.horizon),
            "exploration_number": self.number,
        }
