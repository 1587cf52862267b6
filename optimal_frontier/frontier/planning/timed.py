"""Pages with update times in a plan: what they buy at a price, beside the pages that change at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.repeated_times import repeated_choices
from optimal_frontier.settings import Timetable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TimedPages:
    """Pages that are visited at update times.

    Attributes
    ----------
    rows : ndarray of int (k,)
        Where they stand among the pages of the plan.
    period : ndarray (k,)
        Of their timetables, seconds.
    worth : ndarray (k, q)
        What the first visit in a period adds to the objective per visit per second, the second, and so on; 0 where there are fewer times.
    fresh : ndarray (k, q)
        Share of time in which the copy is fresh with so many visits in a period.
    least, most : ndarray of int (k,)
        Bounds on the visits in a period. (Longer intervals than a period are not its business: they cost next to nothing.)
    """

    rows: Ints
    period: Floats
    worth: Floats
    fresh: Floats
    least: Ints
    most: Ints

    @classmethod
    def of_timetable(
        cls,
        timetable: Timetable,
        rows: Ints,
        probabilities: Floats,
        importance: Floats,
        bounds: tuple[Floats, Floats],
        objective: Literal["freshness", "changes"],
    ) -> TimedPages:
        """Choose the order of visits of pages that share a timetable; `probabilities` is (k, q), `bounds` are least and most rates."""
        times, q = np.array(timetable.times), len(timetable.times)
        min_rate, max_rate = bounds
        lengths = np.append(np.diff(times), times[0] + timetable.period - times[-1]) / timetable.period
        gains, _, fresh = repeated_choices(lengths, probabilities, objective)
        unit = timetable.period if objective == "freshness" else 1.0
        most = np.clip(np.floor(max_rate * timetable.period * (1 + 1e-9)), 1, q).astype(np.int64)
        least = np.minimum(np.floor(min_rate * timetable.period * (1 + 1e-9)), most).astype(np.int64)
        return cls(rows, np.full(len(rows), timetable.period), gains * unit * importance[:, None], fresh, least, most)

    @classmethod
    def together(cls, parts: Sequence[TimedPages]) -> TimedPages:
        """Join pages of several timetables."""
        width = max(part.worth.shape[1] for part in parts)

        def filled(table: NDArray[np.generic]) -> NDArray[np.generic]:
            return np.pad(table, [(0, 0), (0, width - table.shape[1])], mode="constant")

        fields = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "period", "least", "most")}
        return cls(**fields, **{name: np.concatenate([filled(getattr(part, name)) for part in parts]) for name in ("worth", "fresh")})

    @property
    def top(self) -> float:
        """A price at which nothing is bought."""
        return max(float(self.worth.max(initial=0.0)) * 2.0, 1e-12)

    def visits(self, rates: Floats) -> Ints:
        """Return the visits in a period that a rate stands for."""
        return np.rint(rates * self.period).astype(np.int64)

    def rates(self, price: Floats) -> Floats:
        """Return visits per second at a price for each page."""
        # What is worth nothing is not bought, though it were free.
        count = np.count_nonzero((self.worth >= price[:, None]) & (self.worth > 0), axis=1)
        return np.asarray(np.clip(count, self.least, self.most) / self.period)

    def freshness(self, rates: Floats) -> Floats:
        """Return the share of time in which each copy is fresh."""
        count = self.visits(rates)
        return np.where(count > 0, self.fresh[np.arange(len(count)), np.maximum(count, 1) - 1], 0.0)
