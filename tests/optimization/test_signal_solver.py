"""Best thresholds where noisy signals tell of changes: against Monte Carlo, other solvers, perturbed thresholds and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optimal_frontier.optimization as optimization
from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import solve_periodic, solve_signals
from optimal_frontier.optimization.signal_response import (
    OneSignals,
    Response,
    Signals,
    many_joined,
    responses,
    signals_of,
    signals_of_one,
    threshold_of_one,
    thresholds_at,
)


def play(threshold: float, recall: float, false_rate: float, visits: int, seed: int) -> tuple[float, float]:
    """Mean interval and share of time fresh of a page that changes once per unit of time, under a threshold of doubt."""
    rng = np.random.default_rng(seed)
    signals = Signals(*signals_of_one(1.0, recall, false_rate))
    total = fresh = 0.0
    for _ in range(visits):
        now, doubt, first = 0.0, 0.0, math.inf
        while True:
            wait = rng.exponential(1.0 / (1.0 + false_rate))
            left = (threshold - doubt) / signals.unannounced
            if wait >= left:
                now += left
                break
            now += wait
            doubt += signals.unannounced * wait
            is_change = rng.random() < 1.0 / (1.0 + false_rate)
            if is_change:
                first = min(first, now)
            if not is_change or rng.random() < recall:
                doubt += signals.evidence
                if doubt >= threshold:
                    break
        total += now
        fresh += min(first, now)
    return total / visits, fresh / total


def responded(threshold: float, signals: OneSignals) -> Response:
    """To what a threshold of one page leads, exactly."""
    found = responses(np.array([threshold]), Signals(*np.array([signals]).T))
    return Response(*(float(of[0]) for of in found))


@pytest.mark.parametrize(
    ("threshold", "recall", "false_rate"),
    [(1.5, 0.6, 0.6), (0.5, 0.6, 0.6), (2.0, 0.9, 0.05), (1.0, 0.3, 2.0), (1.2, 1.0, 0.5), (1.0, 0.5, 0.0)],
)
def test_intervals_and_freshness_are_those_of_a_page_that_is_played(threshold, recall, false_rate) -> None:
    found = responded(threshold, signals_of_one(1.0, recall, false_rate))
    interval, fresh = play(threshold, recall, false_rate, 20_000, 1)
    assert found.interval == pytest.approx(interval, rel=0.03)
    assert found.fresh / found.interval == pytest.approx(fresh, rel=0.03)


def test_without_signals_it_is_the_plan_of_even_visits() -> None:
    rng = np.random.default_rng(0)
    importance, rate = rng.lognormal(0, 1, 400), rng.lognormal(-2, 1.5, 400)
    for recall, false in ((0.0, 0.0), (0.0, 0.7), (1e-12, 0.1)):
        found, alone = solve_signals(importance, rate, recall, false, 30.0), solve_periodic(importance, rate, 30.0)
        # A page whose visits are worth just the price may be left out.
        np.testing.assert_allclose(found.rates, alone.rates, rtol=1e-5, atol=3e-4)
        assert found.objective == pytest.approx(alone.objective, rel=1e-5)
        assert found.multiplier == pytest.approx(alone.multiplier, rel=1e-6)


def test_visits_take_the_budget_and_are_worth_one_price() -> None:
    rng = np.random.default_rng(1)
    importance, rate, recall = rng.random(2000), rng.random(2000), rng.random(2000)
    false = rate * rng.random(2000) * 3
    plan = solve_signals(importance, rate, recall, false, 400.0)
    assert plan.rates.sum() == pytest.approx(400.0, rel=1e-4)
    assert plan.unused == pytest.approx(400.0 - plan.rates.sum(), abs=1e-9)
    assert plan.objective == pytest.approx(importance @ plan.freshness)
    live = np.isfinite(plan.thresholds)
    assert 0.3 < live.mean() < 1.0
    signals = Signals(*(of[live] for of in signals_of(rate, recall, false)))
    worth = importance[live] / rate[live] * responses(plan.thresholds[live], signals).worth
    # Weak signals are joined, so that the price is right to a thousandth.
    np.testing.assert_allclose(worth, plan.multiplier, rtol=2e-3)
    more = solve_signals(importance, rate, recall, false, 400.4)
    assert (more.objective - plan.objective) / 0.4 == pytest.approx(plan.multiplier, rel=1e-3)


def test_other_thresholds_at_the_same_budget_are_worse() -> None:
    rng = np.random.default_rng(2)
    n = 60
    importance, rate, recall = rng.random(n), rng.random(n), rng.random(n)
    false = rate * rng.random(n)
    signals = signals_of(rate, recall, false)
    plan = solve_signals(importance, rate, recall, false, 10.0)

    def value(thresholds: np.ndarray) -> float:
        """Lagrangian: what comes of thresholds less the price of their visits."""
        found = responses(thresholds, signals)
        return float((importance * found.fresh / found.interval - plan.multiplier * rate / found.interval).sum())

    best = value(np.minimum(plan.thresholds, 50.0))
    for _ in range(30):
        assert value(np.minimum(plan.thresholds * np.exp(rng.normal(0, 0.3, n)), 50.0)) < best


@pytest.mark.parametrize(("recall", "false"), [(0.6, 0.6), (0.6, 0.0), (0.95, 0.02), (1.0, 0.0), (1.0, 0.5), (0.3, 5.0)])
def test_signals_never_make_a_plan_worse_and_better_ones_make_it_better(recall, false) -> None:
    rng = np.random.default_rng(3)
    importance, rate = rng.random(500), rng.random(500)
    with_signals = solve_signals(importance, rate, recall, false * rate, 100.0)
    assert with_signals.objective > solve_periodic(importance, rate, 100.0).objective
    assert with_signals.objective <= solve_signals(importance, rate, recall, 0.5 * false * rate, 100.0).objective * (1 + 1e-6)
    assert with_signals.objective < solve_signals(importance, rate, min(recall + 0.2, 1.0), false * rate, 130.0).objective


def test_pages_that_are_told_of_truly_are_taken_as_long_as_the_budget_lasts() -> None:
    """All alike, told of every change: a page gets all of its visits or none, so spending jumps over the budget."""
    plan = solve_signals(np.ones(100), np.ones(100), 1.0, 0.0, 30.5)
    served = plan.rates > 0.5
    assert served.sum() == 30
    np.testing.assert_allclose(plan.rates[served], 1.0, rtol=1e-3)
    np.testing.assert_allclose(plan.freshness[served], 1.0, rtol=1e-3)
    assert plan.unused == pytest.approx(0.5, abs=0.05)


def test_many_weak_signals_are_joined_to_few_without_loss() -> None:
    """The threshold that is found with joined signals loses a hundred-thousandth against the exact one."""
    for recall, false_rate, share in ((0.6, 10.0, 0.3), (0.9, 30.0, 0.8), (0.3, 5.0, 0.5), (0.95, 20.0, 0.05)):
        signals = signals_of_one(1.0, recall, false_rate)
        threshold, _ = threshold_of_one(share, signals)
        exact = responded(threshold, signals)

        def gain(x: float, signals: OneSignals = signals, share: float = share) -> float:
            found = responded(x, signals)
            return (found.fresh - share) / found.interval

        best = max(gain(x) for x in np.linspace(0.9, 1.1, 81) * threshold)
        assert gain(threshold) == pytest.approx(best, rel=1e-4)
        joined = many_joined(signals_of(np.ones(1), np.array([recall]), np.array([false_rate])), np.array([threshold / 12]))
        assert responses(np.array([threshold]), joined).interval[0] == pytest.approx(exact.interval, rel=0.01)


def test_the_threshold_of_one_page_is_that_of_many() -> None:
    """It is found with fewer steps: waits are within a thousandth, most within a millionth."""
    rng = np.random.default_rng(5)
    n = 4000
    share = np.where(rng.random(n) < 0.5, rng.random(n), 10 ** rng.uniform(-9, 0, n))
    recall = np.where(rng.random(n) < 0.5, rng.random(n), 1.0 - 10 ** rng.uniform(-7, 0, n))
    signals = signals_of(np.ones(n), recall, recall * 10 ** rng.uniform(-3, 2, n))
    thresholds, steepness, _ = thresholds_at(share, signals)
    pages = zip(share.tolist(), *(of.tolist() for of in signals), strict=True)
    found = np.array([threshold_of_one(at, page) for at, *page in pages])
    np.testing.assert_allclose(found[:, 0], thresholds, rtol=1e-3)
    off = np.abs(found[:, 0] / thresholds - 1.0)
    assert np.median(off) < 1e-6
    assert np.quantile(off, 0.999) < 5e-5
    assert np.quantile(np.abs(found[:, 1] / steepness - 1.0), 0.99) < 3e-3


def test_thresholds_of_one_page_that_are_large_are_as_close() -> None:
    """Where a visit is worth its price after many doubts, a small share of the threshold is much: its last step is short, too."""
    rng = np.random.default_rng(8)
    n = 4000
    share = 1.0 - 10 ** rng.uniform(-3.5, -1.0, n)
    recall = rng.random(n) * 0.97
    signals = signals_of(np.ones(n), recall, recall * 10 ** rng.uniform(-3, 1.5, n))
    thresholds, _, _ = thresholds_at(share, signals)
    pages = zip(share.tolist(), *(of.tolist() for of in signals), strict=True)
    found = np.array([threshold_of_one(at, page)[0] for at, *page in pages])
    off = np.abs(found / thresholds - 1.0)
    assert off.max() < 1e-4
    assert np.quantile(off, 0.99) < 1e-5


def test_what_needs_no_visit_gets_none() -> None:
    plan = solve_signals([1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.5, 0.5, 0.5], 0.1, 2.0)
    assert plan.rates[:2].tolist() == [0.0, 0.0]
    assert plan.freshness[:2].tolist() == [1.0, 0.0]
    assert plan.rates[2] == pytest.approx(2.0, rel=1e-6)
    nothing = solve_signals([1.0], [0.0], 0.5, 0.1, 2.0)
    assert (nothing.unused, nothing.multiplier, nothing.objective) == (2.0, 0.0, 1.0)
    broke = solve_signals([2.0], [4.0], 0.5, 0.1, 0.0)
    assert (broke.rates[0], broke.multiplier) == (0.0, 0.5)
    assert solve_signals([], [], [], [], 1.0).unused == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0], [1.5], [0.0], 1.0), r"recall\[0\] is 1.5; expected a share from 0 to 1"),
        (([1.0], [1.0], [-0.5], [0.0], 1.0), r"recall\[0\] is -0.5"),
        (([1.0], [1.0], [0.5], [math.nan], 1.0), r"false_rate\[0\] is nan"),
        (([1.0, 1.0], [1.0], [0.5], [0.0], 1.0), "change_rate has 1 entries for 2 pages"),
        (([1.0, 1.0], [1.0, 1.0], [0.5], [0.0, 0.0], 1.0), "recall has 1 entries for 2 pages"),
        (([1.0], [1.0], 0.5, 0.0, -1.0), "bandwidth is -1.0"),
    ],
)
def test_unusable_arguments_are_named(arguments, message) -> None:
    with pytest.raises(InvalidProblemError, match=message):
        solve_signals(*arguments)


def test_it_is_part_of_the_library() -> None:
    assert {"solve_signals", "SignalSolution"} <= set(optimization.__all__)
