"""Pages with a heavy-tailed update model in a plan: steady pages stand in for them.

The solvers know one curve: what a visit to a page that changes at a steady rate is worth, by the interval between two. A page whose
changes come in bursts has a flatter one. Around any interval it is worth as much as that of one steady page, of another weight and
another change rate, and changes as fast with the interval. Solvers are given that page, with all else that they know (bounds, limits of
hosts, pages of other models), and the intervals that come out are those around which the next ones stand in. Where this comes to rest
every visit is worth what the true model says, so it is the optimum of all pages together, at one price (a host at its limit has its own).

Notes
-----
With V(d) what a visit is worth at interval d (`EvenlySpaced.crawl_worth` times the importance) and e = d log V / d log d, the steady
page has ``r = rate d`` with ``r^2 exp(-r) / (1 - (1 + r) exp(-r)) = e``, which falls from 2 to 0 in r, and the weight at which its visit
is worth V(d). e need not be exact: it says how fast it goes (as in Newton's method, errors are squared), not where to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation.bursts import weibull_of_bits
from optimal_frontier.optimization import freshness_periodic
from optimal_frontier.optimization.response import changes_between_visits, marginal_share
from optimal_frontier.optimization.updates import Weibull
from optimal_frontier.scheduling.planning import RatePlan

#: Relative difference that is left between what visits are worth by the model and by the page that stands in.
TOLERANCE: Final = 1e-4
#: Solves, at most; 3 are usual, and up to 8 without a last plan.
_SOLVES: Final = 40
#: Steps towards the rates at which visits are worth what they cost, between two solves.
_STEPS: Final = 4
#: From this solve on intervals move half of the way only.
_CAREFUL: Final = 12
#: Shapes are rounded to this, so that what depends on them alone is worked out a few hundred times, not once a page.
_SHAPE_STEP: Final = 1e-3
#: Longest interval around which a page stands in, as (interval / scale)^shape: what a visit is worth does not grow any more.
_LONGEST: Final = 50.0
#: And the shortest, in mean times between changes: from there on it grows with the square of the interval.
_SHORTEST: Final = 1e-9
#: Relative step of the interval by which e is measured.
_STEP: Final = 1e-3
#: Most changes between two visits of a page that stands in.
_MOST_CHANGES: Final = 50.0

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Objective = Literal["freshness", "changes"]


@dataclass(frozen=True)
class BurstyPages:
    """Pages whose changes come in bursts.

    Attributes
    ----------
    rows : ndarray of int (k,)
        Where they stand among the pages of the plan.
    shape, mean : ndarray (k,)
        Of their Weibull models, mean in seconds.
    model : Weibull
        The same.
    """

    rows: Ints
    shape: Floats
    mean: Floats
    model: Weibull

    @classmethod
    def of_models(cls, rows: Ints, shape: Floats, mean: Floats) -> BurstyPages:
        """Take Weibull models as they are, shapes to a thousandth."""
        rounded = np.rint(shape / _SHAPE_STEP) * _SHAPE_STEP
        return cls(rows, rounded, mean, Weibull.from_mean(mean, rounded))

    @classmethod
    def of_bits(cls, rows: Ints, changes: Ints, observations: Ints, correlation: Floats, change_rate: Floats) -> BurstyPages:
        """Fit the models to what is kept of each page, see `weibull_of_bits`; all of shape (k,)."""
        return cls.of_models(rows, *weibull_of_bits(changes, observations, correlation, change_rate))

    def gaps(self, rates: Floats) -> Floats:
        """Return the intervals of rates (k,), seconds, no longer and no shorter than makes a difference."""
        with np.errstate(divide="ignore"):
            longest = (_LONGEST / self.model.rate) ** (1.0 / self.shape)
            return np.asarray(np.clip(1.0 / rates, _SHORTEST * self.mean, longest))

    def worth(self, rates: Floats, objective: Objective) -> Floats:
        """Return what one more visit per second adds to freshness (or to changes seen per second) at rates (k,), per importance."""
        return self.model.crawl_worth(self.gaps(rates), objective)

    def freshness(self, rates: Floats) -> Floats:
        """Return the share of time in which each copy is fresh."""
        return np.where(rates > 0, self.model.freshness_every(self.gaps(rates)), 0.0)

    def changes(self, rates: Floats) -> Floats:
        """Return visits per second that see a change."""
        return rates * self.model.changes_every(self.gaps(rates))

    def stand_ins(self, rates: Floats, objective: Objective) -> tuple[Floats, Floats]:
        """Return the steady pages whose visits are worth the same around rates (k,), and change as fast with them.

        Returns
        -------
        weight : ndarray (k,)
            Per importance.
        change_rate : ndarray (k,)
            Changes per second.

        Examples
        --------
        A page of shape 1 is such a page itself:

        >>> pages = BurstyPages.of_models(np.arange(1), np.array([1.0]), np.array([20.0]))
        >>> weight, change_rate = pages.stand_ins(np.array([0.02]), "freshness")
        >>> weight.round(2).tolist(), change_rate.round(4).tolist()
        ([1.0], [0.05])
        """
        gap = self.gaps(rates)
        worth = self.model.crawl_worth(gap, objective)
        elasticity = np.log(self.model.crawl_worth(gap * (1 + _STEP), objective) / worth) / np.log1p(_STEP)
        changes = np.interp(elasticity, *_changes_by_elasticity())
        change_rate = changes / gap
        weight = worth / marginal_share(changes)
        return weight * (change_rate if objective == "freshness" else 1.0), change_rate

    def rates_worth(self, price: Floats, rates: Floats, objective: Objective) -> Floats:
        """Return about the rates at which visits are worth so much (k,), per importance, from others nearby; 0 where none is."""
        for _ in range(_STEPS):
            weight, change_rate = self.stand_ins(rates, objective)
            share = price * (change_rate if objective == "freshness" else 1.0) / weight
            odds = share / np.maximum(1.0 - share, np.finfo(np.float64).eps)
            rates = np.where(share < 1.0, change_rate / changes_between_visits(odds), 0.0)
        return rates

    def part(self, which: NDArray[np.bool_]) -> BurstyPages:
        """Return some of the pages."""
        return BurstyPages(self.rows[which], self.shape[which], self.mean[which], self.model.part(np.flatnonzero(which)))


@cache
def _changes_by_elasticity() -> tuple[Floats, Floats]:
    """e, which rises, and the changes r between two visits of the steady page that has it."""
    changes = np.geomspace(_MOST_CHANGES, 1e-6, 4000)
    return changes**2 * np.exp(-changes) / marginal_share(changes), changes


class StandIns:
    """Plans with steady pages that stand in for bursty ones, from one plan to the next.

    Parameters
    ----------
    pages : BurstyPages
        At least one.
    importance, change_rate : ndarray (n,)
        Of all pages.
    objective : {"freshness", "changes"}
    rates : ndarray (k,)
        Of the last plan, visits per second; all 0 if there was none. They change nothing but the number of solves.
    """

    def __init__(
        self,
        pages: BurstyPages,
        importance: Floats,
        change_rate: Floats,
        objective: Objective,
        rates: Floats,
    ) -> None:
        self._pages, self._objective = pages, objective
        self._importance, self._change_rate = importance, change_rate
        # A page without visits is likely to stay so. Without a plan all begin where a visit is worth something, but not all it can be.
        self._rates = rates if (rates > 0).any() else 1.0 / pages.mean

    def plan(self, solve: Callable[[Floats, Floats], RatePlan]) -> RatePlan:
        """Return the plan of all pages.

        Parameters
        ----------
        solve : callable
            Plans them, given their weights and change rates, both (n,).

        Returns
        -------
        RatePlan
            With weights and change rates of the pages that stand in. Freshness is that of the true models. What visits are worth by these
            and by the pages that stand in agrees to `TOLERANCE`.
        """
        pages, objective = self._pages, self._objective
        weight, change_rate = self._importance.copy(), self._change_rate.copy()
        own = self._importance[pages.rows]
        for solved in range(_SOLVES):
            shares, changing = pages.stand_ins(self._rates, objective)
            weight[pages.rows], change_rate[pages.rows] = own * shares, changing
            plan = solve(weight, change_rate)
            rates = plan.rates[pages.rows]
            stood = shares * marginal_share(changing * pages.gaps(rates)) / (changing if objective == "freshness" else 1.0)
            off = np.abs(stood / pages.worth(rates, objective) - 1.0) > TOLERANCE
            if not off.any():
                break
            # Between its bounds a page pays what its stand-in is worth: it stands at once where it is worth that itself.
            off &= (rates > plan.least[pages.rows]) & (rates < plan.most[pages.rows])
            rates[off] = pages.part(off).rates_worth(stood[off], rates[off], objective)
            if solved >= _CAREFUL:
                rates = 1.0 / np.sqrt(pages.gaps(rates) * pages.gaps(self._rates))
            self._rates = rates
        return self._corrected(plan)

    def _corrected(self, plan: RatePlan) -> RatePlan:
        """Return a plan whose freshness is that of the models: the solver took the pages for those that stand in."""
        pages, rows = self._pages, self._pages.rows
        rates, own = plan.rates[rows], self._importance[rows]
        fresh = float(own @ pages.freshness(rates))
        return replace(
            plan,
            freshness=plan.freshness - freshness_periodic(plan.weight[rows], plan.change_rate[rows], rates) + fresh,
            believed=plan.believed - freshness_periodic(plan.weight[rows], plan.median[rows], rates) + fresh,
        )
