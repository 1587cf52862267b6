"""The token bucket: no crawler and no burst goes beyond the budget."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timed_namespace import TimedNamespace, new_page

from optimal_frontier.state.partition import draw_call


def fill(space: TimedNamespace, pages: int = 200) -> None:
    space.add(*(new_page(f"h{i}/{i}") for i in range(pages)))


def test_no_budget_is_no_limit(space: TimedNamespace) -> None:
    fill(space)
    assert len(space.dispatch(64)) == 64
    assert len(space.dispatch(64)) == 64


@pytest.mark.parametrize(("budget", "depth"), [(0.5, 1), (5.0, 1), (100.0, 10), (1000.0, 64)])
def test_the_bucket_holds_a_tenth_of_a_second_and_at_least_one(space: TimedNamespace, budget: float, depth: int) -> None:
    fill(space)
    space.dispatch(1, budget=budget)
    space.advance(1000.0)
    assert len(space.dispatch(64, budget=budget)) == depth


def test_the_bucket_is_as_deep_as_it_is_asked_to_be(space: TimedNamespace) -> None:
    """Also where fetches that are no dispatch are paid first."""
    fill(space)
    space.dispatch(1, budget=50.0)
    space.advance(1000.0)
    space.run([draw_call(0, 50.0, 3, depth=0.4)])
    assert len(space.dispatch(64, budget=50.0, depth=0.4)) == 17


def test_an_empty_bucket_says_when_it_has_one_again(space: TimedNamespace) -> None:
    fill(space)
    assert len(space.dispatch(5, budget=4.0)) == 1
    told = space.ask(5, budget=4.0)
    assert (told.handouts, told.wait) == ([], pytest.approx(0.25, abs=1e-6))
    space.advance(0.2)
    assert space.dispatch(5, budget=4.0) == []
    space.advance(0.05)
    assert len(space.dispatch(5, budget=4.0)) == 1


@pytest.mark.parametrize("step", [0.003, 0.05, 0.5])
def test_in_the_long_run_the_budget_is_met_exactly(space: TimedNamespace, step: float) -> None:
    fill(space)
    handed, steps = 0, int(10.0 / step)
    for _ in range(steps):
        space.advance(step)
        handed += len(space.dispatch(64, budget=10.0))
    assert handed == pytest.approx(10.0 * steps * step, abs=2.0) if step <= 0.1 else handed == steps


@pytest.mark.parametrize("budget", [1.0, 5.0, 12.0, 19.0])
def test_who_asks_a_little_late_loses_nothing(space: TimedNamespace, budget: float) -> None:
    """40 ms after the time that was told: a bucket of a few fetches a second holds a part of the next one."""
    fill(space)
    space.dispatch(64, budget=budget)
    began, handed = space.now(), 0
    for _ in range(100):
        told = space.ask(5, budget=budget)
        handed += len(told.handouts)
        space.advance(told.wait + 0.04)
    assert handed / (space.now() - began) == pytest.approx(budget, rel=0.02)


def test_fetches_that_are_no_dispatch_are_paid_too(space: TimedNamespace) -> None:
    fill(space)
    space.dispatch(1, budget=10.0)
    space.run([draw_call(0, 10.0, 5)])
    assert space.state().tokens == pytest.approx(-5.0)
    told = space.ask(1, budget=10.0)
    assert (told.handouts, told.wait) == ([], pytest.approx(0.6, abs=1e-6))
    space.advance(0.61)
    assert len(space.dispatch(5, budget=10.0)) == 1
    assert space.counts()["extra_fetches"] == 5


def test_without_a_budget_a_draw_costs_nothing(space: TimedNamespace) -> None:
    fill(space)
    space.run([draw_call(0, 0.0, 500)])
    assert len(space.dispatch(64)) == 64


def test_nobody_waits_where_there_is_nothing(space: TimedNamespace) -> None:
    assert space.ask(5).wait == math.inf


@given(draws=st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(1, 64)), min_size=1, max_size=8))
def test_no_window_has_more_than_the_bucket_and_what_flows_in(formula_space: TimedNamespace, draws: list[tuple[float, int]]) -> None:
    space, budget = formula_space, 50.0
    tokens = space.state()._replace(tokens=5.0)
    space.write_state(tokens)
    passed, handed = 0.0, 0
    for pause, n in draws:
        space.advance(pause)
        passed += pause
        handed += len(space.dispatch(n, budget=budget))
        space.run([draw_call(0, budget, n)])
        handed += n
        assert space.state().tokens <= 5.0
    assert space.state().tokens >= 5.0 - handed - 1e-6
