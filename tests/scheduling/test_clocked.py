"""Deadlines on other clocks: late pages stand in the order of what a visit to them is worth."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.scheduling.clocked import is_noticeable, on_clock
from optimal_frontier.scheduling.numbers import waits_at_price

PAGES, LOG_PRICE, SPREAD = 400, 3.0, 5.0


@pytest.fixture(scope="module")
def pages() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    rate, importance = rng.lognormal(-6.0, 1.0, PAGES), rng.lognormal(0.0, 0.5, PAGES)
    wait, slope = waits_at_price(LOG_PRICE, importance, rate)
    since = rng.uniform(50.0, 400.0, PAGES)
    shift = since * rng.uniform(-0.9, 6.0, PAGES)
    return {"rate": rate, "importance": importance, "wait": wait, "slope": slope, "since": since, "shift": shift}


def placed(pages: dict[str, np.ndarray], shortest: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    return on_clock(*(pages[name] for name in ("wait", "slope", "rate", "since", "shift")), np.full(PAGES, shortest), SPREAD)


def test_the_deadlines_of_late_pages_are_in_the_order_of_their_worth(pages) -> None:
    """By the value of a visit written out here (Azar et al. 2018, eq. 6), whatever their rates; exactly by its logarithm."""
    wait, slope = placed(pages)
    r = pages["rate"] * (pages["since"] + pages["shift"])
    worth = np.log(pages["importance"] / pages["rate"] * (1.0 - (1.0 + r) * np.exp(-r))) - LOG_PRICE
    late = (worth > 0.0) & (worth * SPREAD < 0.9 * pages["since"])
    assert late.sum() > 100
    assert (slope[late] == SPREAD).all()
    assert (pages["since"] - wait)[late] == pytest.approx(SPREAD * worth[late], rel=1e-6, abs=1e-6)


def test_other_pages_are_due_when_their_clock_says(pages) -> None:
    wait, slope = placed(pages)
    early = pages["since"] + pages["shift"] < pages["wait"]
    assert early.sum() > 20
    assert wait[early] == pytest.approx((pages["wait"] - pages["shift"])[early])
    assert np.array_equal(slope[early], pages["slope"][early])
    assert (wait[early] > pages["since"][early]).all()


def test_a_late_page_is_not_due_before_its_shortest_wait_is_over(pages) -> None:
    wait, slope = placed(pages, shortest=49.0)
    assert (wait[slope == SPREAD] > 49.0).all()
    assert (wait[slope == SPREAD] < pages["since"][slope == SPREAD]).all()


def test_a_page_without_a_slope_stands_by_its_worth_and_gets_none() -> None:
    """As those of hosts at their limit: no deadline before its shortest wait, which would tell that the price is too low."""
    wait, slope = on_clock(*(np.array([value]) for value in (10.0, 0.0, 0.1, 30.0, 500.0, 1.0)), SPREAD)
    assert 1.0 < wait[0] < 30.0
    assert slope[0] == 0.0
    never = on_clock(*(np.array([value]) for value in (np.inf, 0.0, 0.1, 30.0, 5.0, 0.0)), SPREAD)
    assert (never[0].tolist(), never[1].tolist()) == ([np.inf], [0.0])


def test_pages_among_the_late_ones_are_not_placed_anew_for_a_little() -> None:
    """Their deadlines come nearer by themselves, a slope's share at each look."""
    moved, spread = np.full(3, 0.3 * SPREAD), np.full(3, SPREAD)
    assert is_noticeable(moved, np.array([SPREAD, 50.0, 0.0]), spread, SPREAD).tolist() == [False, True, True]
    assert is_noticeable(3.0 * moved, spread, spread, SPREAD).all()
    assert is_noticeable(np.array([4.0, 6.0]), np.full(2, 50.0), np.full(2, 50.0), SPREAD).tolist() == [False, True]
