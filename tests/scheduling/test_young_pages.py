"""Looks at pages that change more often while they are young, against other ways to look at them."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from optimal_frontier.optimization.single import changes_per_visit
from optimal_frontier.scheduling.young_pages import Youth, young_wait


@cache
def fresh_s(youth, later, since, until):
    """Seconds for which a copy is expected to be current, from the visit at the age ``since`` until ``until``.

    Other ways to look differ in their last look alone, nine by nine: the rest of them is integrated once.
    """
    step = np.linspace(since, until, 4001)
    hazard = youth.rate * np.minimum(step, youth.until) + later * np.maximum(step - youth.until, 0.0)
    return float(np.trapezoid(np.exp(-(hazard - hazard[0])), step))


def loss(looks, youth, later, worth):
    """What is lost until the first look after youth beyond what is lost in so much of later life: old copies and the price of looks."""
    share = later * worth
    r = changes_per_visit(share) if share < 1.0 else math.inf
    rho = (r - 1.0 + math.exp(-r) + share) / r if share < 1.0 else 1.0
    ages = [0.0, *looks]
    old = sum(b - a - fresh_s(youth, later, a, b) for a, b in zip(ages, looks, strict=False))
    return old + worth * len(looks) - rho * ages[-1]


def chosen(youth, later, worth):
    """Ages of looks until youth is over."""
    ages, age = [], 0.0
    while (wait := young_wait(youth, later, math.log(worth), age)) < math.inf:
        age += wait
        ages.append(age)
    return ages


CASES = [(1 / 40, 128.0, 1e-5, worth) for worth in (2.0, 20.0, 100.0, 600.0, 5000.0)]
CASES += [(1 / 40, 128.0, 1 / 500, worth) for worth in (2.0, 20.0, 100.0, 400.0)]
CASES += [(1.0, 3600.0, 1e-6, 600.0), (1 / 3000, 4096.0, 1 / 20_000, 300.0), (1 / 3000, 4096.0, 1 / 20_000, 3000.0)]


@pytest.mark.parametrize(("rate", "until", "later", "worth"), CASES)
def test_no_even_looks_lose_less(rate, until, later, worth):
    """Any number of even looks in a part of youth, and one that is the first of later life at any time."""
    youth = Youth(rate, until)
    interval = changes_per_visit(later * worth) / later
    others = []
    for n in range(24):
        for end in (0.5, 0.7, 0.8, 0.9, 0.95):
            looks = [end * until * (i + 1) / n for i in range(n)]
            last = looks[-1] if looks else 0.0
            after = [until * x for x in (1.0, 1.02, 1.1, 1.3)] + [until + interval * x for x in (0.1, 0.3, 0.6, 1.0)]
            others += [loss([*looks, at], youth, later, worth) for at in (*after, last + interval) if at >= until]
    best = loss(chosen(youth, later, worth), youth, later, worth)
    assert best <= min(others) + 0.03 * abs(min(others)) + 0.01 * worth


def test_a_page_that_is_too_fast_while_it_is_young_is_looked_at_once_when_that_is_over():
    """It changes once a second, and a visit has to be worth ten minutes; after an hour it stays as it is."""
    wait = young_wait(Youth(1.0, 3600.0), 1e-6, math.log(600.0), 0.0)
    assert 3600.0 <= wait <= 1.1 * 3600.0
    assert young_wait(Youth(1.0, 3600.0), 1e-6, math.log(600.0), wait) == math.inf


def test_looks_are_rarer_the_more_they_cost():
    waits = [young_wait(Youth(1 / 40, 128.0), 1e-4, math.log(worth), 0.0) for worth in (0.5, 2.0, 10.0, 50.0, 200.0, 1e6)]
    assert waits == sorted(waits)
    assert waits[0] < 10.0
    assert waits[-1] == math.inf


def test_a_page_whose_youth_is_over_has_no_look():
    youth = Youth(0.1, 60.0)
    assert young_wait(youth, 1e-4, 1.0, 60.0) == young_wait(youth, 1e-4, 1.0, 1e9) == math.inf
    assert young_wait(youth, 1e-4, -math.inf, 0.0) == math.inf  # whatever is looked at is worth it, at any time
    assert young_wait(youth, 1e-4, 1.0, -5.0) == math.inf


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e4])
def test_units_do_not_matter(scale):
    wait = young_wait(Youth(1 / 40 / scale, 128.0 * scale), 1e-4 / scale, math.log(20.0 * scale), 30.0 * scale)
    assert wait / scale == pytest.approx(young_wait(Youth(1 / 40, 128.0), 1e-4, math.log(20.0), 30.0), rel=1e-9)


def test_it_looks_when_it_says_at_any_age():
    """No look comes sooner than a fraction of what is left, and none after more than a few of the best later intervals."""
    youth, later, worth = Youth(1 / 40, 128.0), 1e-3, 20.0
    interval = changes_per_visit(later * worth) / later
    for age in np.linspace(0.0, 127.9, 300):
        wait = young_wait(youth, later, math.log(worth), float(age))
        assert wait == math.inf or 0.0 < wait < 128.0 + 3.1 * interval
