"""The curve that turns a price into a rate, and the objectives."""

import numpy as np
import pytest
from scipy.special import gammaincc

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import changes_periodic, freshness_periodic, freshness_poisson
from optimal_frontier.optimization.response import TINY_ODDS, ResponseKernel, changes_between_visits, changes_by_table, marginal_share

ODDS = 10.0 ** np.linspace(-30, 15, 4001)


def test_reference_solves_its_equation():
    """``1 - (1 + r) exp(-r) = z / (1 + z)``, and where that is near 1, ``(1 + r) exp(-r) = 1 / (1 + z)``, over 45 decades of odds."""
    r = changes_between_visits(ODDS)
    np.testing.assert_allclose(marginal_share(r)[ODDS < 1], (ODDS / (1 + ODDS))[ODDS < 1], rtol=1e-13)
    np.testing.assert_allclose(((1 + r) * np.exp(-r))[ODDS >= 1], (1 / (1 + ODDS))[ODDS >= 1], rtol=1e-13)
    assert (np.diff(r) > 0).all()


def test_table_is_as_close_as_documented():
    """Within 6e-8 of the reference, with the derivative within 1e-3."""
    value = 1.0 + 1 / ODDS[ODDS > 1e-10]
    odds = 1 / (value - 1.0)
    kernel = ResponseKernel(value.size)
    visits, bend = np.empty(value.size), np.empty(value.size)
    kernel.visits_per_change(value, 1.0, visits, bend)
    np.testing.assert_allclose(visits, 1 / changes_between_visits(odds), rtol=6e-8)
    r = changes_between_visits(odds)
    exact = -odds * (1 + odds) / (r * r) * (1 + r) / (r * (1 + odds))  # dg/dz z (1 + z), with dr/dz = (1 + r) / (r (1 + z))
    np.testing.assert_allclose(bend, exact, rtol=1e-3)


def test_beyond_the_table():
    """Values at or below the price get nothing; odds below the table its limit, g = 1 / sqrt(2 z)."""
    kernel = ResponseKernel(4)
    visits, bend = np.empty(4), np.empty(4)
    with np.errstate(divide="ignore", invalid="ignore"):
        kernel.visits_per_change(np.array([0.5, 1.0, 0.0, 1e40]), 1.0, visits, bend, tiny=True)
    assert visits[:3].tolist() == [0.0, 0.0, 0.0]
    assert bend[:3].tolist() == [0.0, 0.0, 0.0]
    assert TINY_ODDS > 1e-40
    assert visits[3] == pytest.approx(1 / np.sqrt(2e-40))


def test_marginal_share_has_no_cancellation():
    r = 10.0 ** np.linspace(-12, 2, 500)
    from_scipy = np.where(r < 1, np.nan, 1 - gammaincc(2, r))
    small = r < 1e-3
    np.testing.assert_allclose(marginal_share(r)[small], (r * r / 2 - r**3 / 3 + r**4 / 8 - r**5 / 30)[small], rtol=1e-12)
    np.testing.assert_allclose(marginal_share(r)[r >= 1], from_scipy[r >= 1], rtol=1e-12)
    assert marginal_share(np.array([np.inf]))[0] == 1.0


def test_objectives_by_hand():
    assert freshness_poisson([2.0, 1.0, 4.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]) == pytest.approx(2 * 0.5 + 0 + 4)
    assert freshness_periodic([2.0, 1.0, 4.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]) == pytest.approx(2 * (1 - np.exp(-1)) + 4)
    assert changes_periodic([2.0, 1.0, 4.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]) == pytest.approx(2 * (1 - np.exp(-1)))
    with pytest.raises(InvalidProblemError, match="rates has 1"):
        freshness_periodic([1.0, 1.0], [1.0, 1.0], [1.0])


def test_evenly_spaced_visits_are_fresher_than_memoryless_ones():
    """Azar: F(rho) of eq. 6 is at least that of eq. 5, for every page and rate."""
    rng = np.random.default_rng(0)
    importance, change_rate, rates = rng.random(100), 10.0 ** rng.uniform(-3, 3, 100), 10.0 ** rng.uniform(-3, 3, 100)
    assert freshness_periodic(importance, change_rate, rates) > freshness_poisson(importance, change_rate, rates)


def test_waits_of_many_pages_are_those_of_few() -> None:
    """The table is as good as the quantile, from prices of nothing to those that are hardly worth it."""
    rng = np.random.default_rng(0)
    share = np.concatenate([rng.random(2000), 10 ** rng.uniform(-60, 0, 2000), 1.0 - 10 ** rng.uniform(-12, 0, 2000)])
    share = np.minimum(share, 1.0 - 1e-12)
    np.testing.assert_allclose(changes_by_table(share), changes_between_visits(share / (1.0 - share)), rtol=6e-8)
