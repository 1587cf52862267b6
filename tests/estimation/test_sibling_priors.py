"""Priors from siblings: known group rates are found, small groups stay near their parents, and no prior is sure enough to starve a page."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaincinv

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import posterior_median, update_posterior
from optimal_frontier.estimation.sibling_priors import DEFAULT_SHAPE, MOST_SHAPE, PARENT_PAGES, SLOWEST, UNLIKE_FASTEST, sibling_priors


def visited(rng, rates, visits, interval=1.0, default_time=1.0):
    """Posteriors of pages that were visited so many times, from the default prior."""
    shape, time = np.full(len(rates), DEFAULT_SHAPE), np.full(len(rates), default_time)
    for _ in range(visits):
        shape, time = update_posterior(shape, time, np.full(len(rates), interval), rng.random(len(rates)) < -np.expm1(-rates * interval))
    return shape, time


def medians(priors):
    return posterior_median(priors.shape, priors.time)


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_known_rates_of_groups_are_found(spread):
    """20 patterns on 4 hosts, 50 pages each, 40 visits: the median of the prior is the geometric mean of the rates."""
    rng = np.random.default_rng(1)
    of_pattern = np.exp(rng.uniform(np.log(0.05), np.log(0.9), 21))
    pattern = np.repeat(np.arange(1, 21), 50)
    shape, time = visited(rng, of_pattern[pattern] * rng.lognormal(0.0, spread, 1000), 40)
    priors = sibling_priors(shape, time, pattern // 6, pattern, 1.0)
    assert medians(priors)[1:] == pytest.approx(of_pattern[1:], rel=0.25)
    assert np.median(priors.shape[1:]) > 1.5
    assert priors.siblings[1:] == pytest.approx(np.full(20, 50.0), rel=0.2)
    assert priors.siblings[0] == 0.0


def test_the_crawl_has_the_median_of_the_formula():
    """Against the formula written out, one page at a time."""
    shape, time = [3.0, 5.0, 1.0], [10.0, 80.0, 40.0]
    priors = sibling_priors(shape, time, [0, 0, 0], [0, 0, 0], 2.0)
    total, level = PARENT_PAGES, 0.0
    for a, b in zip(shape, time, strict=True):
        weight = 1.0 - min(1.0, 1.0 / a) * min(1.0, 2.0 / b)
        total += weight
        level += weight * np.log(gammaincinv(a, 0.5) * 2.0 / (b * np.log(2)))
    assert medians(priors)[0] == pytest.approx(np.exp(level / total) * np.log(2) / 2.0, rel=0.01)


def test_without_a_bit_the_prior_is_the_default():
    """Whatever the groups; also where pages have been given their prior and nothing more."""
    for shape, time in (([0.0, 0.0], [0.0, 0.0]), ([1.0, 1.0], [7.0, 7.0])):
        priors = sibling_priors(shape, time, [0, 3], [1, 4], 7.0)
        assert priors.shape.tolist() == [1.0] * 5
        assert priors.time == pytest.approx(np.full(5, 7.0))
        assert priors.siblings.tolist() == [0.0] * 5
    assert len(sibling_priors([], [], np.zeros(0, int), np.zeros(0, int), 1.0).shape) == 1


def test_one_page_moves_its_pattern_by_its_share():
    """One sibling well known to be 10 times as fast as 500 others: its pattern goes a third of the way, its host less, others stay."""
    shape, time = np.full(501, 100.0), np.full(501, 1000.0)
    time[500] = 100.0
    pattern, host = np.full(501, 1), np.zeros(501, int)
    pattern[500], host[500] = 2, 1
    # A third pattern on the same host and a fourth on its own, nothing known of either.
    more = (np.append(shape, [0.0, 0.0]), np.append(time, [0.0, 0.0]), np.append(host, [1, 2]), np.append(pattern, [3, 4]))
    rate = medians(sibling_priors(*more, 1.0))
    assert rate[1] == pytest.approx(0.1, rel=0.02)
    assert rate[4] == pytest.approx(0.1, rel=0.05)
    crawl, share = rate[4], 1.0 / (PARENT_PAGES + 1.0)
    assert rate[3] == pytest.approx(crawl * (1.0 / crawl) ** share, rel=0.02)
    assert rate[2] == pytest.approx(rate[3] * (1.0 / rate[3]) ** share, rel=0.02)


def test_siblings_that_differ_leave_the_shape_at_the_default():
    """Two kinds of pages, a factor of 200 apart, though each page is well known."""
    shape, time = np.full(100, 50.0), np.where(np.arange(100) % 2, 25.0, 5000.0)
    priors = sibling_priors(shape, time, np.zeros(100, int), np.ones(100, int), 10.0)
    assert priors.shape[1] == DEFAULT_SHAPE
    alike = sibling_priors(shape, np.full(100, 25.0), np.zeros(100, int), np.ones(100, int), 10.0)
    assert alike.shape[1] == MOST_SHAPE


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_no_prior_leaves_its_bounds_at_extremes(scale):
    """Posteriors over 600 decades and every shape: finite priors, no more certain, faster or slower than allowed."""
    rng = np.random.default_rng(3)
    shape, time = 10.0 ** rng.uniform(-3, 12, 3000), scale * 10.0 ** rng.uniform(-280, 280, 3000)
    priors = sibling_priors(shape, np.maximum(time, 1e-290), rng.integers(0, 9, 3000), rng.integers(0, 1, 3000), scale)
    several = sibling_priors(shape, np.maximum(time, 1e-290), np.arange(3000) // 300, 1 + np.arange(3000) // 100, scale)
    for found in (priors, several):
        assert (found.shape >= DEFAULT_SHAPE).all()
        assert (found.shape <= MOST_SHAPE).all()
        relative = medians(found) * scale / np.log(2)
        assert (relative >= SLOWEST * (1 - 1e-9)).all()
        assert (relative <= np.maximum(found.shape, UNLIKE_FASTEST) * (1 + 1e-9)).all()


def test_a_page_unlike_its_siblings_is_learned_in_a_few_visits():
    """Siblings that change 100 times as fast: five quiet visits at the default interval, and it is below the default prior again."""
    shape, time = np.full(1000, 200.0), np.full(1000, 2.0)
    priors = sibling_priors(shape, time, np.zeros(1000, int), np.ones(1000, int), 1.0)
    a, b = priors.shape[1], priors.time[1]
    for _ in range(5):
        a, b = update_posterior(a, b, 1.0, False)
    assert posterior_median(a, b) < np.log(2)


def test_numbers_are_those_of_any_unit_of_time_and_any_order():
    rng = np.random.default_rng(2)
    shape, time, pattern = 1 + rng.gamma(2, 2, 300), rng.gamma(2, 3, 300), rng.integers(1, 30, 300)
    host = pattern % 5
    first = sibling_priors(shape, time, host, pattern, 4.0)
    order = rng.permutation(300)
    again = sibling_priors(shape[order], 1e6 * time[order], host[order], pattern[order].astype("u4"), 4e6)
    assert again.shape == pytest.approx(first.shape)
    assert again.time == pytest.approx(1e6 * first.time)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0, 2.0], [0], [0], 1.0), "time"),
        (([-1.0], [1.0], [0], [0], 1.0), "shape"),
        (([np.nan], [1.0], [0], [0], 1.0), "shape"),
        (([1.0], [np.inf], [0], [0], 1.0), "time"),
        (([1.0], [0.0], [0], [0], 1.0), "time is 0 where shape is not"),
        (([[1.0]], [[1.0]], [[0]], [[0]], 1.0), "shape: expected one dimension"),
        (([1.0], [1.0], [-1], [0], 1.0), r"host\[0\] is -1; expected a host id"),
        (([1.0], [1.0], [0], [0.5], 1.0), r"pattern\[0\] is 0.5; expected an integer pattern id"),
        (([1.0], [1.0], [0], [0, 1], 1.0), "pattern: expected one integer for each of 1 pages"),
        (([1.0], [1.0], [0], [0], 0.0), "default_time"),
    ],
)
def test_unusable_arguments_are_named(arguments, message):
    with pytest.raises(InvalidProblemError, match=message):
        sibling_priors(*arguments)
