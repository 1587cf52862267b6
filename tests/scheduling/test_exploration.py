"""What each exploration gives the solver, and that what Lemma 2 needs is kept."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import moment_confidence, posterior_median, posterior_quantile
from optimal_frontier.optimization import solve_periodic, solve_poisson
from optimal_frontier.scheduling.exploration import (
    EPSILON,
    LEARNING_SHARE,
    choose,
    epsilon,
    exploration_time,
    explores,
    page_uniforms,
    phase,
    regret_bound,
    stretch,
    turning_point,
    uniform_rate,
)
from optimal_frontier.scheduling.planning import fit_beside

SHAPE, TIME = np.array([1.0, 3.0, 40.0, 2.5]), np.array([10.0, 6.0, 80.0, 1e-3])
HALF = np.full(4, 0.5)


def of(exploration, uniform=HALF, rounds=5e5, horizon=math.inf, budget=2.0):
    return choose(exploration, SHAPE, TIME, budget, uniform, rounds, horizon)


def planned(weights, choice, budget=2.0):
    """The best rates within what exploration asks for, as far as it fits."""
    low = fit_beside(np.zeros(4), choice.least_rate, budget)
    return solve_periodic(weights, choice.change_rate, budget, min_rate=low, max_rate=np.maximum(low, choice.most_rate))


def test_each_choice_is_what_its_name_says():
    assert (of("median").change_rate == posterior_median(SHAPE, TIME)).all()
    assert (of("mean").change_rate == SHAPE / TIME).all()
    assert (of("epsilon").change_rate == posterior_median(SHAPE, TIME)).all()
    assert (of("explore-then-commit").change_rate == SHAPE / TIME).all()
    draws = np.array([0.01, 0.3, 0.9, 0.5])
    assert (of("thompson", draws).change_rate == posterior_quantile(SHAPE, TIME, draws)).all()


def test_thompson_draws_from_the_posterior():
    """Mean and variance over 20,000 plans."""
    uniforms = page_uniforms(np.arange(20_000), 3)
    draws = posterior_quantile(np.full(20_000, 3.0), np.full(20_000, 6.0), uniforms)
    assert draws.mean() == pytest.approx(0.5, abs=0.01)
    assert draws.var() == pytest.approx(3 / 36, rel=0.05)


@pytest.mark.parametrize("exploration", ["median", "mean", "thompson", "epsilon"])
def test_a_page_that_is_not_worth_a_visit_keeps_the_learning_rate(exploration):
    """Page 3 changes 2,500 times in a unit of time; planned without a minimum it gets nothing."""
    choice = of(exploration)
    free = solve_periodic(np.ones(4), choice.change_rate, 2.0)
    kept = planned(np.ones(4), choice)
    assert free.rates[3] == 0
    assert kept.rates[3] == pytest.approx(0.97 * LEARNING_SHARE * 2.0 / 4)
    assert kept.rates.sum() <= 2.0 * (1 + 1e-12)
    assert kept.objective > 0.98 * free.objective


def test_epsilon_explores_a_page_ever_again():
    """The expected number of explored phases of a page grows without bound, like a logarithm."""
    shares = [epsilon(number) for number in range(1, 20_001)]
    assert shares[0] == EPSILON == 0.5
    assert sum(shares) == pytest.approx(0.5 * (math.log(20_000) + 0.5772), rel=1e-4)
    explored = of("epsilon", np.array([1e-9, 0.24, 0.26, 1 - 1e-9]), rounds=2.5)  # the second phase, 2 to 4
    assert [phase(at) for at in (0.0, 1.99, 2.0, 2.5, 4.0)] == [1, 1, 2, 2, 3]
    assert explored.least_rate.tolist() == [uniform_rate(4, 2.0)] * 2 + [LEARNING_SHARE * uniform_rate(4, 2.0)] * 2


def test_exploring_is_at_even_intervals_for_all():
    choice = of("explore-then-commit", rounds=0.0, horizon=50.0)
    assert (choice.least_rate == choice.most_rate).all()
    plan = planned(np.array([1.0, 9.0, 1.0, 1.0]), choice)
    assert plan.rates == pytest.approx(np.full(4, 0.97 * 0.5))
    committed = of("explore-then-commit", rounds=25.0, horizon=50.0)
    assert (committed.least_rate == 0).all()
    assert np.isinf(committed.most_rate).all()


def test_exploration_takes_the_square_root_of_the_horizon():
    """80 rounds: 9 of them."""
    assert explores(8.99, horizon=80.0)
    assert not explores(9.0, horizon=80.0)
    assert turning_point(8.99, horizon=80.0) == 9.0


def test_doubling_explores_ever_again():
    """Stretches of 1, 2, 4, ... rounds begin at 0, 1, 3, 7, ... and explore for 1, 2, 2, 3, 4, 6, 8, ... rounds."""
    rounds = np.arange(0.5, 127.0)
    exploring = np.array([explores(at) for at in rounds])
    expected = np.zeros(127, bool)
    for begin, length in ((0, 1), (1, 2), (3, 2), (7, 3), (15, 4), (31, 6), (63, 8)):
        expected[begin : begin + length] = True
    assert (exploring == expected).all()
    turns = np.array([turning_point(at) for at in rounds])
    for at in np.flatnonzero(expected[1:] != expected[:-1]):
        assert turns[at] == at + 1
    assert [stretch(at) for at in (0.0, 0.9, 1.0, 2.9, 3.0, 7.0)] == [1, 1, 2, 2, 3, 4]
    assert stretch(9.0, horizon=80.0) == 0


def test_bound_on_the_regret_holds():
    """500 sets of pages explored at even intervals, memoryless visits planned with the estimates' worst errors: never above the bound."""
    rng = np.random.default_rng(5)
    lower, upper, delta, pages, budget, horizon = 0.2, 1.0, 0.1, 20, 20.0, 1e5
    explored = exploration_time(pages, budget, horizon, lower, upper, delta)
    error = moment_confidence(np.full(int(explored * budget / pages), pages / budget), upper, delta / pages)
    assert error < 0.2
    bound = regret_bound(pages, budget, horizon, explored, lower, upper, delta)
    assert bound < horizon
    for _ in range(500):
        rate, weight = lower + (upper - lower) * rng.random(pages), rng.random(pages)
        estimate = np.clip(rate + error * rng.choice([-1.0, 1.0], pages), lower, upper)
        best = solve_poisson(weight, rate, budget)
        planned = solve_poisson(weight, estimate, budget).rates
        lost = best.objective - float(np.sum(weight * planned / (planned + rate)))
        per_page = weight @ ((np.sqrt(rate) - np.sqrt(estimate)) ** 2 / np.minimum(rate, estimate))
        assert lost <= per_page * (1 + 1e-9)
        assert explored + (horizon - explored) * lost / weight.sum() <= bound


def test_best_exploration_time_is_the_bounds_least():
    arguments = (10, 10.0, 1e6)
    bounds = (0.1, 1.0, 0.05)
    best = exploration_time(*arguments, *bounds)
    at = [regret_bound(*arguments, explored, *bounds) for explored in (0.8 * best, best, 1.25 * best)]
    assert at[1] == min(at)
    assert exploration_time(10, 10.0, 4e6, *bounds) == pytest.approx(2 * best, rel=1e-3)
    assert exploration_time(10, 10.0, 5.0, *bounds) == 5.0


def test_page_uniforms_are_uniform_and_independent():
    """Over pages, over numbers, and of each other; nothing is 0 or 1."""
    table = np.array([page_uniforms(np.arange(2000), number) for number in range(50)])
    assert 0 < table.min() < 1e-3
    assert 1 - 1e-3 < table.max() < 1
    counts = np.histogram(table, bins=20, range=(0, 1))[0]
    assert np.abs(counts - 5000).max() < 5 * np.sqrt(5000)
    assert abs(np.corrcoef(table[:, :-1].ravel(), table[:, 1:].ravel())[0, 1]) < 0.015
    assert abs(np.corrcoef(table[:-1].ravel(), table[1:].ravel())[0, 1]) < 0.015


def test_unknown_explorations_are_named():
    with pytest.raises(InvalidProblemError, match="exploration 'max': unknown; known are median, mean, thompson"):
        of("max")
