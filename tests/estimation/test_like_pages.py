"""Pages that are alike are known to be, as far as they have shown it; those that are not keep what their own bits say."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.estimation import posterior_median, update_posterior
from optimal_frontier.estimation.like_pages import MOST_ALIKE, LikePages, LikePatterns, priors_within, with_siblings
from optimal_frontier.estimation.sibling_priors import DEFAULT_SHAPE, MOST_SHAPE, SLOWEST


def visited(rng, rates, visits, interval=1.0, default_time=1.0):
    """Posteriors of pages that were visited so many times, from the default prior."""
    shape, time = np.full(len(rates), DEFAULT_SHAPE), np.full(len(rates), default_time)
    for _ in range(visits):
        shape, time = update_posterior(shape, time, np.full(len(rates), interval), rng.random(len(rates)) < -np.expm1(-rates * interval))
    return shape, time


def fitted(shape, time, default_time=1.0):
    """Shape and mean rate of one group."""
    pages = LikePages(1, default_time)
    pages.add(np.asarray(shape, float), np.asarray(time, float), np.zeros(len(shape), np.int64))
    return tuple(float(values[0]) for values in pages.fitted())


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.2])
def test_pages_that_change_alike_are_found_to(rate):
    """The more they have shown the surer; the mean is theirs."""
    few, many = (fitted(*visited(np.random.default_rng(3), np.full(400, rate), visits)) for visits in (20, 200))
    assert few[0] <= many[0]
    assert many[0] > 15.0
    assert many[1] == pytest.approx(rate, rel=0.1)


def test_pages_that_change_about_as_often_as_they_are_visited_are_not_asked():
    """Each visit has seen a change, which makes quick ones and slow ones alike."""
    assert fitted(*visited(np.random.default_rng(3), np.full(400, 1.0), 200))[0] == 0.0


@pytest.mark.parametrize("visits", [3, 10, 30, 100])
@pytest.mark.parametrize("spread", [1.0, 2.0])
@pytest.mark.parametrize("rate", [0.05, 0.2, 1.0])
def test_pages_that_differ_are_never_taken_for_alike(visits, spread, rate):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        assert fitted(*visited(rng, rate * np.exp(rng.normal(0.0, spread, 300)), visits))[0] <= MOST_SHAPE


def test_rates_of_a_gamma_distribution_are_found_to_have_its_shape():
    rng = np.random.default_rng(4)
    rates = rng.gamma(6.0, 0.1 / 6.0, 3000)
    time = np.full(3000, 400.0)
    shape, mean = fitted(1.0 + rng.poisson(rates * time), 1.0 + time)
    assert 5.0 < shape < 6.5
    assert mean == pytest.approx(0.1, rel=0.03)


@pytest.mark.parametrize("pages", [0, 1, 2, 4])
def test_few_pages_say_little(pages):
    assert fitted(*visited(np.random.default_rng(5), np.full(pages, 0.2), 30))[0] <= MOST_SHAPE


def test_one_page_that_is_far_quicker_ends_it():
    """An index among articles."""
    shape, time = visited(np.random.default_rng(6), np.full(100, 0.01), 100)
    assert fitted(shape, time)[0] > MOST_SHAPE
    assert fitted(np.append(shape, 90.0), np.append(time, 100.0))[0] < 1.0


def test_parts_units_and_pages_without_a_bit_make_no_difference():
    rng = np.random.default_rng(7)
    group = rng.integers(0, 3, 500)
    shape, time = visited(rng, np.array([0.1, 0.3, 0.5])[group], 40)
    whole, parts = LikePages(4, 1.0), LikePages(4, 60.0)
    whole.add(shape, time, group)
    for some in np.array_split(rng.permutation(500), 4):
        parts.add(np.append(shape[some], 0.0), np.append(60.0 * time[some], 1e9), np.append(group[some], 0))
    (of_whole, rate), (of_parts, slower) = whole.fitted(), parts.fitted()
    assert of_parts == pytest.approx(of_whole, rel=1e-6)
    assert 60.0 * slower == pytest.approx(rate, rel=1e-9)
    assert (of_whole[3], rate[3]) == (0.0, 0.0)
    assert of_whole.max() <= MOST_ALIKE


def test_what_siblings_say_shrinks_what_few_bits_make_different():
    """Nearer to the truth than what each has shown itself."""
    shape, time = visited(np.random.default_rng(8), np.full(300, 0.2), 20)
    like, rate = fitted(shape, time)
    own, believed = posterior_median(shape, time), posterior_median(*with_siblings(shape, time, like, like / rate))
    assert np.abs(np.log(believed / 0.2)).mean() < 0.5 * np.abs(np.log(own / 0.2)).mean()


def test_a_page_unlike_its_siblings_keeps_its_own():
    shape, time = with_siblings([1.0, 30.0, 9.0, 3.0], [2000.0, 100.0, 100.0, 40.0], 32.0, 320.0)
    assert (shape - [1.0, 30.0, 9.0, 3.0]).tolist() == [0.0, 0.0, 30.0, 30.0]
    assert (time - [2000.0, 100.0, 100.0, 40.0]).tolist() == [0.0, 0.0, 300.0, 300.0]


def test_priors_of_patterns_that_are_alike_say_no_more_than_others():
    """Their medians are those of their siblings within what any prior may say, and others are as they were."""
    default = 10.0
    shape, time = priors_within([1.4, 2.0, 8.0, 8.0, 8.0], [3.0, 4.0, 80.0, 1.0, 1e9], default)
    assert shape.tolist() == [1.4, 2.0, 2.0, 2.0, 2.0]
    assert time[:2].tolist() == [3.0, 4.0]
    median, usual = posterior_median(shape[2:], time[2:]), posterior_median(DEFAULT_SHAPE, default)
    assert median == pytest.approx([float(posterior_median(8.0, 80.0)), MOST_SHAPE * usual, SLOWEST * usual], rel=2e-3)


def test_patterns_are_told_anew_when_something_else_is_believed_of_them():
    def of(*told):
        pattern, shape, time = (np.array(values) for values in zip(*told, strict=True)) if told else np.zeros((3, 0))
        return LikePatterns.of(pattern, shape, time)

    before = of((3, 8.0, 80.0), (5, 8.0, 80.0), (7, 8.0, 80.0), (8, 1.5, 80.0), (9, 8.0, 80.0))
    assert before.pattern.tolist() == [3, 5, 7, 9]
    after = of((3, 8.01, 80.0), (5, 9.0, 90.0), (6, 4.0, 40.0), (7, 8.0, 60.0))
    assert after.moved_since(before).tolist() == [5, 6, 7, 9]
    assert after.moved_since(after).tolist() == of().moved_since(of()).tolist() == []
