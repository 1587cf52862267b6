"""Exploration: which change rate the solver is given, and how often a page is looked at whatever the solver says.

The rates that are best by what is believed starve pages that only seem too fast to follow, and what is not visited is not learned. Each
choice here answers that in its own way; all are pure functions of posteriors, a number in (0, 1) per page, and time in rounds. A round is
the time in which the budget visits every page once; the first visits are round 0 to 1.

Notes
-----
Lemma 2 of the reference says when a rate x can be learned at all from bits of visits at intervals w_1, w_2, ...: as long as both answers
keep coming, sum exp(-x w_n) and sum (1 - exp(-x w_n)) infinite. Intervals that grow faster than log(n)/x make the first finite: from some
visit on every bit is "changed", and no estimator gets rid of its error. Intervals that crowd so that all of them end before
a fixed time make the second finite. Intervals below a constant are enough for every x, and so are pairs of visits less than a
constant apart that never cease to come, whatever lies between. What keeps it:

* ``median``, ``mean``, ``thompson``, ``epsilon``: a minimum rate, that shares `LEARNING_SHARE` of the budget out evenly (in a live crawl
  MAX_INTERVAL is one as well). Without it the first three would not: a page that is not worth a visit by its median or mean is never
  visited again, and a draw that is worth one becomes exponentially rare. ``epsilon`` visits a page at the uniform rate in phase
  k = 1, 2, ... with probability `EPSILON` / k; the sum over phases is infinite.
  Visits so far apart all find a change, and teach nothing; so where a page is to be given up after a long interval, a `second_look`
  follows soon: pairs of visits, as the lemma has them. They are 0.6 to 1.5% of the visits, and worth 0.1 to 0.3 points of freshness.
* ``explore-then-commit``: exploration is at even intervals. With a known horizon it ends, as the visits of a finite time do; with the
  doubling trick it never ceases to come back.

Measured (docs/maths.md, "Simulated crawls"): with second looks ``median`` is ahead of ``epsilon`` by 0.05 points of freshness or less where
rates are constant; without them, in the first edition, it was behind by 0.04 to 0.5. Where rates jump, ``thompson`` was ahead.

References
----------
U. Upadhyay et al., "Learning to crawl", AAAI 2020, Lemma 2, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import posterior_median, posterior_quantile
from optimal_frontier.scheduling.planning import LOAD

#: What EXPLORATION may be.
Exploration = Literal["median", "mean", "thompson", "epsilon", "explore-then-commit"]
EXPLORATIONS: Final[tuple[Exploration, ...]] = get_args(Exploration)
#: Share of the budget that minimum rates take at most, so that no page is left alone for good.
LEARNING_SHARE: Final = 0.01
#: Probability that a page is explored in phase k = 1, 2, ... is this over k.
EPSILON: Final = 0.5
#: Length of a phase in rounds; a round is the time in which the budget visits every page once.
PHASE_ROUNDS: Final = 2
#: A page that is to be given up is looked at once more where its last interval was longer than so many of those that tell best.
LONG: Final = 4.0
#: Waits, seconds, from which on a visit never comes: rows hold 32 bits, which reach a little further.
NEVER_S: Final = 1e30
#: Changes in the time after which a page is looked at again from which on it is too fast: 1, but for rounding.
_TOO_FAST: Final = 1.0 - 1e-9
#: Of splitmix64.
_FACTORS: Final = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xBF58476D1CE4E5B9)
_WORD: Final = 2**64 - 1

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """What a plan is made from.

    Attributes
    ----------
    change_rate : ndarray (n,)
        The rates to plan with.
    least_rate, most_rate : ndarray (n,)
        Bounds on revisit rates that exploration asks for, beside those of the crawl.
    """

    change_rate: Floats
    least_rate: Floats
    most_rate: Floats


class Exploring(NamedTuple):
    """How far exploration is in a live crawl, and what that makes of waits.

    Attributes
    ----------
    exploration : str
        EXPLORATION; names without a part here count as ``median``.
    number : int
        Of the phase of ``epsilon``.
    is_even : bool
        ``explore-then-commit`` explores: all pages are visited at even intervals.
    interval : float
        The even interval, seconds: that in which the budget visits every page once.
    """

    exploration: str
    number: int
    is_even: bool
    interval: float

    @classmethod
    def of(cls, published: Mapping[str, str], round_s: float) -> Exploring:
        """Read what plans publish (``exploration...``); ``round_s``: seconds in which all pages can be visited once, 0: not known.

        Examples
        --------
        >>> Exploring.of({"exploration": "epsilon", "exploration_number": "3"}, 97.0)
        Exploring(exploration='epsilon', number=3, is_even=False, interval=100.0)
        """
        name = published.get("exploration", "median")
        if round_s <= 0.0:
            return _PLAIN
        if name == "median":
            return cls(name, 0, False, round_s / LOAD)
        rounds = float(published.get("exploration_rounds", 1.0))
        horizon = float(published.get("exploration_horizon", math.inf))
        is_even = name == "explore-then-commit" and explores(rounds, horizon)
        return cls(name, int(published.get("exploration_number", 0)), is_even, round_s / LOAD)

    def longest(self, page: bytes, longest: float) -> float:
        """Return the longest wait (s) of a page, by its identity and the one that the crawl has.

        A page that ``epsilon`` picks in a phase waits no longer than the even interval. One without a longest wait has a
        `LEARNING_SHARE`-th of even visits, but for ``explore-then-commit``.
        """
        if self.exploration == "epsilon" and _uniform(int.from_bytes(page[:8], "little"), self.number) < epsilon(max(self.number, 1)):
            return min(longest, self.interval)
        if longest < NEVER_S or self.exploration == "explore-then-commit":
            return longest
        return min(longest, self.interval / LEARNING_SHARE)

    def second_look(self, log_price: float, importance: float, change_rate: float, interval: float) -> float:
        """Return the wait (s) for the second look at a page, see `second_look`; inf for none."""
        return math.inf if self.exploration == "explore-then-commit" else second_look(log_price, importance, change_rate, interval)

    def longest_of_many(self, pages: NDArray[np.void], longest: ArrayLike) -> Floats:
        """`longest` for arrays (n,); identities as records of 8 bytes or more."""
        waits = np.asarray(longest, np.float64).copy()
        if self.exploration != "explore-then-commit":
            waits[waits >= NEVER_S] = min(NEVER_S, self.interval / LEARNING_SHARE)
        if self.exploration == "epsilon" and len(pages):
            raw = np.frombuffer(pages.tobytes(), np.uint8).reshape(len(pages), -1)[:, :8]
            numbers = np.ascontiguousarray(raw).view("<u8").ravel()
            picked = page_uniforms(numbers, self.number) < epsilon(max(self.number, 1))
            waits[picked] = np.minimum(waits[picked], self.interval)
        return waits


#: Before the first plan, and where the budget visits all pages at once.
_PLAIN: Final = Exploring("median", 0, False, math.inf)


def choose(
    exploration: Exploration,
    shape: ArrayLike,
    time: ArrayLike,
    budget: float,
    uniform: ArrayLike,
    rounds: float,
    horizon: float = math.inf,
) -> Choice:
    """Return what a plan is made from.

    Parameters
    ----------
    exploration : str
        A name in `EXPLORATIONS`.
    shape, time : array_like (n,)
        Gamma posteriors, > 0; the prior where there is no bit. For ``explore-then-commit`` those at the end of the last exploration,
        or the planner learns on after it committed.
    budget : float
        Visits per unit of time, over all pages.
    uniform : array_like (n,)
        A number in (0, 1) per page, by which ``thompson`` draws and ``epsilon`` picks: from a generator, or `page_uniforms`. New ones
        for every draw with ``thompson``; the same ones throughout a phase with ``epsilon``.
    rounds : float
        Time since the crawl began, in rounds.
    horizon : float
        Length of the crawl in rounds, if it is known; ``explore-then-commit`` explores for the square root of it. Without it, the
        doubling trick.

    Returns
    -------
    Choice

    Raises
    ------
    InvalidProblemError
        The name is unknown.

    Examples
    --------
    >>> shape, time = [1.0, 4.0], [10.0, 2.0]
    >>> choose("median", shape, time, budget=1.0, uniform=[0.5, 0.5], rounds=0.0).change_rate.round(3).tolist()
    [0.069, 1.836]
    >>> choose("mean", shape, time, budget=1.0, uniform=[0.5, 0.5], rounds=0.0).change_rate.tolist()
    [0.1, 2.0]
    """
    a, b = np.asarray(shape, dtype=np.float64), np.asarray(time, dtype=np.float64)
    level = np.full(a.shape, uniform_rate(a.size, budget))
    floor = LEARNING_SHARE * level
    free = np.full(a.shape, np.inf)
    if exploration == "median":
        return Choice(posterior_median(a, b), floor, free)
    if exploration == "mean":
        return Choice(a / b, floor, free)
    if exploration == "thompson":
        return Choice(posterior_quantile(a, b, uniform), floor, free)
    if exploration == "epsilon":
        explored = np.asarray(uniform) < epsilon(phase(rounds))
        return Choice(posterior_median(a, b), np.where(explored, level, floor), free)
    if exploration == "explore-then-commit":
        if explores(rounds, horizon):
            return Choice(a / b, level, level)
        return Choice(a / b, np.zeros(a.shape), free)
    raise InvalidProblemError(f"exploration {exploration!r}: unknown; known are {', '.join(EXPLORATIONS)}")


def uniform_rate(pages: int, budget: float) -> float:
    """Return the revisit rate of every page where all are visited alike: `LOAD` of the budget, shared out evenly."""
    return LOAD * budget / max(pages, 1)


def epsilon(number: int) -> float:
    """Return the probability that a page is explored in a phase, 1 being the first."""
    return min(1.0, EPSILON / number)


def phase(rounds: float) -> int:
    """Return the number of the phase of ``epsilon`` at a time, 1 being the first."""
    return 1 + int(rounds / PHASE_ROUNDS)


def second_look(log_price: float, importance: float, change_rate: float, interval: float) -> float:
    """Return after how long a page that changes too fast to be worth a visit, as it seems, is looked at once more.

    Parameters
    ----------
    log_price : float
        Logarithm of the price of a visit.
    importance, change_rate : float
        Weight > 0, and changes per unit of time as they are believed after its last visit.
    interval : float
        Time before that visit.

    Returns
    -------
    float
        price / importance: the mean time between changes of a page that is just worth its visits. A bit over this time tells on which side
        the page is; one over many of them is a change on either. inf where the last one told that already, or the page is worth visits.

    Examples
    --------
    >>> round(second_look(math.log(3.0), 1.0, change_rate=0.4, interval=100.0), 6), second_look(math.log(3.0), 1.0, 0.4, interval=3.0)
    (3.0, inf)
    """
    if interval <= 0.0 or math.log(interval / LONG) <= log_price - math.log(importance):
        return math.inf
    wait = math.exp(log_price) / importance
    return wait if change_rate * wait >= _TOO_FAST else math.inf


def stretch(rounds: float, horizon: float = math.inf) -> int:
    """Return the number of the stretch of ``explore-then-commit`` at a time: 0 with a known horizon, of the doubling trick from 1 on."""
    return 0 if horizon < math.inf else 1 + math.floor(math.log2(rounds + 1.0))


def explores(rounds: float, horizon: float = math.inf) -> bool:
    """Return whether explore-then-commit explores at a time.

    Parameters
    ----------
    rounds : float
        Time since the crawl began, in rounds.
    horizon : float
        Length of the crawl in rounds; inf for the doubling trick.

    Notes
    -----
    Theorem 1 lets exploration grow like the square root of the horizon; its constant asks for bounds on the rates (`exploration_time`).
    Here it is one round for a horizon of one round, and 9 for 80. With the doubling trick stretches of 1, 2, 4, ... rounds follow each
    other, and each begins with the exploration of its own length.
    """
    if horizon < math.inf:
        return rounds < math.ceil(math.sqrt(horizon))
    length = 2.0 ** (stretch(rounds) - 1)
    return rounds + 1.0 - length < math.ceil(math.sqrt(length))


def turning_point(rounds: float, horizon: float = math.inf) -> float:
    """Return when explore-then-commit next begins or ceases to explore, in rounds; inf for never.

    Examples
    --------
    >>> [turning_point(at) for at in (2.9, 3.0, 5.0)], turning_point(1.0, horizon=80.0), turning_point(9.0, horizon=80.0)
    ([3.0, 5.0, 7.0], 9.0, inf)
    """
    if horizon < math.inf:
        return float(math.ceil(math.sqrt(horizon))) if explores(rounds, horizon) else math.inf
    length = 2.0 ** (stretch(rounds) - 1)
    return length - 1.0 + (math.ceil(math.sqrt(length)) if explores(rounds) else length)


def exploration_time(pages: int, budget: float, horizon: float, lower: float, upper: float, delta: float) -> float:
    """Return for how long to explore so that the bound on the regret is least.

    Parameters
    ----------
    pages, budget : int, float
        Number of pages, and visits per unit of time over all of them.
    horizon : float
        Length of the crawl.
    lower, upper : float
        Bounds on every change rate, above 0.
    delta : float
        Probability with which the bound may fail.

    Returns
    -------
    float
        sqrt(C horizon), whole rounds, at least one and at most `horizon`.

    See Also
    --------
    regret_bound : where C comes from.
    """
    rounds = math.sqrt(_bound_constant(pages, budget, lower, upper, delta) * horizon) * budget / pages
    return min(horizon, max(1.0, math.ceil(rounds)) * pages / budget)


def regret_bound(pages: int, budget: float, horizon: float, explored: float, lower: float, upper: float, delta: float) -> float:
    """Return a bound on the regret of explore-then-commit, as a share of the importance times time.

    Parameters
    ----------
    pages, budget, horizon, lower, upper, delta
        As in `exploration_time`.
    explored : float
        Time spent exploring, at most `horizon`.

    Returns
    -------
    float
        explored + (horizon - explored) C / explored: it holds with probability 1 - `delta`.

    Notes
    -----
    Exploring loses no more than everything. After it, Lemma 3 and a union bound over pages say that every estimate is within
    e = sqrt(log(2n/delta) / (2 w t)) exp(upper w) of its rate, where w = n/budget is the interval and t the time explored.
    Planning memoryless visits with estimates y in place of rates x loses at most the sum of importance x (sqrt x - sqrt y)^2 / min(x, y)
    per unit of time, a form of Lemma 4. (The optimum's first-order condition at y turns the loss of a page into a function of its best
    rate that can be maximised by hand, which leaves (sqrt x - sqrt y)^2 (q - sqrt(x y))^2 / ((q + x)(q + y)^2), q being its planned
    rate; what stands beside the first square is at most 1/min(x, y).) Hence C = log(2n/delta) exp(2 upper w) / (8 lower^2 w).

    References
    ----------
    U. Upadhyay et al., "Learning to crawl", AAAI 2020, Lemmas 3 to 5, Theorem 1. The copy at hand has lost its formulas; the constants
    are ours.
    """
    constant = _bound_constant(pages, budget, lower, upper, delta)
    return explored + (horizon - explored) * min(1.0, constant / explored)


def _bound_constant(pages: int, budget: float, lower: float, upper: float, delta: float) -> float:
    interval = pages / budget
    return math.log(2.0 * pages / delta) * math.exp(2.0 * upper * interval) / (8.0 * lower**2 * interval)


def _uniform(page: int, number: int) -> float:
    """`page_uniforms` of one page."""
    bits = (page + 0x9E3779B97F4A7C15 * (number + 1)) & _WORD
    for factor in _FACTORS:
        bits = (bits ^ (bits >> 30)) * factor & _WORD
    bits ^= bits >> 31
    return ((bits >> 11) + 0.5) * 2.0**-53


def page_uniforms(pages: ArrayLike, number: int) -> Floats:
    """Return numbers in (0, 1), one a page, that are the same whoever asks for them.

    Parameters
    ----------
    pages : array_like of int (n,)
        What identifies each page, 0 or more.
    number : int
        Of the plan or phase, 0 or more.

    Returns
    -------
    ndarray (n,)

    Notes
    -----
    The finalizer of splitmix64 over both numbers: 53 bits, no state, about 20 ns a page.

    Examples
    --------
    >>> first, again, other = (page_uniforms([3, 4], number) for number in (1, 1, 2))
    >>> bool((first == again).all()), bool((first == other).any())
    (True, False)
    """
    with np.errstate(over="ignore"):
        bits = np.asarray(pages).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * (np.uint64(number) + np.uint64(1))
        for factor in _FACTORS:
            bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(factor)
        bits ^= bits >> np.uint64(31)
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
