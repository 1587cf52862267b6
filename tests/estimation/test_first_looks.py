"""Whether the first two looks at new pages tell that they change more often at first, how often, and until when."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.first_looks import age_bins, fit_youth, is_restless

BINS = 24
#: Once a day.
LATER = 1 / 86400


def looks_at(rng, n, change_in, ages):
    """First looks by age, changes that they saw, and pairs of equal spans that differ: ceased, begun.

    ``change_in(i, since, until)`` draws whether page i changed in between.
    """
    looks, changed, ceased, begun = np.zeros(BINS), np.zeros(BINS), 0, 0
    for i in range(n):
        age = float(rng.choice(ages))
        first = change_in(i, 0.0, age)
        second = change_in(i, age, 2.0 * age)
        at = int(age_bins(np.array([age]), BINS)[0])
        looks[at] += 1
        changed[at] += first
        ceased += first and not second
        begun += second and not first
    return looks, changed, ceased, begun


def restless(rng, rate, until, later):
    def change_in(i, since, until_):
        young = max(min(until_, until) - since, 0.0)
        return rng.random() < -math.expm1(-rate * young - later * (until_ - since - young))

    return change_in


def test_the_rate_and_the_end_of_youth_are_found():
    """Articles that change three times in two minutes, on average, and once a day after that."""
    rng = np.random.default_rng(1)
    ages = np.sqrt(2.0) * 2.0 ** np.arange(2, 15)
    looks, changed, ceased, begun = looks_at(rng, 1500, restless(rng, 1 / 40, 128.0, LATER), ages)
    assert is_restless(ceased, begun)
    rate, until = fit_youth(looks, changed, LATER)
    assert until == 2 * 128.0  # is taken
    assert 1 / 80 < rate < 1 / 40


@pytest.mark.parametrize("seed", range(8))
def test_pages_that_differ_are_not_taken_for_young_ones(seed):
    """Rates that spread over two decades make changes early and late as well; each page keeps its own, so they do not cease."""
    rng = np.random.default_rng(seed)
    rates = rng.lognormal(math.log(1 / 1000), 1.5, 400)

    def change_in(i, since, until):
        return rng.random() < -math.expm1(-rates[i] * (until - since))

    looks, changed, ceased, begun = looks_at(rng, 400, change_in, 2.0 ** np.arange(4, 13))
    assert not is_restless(ceased, begun)
    # The fit alone would say so.
    assert fit_youth(looks, changed, LATER) is not None


def test_how_often_chance_alone_is_believed():
    """Among pages that change in equal times as probably: once in some hundred groups."""
    rng = np.random.default_rng(2)
    ceased = rng.binomial(20, 0.5, 20_000)
    believed = np.mean([is_restless(int(n), 20 - int(n)) for n in ceased])
    assert believed < 0.005
    assert is_restless(17, 3)


def test_what_was_believed_is_so_until_it_is_improbable():
    assert not is_restless(14, 6)
    assert not is_restless(9, 3)
    assert is_restless(10, 2, was_believed=True)
    assert not is_restless(10, 2)
    assert not is_restless(3, 10, was_believed=True)
    assert not is_restless(0, 0, was_believed=True)


def test_pages_that_never_change_or_only_later_have_no_youth():
    looks, changed = np.zeros(BINS), np.zeros(BINS)
    assert fit_youth(looks, changed, LATER) is None
    looks[[3, 12]] = 50
    assert fit_youth(looks, changed, LATER) is None
    changed[12] = 2
    assert fit_youth(looks, changed, LATER) is None


def test_looks_at_one_age_tell_little_of_when_pages_change():
    """Twice a middle is taken; looks at other ages, which some pages have for this, tell the rest."""
    looks, changed = np.zeros(BINS), np.zeros(BINS)
    looks[8] = changed[8] = 200
    rate, until = fit_youth(looks, changed, LATER)
    assert 4.0 < until < 1024.0
    assert 3.0 < rate * until < math.inf
    looks[5], changed[5] = 40, 15
    rate, until = fit_youth(looks, changed, LATER)
    assert 128.0 <= until <= 1024.0
    assert 1 / 120 < rate < 1 / 60


def test_looks_that_all_came_in_youth():
    """Where later life is known to be quiet, it seems to end by the oldest of them, and twice that is taken."""
    looks, changed = np.zeros(BINS), np.zeros(BINS)
    looks[[3, 5]], changed[[3, 5]] = 60, (13, 40)
    rate, until = fit_youth(looks, changed, LATER)
    assert until == 2 * 64.0
    assert rate == pytest.approx(1 / 43, rel=0.2)


@pytest.mark.parametrize(
    ("looks", "changed", "named"), [([1.0, 2.0], [1.0], "changed"), ([-1.0, 2.0], [0.0, 0.0], "looks"), ([[1.0]], [[1.0]], "looks")]
)
def test_arguments_that_are_refused(looks, changed, named):
    with pytest.raises(InvalidProblemError, match=named):
        fit_youth(looks, changed, LATER)
