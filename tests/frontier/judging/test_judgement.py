"""From a handout and a fingerprint to the observation that is stored."""

from __future__ import annotations

import dataclasses

import pytest

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.change_points import ALARM, watch_one
from optimal_frontier.frontier.judgement import change_bit, judge_visit
from optimal_frontier.optimization import solve_periodic, solve_poisson
from optimal_frontier.state.columns import ACTIVE, ONCE
from optimal_frontier.state.records import Handout, Published, Watched

OLD, NEW = b"o" * 16, b"n" * 16
HANDOUT = Handout(5, b"1@1", 0.5, 40.0, 2.0, 0.0, 1.0, ACTIVE, 3.0, 100.0, 4, 4, 0.1, True, 77, OLD, {}, 1000.0)


@pytest.mark.parametrize(("fingerprint", "tag", "visits", "bit"), [(NEW, 77, 4, 1), (OLD, 77, 4, 0), (NEW, 78, 4, -1), (NEW, 77, 0, -1)])
def test_a_bit_needs_a_fingerprint_made_the_same_way(fingerprint, tag, visits, bit):
    """None on a first visit, nor when the settings of the fingerprint changed since."""
    assert change_bit(dataclasses.replace(HANDOUT, visits=visits), fingerprint, tag) == bit


@pytest.mark.parametrize("changed", [True, False])
def test_the_interval_runs_from_the_last_success_to_this_response(changed):
    """Elapsed at the hand-out, and what passed here since; both by one clock each."""
    observation = judge_visit(HANDOUT, NEW if changed else OLD, 77, 1002.0, Published(1.0, 50.0))
    posterior = RatePosterior(3.0, 100.0)
    posterior.update(42.0, changed)
    assert (observation.shape, observation.time) == (posterior.shape, posterior.time)
    assert observation.bit == int(changed)
    assert observation.content == (77).to_bytes(4, "little") + (NEW if changed else OLD)


def test_without_a_bit_the_posterior_stays():
    observation = judge_visit(HANDOUT, NEW, 78, 1002.0, Published(1.0, 50.0))
    assert (observation.bit, observation.shape, observation.time) == (-1, 3.0, 100.0)
    assert observation.content[:4] == (78).to_bytes(4, "little")


def test_the_first_bit_starts_from_the_published_prior():
    fresh = dataclasses.replace(HANDOUT, shape=0.0, time=0.0)
    observation = judge_visit(fresh, OLD, 77, 1000.0, Published(1.0, 50.0))
    posterior = RatePosterior(1.0, 50.0)
    posterior.update(40.0, False)
    assert (observation.shape, observation.time) == (posterior.shape, posterior.time)


def test_a_page_without_a_plan_gets_the_rate_that_the_next_plan_would_give():
    """At the published multiplier, for the same change rate."""
    solution = solve_periodic([2.0, 1.0], [RatePosterior(3.0, 140.0).median, 0.02], 0.05)
    unplanned = dataclasses.replace(HANDOUT, planned=False, shape=3.0, time=100.0)
    published = Published(solution.multiplier, 50.0)
    observation = judge_visit(unplanned, OLD, 77, 1000.0, published)
    assert observation.rate == pytest.approx(solution.rates[0], rel=1e-6)
    assert judge_visit(HANDOUT, OLD, 77, 1000.0, published).rate == 0.0
    assert judge_visit(unplanned, OLD, 77, 1000.0, Published()).rate == 0.0


def test_a_page_without_a_plan_gets_its_memoryless_rate_under_that_policy():
    solution = solve_poisson([2.0, 1.0], [RatePosterior(3.0, 140.0).median, 0.02], 0.05)
    unplanned = dataclasses.replace(HANDOUT, planned=False, shape=3.0, time=100.0)
    observation = judge_visit(unplanned, OLD, 77, 1000.0, Published(solution.multiplier, 50.0), policy="poisson")
    assert observation.rate == pytest.approx(solution.rates[0], rel=1e-6)


def test_bounds_hold_between_plans_too():
    """A pinned page is pinned from its first visit on, infinite maxima are none."""
    pinned = dataclasses.replace(HANDOUT, planned=False, min_rate=0.2, max_rate=0.2)
    assert judge_visit(pinned, OLD, 77, 1000.0, Published(1e3, 50.0)).rate == 0.2
    free = dataclasses.replace(HANDOUT, planned=False, max_rate=1e300)
    assert 0 < judge_visit(free, OLD, 77, 1000.0, Published(1e-6, 50.0)).rate < float("inf")


def test_what_is_no_page_has_no_history():
    observation = judge_visit(dataclasses.replace(HANDOUT, kind=ONCE), NEW, 77, 1000.0, Published())
    assert (observation.outcome, observation.bit, observation.content) == ("ok", -1, b"")


def test_a_new_page_is_visited_as_often_as_the_others_while_all_are_explored():
    """A plan at even intervals has no price; the prior's time is pages / budget."""
    handout = dataclasses.replace(HANDOUT, visits=0, planned=False, min_rate=0.0, max_rate=1.0)
    observation = judge_visit(handout, OLD, 77, 1000.0, Published(0.0, 50.0))
    assert observation.rate == pytest.approx(0.97 / 50.0)
    assert judge_visit(dataclasses.replace(handout, max_rate=1e-3), OLD, 77, 1000.0, Published(0.0, 50.0)).rate == 1e-3
    assert judge_visit(handout, OLD, 77, 1000.0, Published()).rate == 0.0


def test_what_stands_by_goes_along_and_takes_over():
    """A page of which 400 s without a change are known changes at every visit."""
    page = dataclasses.replace(HANDOUT, shape=1.0, time=400.0)
    observation = judge_visit(page, NEW, 77, 1000.0, Published(1.0, 50.0))
    assert observation.watch == pytest.approx((*watch_one((0.0, 0.0, 0.0), 1.0, 400.0, 1.0, 50.0, 40.0, True)[0], 0))
    assert observation.watch.evidence > 0
    on_alarm = dataclasses.replace(page, watch=Watched(2.0, 30.0, ALARM - 0.1, 3))
    observation = judge_visit(on_alarm, NEW, 77, 1000.0, Published(1.0, 50.0))
    assert observation.watch.relearned == 4
    assert observation.watch.evidence == 0.0
    assert (observation.shape, observation.time) == (observation.watch.shape, observation.watch.time)
    assert observation.time < 100.0
    assert judge_visit(page, NEW, 78, 1000.0, Published(1.0, 50.0)).watch is None


def test_what_stands_by_falls_back_to_what_siblings_taught():
    page = dataclasses.replace(HANDOUT, prior_shape=2.0, prior_time=500.0)
    observation = judge_visit(page, NEW, 77, 1000.0, Published(1.0, 50.0))
    assert observation.watch[:3] == watch_one((0.0, 0.0, 0.0), 3.0, 100.0, 2.0, 500.0, 40.0, True)[0]


def test_a_half_life_forgets_before_the_bit_counts():
    observation = judge_visit(HANDOUT, OLD, 77, 1000.0, Published(1.0, 50.0), half_life=40.0)
    # Half of what lies between Gamma(3, 100) and half of the prior Gamma(1, 50) is left after 40 s; then 40 s without a change.
    assert (observation.shape, observation.time) == pytest.approx((1.75, 62.5 + 40.0))
