"""Wolf's figure 8: staleness by number of crawls, for a mixture of pages and for each kind alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from optimal_frontier.papers.wolf.wolf_pages import KINDS, MIXTURE, PAGES, wolf_pages
from optimal_frontier.papers.wolf.wolf_schemes import (
    CRAWLS_PER_PAGE,
    SCHEMES,
    Check,
    SchemePoint,
    convex_check,
    mean_staleness,
    order_checks,
)

#: Panels, and what kinds of pages they have.
PANELS: Final[Mapping[str, tuple[float, ...]]] = MappingProxyType(
    {"mixed": MIXTURE, KINDS[0]: (1.0, 0.0, 0.0), KINDS[1]: (0.0, 1.0, 0.0), KINDS[2]: (0.0, 0.0, 1.0)}
)
#: Staleness that counts as none.
_NONE: Final = 1e-12


def wolf_figure_8(n: int = PAGES, seed: int = 0, crawls_per_page: Sequence[float] = CRAWLS_PER_PAGE) -> Iterator[SchemePoint]:
    """Measure the figure, panel by panel.

    Parameters
    ----------
    n : int
        Number of pages of each panel.
    seed : int
        Of the pages.
    crawls_per_page : sequence of float

    Yields
    ------
    SchemePoint
        Mean of A(x) over pages.

    References
    ----------
    Wolf et al. 2002, figure 8 and section 5.

    Examples
    --------
    >>> for point in wolf_figure_8(1000, crawls_per_page=[5.0]):
    ...     if point.panel == "quasi-deterministic":
    ...         print(point.scheme, round(point.value, 4))
    optimal 0.0
    uniform 0.0122
    proportional 0.0186
    """
    for panel, shares in PANELS.items():
        pages = wolf_pages(n, seed, shares=shares)
        for ratio in crawls_per_page:
            yield from mean_staleness(pages, panel, ratio, ratio)


def figure_8_checks(found: Sequence[SchemePoint]) -> list[Check]:
    """Return the paper's orders, convexity, and that quasi-deterministic pages are always fresh at the largest number of crawls."""
    checks = order_checks(found, list(pairwise(SCHEMES)))
    last = max((one for one in found if (one.panel, one.scheme) == (KINDS[2], "optimal")), key=lambda one: one.at)
    fresh = Check("optimal 0 for quasi-deterministic pages at the most crawls", _NONE - last.value, f"{last.panel} {last.at:g}")
    return [*checks, convex_check(found, "optimal"), fresh]
