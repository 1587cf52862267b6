"""A callback or an item pipeline that raised: the visit counts, and the page is fetched again until it does not."""

from __future__ import annotations

import pytest
from handed_out import NEW, OLD, TAG, again, context, handed, judged, planned, visit, wait_of

from optimal_frontier.frontier.judging.backoff import backoff_s
from optimal_frontier.frontier.judging.callback_errors import MOST_CHARACTERS, after_callback_error, described, is_first_told
from optimal_frontier.frontier.judging.judge import conditions_of, is_news, told
from optimal_frontier.frontier.judging.outcomes import CALLBACK, CAUSES, ITEM
from optimal_frontier.state.memory import MISSED_CHANGE, MISSED_FIRST, Lost, Memory
from optimal_frontier.state.messages import DROP, KEEP, REST, Handout
from optimal_frontier.state.rows import ACTIVE, DONE, ONCE, OWN, RETIRED, TRANSIENT, UNCONDITIONAL

#: Seldom visited: the wait by the price is some thousand seconds.
SELDOM = context(planned(8.0), MIN_INTERVAL=1.0)
VALIDATORS = Memory(etag=b'"1"', last_modified=b"then", size=500)


def raised(handout: Handout, came=OLD, cause=CALLBACK, within=SELDOM):
    return after_callback_error(judged(handout, came, within), cause, "ValueError: no price")


def test_the_bit_counts_and_the_visit_is_good():
    calm, observation = judged(handed(), NEW, SELDOM), raised(handed(), NEW)
    same = ("visits", "observations", "changes", "bits", "shape", "time", "content", "tag", "failed", "unseen", "state", "b")
    assert [getattr(observation.row, name) for name in same] == [getattr(calm.row, name) for name in same]
    assert (observation.bit, observation.change, observation.outcome, observation.op) == (1, calm.change, "ok", KEEP)
    assert observation.counters == dict(calm.counters) | {"failures_callback": 1, "lost_callback": 1}


def test_it_is_fetched_again_soon_in_full_and_with_a_callback():
    observation = raised(handed(memory=VALIDATORS))
    assert wait_of(observation, 8.0) == pytest.approx(backoff_s(observation.handout.page, 1))
    assert (observation.memory.etag, observation.memory.last_modified, observation.memory.size) == (b"", b"", 0)
    assert observation.memory.lost == Lost(CALLBACK, "ValueError: no price", 0)
    after = again(observation)
    assert after.row.flags & UNCONDITIONAL
    assert conditions_of(after, TAG, SELDOM) is None
    assert is_news(judged(after, OLD, SELDOM))


def test_the_backoff_grows_with_each_error_in_a_row():
    """Network failures between count as well; a visit without an error begins anew."""
    observation, waits = raised(handed()), []
    for _ in range(6):
        waits.append(wait_of(observation, 8.0))
        observation = raised(again(observation))
    page = observation.handout.page
    assert waits == pytest.approx([backoff_s(page, failures) for failures in range(1, 7)])
    assert CAUSES[observation.row.cause] == CALLBACK
    failed = judged(again(observation), "500", SELDOM)
    assert failed.row.flags & UNCONDITIONAL
    assert failed.row.failures == 8
    assert (failed.memory or failed.handout.memory).lost is not None
    assert raised(again(failed)).row.failures == 9
    healed = judged(again(failed), OLD, SELDOM)
    assert (healed.row.failures, healed.row.cause, healed.row.flags, healed.memory.lost) == (0, 0, OWN, None)
    assert raised(again(healed)).row.failures == 1


def test_failures_before_the_first_error_are_no_errors():
    assert raised(handed(failures=9, cause=CAUSES.index("dns"))).row.failures == 1


def test_it_is_never_later_than_it_would_have_been():
    """At no price: the numbers of the plan stay below the backoff."""
    often = context(planned(-20.0), MIN_INTERVAL=0.2)
    observation, calm = raised(handed(log_price=-20.0), within=often), judged(handed(log_price=-20.0), OLD, often)
    assert wait_of(observation, -20.0) == wait_of(calm, -20.0) < 0.3
    assert (observation.row.a, observation.row.s) == (calm.row.a, calm.row.s)
    pinned = context(RULES=[{"host": "h", "interval": 10.0}])
    late = raised(handed(failures=15, cause=CAUSES.index(CALLBACK), memory=Memory(lost=Lost(CALLBACK, "", 0))), within=pinned)
    assert late.row.failures == 16
    assert wait_of(late) == pytest.approx(10.0)


def test_it_is_never_sooner_than_the_least_interval():
    assert wait_of(raised(handed(), within=context(planned(8.0), MIN_INTERVAL=60.0)), 8.0) == 60.0


def test_a_visit_is_one_error_however_many_items_raise():
    observation = raised(handed(), cause=ITEM)
    assert after_callback_error(observation, CALLBACK, "another") is observation
    assert observation.counters["failures_item"] == 1


def test_the_number_of_such_pages_is_kept():
    """Up with the first error, down with the visit without one; by the cause of the last."""
    first = raised(handed())
    second = raised(again(first), cause=ITEM)
    last = judged(again(second), OLD, SELDOM)
    sums: dict[str, int] = {}
    for observation, left in ((first, {CALLBACK: 1}), (second, {ITEM: 1}), (last, {})):
        for name, by in observation.counters.items():
            sums[name] = sums.get(name, 0) + by
        assert {name.removeprefix("lost_"): n for name, n in sums.items() if name.startswith("lost_") and n} == left


@pytest.mark.parametrize(("visits", "bits", "changed"), [(0, (-1, 0), None), (4, (1, 0), True), (4, (0, 1), True), (4, (0, 0), False)])
def test_the_callback_is_told_what_an_earlier_one_could_not_take(visits, bits, changed):
    """A page is new, or changed, until a callback has taken it."""
    first, second = (NEW, NEW) if bits == (1, 0) else (OLD, NEW) if bits == (0, 1) else (OLD, OLD)
    observation = raised(handed(visits=visits), first)
    after = again(observation)
    seen = judged(after, second, SELDOM)
    assert (observation.bit, seen.bit) == bits
    assert told(after, seen, SELDOM)["changed"] is changed
    assert is_first_told(after) == (visits == 0)
    twice = again(raised(after, second))
    assert told(twice, judged(twice, second, SELDOM), SELDOM)["changed"] is changed
    calm = again(seen)
    assert told(calm, judged(calm, second, SELDOM), SELDOM)["changed"] is False


def test_what_was_missed_is_kept():
    assert raised(handed(visits=0)).memory.lost.missed == MISSED_FIRST
    changed = raised(handed(), NEW)
    assert changed.memory.lost.missed == MISSED_CHANGE
    assert raised(again(changed), NEW).memory.lost.missed == MISSED_CHANGE
    assert Memory.unpack(changed.memory.pack()) == changed.memory


def test_a_request_that_is_fetched_once_is_fetched_again():
    """It is done when its callback is; while it fails in between it is tried again, and given up when it is gone."""
    once = raised(handed(visits=0, state=ONCE))
    assert (once.op, once.row.state, once.row.visits, once.row.failures) == (KEEP, ONCE, 1, 1)
    assert wait_of(once) == pytest.approx(backoff_s(once.handout.page, 1))
    assert once.counters == {"pending": -1, "failures_callback": 1, "lost_callback": 1}
    failed = judged(again(once), "500")
    assert (failed.op, failed.row.state, failed.row.failures, failed.counters) == (KEEP, ONCE, 2, {"failures_server": 1})
    assert failed.row.flags & UNCONDITIONAL
    twice = raised(again(failed))
    assert (twice.row.state, twice.row.failures) == (ONCE, 3)
    for came in (OLD, "404"):
        ended = judged(again(twice), came)
        assert (ended.op, ended.row.state, ended.row.flags, ended.memory.lost) == (REST, DONE, 0, None)
        assert ended.counters["lost_callback"] == -1


def test_a_page_that_rules_say_to_fetch_once_is_fetched_until_it_is_taken():
    rules = context(RULES=[{"host": "h", "revisit": False}])
    observation = raised(handed(visits=0), within=rules)
    assert (observation.op, observation.row.state) == (KEEP, ONCE)
    owed = handed(memory=Memory(lost=Lost(ITEM, "", 0)), flags=UNCONDITIONAL)
    assert judged(owed, "500", rules).row.state == ACTIVE


def test_requests_that_are_forgotten_and_retired_pages_stay_as_they_are():
    transient = judged(handed(visits=0, state=TRANSIENT), OLD)
    assert after_callback_error(transient, CALLBACK, "") is transient
    assert transient.op == DROP
    retired = judged(handed(gone=1, failures=1, memory=Memory(lost=Lost(CALLBACK, "", 1))), "404")
    assert (retired.row.state, retired.memory.lost, retired.counters["lost_callback"]) == (RETIRED, None, -1)
    assert after_callback_error(retired, CALLBACK, "") is retired


def test_an_errback_that_raises_leaves_the_failure_as_it_is():
    failed = judged(handed(), "500", SELDOM)
    observation = after_callback_error(failed, CALLBACK, "KeyError: 'x'")
    assert observation.row == failed.row._replace(flags=UNCONDITIONAL)
    assert observation.memory.lost == Lost(CALLBACK, "KeyError: 'x'", 0)
    assert after_callback_error(observation, CALLBACK, "again") is observation


def test_a_page_moves_when_its_items_were_taken():
    moved = judged(handed(), visit(OLD, found="http://h/b", hops=[301]), SELDOM)
    assert moved.moved == "http://h/b"
    assert after_callback_error(moved, CALLBACK, "").moved == ""


class SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_exception_is_described_in_one_short_line():
    assert described(ValueError("a\nb")) == "ValueError: a"
    assert described(SilentError()) == "SilentError"
    assert described(ValueError("\x1b[31mred\x00")) == "ValueError:  [31mred "
    assert len(described(ValueError("x" * 1000))) == MOST_CHARACTERS
