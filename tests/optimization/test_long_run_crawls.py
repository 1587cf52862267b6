"""What evenly spaced crawls that go on for ever are worth, by their gap."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import Exponential, Pareto, Weibull

GAPS = np.array([0.01, 0.3, 1.0, 4.0, 60.0])
MODELS = [Weibull.from_mean(2.0, 0.4), Weibull.from_mean(0.7, 1.0), Exponential(0.5), Pareto(1.0, 2.5)]


@pytest.mark.parametrize("model", MODELS)
def test_freshness_is_that_of_whole_numbers_of_crawls(model):
    """x crawls in each of many intervals T leave the staleness A(x - 1)."""
    for crawls in (1, 2, 7):
        assert model.freshness_every(5.0 / crawls) == pytest.approx(1.0 - model.staleness(crawls - 1, 5.0), rel=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_a_crawl_is_worth_the_slope(model):
    """Of freshness, and of changes seen, by crawls per unit of time."""
    rates, step = 1 / GAPS, 1e-5
    fresh = (model.freshness_every(1 / (rates * (1 + step))) - model.freshness_every(1 / (rates * (1 - step)))) / (2 * step * rates)
    assert model.crawl_worth(GAPS) == pytest.approx(fresh, rel=1e-5)
    more, less = (rates * (1 + sign * step) * model.changes_every(1 / (rates * (1 + sign * step))) for sign in (1, -1))
    assert model.crawl_worth(GAPS, "changes") == pytest.approx((more - less) / (2 * step * rates), rel=1e-4, abs=1e-7)
    assert (np.diff(model.crawl_worth(GAPS)) > 0).all()


def test_changes_are_those_of_the_incomplete_gamma_function():
    shape, mean = 0.4, 2.0
    scale = mean / scipy.special.gamma(1 + 1 / shape)
    expected = scipy.special.gammainc(1 / shape, (GAPS / scale) ** shape)
    assert Weibull.from_mean(mean, shape).changes_every(GAPS) == pytest.approx(expected, rel=1e-10)


def test_a_gap_must_be_positive():
    with pytest.raises(InvalidProblemError, match=r"gap\[1\]"):
        Weibull.from_mean(2.0, 0.4).crawl_worth([1.0, 0.0])
