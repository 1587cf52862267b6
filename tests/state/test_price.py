"""The live price: who goes first, how visits move it, and what that does to deadlines."""

from __future__ import annotations

import math
import random

import pytest
from timed_namespace import TimedNamespace, name_of, new_page, page_of

from optimal_frontier.scheduling.numbers import Numbers, deadline
from optimal_frontier.scheduling.price_law import candidates
from optimal_frontier.state.rows import TIMED


def queue(space: TimedNamespace, pages: dict[str, tuple[float, Numbers]]) -> None:
    """Fetch pages so that they stand in the queue by these numbers: seconds ago that the visit was, and numbers."""
    space.add(*(new_page(name) for name in pages))
    handed = [handout for at in range(0, len(pages), 64) for handout in space.dispatch(64, share=1.0)]
    for handout in handed:
        ago, numbers = pages[name_of(handout)]
        seen = space.observation(handout, numbers.a, numbers.s, e=numbers.e, longest=numbers.l, b=space.at - round(ago * 1e6))
        assert space.send(seen) == [1]


def loss(ago: float, numbers: Numbers, log_price: float) -> float:
    """What a page loses by waiting, relative: lateness over slope where the price decides; else twice over the wait."""
    late = ago - deadline(0.0, numbers, log_price)
    wanted = numbers.a + numbers.s * log_price
    if numbers.s > 0 and numbers.e < wanted < numbers.l:
        return late / numbers.s
    return 2.0 * late / (ago - late)


@pytest.mark.parametrize(("seed", "wanted"), [(seed, wanted) for seed in range(6) for wanted in (1, 10)])
def test_of_all_that_is_due_those_go_first_that_lose_most(space: TimedNamespace, seed: int, wanted: int) -> None:
    rng = random.Random(seed)
    log_price = rng.uniform(-3.0, 3.0)
    space.set_price(log_price)
    pages = {}
    for i in range(candidates(wanted)):
        wait, slope = rng.uniform(5.0, 50.0), rng.choice([0.0, rng.uniform(1.0, 30.0)])
        wait, longest = float(round(wait)), rng.choice([1e9, 20.5])
        numbers = Numbers(wait - slope * log_price, slope, 1.0, longest)
        pages[f"h{i % 3}/{i}"] = deadline(0.0, numbers, log_price) + rng.uniform(0.1, 40.0), numbers
    queue(space, pages)
    space.write_state(space.state()._replace(step=0.0))
    expected = sorted(pages, key=lambda name: -loss(*pages[name], log_price))
    told = space.names(wanted)
    values = [loss(*pages[name], log_price) for name in told]
    assert values == pytest.approx([loss(*pages[name], log_price) for name in expected[:wanted]], rel=1e-3)


@pytest.mark.parametrize(("flags", "first"), [(TIMED, "h/daily"), (0, "h/late")])
def test_a_page_at_its_update_time_goes_before_what_is_a_little_late(space: TimedNamespace, flags: int, first: str) -> None:
    """A second late of a day: that is how old its content is. Of a pinned page it is next to nothing."""
    day = 86_400.0
    space.add(new_page("h/daily"), new_page("h/late"))
    for handout in space.dispatch(2, share=1.0):
        if name_of(handout) == "h/daily":
            space.observe(handout, day, e=day, longest=day, b=space.at - (day + 1.0) * 1e6, flags=flags)
        else:
            space.observe(handout, 100.0, 50.0, b=space.at - 110e6)
    assert space.names(1) == [first]


def test_with_room_left_the_earliest_deadline_goes_before_it_is_due(space: TimedNamespace) -> None:
    queue(space, {f"h/{i}": (0.0, Numbers(10.0 + i, 5.0, 0.0, 1e9)) for i in range(4)})
    assert space.names(2) == ["h/0", "h/1"]


def test_nobody_is_visited_before_the_least_interval(space: TimedNamespace) -> None:
    queue(space, {"h/early": (0.0, Numbers(1.0, 1.0, 5.0, 1e9)), "h/free": (0.0, Numbers(9.0, 1.0, 0.0, 1e9))})
    assert space.names(2) == ["h/free"]
    told = space.ask(2)
    assert (told.handouts, told.wait) == ([], pytest.approx(5.0, abs=1e-5))
    space.advance(5.0)
    assert space.names(2) == ["h/early"]


@pytest.mark.parametrize(("late_s", "expected"), [(100.0, 0.01), (-100.0, -0.01), (0.05, 0.005), (-0.05, -0.005)])
def test_a_visit_moves_the_price_by_its_lateness_over_slope_at_most_a_step(space: TimedNamespace, late_s: float, expected: float) -> None:
    queue(space, {"h/1": (500.0, Numbers(500.0 - late_s, 10.0, 0.0, 1e9))})
    space.set_price(0.0, 0.01)
    told = space.ask()
    assert len(told.handouts) == 1
    assert told.log_price == pytest.approx(expected, rel=0.01)  # a is stored to 7 digits
    assert space.state().log_price == told.log_price


def test_pages_that_starve_at_their_shortest_wait_raise_the_price(space: TimedNamespace) -> None:
    """Late by more than half of it: there are more such pages than the budget serves."""
    queue(space, {"h/1": (100.0, Numbers(1.0, 2.0, 4.0, 1e9))})
    space.set_price(0.0, 0.01)
    assert len(space.dispatch(1)) == 1
    assert space.state().log_price == 0.01


@pytest.mark.parametrize(
    "numbers", [Numbers(5.0, 0.0, 5.0, 5.0), Numbers(math.inf, 0.0, 0.0, 8.0), Numbers(1.0, 2.0, 80.0, 1e9), Numbers(50.0, 2.0, 0.0, 4.0)]
)
def test_pages_that_the_price_does_not_decide_leave_it_alone(space: TimedNamespace, numbers: Numbers) -> None:
    queue(space, {"h/1": (100.0, numbers)})
    space.set_price(0.0, 0.01)
    space.add(new_page("h/2"))
    assert len(space.dispatch(2)) == 2
    assert space.state().log_price == 0.0


def test_a_page_that_waited_for_its_host_leaves_the_price_alone(space: TimedNamespace) -> None:
    queue(space, {"h/1": (30.0, Numbers(40.0, 5.0, 0.0, 1e9))})
    space.set_price(0.0, 0.01)
    space.hold("h", 30.0)
    assert space.names() == []
    space.advance(31.0)
    assert space.names() == ["h/1"]
    assert space.state().log_price == 0.0


def test_a_page_that_is_looked_at_moves_to_where_it_stands_at_the_present_price(space: TimedNamespace) -> None:
    queue(space, {"h/1": (0.0, Numbers(10.0, 5.0, 0.0, 1e9)), "h/2": (0.0, Numbers(11.0, 5.0, 0.0, 1e9))})
    space.set_price(4.0)
    assert space.names(1) == ["h/1"]
    assert space.due_in("h/2") == pytest.approx(31.0, abs=1e-4)


def test_the_price_finds_the_rate_that_the_budget_allows(space: TimedNamespace) -> None:
    """From any start: with as many visits a second as the pages want at log price 1 it settles there."""
    waits = [10.0 + i for i in range(20)]
    queue(space, {f"h/{i}": (0.0, Numbers(wait, wait / 2.0, 0.0, 1e9)) for i, wait in enumerate(waits)})
    space.set_price(0.0, 0.02)
    rate = sum(1.0 / (1.5 * wait) for wait in waits)
    prices = []
    for _ in range(1500):
        space.advance(1.0 / rate)
        (handout,) = space.dispatch(1)
        prices.append(space.state().log_price)
        space.send(space.observation(handout, handout.row.a, handout.row.s))
    assert sum(prices[-500:]) / 500 == pytest.approx(1.0, abs=0.15)


def test_lateness_is_the_time_from_the_deadline(space: TimedNamespace) -> None:
    queue(space, {"h/late": (30.0, Numbers(10.0, 0.0, 0.0, 1e9)), "h/early": (0.0, Numbers(10.0, 0.0, 0.0, 1e9))})
    late, early = space.dispatch(2)
    assert (late.lateness, early.lateness) == (pytest.approx(20.0, abs=1e-5), 0.0)


@pytest.mark.parametrize("log_price", [-math.inf, math.inf])
def test_a_price_without_bounds_breaks_no_queue(space: TimedNamespace, log_price: float) -> None:
    """A budget that serves all has the log price minus infinity; pages that are pinned keep their pins then."""
    space.publish(space.lock(), repr(log_price))
    space.add(new_page("h/pinned"), new_page("h/free"))
    pinned, free = space.dispatch(2)
    assert space.send(space.observation(pinned, 7.0, 0.0, e=7.0, longest=7.0)) == [1]
    assert space.send(space.observation(free, 7.0, 2.0, e=3.0, longest=90.0)) == [1]
    assert space.due_in(name_of(pinned)) == pytest.approx(7.0, abs=1e-4)
    assert space.due_in(name_of(free)) == pytest.approx(3.0 if log_price < 0 else 90.0, abs=1e-4)
    space.advance(100.0)
    assert len(space.dispatch(2)) == 2
    assert space.score(page_of("h/free")) is not None
