"""Freshness against budget: concave, rising, with the multiplier for its slope, and invertible."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.planning.solving import Problem, solve
from optimal_frontier.scheduling.budget_curve import BudgetCurve

N = 400


def problem(**values) -> Problem:
    """Random pages, some of their columns replaced."""
    rng = np.random.default_rng(0)
    mean, shape = rng.lognormal(-2, 1.5, N), rng.uniform(0.5, 20, N)
    change_rate, importance = posterior_median(shape, shape / mean), rng.pareto(1.2, N) + 0.1
    low, high = np.full(N, 1e-4), np.full(N, 2.0)
    whole = Problem(importance, change_rate, low, high, np.zeros(N), False, np.zeros(N, np.int64), None, "freshness", "periodic")
    return replace(whole, **values)


def curve_of(most: float = 1e4, **values) -> BudgetCurve:
    """The curve of these pages."""
    pages = problem(**values)
    return BudgetCurve(lambda budget: solve(pages, budget), most, of_freshness=pages.objective == "freshness")


HOSTS = {"host": np.arange(N) % 7, "limit": np.linspace(0.5, 40, 7)}
CURVES = {"plain": {}, "hosts": HOSTS, "unbounded": {"max_rate": np.full(N, np.inf), "most": math.inf}}
BUDGETS = np.geomspace(0.1, 500, 60)


@pytest.mark.parametrize("values", CURVES.values(), ids=CURVES)
def test_it_rises_ever_more_slowly(values):
    """Each chord is less steep than the one before, and the slope lies between the chords on either side."""
    points = [curve_of(**values).at(budget) for budget in BUDGETS]
    value = np.array([point.value for point in points])
    chords = np.diff(value) / np.diff(BUDGETS)
    assert (chords >= -1e-12).all()
    assert (np.diff(chords) <= 1e-9 * chords[:-1] + 1e-12).all()
    slopes = np.array([point.slope for point in points])
    assert (slopes[:-1] >= chords * (1 - 1e-6) - 1e-12).all()
    assert (slopes[1:] <= chords * (1 + 1e-6) + 1e-12).all()


@pytest.mark.parametrize("values", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("budget", [0.3, 4.0, 60.0])
def test_its_slope_is_the_difference_quotient(values, budget):
    curve = curve_of(**values)
    step = 1e-4 * budget
    measured = (curve.at(budget + step).value - curve.at(budget - step).value) / (2 * step)
    point = curve.at(budget)
    assert point.slope == pytest.approx(measured, rel=1e-5)
    assert point.slope == point.multiplier
    assert point.planned_rate == pytest.approx(budget, rel=1e-9)


@pytest.mark.parametrize("values", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("budget", [0.06, 0.5, 7.0, 80.0])
@pytest.mark.parametrize("start", [None, 1e-6, 3.0, 1e9])
def test_the_inverse_leads_back(values, budget, start):
    """Whatever it starts from."""
    curve = curve_of(**values)
    value = curve.at(budget).value
    found = curve.budget_for(value, start)
    assert found == pytest.approx(budget, rel=1e-6)
    assert curve.at(found).value == pytest.approx(value, rel=1e-9)


def test_the_inverse_takes_few_plans():
    pages, asked = problem(), []

    def plan(budget):
        asked.append(budget)
        return solve(pages, budget)

    curve = BudgetCurve(plan, 1e4)
    for share in (0.05, 0.3, 0.6, 0.9, 0.999):
        asked.clear()
        assert curve.budget_for(share * curve.end().value) is not None
        assert len(asked) <= 25


@pytest.mark.parametrize("most", [1e4, math.inf])
@pytest.mark.parametrize("values", [{}, HOSTS], ids=["bounds", "hosts"])
def test_its_end_is_where_nothing_more_can_be_used(values, most):
    curve = curve_of(most, **values)
    end = curve.end()
    beyond, before = curve.at(2 * end.budget), curve.at(0.99 * end.budget)
    assert (beyond.value, beyond.slope) == (pytest.approx(end.value, rel=1e-12), 0.0)
    assert beyond.unused == pytest.approx(end.budget, rel=1e-6)
    assert before.value < end.value
    assert before.unused == 0.0
    assert curve.budget_for(end.value) == end.budget
    assert curve.budget_for(end.value * (1 - 1e-6)) == pytest.approx(end.budget, rel=1e-2)
    assert curve.budget_for(end.value * 1.0001) is None


def test_without_maxima_it_comes_as_near_to_the_whole_as_asked():
    curve = curve_of(math.inf, max_rate=np.full(N, np.inf))
    whole = float(problem().importance.sum())
    assert curve.at(curve.budget_for(0.9999 * whole)).value == pytest.approx(0.9999 * whole, rel=1e-9)
    assert curve.budget_for(0.0) == 0.0


@pytest.mark.parametrize("objective", ["freshness", "changes"])
def test_where_the_multiplier_is_no_slope_it_is_measured(objective):
    """Minima that do not fit; or changes are maximised, and freshness comes along."""
    low = np.full(N, 0.05) if objective == "freshness" else np.full(N, 1e-4)
    curve = curve_of(min_rate=low, objective=objective)
    for budget in (2.0, 10.0):
        point = curve.at(budget)
        assert point.feasible == (objective == "changes")
        step = 1e-2 * budget
        measured = (curve.at(budget + step).value - curve.at(budget - step).value) / (2 * step)
        assert point.slope == pytest.approx(measured, rel=1e-2)
        assert curve.budget_for(point.value) == pytest.approx(budget, rel=1e-6)
