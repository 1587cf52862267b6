"""Wolf's figure 9: staleness of Pareto pages by the shape of the tail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from optimal_frontier.papers.wolf.wolf_pages import PAGES, wolf_pages
from optimal_frontier.papers.wolf.wolf_schemes import (
    FIXED_CRAWLS_PER_PAGE,
    SCHEMES,
    Check,
    SchemePoint,
    mean_staleness,
    order_checks,
    rising_check,
)

#: Shapes, from hardly a mean to a light tail. At 1 and below there is no mean, and eq. 3 is undefined.
SHAPES: Final = (1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0)


def wolf_figure_9(n: int = PAGES, seed: int = 0, shapes: Sequence[float] = SHAPES) -> Iterator[SchemePoint]:
    """Measure the figure, shape by shape.

    Parameters
    ----------
    n : int
        Number of pages.
    seed : int
        Of the pages, which have the same mean times between updates at every shape.
    shapes : sequence of float
        Above 1.

    Yields
    ------
    SchemePoint
        Mean of A(x) over pages, at 2.5 crawls per page.

    Notes
    -----
    With ``q = shape - 1`` and ``scale = q / rate`` a copy of age s is fresh with probability ``(1 + rate s / q)^-q``, which falls as q
    grows, from 1 at q = 0 to ``exp(-rate s)``. So A(x) rises with the shape at every x, and with it the staleness of any scheme: updates
    that come in bursts spoil fewer copies. The paper says that staleness grows towards small shapes.

    References
    ----------
    Wolf et al. 2002, figure 9, eq. 3 and section 5.

    Examples
    --------
    >>> for point in wolf_figure_9(1000, shapes=[1.5, 3.0]):
    ...     print(point.at, point.scheme, round(point.value, 4))
    1.5 optimal 0.0818
    1.5 uniform 0.0895
    1.5 proportional 0.1101
    3.0 optimal 0.0908
    3.0 uniform 0.1033
    3.0 proportional 0.123
    """
    for shape in shapes:
        yield from mean_staleness(wolf_pages(n, seed, shares=(0.0, 1.0, 0.0), shape=shape), "pareto", shape, FIXED_CRAWLS_PER_PAGE)


def figure_9_checks(found: Sequence[SchemePoint]) -> list[Check]:
    """Return the paper's orders, and the trend that follows from eq. 3."""
    return [*order_checks(found, list(pairwise(SCHEMES))), rising_check(found, SCHEMES, "shape")]
