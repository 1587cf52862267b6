"""Which hosts are believed: the probability behind it, honest hosts, liars of every kind, and those that change their ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.trust import KEPT, SURE, TOLERATED, Trust, fade, is_lie, rare_lies


def test_the_probability_is_that_of_the_beta_distribution():
    rng = np.random.default_rng(1)
    for total in 60 * rng.random(300):
        lies = total * rng.random()
        whole = special.betaln(1 + lies, 1 + total - lies)

        def density(x, total=total, lies=lies, whole=whole):
            return math.exp(lies * math.log(x) + (total - lies) * math.log1p(-x) - whole)

        assert rare_lies(total, lies) == pytest.approx(integrate.quad(density, 0.0, TOLERATED, epsabs=0.0, epsrel=1e-11)[0], rel=1e-9)


def checks(kind, pages, visits, seed, rate=1.0, interval=1.0):
    """(changed, lies) of a host's visits in order; beliefs come from bits alone, as before a host is trusted."""
    rng = np.random.default_rng(seed)
    beliefs = [RatePosterior(1.0, interval) for _ in range(pages)]
    ages = rng.exponential(1 / rate, pages)
    said = []
    for at in range(visits):
        page = at % pages
        back = rng.exponential(1 / rate)
        changed = back <= interval
        ages[page] = back if changed else ages[page] + interval
        told = {
            "honest": ages[page],
            "now": 0.0,
            "random": 20 * rng.random(),
            "frozen": 20.0 + interval * (at // pages),
            "deploy": min(ages[page], interval * (at // pages + 1) % 2.0),
        }[kind]
        said.append((changed, is_lie(interval, told, changed, beliefs[page].mean)))
        beliefs[page].update(interval, changed)
    return said


def trusts(said):
    """Whether the host is trusted after each check."""
    trust, found = Trust(), []
    for changed, lies in said:
        trust = trust.after(changed, lies)
        found.append(trust.is_earned)
    return np.array(found)


@pytest.mark.parametrize("rate", [0.3, 1.0, 3.0])
def test_an_honest_host_is_trusted_soon_and_stays_so(rate):
    """After 100 changes nearly always; false alarms keep a trusted host out for less than one visit in twenty."""
    needed = round(100 / -np.expm1(-rate))
    found = np.array([trusts(checks("honest", 20, needed + 500, seed, rate)) for seed in range(60)])
    assert found[:, needed:].mean() > 0.95
    assert found[:, : needed // 8].mean() < 0.05  # not before 12 changes


@pytest.mark.parametrize("kind", ["now", "random", "frozen", "deploy"])
@pytest.mark.parametrize("rate", [0.3, 1.0, 3.0])
def test_a_liar_is_hardly_ever_trusted(kind, rate):
    found = np.array([trusts(checks(kind, 20, 400, seed, rate)) for seed in range(40)])
    assert found.mean() < 0.01


def test_pages_made_when_they_are_asked_for_are_not_believed():
    """They change at every visit and say so each time: nothing contradicts them but that it is always just now."""
    assert not trusts(checks("now", 20, 400, 0, rate=1e6)).any()


def test_a_host_that_begins_to_lie_is_found_out_and_may_come_back():
    honest = checks("honest", 20, 400, 7)
    for kind in ("now", "random", "frozen"):
        found = trusts(honest + checks(kind, 20, 400, 8) + checks("honest", 20, 600, 9))
        assert found[399]
        until = int(np.argmin(found[400:800]))
        assert until <= 12
        assert not found[400 + until : 800].any()
        assert found[-1]


def test_what_it_takes():
    """The numbers that the module states."""

    def until(trust, lies, wanted):
        for count in range(1000):
            if trust.is_earned == wanted:
                return count
            trust = trust.after(True, lies)
        return None

    assert until(Trust(), False, True) == 15
    assert 1 + until(Trust().after(True, True), False, True) == 23
    honest, lying = Trust(), Trust()
    for _ in range(500):
        honest, lying = honest.after(True, False), lying.after(True, True)
    assert until(honest, True, False) == 4
    assert until(lying, False, True) == 95
    assert rare_lies(0.0, 0.0) < SURE  # no check, no trust


def test_unchanged_visits_alone_earn_nothing_and_can_spoil_all():
    quiet, earned = Trust(), Trust(changed=30.0)
    for _ in range(500):
        quiet = quiet.after(False, False)
    assert not quiet.is_earned
    assert earned.is_earned
    assert not earned.after(False, True).is_earned
    assert earned.after(False, False).after(False, True).is_earned


@pytest.mark.parametrize("rate", [0.01, 1.0, 30.0])
def test_an_honest_change_is_called_sudden_once_in_a_hundred(rate):
    """At ages that lie evenly in their distribution, that of an exponential time which ends within the interval."""
    level = (np.arange(20_000) + 0.5) / 20_000
    ages = -np.log1p(level * np.expm1(-rate)) / rate
    share = np.mean([is_lie(1.0, age, True, rate) for age in ages.tolist()])
    assert share == pytest.approx(0.01, abs=1 / 20_000)


def test_checks_fade_alike_one_by_one_and_at_once():
    """With lies spread evenly; and the memory is what the module says."""
    total, lies = 5.0, 2.0
    for _ in range(7):
        total, lies = fade(total, lies, 1.0, 1.0)
    assert fade(5.0, 2.0, 7.0, 7.0) == pytest.approx((total, lies), rel=1e-12)
    assert fade(0.0, 0.0, 1e6, 0.0)[0] == pytest.approx(1 / (1 - KEPT))


def test_counts_of_two_crawls_add_up():
    one, other = Trust(1.0, 0.5, 4.0, 0.0), Trust(3.0, 0.0, 10.0, 1.0)
    assert one + other == Trust(4.0, 0.5, 14.0, 1.0)
