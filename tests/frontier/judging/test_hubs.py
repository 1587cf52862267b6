"""What new links teach of the page that they were found on, and how often it is visited for that."""

from __future__ import annotations

import math

import numpy as np
import pytest
from handed_out import AT, NEW, OLD, PAGE, again, context, handed, judged, parse, planned, visit, wait_of

from optimal_frontier.estimation.quantile import median_one
from optimal_frontier.frontier.judging.callback_errors import after_callback_error
from optimal_frontier.frontier.judging.hubs import FoundLinks, after_links, learns_from_links, worth_of, yield_of
from optimal_frontier.frontier.judging.judge import told
from optimal_frontier.frontier.judging.waits import Terms, numbers_of, priced_numbers
from optimal_frontier.scheduling.discovery import wait_with_discovery
from optimal_frontier.state.memory import Memory, Yielded
from optimal_frontier.state.rows import CHECKED, HUB, LAYOUT, TIMED, UNCONDITIONAL, Row

PLAN = planned(2.0)


def linked(handout, pages=0, importance=None, came=NEW, within=None, **settings):
    """Judge a visit on which so many links were new."""
    within = within or context(PLAN, **settings)
    found = FoundLinks(pages, float(pages) if importance is None else importance)
    return after_links(judged(handout, came, within), found, within.published, within.settings)


def hub(pages=6.0, seconds=600.0, importance=None, ago=40.0, **values):
    """A handout of a page that has yielded this."""
    yielded = Yielded(pages, pages if importance is None else importance, seconds, AT - ago)
    return handed(ago, Memory(yielded=yielded), flags=HUB, log_price=2.0, **values)


def test_new_links_of_a_second_visit_are_believed_at_once():
    """The page is due when what waits to be found, and its own changes, are worth the price."""
    observation = linked(handed(40.0, visits=1, shape=2.0, time=50.0, log_price=2.0), 6, 9.0)
    assert observation.row.flags & HUB
    assert observation.memory.yielded == pytest.approx((6.0, 9.0, 40.0, AT))
    assert observation.counters["discovered"] == 6
    plain = judged(handed(40.0, visits=1, shape=2.0, time=50.0, log_price=2.0), NEW, context(PLAN))
    assert wait_of(observation, 2.0) < wait_of(plain, 2.0)
    assert told(observation.handout, observation, context(PLAN))["interval"] == pytest.approx(wait_of(observation, 2.0), rel=1e-5)


def test_words_that_moved_pages_are_news_too_but_nothing_new_was_discovered():
    """A source that tells of known pages is visited for that; its pages count as the store has counted them."""
    handout = handed(40.0, visits=1, shape=2.0, time=50.0, log_price=2.0)
    handout.new_links, handout.new_importance, handout.told, handout.told_importance = 2, 3.0, 4, 1.5
    within = context(PLAN)
    observation = after_links(judged(handout, NEW, within), FoundLinks.of(handout), within.published, within.settings)
    assert observation.memory.yielded == pytest.approx((6.0, 4.5, 40.0, AT))
    assert observation.counters["discovered"] == 2
    handout.new_links, handout.new_importance = 0, 0.0
    observation = after_links(judged(handout, NEW, within), FoundLinks.of(handout), within.published, within.settings)
    assert observation.row.flags & HUB
    assert observation.memory.yielded == pytest.approx((4.0, 1.5, 40.0, AT))
    assert "discovered" not in observation.counters


def test_the_numbers_are_those_of_the_wait_with_discovery():
    observation = linked(handed(40.0, visits=1, log_price=2.0), 6, 9.0)
    row = observation.row
    wait, slope = wait_with_discovery(2.0, row.importance, median_one(row.shape, row.time), 9.0 / 40.0)
    assert (row.a + row.s * 2.0, row.s) == pytest.approx((wait, slope))


def test_a_first_visit_shows_stock_and_no_rate():
    observation = linked(handed(visits=0), 300)
    assert not observation.row.flags & HUB
    assert observation.memory is None or observation.memory.yielded is None
    assert not learns_from_links(observation)


def test_a_page_without_new_links_stays_as_it_was_judged():
    before = judged(handed(), NEW, context(PLAN))
    assert after_links(before, FoundLinks(), PLAN, parse()) is before


def test_a_hub_without_a_new_link_learns_that_too():
    known = hub()
    observation = linked(known, 0, came=OLD)
    assert worth_of(observation.memory, parse()) < worth_of(known.memory, parse())
    assert observation.memory.yielded.seconds > 600.0
    assert observation.memory.yielded.at == AT
    assert observation.row.flags & HUB


@pytest.mark.parametrize("came", ["500", "404", "timeout"])
def test_time_in_which_it_failed_counts_with_the_next_good_visit(came):
    failed = linked(hub(), 0, came=came)
    assert failed.memory is None or failed.memory.yielded == hub().memory.yielded
    assert failed.row.flags & HUB
    seen = linked(again(failed, 60.0), 2)
    kept = seen.memory.yielded.seconds - 100.0
    assert 0.85 * 600.0 < kept < 600.0


def test_what_a_cached_response_shows_is_no_news():
    """Its time goes on."""
    cached = linked(hub(), 0, came=visit(OLD, is_cached=True, is_downloaded=False))
    assert cached.memory is None
    assert linked(again(cached, 60.0), 0, came=OLD).memory.yielded.seconds == pytest.approx(
        100.0 + 600.0 * math.exp(-100 * 0.01 / 20), rel=1e-3
    )


def test_a_hub_is_never_given_up():
    """However fast it changes, and however long it has been quiet."""
    observation = linked(hub(shape=500.0, time=10.0), 0)
    waits = [wait_of(observation, 2.0)]
    for edition in range(300):
        observation = linked(again(observation, wait_of(observation, 2.0)), 0, came=b"%16d" % edition)
        waits.append(wait_of(observation, 2.0))
    assert max(waits) <= observation.row.max_interval
    assert waits[50] > 2 * waits[0]
    assert waits[-1] < math.inf
    woken = linked(again(observation), 30, came=b"woken up" * 2)
    assert wait_of(woken, 2.0) < wait_of(observation, 2.0)


def test_with_the_setting_off_nothing_is_learned_and_nothing_counts():
    """What was learned stays, for when it is on again."""
    off = linked(hub(shape=500.0, time=10.0), 9, DISCOVERY_VALUE=False)
    assert off.row.flags & CHECKED  # the second look of any page that is to be given up
    off = linked(again(off), 9, came=b"%16d" % 2, DISCOVERY_VALUE=False)
    assert wait_of(off, 2.0) == off.row.max_interval
    assert off.memory is None
    assert off.row.flags & HUB
    assert wait_of(linked(again(off), 0), 2.0) < off.row.max_interval


def test_a_pinned_page_keeps_its_interval_and_learns():
    rules = [{"host": "h", "interval": 30}]
    observation = linked(handed(31.0, visits=3, min_interval=30.0, max_interval=30.0), 4, RULES=rules)
    plain = judged(handed(31.0, visits=3, min_interval=30.0, max_interval=30.0), NEW, context(PLAN, RULES=rules))
    assert observation.row._replace(flags=0) == plain.row._replace(flags=0)
    assert observation.memory.yielded.pages == 4.0


def test_a_page_with_update_times_goes_by_these():
    rules = [{"host": "h", "update_times": [3600]}]
    observation = linked(handed(visits=3), 4, RULES=rules)
    assert observation.row.flags & TIMED
    assert not observation.row.flags & HUB


def test_other_flags_and_memories_are_kept():
    memory = Memory(yielded=Yielded(1.0, 1.0, 100.0, AT - 40.0), aliases=(b"x" * 16,), size=3)
    observation = linked(handed(memory=memory, flags=HUB | UNCONDITIONAL), 2, came="500")
    assert observation.row.flags == HUB | UNCONDITIONAL
    assert linked(handed(memory=memory, flags=HUB), 2).memory.aliases == (b"x" * 16,)
    assert Memory.unpack(memory.pack()) == memory


def test_a_second_look_comes_at_its_time_at_the_latest():
    """And not after the least interval, as the check of a noisy page does."""
    fast = handed(60.0, visits=4, shape=500.0, time=10.0, log_price=2.0)
    plain = judged(fast, NEW, context(PLAN))
    assert plain.row.flags & CHECKED
    assert wait_of(plain, 2.0) == pytest.approx(math.exp(2.0))
    found = linked(handed(60.0, visits=4, shape=500.0, time=10.0, log_price=2.0), 1, 0.001)
    assert found.row.flags & CHECKED
    assert wait_of(found, 2.0) == pytest.approx(math.exp(2.0))
    rich = linked(handed(60.0, visits=1, shape=500.0, time=10.0, log_price=2.0), 60)
    assert rich.row.min_interval < wait_of(rich, 2.0) < math.exp(2.0)


def test_links_of_the_retry_after_a_callback_error_are_no_rate():
    """Of a first visit they are stock; of a hub they came since its last count, not since the visit that raised."""

    def raised(observation):
        return after_links(after_callback_error(observation, "callback", "ValueError"), FoundLinks(), PLAN, parse())

    first = raised(judged(handed(visits=0, log_price=2.0), NEW, context(PLAN)))
    assert not linked(again(first), 300).row.flags & HUB
    failed = raised(judged(hub(), NEW, context(PLAN)))
    assert failed.memory.yielded == hub().memory.yielded
    healed = linked(again(failed, 3.0), 2)
    kept = 600.0 * math.exp(-43.0 * 0.01 / 20)
    assert healed.memory.yielded.seconds == pytest.approx(kept + 43.0, rel=1e-3)


def test_rubbish_that_is_stored_counts_as_nothing():
    for stored in (Yielded(1.0, 1.0, 0.0, AT), Yielded(1.0, 1.0, math.inf, AT), Yielded(1.0, 1.0, math.nan, AT)):
        assert yield_of(Memory(yielded=stored)) is None
        assert linked(handed(memory=Memory(yielded=stored), flags=HUB), 0).row.flags & HUB


@pytest.mark.parametrize("settings", [{}, {"OBJECTIVE": "changes"}, {"POLICY": "poisson"}])
def test_judge_and_planner_make_the_same_numbers_of_hubs(settings):
    """Arrays and single pages, hubs beside others."""
    rng = np.random.default_rng(3)
    n = 60
    rows = [
        Row(host=1, flags=HUB * (i % 2), b=AT * 1e6, shape=float(rng.uniform(1, 9)), time=float(rng.uniform(1, 900)), visits=4, l=10.0)
        for i in range(n)
    ]
    heads = np.frombuffer(b"".join(row.pack() for row in rows), LAYOUT)
    rows = [Row.unpack(row.pack()) for row in rows]
    pages = np.repeat(np.frombuffer(PAGE, "V12"), n)
    yielded = np.where(np.arange(n) % 2, rng.lognormal(-4, 2, n), 0.0)
    terms = Terms(2.0, PLAN, parse(**settings))
    many = priced_numbers(heads, pages, terms, AT, yielded)
    for i, row in enumerate(rows):
        one = numbers_of(row, PAGE, terms, yielded=float(yielded[i]))
        assert [values[i] for values in many] == pytest.approx(list(one), rel=1e-5)
    assert np.isfinite(many.a[1::2]).all()
