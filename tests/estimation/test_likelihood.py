"""Maximum likelihood: against scipy, against both texts' equations, and where the likelihood has no greatest value."""

from __future__ import annotations

import math
import time as clock
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from optimal_frontier.estimation import bias_reduced_rate, mle_rate

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


def random_histories(seed: int, n: int) -> list[tuple[Floats, Bits]]:
    """Histories of 2 to 60 visits with changes and unchanged visits both, intervals over up to six decades."""
    rng = np.random.default_rng(seed)
    histories = []
    while len(histories) < n:
        visits = int(rng.integers(2, 61))
        intervals = np.exp(rng.normal(0.0, rng.choice([0.0, 0.5, 2.0]), visits)) * 10.0 ** rng.uniform(-4, 4)
        rate = rng.lognormal(0.0, 1.5) / np.median(intervals)
        changed = rng.random(visits) < -np.expm1(-rate * intervals)
        if 0 < changed.sum() < visits:
            histories.append((intervals, changed))
    return histories


def joined(histories: list[tuple[Floats, Bits]]) -> dict[str, NDArray[np.generic]]:
    return {
        "intervals": np.concatenate([intervals for intervals, _ in histories]),
        "changed": np.concatenate([changed for _, changed in histories]),
        "counts": np.array([changed.size for _, changed in histories]),
    }


def loss_against(reference: float, intervals: Floats, changed: Bits, log_factor: float) -> float:
    """Negative log-likelihood of reference times e^log_factor, less that of the reference: differences come before rounding."""
    seen, unseen = intervals[changed], intervals[~changed].sum()
    shift = reference * math.expm1(log_factor)
    # (1 - e^(-(r+d)I)) / (1 - e^(-rI)) is 1 + e^(-rI) (1 - e^(-dI)) / (1 - e^(-rI))
    ratio = np.exp(-reference * seen) * np.expm1(-shift * seen) / np.expm1(-reference * seen)
    direct = np.log(np.expm1(-(reference + shift) * seen) / np.expm1(-reference * seen))
    gain = np.where(np.abs(ratio) < 0.5, np.log1p(np.maximum(ratio, -0.75)), direct)
    return float(shift * unseen - gain.sum())


def test_it_is_where_scipy_finds_the_likelihood_greatest_in_a_thousand_random_histories() -> None:
    histories = random_histories(1, 1000)
    rates = mle_rate(**joined(histories))
    for (intervals, changed), rate in zip(histories, rates, strict=True):
        best = changed.sum() / intervals.sum()  # below the maximum
        # each round finds it as exactly as rounding allows, which is the better the closer the reference is
        for below, above in ((0.5, 20.0), (1e-2, 1e-2), (1e-6, 1e-6)):
            found = optimize.minimize_scalar(
                lambda log_factor, at=best, i=intervals, c=changed: loss_against(at, i, c, log_factor),
                bounds=(-below, above),
                method="bounded",
                options={"xatol": above * 1e-6},
            )
            best *= math.exp(found.x)
        assert rate == pytest.approx(best, rel=1e-8)


def test_both_texts_equations_hold_at_it_in_a_thousand_random_histories() -> None:
    """Crawlfrontier's, in e^(-x), and the derivative of the likelihood in Learning to Crawl, by root-finding of each on its own."""

    def crawlfrontier(log_rate: float, intervals: Floats, changed: Bits) -> float:
        theta_to_i = np.exp(-intervals[changed] * math.exp(log_rate))
        return float((intervals[changed] * theta_to_i / (1.0 - theta_to_i)).sum() / intervals[~changed].sum() - 1.0)

    def learning_to_crawl(log_rate: float, intervals: Floats, changed: Bits) -> float:
        none = 1.0 - changed
        decay = np.exp(-math.exp(log_rate) * intervals)
        return float(np.sum((1.0 - none) * intervals * decay / -np.expm1(-math.exp(log_rate) * intervals) - none * intervals))

    histories = random_histories(2, 1000)
    rates = mle_rate(**joined(histories))
    for (intervals, changed), rate in zip(histories, rates, strict=True):
        low, high = math.log(1e-3 / intervals.sum()), math.log(50.0 / intervals[changed].min())
        for equation in (crawlfrontier, learning_to_crawl):
            root = optimize.brentq(equation, low, high, args=(intervals, changed), xtol=1e-13, rtol=1e-13)
            assert rate == pytest.approx(math.exp(root), rel=1e-8)


def test_it_is_exact_to_rounding_over_twelve_decades_of_interval_and_eighteen_of_interval_times_rate() -> None:
    """Against the likelihood equation in 60 digits: it changes sign within 1e-13 of the answer."""
    rng = np.random.default_rng(3)

    def excess(rate: Decimal, intervals: Floats, changed: Bits) -> Decimal:
        pairs = [(Decimal(i), c) for i, c in zip(intervals.tolist(), changed.tolist(), strict=True)]
        decays = [(i, (-i * rate).exp()) for i, c in pairs if c]
        return sum((i * d / (1 - d) for i, d in decays), Decimal(0)) - sum((i for i, c in pairs if not c), Decimal(0))

    with localcontext() as context:
        context.prec = 60
        for exponent in np.linspace(-9, 9, 60):
            intervals = 10.0 ** rng.uniform(-6, 6, 12)
            changed = rng.random(12) < -np.expm1(-(10.0**exponent) * intervals)
            changed[np.argmin(intervals)], changed[np.argsort(intervals)[6]] = False, True
            rate = Decimal(mle_rate(intervals, changed))
            assert excess(rate * (1 - Decimal("1e-13")), intervals, changed) > 0
            assert excess(rate * (1 + Decimal("1e-13")), intervals, changed) < 0


@pytest.mark.parametrize("scaled", [1e-9, 1e-3, 1.0, 20.0])
def test_equal_intervals_have_the_closed_form(scaled: float) -> None:
    visits = 10**6
    unchanged = min(max(round(visits * math.exp(-scaled)), 1), visits - 1)
    changed = np.arange(visits) >= unchanged
    expected = math.log1p((visits - unchanged) / unchanged) / 7.0
    assert mle_rate(np.full(visits, 7.0), changed) == pytest.approx(expected, rel=1e-13)


def test_never_changed_gives_0_and_all_changed_a_finite_rate() -> None:
    assert mle_rate([1.0, 9.0], [False, False]) == 0.0
    assert mle_rate([4.0] * 5, [True] * 5) == pytest.approx(math.log(11.0) / 4.0, rel=1e-14)
    assert mle_rate([4.0] * 5, [True] * 5) == pytest.approx(bias_reduced_rate([4.0] * 5, [True] * 5), rel=1e-14)


def test_all_changed_is_more_than_with_any_one_visit_unchanged() -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        visits = int(rng.integers(1, 12))
        intervals = 10.0 ** rng.uniform(-6, 6, visits)
        one_less = [mle_rate(intervals, np.arange(visits) != i) for i in range(visits)]
        assert mle_rate(intervals, np.ones(visits, dtype=bool)) > max(one_less)


def test_a_history_that_turns_into_a_change_raises_it() -> None:
    rng = np.random.default_rng(5)
    for intervals, changed in random_histories(6, 200):
        more = changed.copy()
        more[rng.choice(np.flatnonzero(~changed))] = True
        assert mle_rate(intervals, more) > mle_rate(intervals, changed)


def test_with_bounds_it_is_the_most_probable_rate_between_them() -> None:
    assert mle_rate([2.0] * 4, [True] * 4, 0.1, 3.0) == 3.0
    assert mle_rate([2.0] * 4, [False] * 4, 0.1, 3.0) == 0.1
    assert mle_rate([2.0] * 4, [True, False, True, True], upper=0.5) == 0.5
    assert mle_rate([2.0] * 4, [True, False, False, False], lower=0.5) == 0.5
    inside = mle_rate([2.0] * 4, [True, False, False, True])
    assert mle_rate([2.0] * 4, [True, False, False, True], 0.1, 3.0) == inside
    assert mle_rate([2.0] * 4, [True] * 4, lower=0.1, upper=np.inf) == mle_rate([2.0] * 4, [True] * 4)


def test_irregular_intervals_do_not_bias_it_as_they_do_the_mean_interval() -> None:
    rng = np.random.default_rng(7)
    intervals = rng.exponential(1.0, 200_000)
    changed = rng.random(intervals.size) < -np.expm1(-intervals)
    assert mle_rate(intervals, changed) == pytest.approx(1.0, abs=0.01)
    assert bias_reduced_rate(intervals, changed) == pytest.approx(math.log(2.0), abs=0.01)  # 31% low


def test_a_hundred_thousand_pages_with_twenty_visits_take_at_most_two_seconds() -> None:
    rng = np.random.default_rng(8)
    intervals = rng.exponential(1.0, 2_000_000) + 1e-9
    changed = rng.random(2_000_000) < -np.expm1(-np.repeat(rng.lognormal(0.0, 1.5, 100_000), 20) * intervals)
    start = clock.process_time()
    mle_rate(intervals, changed, counts=np.full(100_000, 20))
    assert clock.process_time() - start < 2.0  # 0.15 s on an idle core
