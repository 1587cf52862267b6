"""A site all of whose pages show something else at every fetch, played through dispatch, judge and planner on a set clock."""

from __future__ import annotations

import numpy as np
import pytest
from noisy_site import Noisy
from played_crawl import parse
from timed_namespace import START

from optimal_frontier.frontier.judging.shared_noise import latest_of

PAGES, BUDGET = 60, 0.5


@pytest.mark.parametrize("directories", [1, 20])
def test_noise_of_some_pages_is_left_out_of_all_and_other_processes_know(space, directories):
    """In the second round; then bits are changes of the pages, also where another process goes on."""
    site = Noisy(space, parse(CRAWL_RATE=BUDGET, MIN_INTERVAL=1.0), directories=directories, pages=PAGES)
    site.until(2.5 * PAGES / BUDGET)
    (shared,) = latest_of(space.command("ZRANGE", space.key("flagged", 0), 0, -1)).values()
    assert shared.left_out == ("p.ad",)
    begun = int(space.hash("stats")["noise_checks"])
    assert 3 <= begun <= 24
    site.run_by(site.settings)
    before, since = site.rows(), site.now
    site.until(6 * PAGES / BUDGET)
    after, changed = site.rows(), 0
    for number, changes in enumerate(site.changes):
        visits = np.array(site.visits[number])
        # A change shows at the visit after it.
        last = visits[visits < since].max()
        shown = np.unique(np.searchsorted(visits, START + changes[START + changes >= last]))
        changed += int((shown < len(visits)).sum())
    assert (after["tag"] == before["tag"].max()).all()
    assert (after["observations"] - before["observations"]).sum() > 2 * PAGES
    assert (after["changes"] - before["changes"]).sum() == pytest.approx(changed, rel=0.1)
    assert int(space.hash("stats")["noise_checks"]) - begun < 20
