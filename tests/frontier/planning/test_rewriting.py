"""Which numbers a plan makes anew, of many pages at once."""

from __future__ import annotations

import numpy as np

from optimal_frontier.frontier.judging.waits import Terms, priced_numbers
from optimal_frontier.frontier.planning.page_columns import Pages, find_medians
from optimal_frontier.frontier.planning.priors import Priors
from optimal_frontier.frontier.planning.rewriting import moved_deadlines
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import ACTIVE, CHECKED

NOW = 2e9
LOG_PRICE = 8.0
TERMS = Terms(LOG_PRICE, Published(number=1, time=NOW, log_price=LOG_PRICE, prior_time=1e5), FrontierSettings.parse({}))


def visited_pages(count: int) -> Pages:
    """Pages whose numbers are those of a judge, but for half of them, which have twice the wait."""
    rng, pages = np.random.default_rng(5), Pages.none()
    pages.append(
        count,
        id=np.frombuffer(rng.bytes(12 * count), "V12"),
        state=ACTIVE,
        visits=1 + rng.integers(0, 3, count),
        failures=rng.integers(0, 10, count) == 0,
        flags=np.where(rng.random(count) < 0.1, CHECKED, 0),
        b=np.round((NOW - rng.uniform(0.0, 5e4, count)) * 1e6),
        importance=rng.lognormal(0.0, 1.0, count),
        min_interval=1.0,
        max_interval=90 * 86400.0,
        l=90 * 86400.0,
        shape=rng.uniform(0.5, 9.0, count) * (rng.random(count) < 0.9),
        time=10 ** rng.uniform(4.0, 7.0, count),
        median=np.nan,
        placed=LOG_PRICE,
    )
    find_medians(pages, np.arange(count), Priors().alike)
    rows = pages.take(np.arange(count))
    made = priced_numbers(rows, rows["id"], TERMS, -np.inf)
    for name, values in zip(("a", "s", "e", "l"), made, strict=True):
        pages[name][:] = values
    pages["a"][::2] += pages["s"][::2] * LOG_PRICE + pages["a"][::2]
    return pages


def test_pages_are_chosen_alike_whether_they_stand_together_or_not() -> None:
    """A block that is looked at whole is not copied; the same pages are moved, to the same numbers."""
    pages = visited_pages(2000)
    everything, none = np.arange(2000), np.zeros(2000, bool)
    whole = moved_deadlines(pages, everything, TERMS, NOW, none)
    parts = [moved_deadlines(pages, everything[first::2], TERMS, NOW, none[first::2]) for first in (0, 1)]
    assert 500 < len(whole.at) < 1000
    at = np.concatenate([part.at for part in parts])
    order = np.argsort(at)
    assert (at[order] == whole.at).all()
    assert np.concatenate([part.rows for part in parts])[order].tobytes() == whole.rows.tobytes()


def test_what_judges_have_just_made_is_left_alone() -> None:
    """Only what was changed is written, and not pages that do not go by the price."""
    pages = visited_pages(2000)
    moved = moved_deadlines(pages, np.arange(2000), TERMS, NOW, np.zeros(2000, bool)).at
    assert (moved % 2 == 0).all()
    assert (pages["failures"][moved] == 0).all()
    assert (pages["flags"][moved] == 0).all()
