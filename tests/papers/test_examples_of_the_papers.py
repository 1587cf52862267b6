"""What the papers say of their own examples and remarks, shown with the solvers; each judged by something that does not know them.

Random instances against references are in test_poisson.py and test_periodic.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize

from optimal_frontier.optimization import OptimalSolver, solve_discrete, solve_periodic, solve_poisson

#: crawlfrontier's example: weights and change rates of its two pages.
W, LAMBDA = np.array([1.0, 5.0]), np.array([5.0, 1.0])


def two_pages_by(name: str, mean_frequency: float) -> np.ndarray:
    """Refresh frequencies of the two pages at a mean frequency, by one of the solvers."""
    if name == "solve_periodic":
        return solve_periodic(W, LAMBDA, 2 * mean_frequency, "changes").rates
    # Page values are in (0, 1] there: only their ratio matters.
    return OptimalSolver().solve(W / 5, LAMBDA, mean_frequency, 2)


def first_page_enters_at() -> float:
    """The mean frequency up to which all of it goes to the second page: there the second page's next visit is worth w_1."""
    r = brentq(lambda r: 5 * (1 - (1 + r) * math.exp(-r)) - 1, 1e-3, 50.0, xtol=1e-14)
    return 1 / r / 2


@pytest.mark.parametrize("solver", ["solve_periodic", "OptimalSolver"])
def test_crawlfrontiers_first_page_is_not_refreshed_below_a_frequency_and_overtakes_the_other_above_another(solver):
    """Its figure: f_1 is 0, then rises, and crosses f_2 once."""
    threshold = first_page_enters_at()
    assert threshold == pytest.approx(0.6066, abs=1e-3)
    for mean in (0.01, 0.5 * threshold, 0.999 * threshold):
        assert two_pages_by(solver, mean) == pytest.approx([0.0, 2 * mean])
    assert two_pages_by(solver, 1.001 * threshold)[0] > 0
    means = np.geomspace(1.001 * threshold, 100 * threshold, 60)
    found = np.array([two_pages_by(solver, mean) for mean in means])
    assert found.sum(axis=1) == pytest.approx(2 * means)
    assert (np.diff(found, axis=0) > 0).all()
    ahead = found[:, 0] > found[:, 1]
    assert np.count_nonzero(np.diff(ahead)) == 1
    assert ahead[-1]


@pytest.mark.parametrize("mean", [0.3, 0.7, 2.0, 20.0])
def test_crawlfrontiers_two_pages_are_at_the_highest_point_of_the_cut(mean):
    """Its third figure: T on the line (f_1 + f_2) / 2 = f, looked up point by point."""
    first = np.linspace(0, 2 * mean, 200_001)[1:-1]
    value = sum(w * f * -np.expm1(-c / f) for w, c, f in zip(W, LAMBDA, (first, 2 * mean - first), strict=True))
    best = first[np.argmax(value)]
    for solver in ("solve_periodic", "OptimalSolver"):
        assert two_pages_by(solver, mean)[0] == pytest.approx(best, abs=3e-5 * mean)


def check_optimum(solution, importance, value, slope, budget: float) -> None:
    """scipy, given each page's term and its derivative as functions of the rate, finds no better rates, and the same ones."""
    n = len(importance)
    found = minimize(
        lambda rates: -sum(w * value(i, f) for i, (w, f) in enumerate(zip(importance, rates, strict=True))),
        np.full(n, budget / n),
        jac=lambda rates: -np.array([w * slope(i, f) for i, (w, f) in enumerate(zip(importance, rates, strict=True))]),
        method="SLSQP",
        bounds=[(0, budget)] * n,
        constraints={"type": "eq", "fun": lambda rates: rates.sum() - budget, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    ours = sum(w * value(i, f) for i, (w, f) in enumerate(zip(importance, solution.rates, strict=True)))
    assert ours == pytest.approx(solution.objective, rel=1e-9)
    assert ours >= -found.fun * (1 - 1e-9)
    assert found.x == pytest.approx(solution.rates, abs=1e-4 * budget)


def five_pages(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Importance and change rates; the first page is not worth a visit."""
    rng = np.random.default_rng(seed)
    importance, change_rate = rng.random(5) + 0.1, 10 ** rng.uniform(-1, 1, 5)
    importance[0], change_rate[0] = 0.02, 8.0
    return importance, change_rate


@pytest.mark.parametrize("seed", range(4))
def test_remark_4_memoryless_visits(seed):
    """Azar's Remark 4: a copy of age a is worth exp(-change rate x a) instead of 1 or 0; the best rates stay the same.

    Under memoryless visits the age is exponentially distributed, and the mean of exp(-change rate x age) is rate / (rate + change rate),
    the term of Problem 2. Here that mean is an integral over ages, and its best rates are scipy's.
    """
    importance, change_rate = five_pages(seed)

    def value(i: int, rate: float) -> float:
        return quad(lambda age: rate * math.exp(-rate * age) * math.exp(-change_rate[i] * age), 0, np.inf, epsabs=1e-13)[0]

    def slope(i: int, rate: float) -> float:
        return quad(lambda age: (1 - rate * age) * math.exp(-rate * age) * math.exp(-change_rate[i] * age), 0, np.inf, epsabs=1e-13)[0]

    solution = solve_poisson(importance, change_rate, 2.0)
    assert solution.rates[0] == 0
    check_optimum(solution, importance, value, slope, 2.0)


@pytest.mark.parametrize("seed", range(4))
def test_remark_4_evenly_spaced_visits(seed):
    """exp(-change rate x a) is the probability that a page has not changed in a time a, so the remark holds however visits are spaced."""
    importance, change_rate = five_pages(seed)

    def integral(i: int, rate: float) -> float:
        longest = 1 / rate if rate > 1e-9 else np.inf
        return quad(lambda age: math.exp(-change_rate[i] * age), 0, min(longest, 80 / change_rate[i]), epsabs=1e-13)[0]

    def value(i: int, rate: float) -> float:
        return rate * integral(i, rate)  # ages up to the interval are equally likely

    def slope(i: int, rate: float) -> float:
        return integral(i, rate) - (math.exp(-change_rate[i] / rate) / rate if rate > 1e-2 else 0.0)

    solution = solve_periodic(importance, change_rate, 2.0)
    assert solution.rates[0] == 0
    check_optimum(solution, importance, value, slope, 2.0)


def test_algorithm_1_where_every_page_changes_in_every_slot():
    """Each fetch is fresh for its own slot only: all of them go to the most important pages."""
    solution = solve_discrete([1.0, 3.0, 2.0], [1.0, 1.0, 1.0])
    assert solution.rates.tolist() == [0.0, 1.0, 0.0]
    assert (solution.objective, solution.multiplier) == (3.0, 3.0)
    assert solve_discrete([3.0, 1.0, 3.0], [1.0, 1.0, 1.0]).objective == 3.0


@pytest.mark.parametrize("importance", [[1.0, 1.0, 1.0], [1.0, 1.0, 0.2], [0.1, 0.3, 5.0]])
def test_algorithm_1_is_continuous_up_to_probability_1(importance):
    """The paper's formula divides by 1 - probability; the limit is what is returned there."""
    at_one = solve_discrete(importance, [0.1, 0.3, 1.0])
    near = [solve_discrete(importance, [0.1, 0.3, 1 - gap]) for gap in (1e-4, 1e-7, 1e-10)]
    for solution, gap in zip(near, (1e-4, 1e-7, 1e-10), strict=True):
        assert solution.rates == pytest.approx(at_one.rates, abs=max(10 * gap, 1e-6))
        assert solution.objective == pytest.approx(at_one.objective, rel=max(10 * gap, 1e-6))


@pytest.mark.parametrize("probability", [0.2, 0.9, 1.0])
def test_algorithm_1_on_two_pages_is_the_best_of_all_splits(probability):
    p = np.linspace(0, 1, 100_001)
    value = sum(w * f / (f + d - f * d) for w, d, f in ((2.0, 0.3, p), (1.7, probability, 1 - p)))
    solution = solve_discrete([2.0, 1.7], [0.3, probability])
    assert solution.rates[0] == pytest.approx(p[np.argmax(value)], abs=2e-5)
    assert solution.objective == pytest.approx(value.max(), rel=1e-9)


def one_a_sweep(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Values that halve from page to page: dropping pages below the level finds few at a time."""
    return 2.0 ** -np.arange(n), np.ones(n)


DEGENERATE = {
    "one page": (np.array([3.0]), np.array([0.7])),
    "all alike": (np.ones(50), np.full(50, 0.2)),
    "two kinds": (np.repeat([1.0, 2.0], 25), np.tile([0.1, 0.2], 25)),
    "all values tie": (np.linspace(0.01, 0.99, 80), np.linspace(0.01, 0.99, 80)),
    "one worth a visit": (np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.0, 0.3])),
    "one above the rest": (np.append(1e9, np.ones(99)), np.full(100, 0.5)),
    "halving": one_a_sweep(400),
    "twelve decades": (np.geomspace(1e-6, 1e6, 300), np.geomspace(1e-12, 0.9, 300)[::-1]),
    "far apart": (np.array([1e150, 1e-150, 1.0]), np.array([0.1, 0.2, 0.3])),
    "nearly alike": (1 + np.arange(64) * 2.0**-52, np.full(64, 0.5)),
}


@pytest.mark.parametrize("order", ["as it is", "backwards", "shuffled"])
@pytest.mark.parametrize("name", DEGENERATE)
def test_the_printed_algorithms_and_those_without_a_sort_agree(name, order):
    """Where much ties, little is worth a visit, or pages drop out one by one; in any order, at budgets where a page just enters too."""
    importance, change = DEGENERATE[name]
    places = np.arange(len(importance))
    places = places[::-1] if order == "backwards" else np.random.default_rng(0).permutation(places) if order == "shuffled" else places
    importance, change = importance[places], change[places]
    live = (importance > 0) & (change > 0)
    depth = np.sort(np.sqrt(change[live] / importance[live]))
    slope = np.sqrt(change[live] * importance[live])[np.argsort(np.sqrt(change[live] / importance[live]), kind="stable")]
    # Where the k-th page just enters, the ones before it have taken this much.
    entering = [float((slope[:k] * (depth[k] - depth[:k])).sum()) for k in {1, len(depth) // 2, len(depth) - 1} if 0 < k < len(depth)]
    for budget in [1e-9, 0.3, 1.0, 50.0, *(b for b in entering if b > 0)]:
        sorting, without = (solve_poisson(importance, change, budget, method=method) for method in ("sort", "sort-free"))
        np.testing.assert_allclose(without.rates, sorting.rates, rtol=1e-9, atol=1e-12 * budget)
        assert without.objective == pytest.approx(sorting.objective, rel=1e-12)
        assert without.multiplier == pytest.approx(sorting.multiplier, rel=1e-9)
        assert without.rates.sum() == pytest.approx(budget, rel=1e-9)
    if change.max() <= 1:
        sorting, without = (solve_discrete(importance, change, method=method) for method in ("sort", "sort-free"))
        np.testing.assert_allclose(without.rates, sorting.rates, rtol=1e-9, atol=1e-12)
        assert without.multiplier == pytest.approx(sorting.multiplier, rel=1e-9)
