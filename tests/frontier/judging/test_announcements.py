"""Pages that a source put forward: whether its word was right, when the visit is owed still, and what such a visit teaches."""

from __future__ import annotations

import numpy as np
import pytest
from handed_out import AT, NEW, OLD, RECEIVED, again, context, handed, judged, visit, wait_of

from optimal_frontier.estimation.announced import update_announced
from optimal_frontier.estimation.filtering import update_one
from optimal_frontier.frontier.judging.announcements import GIVEN_UP
from optimal_frontier.frontier.judging.backoff import backoff_s
from optimal_frontier.state.memory import Announced, Memory
from optimal_frontier.state.messages import Handout
from optimal_frontier.state.rows import ANNOUNCED

NAME = "h sitemap"


def announced(ago: float = 1.0, seen_by: float = -10.0, is_unsure: bool = False, **values: object) -> Handout:
    """A page that was put forward so many seconds before it was handed out, for a change that is seen ``seen_by`` s from then."""
    mark = Announced(AT - ago, AT + seen_by, is_unsure, NAME)
    return handed(memory=Memory(announced=mark, size=5), flags=ANNOUNCED, **values)


@pytest.mark.parametrize(
    ("content", "is_unsure", "verdict", "counter"),
    [
        (NEW, False, 1, "announcements_right"),
        (NEW, True, 1, "announcements_right"),
        (OLD, False, 0, "announcements_wrong"),
        (OLD, True, -1, None),
    ],
)
def test_the_next_bit_says_whether_the_announcer_was_right(content, is_unsure, verdict, counter):
    """Where the clocks leave it open an unchanged page is no lie."""
    observation = judged(announced(is_unsure=is_unsure), content)
    assert observation.announced == (NAME, verdict)
    assert [name for name in observation.counters if name.startswith("announcements")] == ([counter] if counter else [])
    assert (observation.row.flags, observation.memory.announced, observation.memory.size) == (0, None, 0)


def test_without_a_bit_nobody_can_tell():
    """Fingerprints of other settings; a page that is gone; one that may not be fetched."""
    assert judged(announced(tag=78), NEW).announced == (NAME, -1)
    for error in ("404", "RobotsDenied"):
        observation = judged(announced(), error)
        assert observation.announced == (NAME, -1)
        assert observation.row.flags == 0


def test_a_visit_that_failed_is_owed_still():
    """After its backoff; for some hours, then the page loses its announced priority."""
    observation = judged(announced(), "500")
    for failures in range(1, GIVEN_UP):
        assert (observation.announced, observation.row.flags) == (None, ANNOUNCED)
        assert wait_of(observation) == pytest.approx(max(1.0, backoff_s(observation.handout.page, failures)), rel=1e-6)
        observation = judged(again(observation), "500")
    assert observation.announced == (NAME, -1)
    assert (observation.row.flags, observation.memory.announced) == (0, None)


def test_a_page_in_flight_is_due_again_after_its_lease():
    """As soon as its least interval is over; unless the visit under way has seen the change."""
    late = {"ago": -1.0, "seen_by": 5.0}
    for content in (OLD, NEW):
        observation = judged(announced(**late), visit(content, RECEIVED + 3.0), context(MIN_INTERVAL=2.0))
        assert (observation.announced, observation.row.flags) == (None, ANNOUNCED)
        assert wait_of(observation) == 2.0
        assert observation.memory.announced == Announced(AT + 3.0, AT + 5.0, False, NAME)
    assert judged(again(observation), b"m" * 16).announced == (NAME, 1)
    assert judged(announced(**late), visit(NEW, RECEIVED + 6.0)).announced == (NAME, 1)
    assert judged(announced(**late), visit(OLD, RECEIVED + 6.0)).announced is None


def test_a_page_that_is_fetched_once_from_now_on_is_awaited_no_more():
    rules = context(RULES=[{"host": "h", "revisit": False}])
    assert judged(announced(), "500", rules).announced == (NAME, -1)


@pytest.mark.parametrize("bit", [0, 1])
def test_an_announced_visit_is_judged_by_its_own_likelihood(bit):
    """Neither bursts nor habits nor the host's word are checked by it."""
    page = {"shape": 2.0, "time": 3000.0, "elapsed": 1000.0}
    row = judged(announced(**page), visit((OLD, NEW)[bit], age=1.0)).row
    assert (row.shape, row.time) == (2.0 + bit, 4000.0)
    assert (row.watch_shape, row.surprise) == (0.0, 0.0)
    assert judged(announced(**page), visit(NEW, age=1.0)).words is None
    own = judged(handed(**page), visit(NEW, age=1.0))
    assert own.row.watch_shape > 0
    assert own.words is not None


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
