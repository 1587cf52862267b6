"""Pages that appeared: how long that is remembered, what their bits teach, when they are looked at."""

from __future__ import annotations

import math

import numpy as np
import pytest
from handed_out import AT, NEW, OLD, PAGE, URL, again, context, handed, judged, parse, planned, visit, wait_of

from optimal_frontier.frontier.admitting.pages import new_page
from optimal_frontier.frontier.judging.announcing import after_signal
from optimal_frontier.frontier.judging.judge import judge
from optimal_frontier.frontier.judging.waits import Terms, goes_by_price
from optimal_frontier.frontier.judging.young import ONE_IN, ONE_IN_KNOWN
from optimal_frontier.scheduling.numbers import Numbers, deadline
from optimal_frontier.scheduling.young_pages import Youth
from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.memory import MISSED_FIRST, NOTHING_REMEMBERED, Birth, Lost, Signals
from optimal_frontier.state.published import host_key, pattern_key
from optimal_frontier.state.rows import ACTIVE, APPEARED, CHECKED, HUB, LAYOUT, SIGNALLED, UNCONDITIONAL
from optimal_frontier.state.visit_log import BEGUN, CEASED, CHANGED, FIRST_LOOK, SAMPLED, VISIT, WELL, pack_visits

PATTERN = 7
#: Three changes in the first two minutes; a visit has to be worth a minute.
YOUTH = {pattern_key(PATTERN): Youth(1 / 40, 128.0)}
LOG_PRICE = math.log(60.0)
#: Pages that are to have their first look early in any case, and that are not.
PICKED, OTHERS = (ONE_IN * 701).to_bytes(4, "little") + PAGE[4:], (ONE_IN + 1).to_bytes(4, "little") + PAGE[4:]


def within(youth=YOUTH, **settings):
    return context(planned(LOG_PRICE, prior_time=2000.0, youth=youth), **settings)


def new(page=OTHERS, **values):
    return handed(**({"page": page, "visits": 0, "pattern": PATTERN, "flags": APPEARED, "log_price": LOG_PRICE} | values))


def looks(observation):
    return np.frombuffer(pack_visits([observation]), VISIT)["flags"] & (FIRST_LOOK | CEASED | BEGUN)


def test_a_page_that_appeared_is_looked_at_when_its_youth_is_over():
    seen = judged(new(), OLD, within())
    assert seen.row.flags & APPEARED
    assert seen.row.flags & CHECKED
    assert seen.memory.birth == Birth(AT)
    assert 60.0 < wait_of(seen, LOG_PRICE) <= 160.0


def test_any_other_page_waits_as_ever():
    plain = judged(new(), OLD, within(youth={}))
    usual = wait_of(plain, LOG_PRICE)
    assert not plain.row.flags & CHECKED
    assert usual > 300.0
    assert wait_of(judged(new(flags=0), OLD, within()), LOG_PRICE) == usual
    assert judged(new(flags=0), OLD, within()).memory is None
    other = judged(new(pattern=8), OLD, within())
    assert wait_of(other, LOG_PRICE) == usual


def test_what_is_not_priced_by_freshness_waits_as_ever():
    for settings in ({"POLICY": "poisson"}, {"OBJECTIVE": "changes"}):
        young, old = (judged(new(flags=flags), OLD, within(**settings)) for flags in (APPEARED, 0))
        assert wait_of(young, LOG_PRICE) == wait_of(old, LOG_PRICE)
    pinned = within(RULES=[{"pattern": ".*", "interval": 500.0}])
    assert wait_of(judged(new(), OLD, pinned)) == 500.0
    hub = judged(new(flags=APPEARED | HUB), OLD, within())
    assert not hub.row.flags & CHECKED


def test_bounds_hold_for_looks():
    assert wait_of(judged(new(), OLD, within(MIN_INTERVAL=200.0)), LOG_PRICE) == 200.0


def test_what_a_young_page_does_says_little_of_its_later_life():
    """A change within two minutes was to be expected: the page is not believed to be much quicker than before."""
    first = judged(new(), OLD, within())
    prior = math.log(2) / 2000.0
    rates = []
    for youth in (YOUTH, {}):
        seen = judged(again(first, 128.0), NEW, within(youth))
        assert seen.bit == 1
        rates.append(seen.row.shape / seen.row.time / prior)
    assert rates[0] < 1.8 < 2.4 < rates[1]
    # And none in all of youth is as long a time without a change.
    still = judged(again(first, 128.0), OLD, within())
    assert still.row.time == pytest.approx(2000.0 + 128.0 / 40 / prior, rel=0.02)


def test_how_long_it_is_remembered_that_a_page_appeared():
    """Until it is twice as old as it was at its first look; longer where its youth lasts longer."""
    first = judged(new(), OLD, within(youth={}))
    second = judged(again(first, 300.0), OLD, within(youth={}))
    assert second.memory.birth == Birth(AT, AT + 300.0)
    third = judged(again(second, 200.0), OLD, within(youth={}))
    assert third.row.flags & APPEARED
    fourth = judged(again(third, 101.0), OLD, within(youth={}))
    assert not fourth.row.flags & APPEARED
    assert fourth.memory.birth is None
    lasting = {pattern_key(PATTERN): Youth(1 / 40, 700.0)}
    fourth = judged(again(third, 101.0), OLD, within(lasting))
    assert fourth.row.flags & APPEARED
    assert not judged(again(fourth, 300.0), OLD, within(lasting)).row.flags & APPEARED


@pytest.mark.parametrize(
    ("contents", "waits", "said"),
    [
        # Twice as old after the second look: it changed in the first half of its life, in the second, in both, in neither.
        ((NEW, NEW), (250.0, 300.0), [FIRST_LOOK, CEASED]),
        ((OLD, NEW), (250.0, 300.0), [FIRST_LOOK, BEGUN]),
        ((NEW, OLD), (250.0, 300.0), [FIRST_LOOK, 0]),
        ((OLD, OLD), (250.0, 300.0), [FIRST_LOOK, 0]),
        # After the third one: what any of the two saw counts; and nothing after that.
        ((NEW, NEW, NEW, NEW), (250.0, 200.0, 60.0, 600.0), [FIRST_LOOK, 0, CEASED, 0]),
        ((NEW, OLD, OLD), (250.0, 200.0, 60.0), [FIRST_LOOK, 0, 0]),
        ((OLD, NEW, NEW), (250.0, 200.0, 60.0), [FIRST_LOOK, 0, BEGUN]),
    ],
)
def test_what_first_looks_saw_goes_into_the_log(contents, waits, said):
    seen, told = judged(new(), OLD, within(youth={})), []
    for content, wait in zip(contents, waits, strict=True):
        seen = judged(again(seen, wait), content, within(youth={}))
        told.append(int(looks(seen)[0]))
    assert told == said
    assert not seen.row.flags & APPEARED


def test_some_pages_have_their_first_look_early_in_any_case():
    """As nobody would learn otherwise at which age they change."""
    early = judged(new(PICKED), OLD, within(youth={}))
    usual = wait_of(judged(new(), OLD, within(youth={})), LOG_PRICE)
    wait = wait_of(early, LOG_PRICE)
    assert early.row.flags & CHECKED
    assert usual / 70 < wait < usual
    # And the second one after as long a time.
    second = judged(again(early, wait), NEW, within(youth={}))
    assert second.row.flags & CHECKED
    assert wait_of(second, LOG_PRICE) == pytest.approx(wait, rel=0.01)
    last = judged(again(second, wait * 1.01), NEW, within(youth={}))
    assert not last.row.flags & CHECKED
    assert np.frombuffer(pack_visits([second, last]), VISIT)["flags"].tolist() == [
        CHANGED | SAMPLED | WELL | FIRST_LOOK,
        SAMPLED | WELL | CEASED,
    ]


def test_no_page_is_picked_where_that_would_be_of_no_use():
    for settings in ({"NEIGHBOURHOODS": False}, {"POLICY": "poisson"}):
        assert not judged(new(PICKED), OLD, within(youth={}, **settings)).row.flags & CHECKED
    full = context(planned(LOG_PRICE, prior_time=2000.0, host_prices={1: 0.5}))
    assert not judged(new(PICKED), OLD, full).row.flags & CHECKED


@pytest.mark.parametrize(
    "asked", [{"flags": APPEARED | SIGNALLED}, {"flags": APPEARED | UNCONDITIONAL}, {"a": 0.0, "s": 0.0, "e": 0.0, "l": 0.0}]
)
def test_a_first_look_that_was_asked_for_ends_youth(asked):
    """Its time is that of the change that was announced: pages would seem to change by then, and no more."""
    first = judged(new(), OLD, within(youth={}))
    row = first.row._replace(**asked)
    seen = judged(again(first, 300.0, row=row), NEW, within(youth={}))
    assert not seen.row.flags & APPEARED
    assert np.frombuffer(pack_visits([seen]), VISIT)["flags"] & SAMPLED == 0


def test_a_signal_brings_an_early_look_nearer():
    """It may be hours away; a check of what was just seen is soon enough."""
    first = judged(new(), OLD, within({pattern_key(PATTERN): Youth(1 / 400, 512.0)}))
    assert wait_of(first, LOG_PRICE) > 200.0
    terms = Terms(LOG_PRICE, within().published, parse())
    memory = first.memory._replace(signals=(Signals("ping shop", AT, AT + 10.0, 1),))
    moved = after_signal(first.row, PAGE, memory, AT + 10.0, terms, within().recent.sources.known_of)
    assert moved.flags & SIGNALLED
    assert not moved.flags & CHECKED
    assert deadline(moved.b / 1e6, Numbers(*moved[4:8]), LOG_PRICE) <= AT + 20.0
    check = first.row._replace(a=1.0, s=0.0, e=1.0, l=1.0)
    assert after_signal(check, PAGE, memory, AT + 0.1, terms, within().recent.sources.known_of) is None


def test_dates_keep_the_trust_of_their_host():
    """They are of the calendar, where a look at a young page counts as a long time of later life."""
    first = judged(new(), OLD, within())
    for content, age in ((NEW, 60.0), (OLD, 200.0)):
        words = HostWords(header=(0.0, 0.0, 20.0, 0.0))
        seen = judge(again(first, 128.0, words=words), visit(content, age=age), within())
        assert seen.words is None or seen.words.header == words.header


def test_what_unchanged_looks_teach_does_not_depend_on_their_number():
    times = []
    for n in (1, 8):
        seen = judged(new(), OLD, within())
        for _ in range(n):
            seen = judged(again(seen, 128.0 / n), OLD, within())
        times.append(seen.row.time)
    assert times[1] == pytest.approx(times[0], rel=0.01)


def test_links_of_a_list_whose_callback_had_raised_have_not_appeared():
    """They are all links that it had, as those of its first visit."""
    for lost, appears in ((None, True), (Lost("callback", "ValueError: x", MISSED_FIRST), False)):
        for settings, is_on in (({}, True), ({"NEIGHBOURHOODS": False}, False)):
            found_on = handed(memory=NOTHING_REMEMBERED._replace(lost=lost), visits=1)
            page = new_page(parse(**settings), b"f" * 20, URL, {"url": URL}, found_on=found_on)
            assert bool(page.row.flags & APPEARED) == (appears and is_on)


@pytest.mark.parametrize("log_price", [-1000.0, -300.0, 300.0, 1000.0])
@pytest.mark.parametrize("youth", [Youth(1e-30, 1e30), Youth(1e30, 1e30), Youth(1 / 40, 2.0), Youth(1e-38, 1e-38)])
def test_no_price_and_no_stored_number_stops_a_judge(log_price, youth):
    published = planned(log_price, prior_time=2000.0, youth={pattern_key(PATTERN): youth})
    for importance in (1e-9, 1e9):
        seen = judged(new(log_price=log_price, stated=importance), OLD, context(published))
        assert seen.outcome == "ok"
        assert all(math.isfinite(value) or value == math.inf for value in seen.row[4:8])
        after = judged(again(seen, 10.0), NEW, context(published))
        assert after.row.shape > 0.0
        assert math.isfinite(after.row.time)


def test_fewer_pages_are_looked_at_early_where_youth_is_known():
    """One in 32 goes on, as sites change."""
    for known in ({pattern_key(PATTERN): None}, {host_key(1): None}):
        assert not judged(new(PICKED), OLD, within(youth=known)).row.flags & CHECKED
        still = (ONE_IN_KNOWN * 700).to_bytes(4, "little") + PAGE[4:]
        assert judged(new(still), OLD, within(youth=known)).row.flags & CHECKED


def test_a_pattern_of_which_little_is_known_goes_by_its_host():
    """On some sites each page has a directory, and so a pattern, of its own."""
    of_host = {host_key(1): Youth(1 / 40, 128.0)}
    wait = wait_of(judged(new(), OLD, within()), LOG_PRICE)
    assert wait_of(judged(new(), OLD, within(of_host)), LOG_PRICE) == wait
    usual = judged(new(), OLD, within({pattern_key(PATTERN): None} | of_host))
    assert not usual.row.flags & CHECKED
    assert not judged(new(), OLD, within({host_key(2): Youth(1 / 40, 128.0)})).row.flags & CHECKED


def test_a_failure_in_between_changes_nothing():
    first = judged(new(), OLD, within())
    failed = judged(again(first), "TimeoutError", within())
    assert failed.row.flags & APPEARED
    assert failed.memory is None or failed.memory.birth == Birth(AT)
    seen = judged(again(failed, 60.0), NEW, within())
    assert looks(seen) == FIRST_LOOK


def test_a_memory_that_was_lost_ends_youth():
    first = judged(new(), OLD, within())
    seen = judged(again(first, memory=NOTHING_REMEMBERED), NEW, within())
    assert not seen.row.flags & APPEARED
    assert looks(seen) == 0


def test_clocks_and_plans_leave_the_first_look_alone():
    """Unless the page was given up: it waits for a lower price."""
    rows = np.zeros(5, LAYOUT)
    rows["state"], rows["visits"], rows["l"], rows["a"], rows["max_interval"], rows["flags"] = ACTIVE, 1, 100.0, 50.0, 1e6, APPEARED
    rows["visits"][1] = 2
    rows["a"][2] = np.inf
    rows["flags"][3] = 0
    assert goes_by_price(rows).tolist() == [False, True, True, True, False]
