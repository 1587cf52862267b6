"""Rates that are asked for are made to fit budget and hosts."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.scheduling.planning import fit_beside, fit_minima

ONE_HOST = np.zeros(2, np.int64)


def test_minima_that_do_not_fit_are_scaled_alike():
    low, feasible = fit_minima(np.array([1.0, 3.0]), np.array([9.0, 9.0]), 2.0, ONE_HOST, np.inf)
    assert low == pytest.approx([0.5, 1.5])
    assert not feasible


def test_a_host_that_is_asked_too_much_leaves_the_others_alone():
    low, feasible = fit_minima(np.array([1.0, 3.0, 0.5]), np.full(3, 9.0), 100.0, np.array([0, 0, 1]), 2.0)
    assert low == pytest.approx([0.5, 1.5, 0.5])
    assert not feasible


def test_minima_that_fit_stay_as_they_are():
    """But for those above their maxima; to rounding, what is asked for may be all there is."""
    low, feasible = fit_minima(np.array([1.0, 3.0]), np.array([9.0, 2.0]), 3.0 * (1 - 1e-10), ONE_HOST, 3.0)
    assert low == pytest.approx([1.0, 2.0])
    assert feasible


def test_what_is_asked_beside_minima_gets_the_room_that_they_leave():
    """The same share of each wish; never less than the minima."""
    low, asked = np.array([1.0, 0.0, 0.0]), np.array([1.0, 2.0, 4.0])
    assert fit_beside(low, asked, 4.0) == pytest.approx([1.0, 1.0, 2.0])
    assert fit_beside(low, asked, 10.0) == pytest.approx(asked)
    assert fit_beside(low, asked, 0.5) == pytest.approx(low)


def test_what_is_asked_of_a_host_fits_its_limit():
    low, asked = np.array([1.0, 0.0, 0.0]), np.array([1.0, 2.0, 4.0])
    assert fit_beside(low, asked, 100.0, np.array([0, 0, 1]), np.array([2.0, 3.0])) == pytest.approx([1.0, 1.0, 3.0])
