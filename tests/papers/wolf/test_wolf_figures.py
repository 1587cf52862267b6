"""Figures 7 to 10 of Wolf et al.: the pages, the schemes, what is held against each other, and the slots."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import Exponential, Pareto, QuasiDeterministic
from optimal_frontier.papers.wolf.search_engine import search_log
from optimal_frontier.papers.wolf.wolf_figure_7 import figure_7_checks, weighted_wins, wolf_figure_7
from optimal_frontier.papers.wolf.wolf_figure_8 import figure_8_checks, wolf_figure_8
from optimal_frontier.papers.wolf.wolf_figure_9 import figure_9_checks, wolf_figure_9
from optimal_frontier.papers.wolf.wolf_figure_10 import deviations, figure_10_checks, ideal_times, wolf_figure_10
from optimal_frontier.papers.wolf.wolf_pages import capped, wolf_pages
from optimal_frontier.papers.wolf.wolf_schemes import SCHEMES, SchemePoint, crawls_of, in_proportion

PAGES = 20_000
#: Of figures 7 to 9, whose curves are in the same order with a fifth of them: see the tests of the commands.
PAGES_OF_CURVES = 10_000


def quasi(pages):
    return [model for model in pages.models if isinstance(model, QuasiDeterministic)]


def test_the_mixture_is_the_papers():
    """60% Poisson, 30% Pareto and 10% quasi-deterministic, 1.5 updates a day on average, whatever the skew."""
    for skew in (0.0, 0.5, 1.0):
        pages = wolf_pages(PAGES, 1, skew=skew)
        assert len(pages) == sum(map(len, pages.models)) == PAGES
        poisson, pareto, *_ = pages.models
        assert isinstance(poisson, Exponential)
        assert isinstance(pareto, Pareto)
        assert (len(poisson), len(pareto), pages.quasi_deterministic) == (12_000, 6000, 2000)
        assert sum(map(len, quasi(pages))) == 2000
        assert pages.change_rate.mean() == pytest.approx(1.5, rel=1e-12)
        assert sorted(pages.lot) == list(range(PAGES))


def test_rates_follow_zipfs_law_between_skewed_and_alike():
    rate = np.sort(wolf_pages(1000, 0, shares=(1, 0, 0)).change_rate)[::-1]
    np.testing.assert_allclose(rate * np.arange(1, 1001), rate[0])
    half = np.sort(wolf_pages(1000, 0, shares=(1, 0, 0), skew=0.5).change_rate)[::-1]
    np.testing.assert_allclose(half * np.sqrt(np.arange(1, 1001)), half[0])
    np.testing.assert_allclose(wolf_pages(1000, 0, skew=1.0).change_rate, 1.5)


def test_models_have_the_rates_of_their_pages():
    """Mean times between updates of the Pareto pages, and sums of probabilities of the quasi-deterministic ones."""
    pages = wolf_pages(PAGES, 3, shape=1.25)
    pareto, late = pages.models[1], quasi(pages)
    assert (pareto.shape == 1.25).all()
    np.testing.assert_allclose(0.25 / pareto.scale, pages.change_rate[12_000:18_000])
    expected = np.concatenate([model.probabilities.sum(axis=1) for model in late])
    np.testing.assert_allclose(expected, pages.change_rate[18_000:])
    numbers = [model.times.shape[1] for model in late]
    assert numbers == sorted(set(numbers))
    assert (numbers[0], numbers[-1]) == (1, 24)


def test_capped_rates_keep_their_sum_and_order():
    rates = np.random.default_rng(0).pareto(1.1, 500) + 0.01
    found = capped(rates, 20.0)
    assert found.max() == 20.0
    assert found.sum() == pytest.approx(rates.sum(), rel=1e-12)
    below = found < 20.0
    assert np.ptp(found[below] / rates[below]) < 1e-12
    assert rates[below].max() <= rates[~below].min()
    assert capped(np.array([1.0, 2.0]), 2.0).tolist() == [1.0, 2.0]
    assert capped(np.array([1.0, 8.0]), 2.0).tolist() == [2.0, 2.0]


def test_staleness_is_that_of_each_model():
    pages = wolf_pages(500, 2)
    crawls = np.arange(500) % 7
    found = pages.staleness(crawls)
    at = 0
    for model in pages.models:
        for page in range(len(model)):
            assert found[at] == model.part(np.array([page])).staleness(crawls[at], 1.0)[0]
            at += 1


def test_same_seed_same_pages():
    one, two, other = (wolf_pages(300, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.change_rate, two.change_rate)
    np.testing.assert_array_equal(quasi(one)[0].times, quasi(two)[0].times)
    assert (one.change_rate != other.change_rate).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"skew": 1.5}, "skew is 1.5"),
        ({"shares": (0.5, 0.4, 0.2)}, "shares is"),
        ({"shares": (0.5, 0.5)}, "shares is"),
        ({"shape": 1.0}, r"shape\[0\] is 1.0"),
    ],
)
def test_bad_pages_are_named(arguments, message):
    with pytest.raises(InvalidProblemError, match=message):
        wolf_pages(**{"n": 10, "seed": 1, **arguments})


@pytest.mark.parametrize("total", [0, 1, 999, 12_345])
def test_shares_are_rounded_to_a_sum(total):
    """Nobody is 1 or more away from the exact share, and the largest remainders are rounded up."""
    rng = np.random.default_rng(total)
    claims = rng.pareto(1.2, 1000)
    crawls = in_proportion(claims, total, rng.permutation(1000))
    exact = claims * total / claims.sum()
    assert crawls.sum() == total
    assert (np.abs(crawls - exact) < 1).all()
    up = crawls > exact
    if up.any() and (~up).any():
        assert (exact % 1)[up].min() >= (exact % 1)[~up].max() - 1e-9


def test_equal_claims_are_served_by_lot():
    lot = np.random.default_rng(1).permutation(10)
    crawls = in_proportion(np.full(10, 0.1), 25, lot)
    assert sorted(crawls) == [2] * 5 + [3] * 5
    assert (lot[crawls == 3] < 5).all()


def test_bad_claims_and_schemes_are_named():
    with pytest.raises(InvalidProblemError, match="claims"):
        in_proportion(np.zeros(3), 1, np.arange(3))
    with pytest.raises(InvalidProblemError, match="scheme is 'best'"):
        crawls_of("best", wolf_pages(10, 1), 5)


def test_schemes_give_out_all_crawls():
    pages = wolf_pages(2000, 1)
    weights = search_log(2000, 1).weights
    for scheme in SCHEMES:
        for known in (None, weights):
            assert crawls_of(scheme, pages, 5001, known).sum() == 5001
    assert np.ptp(crawls_of("uniform", pages, 5001)) == 1
    assert np.abs(crawls_of("proportional", pages, 5001, weights) - 5001 * (w := weights * pages.change_rate) / w.sum()).max() < 1


def test_schemes_are_the_same_where_all_rates_are():
    """The paper: without weights, at theta 1."""
    pages = wolf_pages(PAGES, 5, skew=1.0)
    np.testing.assert_array_equal(crawls_of("uniform", pages, 50_001), crawls_of("proportional", pages, 50_001))


def test_figure_7_holds():
    found = list(wolf_figure_7(PAGES_OF_CURVES))
    assert len(found) == (8 + 6) * 6
    assert all(check.holds for check in figure_7_checks(found)), figure_7_checks(found)
    # What Jensen's inequality says, and the paper does not.
    assert weighted_wins(found) == {"uniform": (14, 14), "proportional": (14, 14)}


def test_figure_7_shows_the_weighted_objective():
    """Also the schemes that know nothing of weights."""
    (value,) = (one.value for one in wolf_figure_7(500, 4, [2.0], []) if one.scheme == "optimal")
    pages, weights = wolf_pages(500, 4), search_log(500, 4).weights
    stale = pages.staleness(crawls_of("optimal", pages, 1000))
    assert value == pytest.approx(np.average(stale, weights=weights), rel=1e-12)


def test_figure_8_holds():
    found = list(wolf_figure_8(PAGES_OF_CURVES))
    assert len(found) == 4 * 8 * 3
    assert all(check.holds for check in figure_8_checks(found)), figure_8_checks(found)
    zero = {one.at for one in found if one.panel == "quasi-deterministic" and one.scheme == "optimal" and one.value == 0}
    assert 5.0 in zero
    assert 1.5 not in zero
    assert all(one.value > 0 for one in found if one.scheme != "optimal")


def test_figure_9_rises_with_the_shape():
    found = list(wolf_figure_9(PAGES_OF_CURVES))
    assert all(check.holds for check in figure_9_checks(found)), figure_9_checks(found)
    for scheme in SCHEMES:
        assert (np.diff([one.value for one in found if one.scheme == scheme]) > 0).all()


def spoiled(found, change):
    """Points with one of them changed."""
    return [replace(one, value=change(one)) for one in found]


@cache
def small_figure_7():
    return tuple(wolf_figure_7(2000))


@pytest.mark.parametrize(
    ("scheme", "at", "by", "broken"),
    [
        ("uniform", 3.0, 2.0, "uniform below proportional, by crawls per page"),
        ("weighted uniform", 3.0, 2.0, "weighted uniform below weighted proportional, by crawls per page"),
        ("proportional", 3.0, 0.1, "weighted optimal below proportional"),
        ("proportional", 1.0, 0.97, "uniform below proportional, or at most 2% above, by theta"),
        ("weighted optimal", 3.0, 1.1, "weighted optimal convex in the number of crawls"),
    ],
)
def test_checks_of_figure_7_can_fail(scheme, at, by, broken):
    found = small_figure_7()
    assert all(check.holds for check in figure_7_checks(found))
    other = spoiled(found, lambda one: one.value * (by if (one.scheme, one.at) == (scheme, at) else 1))
    assert broken in [check.promise for check in figure_7_checks(other) if not check.holds]


def test_checks_of_figures_8_and_9_can_fail():
    found = list(wolf_figure_8(2000))
    last = [check for check in figure_8_checks(found) if "0 for quasi" in check.promise]
    assert [check.holds for check in last] == [True]
    stale = spoiled(found, lambda one: one.value + 1e-6 * (one.panel == "quasi-deterministic" and one.scheme == "optimal"))
    assert [check.where for check in figure_8_checks(stale) if not check.holds] == ["quasi-deterministic 5"]
    # Without crawls enough for all potential updates it cannot be.
    few = [one for one in found if one.at < 3]
    assert not figure_8_checks(few)[-1].holds
    worst = spoiled(found, lambda one: one.value + (one.panel == "pareto" and one.scheme == "optimal" and one.at == 2.0))
    assert [check.where for check in figure_8_checks(worst) if check.promise == "optimal below uniform"] == ["pareto 2"]
    flat = spoiled(wolf_figure_9(2000), lambda one: -one.at if one.scheme == "uniform" else one.value)
    assert not figure_9_checks(flat)[-1].holds


def test_two_curves_at_zero_are_in_order():
    found = [SchemePoint("poisson", 1.0, scheme, 0.0) for scheme in SCHEMES]
    found += [SchemePoint("poisson", 2.0, scheme, 0.0) for scheme in SCHEMES]
    assert all(check.holds for check in figure_9_checks(found))


def test_ideal_times_are_evenly_spaced_or_potential_updates():
    pages = wolf_pages(3000, 1)
    crawls = crawls_of("optimal", pages, 7500)
    ideal = ideal_times(pages, crawls, np.random.default_rng(0))
    assert len(ideal) == 7500
    assert ((ideal >= 0) & (ideal < 1)).all()
    starts = np.cumsum(crawls) - crawls
    regular = len(pages) - pages.quasi_deterministic
    for page in np.flatnonzero(crawls[:regular] > 1)[:200]:
        times = ideal[starts[page] : starts[page] + crawls[page]]
        np.testing.assert_allclose(np.diff(times), 1 / crawls[page])
    # Those of quasi-deterministic pages keep their distances around the clock, but for time 0, which no scheme here pays for.
    at = regular
    for model in quasi(pages):
        for page in range(0, len(model), 7):
            mine = ideal[starts[at + page] : starts[at + page] + crawls[at + page]]
            times = np.append(model.times[page], 0.0)
            shift = (mine[:1, None] - times) % 1.0
            near = np.abs((mine[None, :, None] - shift.T[:, None, :] - times + 0.5) % 1.0 - 0.5).min(axis=-1).max(axis=-1, initial=0)
            assert mine.size == 0 or near.min() < 1e-9
        at += len(model)


def test_figure_10_is_never_early_and_near_where_slots_are_free():
    full, free = wolf_figure_10(PAGES)
    assert full.crawls == free.crawls == 50_000
    assert (full.slots, full.free) == (5000, 0.0)
    assert free.free == pytest.approx(0.01, abs=1e-3)
    assert all(check.holds for check in figure_10_checks([full, free]))
    assert free.farthest < full.farthest
    for one in (full, free):
        assert one.early == 0
        assert one.counts.sum() == one.crawls
        assert one.quasi_counts.sum() == one.quasi_deterministic
        assert (one.quasi_counts[one.edges[:-1] < -1] == 0).all()
        assert 0.15 < one.quasi_deterministic / one.crawls < 0.25


def test_deviations_are_counted():
    """Six crawls at once in one crawler's six slots: two may be early and four must wait, or all must."""
    ideal = np.full(6, 0.5)
    both = deviations(ideal, np.zeros(6, np.bool_), 0.0, crawlers=1)
    assert (both.slots, both.farthest, both.early, both.within) == (6, 3.0, 0, 1.0)
    assert dict(zip(both.edges[:-1].tolist(), both.counts.tolist(), strict=True)) == {-4: 0, -3: 1, -2: 1, -1: 1, 0: 1, 1: 1, 2: 1, 3: 0}
    half = deviations(ideal, np.ones(6, np.bool_), 0.5, crawlers=1)
    assert (half.slots, half.farthest, half.free, half.early) == (12, 5.0, 0.5, 0)
    assert half.counts[half.edges[:-1] < 0].sum() == 0


def test_checks_of_figure_10_can_fail():
    full, free = wolf_figure_10(2000)
    assert [check.holds for check in figure_10_checks([full, replace(free, early=1)])] == [True, False, True]
    assert [check.holds for check in figure_10_checks([full, replace(free, within=0.99)])] == [True, True, False]
