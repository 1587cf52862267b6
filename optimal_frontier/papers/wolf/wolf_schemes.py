"""The schemes of Wolf et al.'s experiments, which give out equally many crawls, and how their curves are held against each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.papers.wolf.allocation import allocate_crawls
from optimal_frontier.papers.wolf.wolf_pages import INTERVAL, Floats, Integers, WolfPages

#: Schemes that know of no weights, best first.
SCHEMES: Final = ("optimal", "uniform", "proportional")
#: Crawls per page and day in figures 7 and 8.
CRAWLS_PER_PAGE: Final = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
#: Crawls per page where something else is varied.
FIXED_CRAWLS_PER_PAGE: Final = 2.5
#: Relative difference that is rounding.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class SchemePoint:
    """One scheme at one place of a figure.

    Attributes
    ----------
    panel : str
        Part of the figure.
    at : float
        On the horizontal axis.
    scheme : str
    value : float
        Mean staleness over pages, weighted where the figure says so, 0 to 1.
    """

    panel: str
    at: float
    scheme: str
    value: float


@dataclass(frozen=True)
class Check:
    """Something that the paper says of a figure, held against what was found.

    Attributes
    ----------
    promise : str
        What should be.
    slack : float
        By how much it is so where it is least so; negative where it is not.
    where : str
        That place.
    """

    promise: str
    slack: float
    where: str

    @property
    def holds(self) -> bool:
        """Whether it is so everywhere, up to rounding."""
        return self.slack >= -_ROUNDING


def in_proportion(claims: Floats, total: int, lot: Integers) -> Integers:
    """Return whole numbers that sum to `total`, as nearly in proportion to claims as can be.

    Parameters
    ----------
    claims : ndarray (n,)
        >= 0, not all 0.
    total : int
    lot : ndarray of int (n,)
        Of equal remainders those with the lowest are rounded up.

    Returns
    -------
    ndarray of int64 (n,)
        Each within 1 of its share: rounded down, and then up where the remainders are largest.

    Examples
    --------
    >>> in_proportion(np.array([5.0, 3.0, 2.0]), 4, np.array([0, 1, 2]))
    array([2, 1, 1])
    >>> in_proportion(np.ones(4), 6, np.array([3, 1, 2, 0]))
    array([1, 2, 1, 2])
    """
    if not (claims.size and claims.min() >= 0 and claims.sum() > 0):
        raise InvalidProblemError("claims: expected numbers, 0 or more, not all 0")
    exact = claims * (total / claims.sum())
    crawls = np.floor(exact + _ROUNDING)
    left = total - int(crawls.sum())
    # Remainders that differ by rounding only are equal.
    rest = np.round(exact - crawls, 9)
    crawls[np.lexsort((lot, -rest))[:left]] += 1
    return np.asarray(crawls, np.int64)


def crawls_of(scheme: str, pages: WolfPages, total: int, weights: Floats | None = None) -> Integers:
    """Return the crawls that a scheme gives each page.

    Parameters
    ----------
    scheme : {"optimal", "uniform", "proportional"}
        The least sum of (weighted) staleness; as evenly as can be, or in proportion to weights; in proportion to the change rate, times
        the weight.
    pages : WolfPages
    total : int
        Crawls in the interval.
    weights : ndarray (n,), optional
        For the weighted variants.

    Returns
    -------
    ndarray of int64 (n,)

    References
    ----------
    Wolf et al. 2002, section 5.
    """
    if scheme == "optimal":
        return allocate_crawls(pages.models, 1.0 if weights is None else weights, total, INTERVAL)
    if scheme not in SCHEMES:
        raise InvalidProblemError(f"scheme is {scheme!r}; expected {', '.join(map(repr, SCHEMES))}")
    claims = np.ones(len(pages)) if scheme == "uniform" else pages.change_rate
    return in_proportion(claims if weights is None else claims * weights, total, pages.lot)


def mean_staleness(pages: WolfPages, panel: str, at: float, crawls_per_page: float) -> Iterator[SchemePoint]:
    """Yield the points of all `SCHEMES` without weights."""
    total = round(crawls_per_page * len(pages))
    for scheme in SCHEMES:
        yield SchemePoint(panel, at, scheme, float(pages.staleness(crawls_of(scheme, pages, total)).mean()))


def order_checks(found: Iterable[SchemePoint], orders: Sequence[tuple[str, str]], allowance: float = 0.0, among: str = "") -> list[Check]:
    """Hold one scheme against another at all places: (lower, higher).

    The lower one may be above the other by the allowance, a share of the other, as slack is. The promise ends with `among`.
    """
    values = {(one.panel, one.at, one.scheme): one.value for one in found}
    places = list(dict.fromkeys((panel, at) for panel, at, _ in values))
    within = (f", or at most {allowance:.0%} above" if allowance else "") + (f", by {among}" if among else "")
    return [
        _worst(f"{lower} below {higher}{within}", {at: allowance + _below(values[*at, lower], values[*at, higher]) for at in places})
        for lower, higher in orders
    ]


def convex_check(found: Iterable[SchemePoint], scheme: str) -> Check:
    """Hold a scheme's curves against their chords: at no point may one rise above that of its two neighbours. Slack is in staleness."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for one in found:
        if one.scheme == scheme:
            curves.setdefault(one.panel, []).append((one.at, one.value))
    slack: dict[tuple[str, float], float] = {}
    for panel, curve in curves.items():
        at, value = np.array(sorted(curve)).T
        chords = value[:-2] + (value[2:] - value[:-2]) * (at[1:-1] - at[:-2]) / (at[2:] - at[:-2])
        slack |= {(panel, float(x)): float(below) for x, below in zip(at[1:-1], chords - value[1:-1], strict=True)}
    return _worst(f"{scheme} convex in the number of crawls", slack)


def rising_check(found: Iterable[SchemePoint], schemes: Sequence[str], axis: str) -> Check:
    """Hold curves against rising along the axis. Slack is in staleness."""
    curves: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for one in found:
        if one.scheme in schemes:
            curves.setdefault((one.panel, one.scheme), []).append((one.at, one.value))
    slack: dict[tuple[str, float], float] = {}
    for (_, scheme), curve in curves.items():
        at, value = np.array(sorted(curve)).T
        slack |= {(scheme, float(x)): float(rise) for x, rise in zip(at[1:], np.diff(value), strict=True)}
    return _worst(f"staleness rises with the {axis}", slack)


def _below(lower: float, higher: float) -> float:
    """By what share of the higher number the lower one is below it; two that are 0 are equal."""
    return 0.0 if lower == higher else 1.0 - lower / max(higher, 1e-300)


def _worst(promise: str, slack: dict[tuple[str, float], float]) -> Check:
    panel, at = min(slack, key=lambda place: slack[place])
    return Check(promise, slack[panel, at], f"{panel} {at:g}")
