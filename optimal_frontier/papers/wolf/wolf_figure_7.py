"""Wolf's figure 7: embarrassment by number of crawls, and by how unequal change rates are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from optimal_frontier.papers.wolf.search_engine import search_log
from optimal_frontier.papers.wolf.wolf_pages import PAGES, Floats, WolfPages, wolf_pages
from optimal_frontier.papers.wolf.wolf_schemes import (
    CRAWLS_PER_PAGE,
    FIXED_CRAWLS_PER_PAGE,
    SCHEMES,
    Check,
    SchemePoint,
    convex_check,
    crawls_of,
    order_checks,
)

#: Panels: crawls per page at Zipf's law, and the Zipf-like parameter at 2.5 crawls per page.
BY_CRAWLS: Final = "crawls per page"
BY_SKEW: Final = "theta"
#: Zipf-like parameters, from skewed to all alike.
SKEWS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
WEIGHTED: Final = "weighted "
#: All six curves, in the order of the legend.
CURVES: Final = tuple(prefix + scheme for scheme in SCHEMES for prefix in (WEIGHTED, ""))
#: What the paper says of them: (lower, higher).
OPTIMAL_ORDERS: Final = (*((CURVES[0], other) for other in CURVES[1:]), ("optimal", "uniform"))
OTHER_ORDERS: Final = (("uniform", "proportional"), ("weighted uniform", "weighted proportional"))
#: Of its value, by which uniform may be above proportional where rates become alike: of 2.5 crawls per page it gives the half crawl by lot,
#: while rounding proportional shares gives it to the faster pages.
ALIKE: Final = 0.02


def wolf_figure_7(
    n: int = PAGES, seed: int = 0, crawls_per_page: Sequence[float] = CRAWLS_PER_PAGE, skews: Sequence[float] = SKEWS
) -> Iterator[SchemePoint]:
    """Measure the figure, one curve's point after the other.

    Parameters
    ----------
    n : int
        Number of pages.
    seed : int
        Of pages and of the search engine.
    crawls_per_page, skews : sequence of float
        Places of the first panel and of the second.

    Yields
    ------
    SchemePoint
        ``sum w A(x) / sum w``: the embarrassment level as a share of what it is if no copy is ever fresh.

    Notes
    -----
    The paper's mixture; weights by eq. 8 from `search_log`, independent of change rates. "optimal" without weights is worked
    out with the same weight for all pages; all curves show the weighted value.

    References
    ----------
    Wolf et al. 2002, figure 7 and section 5.

    Examples
    --------
    >>> for point in wolf_figure_7(1000, crawls_per_page=[2.5], skews=[]):
    ...     print(f"{point.scheme:21} {point.value:.4f}")
    weighted optimal      0.0486
    optimal               0.0769
    weighted uniform      0.0635
    uniform               0.0905
    weighted proportional 0.0675
    proportional          0.1117
    """
    weights = search_log(n, seed).weights
    pages = wolf_pages(n, seed)
    for ratio in crawls_per_page:
        yield from _curves(pages, weights, BY_CRAWLS, ratio, round(ratio * n))
    for skew in skews:
        yield from _curves(wolf_pages(n, seed, skew=skew), weights, BY_SKEW, skew, round(FIXED_CRAWLS_PER_PAGE * n))


def figure_7_checks(found: Sequence[SchemePoint]) -> list[Check]:
    """Return the paper's orders, and convexity of the best curve in the number of crawls."""
    by_crawls, by_skew = ([one for one in found if one.panel == panel] for panel in (BY_CRAWLS, BY_SKEW))
    return [
        *order_checks(found, OPTIMAL_ORDERS),
        *order_checks(by_crawls, OTHER_ORDERS, among=BY_CRAWLS),
        *order_checks(by_skew, OTHER_ORDERS, ALIKE, BY_SKEW),
        convex_check(by_crawls, CURVES[0]),
    ]


def weighted_wins(found: Iterable[SchemePoint]) -> dict[str, tuple[int, int]]:
    """At how many places the weighted variant of uniform and proportional is below the other, and of how many.

    The paper has it the other way round everywhere. With weights independent of change rates that cannot be: a page that seldom
    changes is stale for rate / (2 (x + 1)) of the time. With x = a w the weighted sum is one of w / (a w + 1), which is concave in w, so
    it is at most what the mean weight gives in the place of each, and that is the sum of the uniform scheme (Jensen).
    """
    values = {(one.panel, one.at, one.scheme): one.value for one in found}
    wins = {}
    for scheme in SCHEMES[1:]:
        of_scheme = [(value, values[panel, at, WEIGHTED + name]) for (panel, at, name), value in values.items() if name == scheme]
        wins[scheme] = sum(weighted < plain for plain, weighted in of_scheme), len(of_scheme)
    return wins


def _curves(pages: WolfPages, weights: Floats, panel: str, at: float, total: int) -> Iterator[SchemePoint]:
    everything = float(weights.sum())
    for scheme in SCHEMES:
        for prefix, known in ((WEIGHTED, weights), ("", None)):
            stale = pages.staleness(crawls_of(scheme, pages, total, known))
            yield SchemePoint(panel, at, prefix + scheme, float(weights @ stale) / everything)
