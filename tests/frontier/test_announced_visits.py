"""What a visit that a source caused teaches: one change at the end of the interval, no fair sample of time."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from clocked_store import ClockedStore, new_page

from optimal_frontier.estimation.announced import update_announced
from optimal_frontier.estimation.filtering import update_one
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.state.records import Announcement, Published

PUBLISHED = Published(1.0, 5000.0)


@pytest.mark.parametrize("bit", [0, 1])
def test_an_announced_visit_is_judged_by_its_own_likelihood(store: ClockedStore, bit: int) -> None:
    """Neither bursts nor habits nor the host's word are checked by it."""
    store.add(new_page("h/page", max_rate=1e3))
    store.visit_all(content=b"\x4d\0\0\0" + b"o" * 16, shape=2.0, time=3000.0)
    store.advance(1000.0)
    page = new_page("h/page", lastmod=(store.time(), 60.0), announcement=Announcement("h feed", 10.0))
    assert store.run(store.lastmod_calls([page])) == [1]
    (handout,), _ = store.dispatch(1)
    observation = judge_visit(handout, (b"o", b"x")[bit] * 16, 77, handout.received, PUBLISHED, age=1.0)
    assert observation.bit == bit
    assert (observation.shape, observation.time) == pytest.approx((2.0 + bit, 4000.0), rel=1e-5)
    assert (observation.words, observation.watch, observation.surprises) == ("", None, None)
    own = judge_visit(dataclasses.replace(handout, was_announced=False), b"x" * 16, 77, handout.received, PUBLISHED)
    assert own.watch is not None


def learned(share: float, own_interval: float, rng: np.random.Generator, pages: int = 20, horizon: float = 200.0) -> tuple[float, float]:
    """Mean learned rate of pages of rate 1: taken for ordinary visits, and as announced ones. The source is read every 0.02."""
    plain, ours = [], []
    for _ in range(pages):
        changes = np.sort(rng.uniform(0, horizon, rng.poisson(horizon)))
        told = np.unique(np.ceil(changes[rng.random(len(changes)) < share] / 0.02) * 0.02)
        first, second = (1.0, 1.0), (1.0, 1.0)
        at, due = 0.0, own_interval
        while min(due, horizon) < horizon:
            later = told[np.searchsorted(told, at, "right") :]
            announced = len(later) > 0 and later[0] <= due
            now = float(later[0]) if announced else due
            changed = bool(np.searchsorted(changes, now, "right") > np.searchsorted(changes, at, "right"))
            first = update_one(*first, now - at, changed)
            second = (update_announced if announced else update_one)(*second, now - at, changed)
            # An announced visit is paid from the page's own credit.
            at, due = now, now + own_interval * (1.0 + (due - now) / own_interval)
        plain.append(first[0] / first[1])
        ours.append(second[0] / second[1])
    return float(np.mean(plain)), float(np.mean(ours))


def test_a_source_that_announces_all_changes_leaves_the_rate_unbiased() -> None:
    """Taken for ordinary visits they make it 1.5 times too high at one own visit a change, and many times at fewer."""
    rng = np.random.default_rng(1)
    for own_interval, at_least in ((1.0, 1.4), (3.0, 5.0)):
        plain, ours = learned(1.0, own_interval, rng)
        assert ours == pytest.approx(1.0, abs=0.06)
        assert plain > at_least


def test_a_source_that_announces_a_share_makes_it_too_low_by_that_share_at_most() -> None:
    rng = np.random.default_rng(2)
    for own_interval in (0.3, 1.0, 3.0):
        _, ours = learned(0.5, own_interval, rng)
        assert 0.47 < ours < 1.05
    assert learned(0.5, 0.3, rng)[1] > 0.93
