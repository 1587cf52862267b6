"""Rows of times: joined, and looked up exactly."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pytest

from optimal_frontier.simulation import Ragged


@pytest.mark.parametrize("seed", range(5))
def test_lookup_is_that_of_a_bisection_in_each_row(seed):
    """Also in empty rows, at the very time of an event, and at times so large that a page's number added to them would be lost."""
    rng = np.random.default_rng(seed)
    pages = rng.integers(0, 20, 300)
    pages[pages == 7] = 8
    times = rng.integers(0, 50, 300) * 1e9 + seed * 0.5
    rows = Ragged.joined(pages, times, 20)
    by_page = [sorted(times[pages == page].tolist()) for page in range(20)]
    assert rows.counts.tolist() == [len(row) for row in by_page]
    asked = rng.integers(0, 20, 500)
    at = np.where(rng.random(500) < 0.5, rng.choice(times, 500), rng.random(500) * 6e10 - 5e9)
    expected = [bisect_right(by_page[page], time) for page, time in zip(asked, at, strict=True)]
    assert (rows.after(asked, at) - rows.starts[asked]).tolist() == expected
    following = [[*by_page[page], np.inf][place] for page, place in zip(asked, expected, strict=True)]
    assert rows.next_time(asked, at).tolist() == following


def test_no_events_at_all():
    rows = Ragged.joined(np.array([], dtype=int), np.array([]), 3)
    assert len(rows) == 3
    assert rows.next_time(np.array([0, 2]), np.array([0.0, 1.0])).tolist() == [np.inf, np.inf]
