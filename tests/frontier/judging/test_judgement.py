"""From a handout and a visit to the observation that is stored: bits, what they teach, counters, what becomes of the page."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from handed_out import AT, NEW, OLD, RECEIVED, TAG, again, context, handed, judged, planned, visit, wait_of

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.bursts import Bursts, follow_bursts
from optimal_frontier.estimation.change_points import ALARM, watch_one
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.judge import NOTHING_KNOWN, after_entries, conditions_of, told
from optimal_frontier.frontier.judging.learning import change_bit
from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import DROP, KEEP, RELEASE, REST, Change
from optimal_frontier.state.rows import ACTIVE, CHECKED, DONE, ONCE, TRANSIENT, UNCONDITIONAL, Row


def bit_of(handout, digest, tag=TAG, distance=0):
    return change_bit(handout.row, Fingerprint(digest, tag, distance))


@pytest.mark.parametrize(("fingerprint", "tag", "visits", "bit"), [(NEW, 77, 4, 1), (OLD, 77, 4, 0), (NEW, 78, 4, -1), (NEW, 77, 0, -1)])
def test_a_bit_needs_a_fingerprint_made_the_same_way(fingerprint, tag, visits, bit):
    """None on a first visit, nor when the settings of the fingerprint changed since."""
    assert bit_of(handed(visits=visits), fingerprint, tag) == bit
    assert judged(handed(visits=visits), visit(fingerprint, tag=tag)).bit == bit


def test_without_a_distance_any_bit_is_a_change():
    handout = handed(content=bytes(16))
    assert bit_of(handout, bytes(15) + b"\x01") == 1
    assert bit_of(handout, bytes(15) + b"\x01", distance=1) == 0
    assert bit_of(handout, bytes(16), TAG + 1, 1) == -1
    assert bit_of(handout, None) == -1


@pytest.mark.parametrize("changed", [True, False])
def test_the_interval_runs_from_the_last_success_to_this_response(changed):
    """Elapsed at the hand-out, and what passed here since; both by one clock each."""
    observation = judged(handed(40.0), visit(NEW if changed else OLD, RECEIVED + 2.0))
    posterior = RatePosterior(3.0, 100.0)
    posterior.update(42.0, changed)
    row = observation.row
    assert (row.shape, row.time) == pytest.approx((posterior.shape, posterior.time))
    assert (observation.bit, observation.op, observation.outcome) == (int(changed), KEEP, "ok")
    assert (row.tag, row.content) == (TAG, NEW if changed else OLD)
    assert (row.b, row.unseen) == ((AT + 2.0) * 1e6, 0.0)


def test_time_in_which_it_failed_is_in_the_interval():
    """b is the last attempt; what was seen before that lies further back."""
    failed = judged(handed(40.0), "500")
    assert (failed.row.unseen, failed.row.b) == (40.0, AT * 1e6)
    twice = judged(again(failed, 10.0), "500")
    assert twice.row.unseen == pytest.approx(50.0)
    seen = judged(again(twice, 10.0), OLD)
    assert (seen.row.time, seen.row.unseen) == (pytest.approx(160.0), 0.0)


def test_counts_and_bits_are_kept():
    observation = judged(handed(observations=3, changes=2, bits=0b101, failed=7, failures=2, gone=1, cause=3), NEW)
    row = observation.row
    assert (row.visits, row.observations, row.changes, row.bits) == (5, 4, 3, 0b1011)
    assert (row.failed, row.failures, row.gone, row.cause) == (7, 0, 0, 0)
    assert observation.counters == {"visits": 1, "observations": 1, "changes": 1}
    assert observation.change == Change("http://h/a", OLD, NEW)
    assert judged(handed(bits=0xFFFFFFFF), NEW).row.bits == 0xFFFFFFFF
    assert judged(handed(), OLD).change is None


def test_a_first_visit_is_one_page_less_to_come():
    observation = judged(handed(visits=0), NEW)
    assert observation.counters == {"visits": 1, "fetched": 1, "pending": -1}
    failed = judged(handed(visits=0), "500")
    assert failed.counters["pending"] == -1
    assert judged(again(failed), NEW).counters == {"visits": 1, "fetched": 1}


def test_every_row_can_be_stored():
    """Whatever a page has behind it: fields end where they end."""
    full = {"failed": 65_535, "failures": 255, "gone": 255, "relearned": 255, "shape": 2e38, "time": 2e38, "evidence": ALARM - 1e-3}
    for came in (NEW, OLD, "404", "500", "RobotsDenied"):
        row = judged(handed(1e7, watch_shape=1.0, watch_time=1.0, **full), came).row
        assert Row.unpack(row.pack()).state == row.state


def test_without_a_bit_the_posterior_stays():
    observation = judged(handed(), visit(NEW, tag=78))
    assert (observation.bit, observation.row.shape, observation.row.time) == (-1, 3.0, 100.0)
    assert (observation.row.tag, observation.row.content) == (78, NEW)


def test_the_first_bit_starts_from_what_is_published():
    """The default prior, or what siblings taught."""
    for published, prior in ((planned(), (1.0, 50.0)), (planned(priors={9: (2.0, 500.0)}), (2.0, 500.0))):
        observation = judged(handed(shape=0.0, time=0.0, pattern=9), OLD, context(published))
        posterior = RatePosterior(*prior)
        posterior.update(40.0, False)
        assert (observation.row.shape, observation.row.time) == pytest.approx((posterior.shape, posterior.time))


def test_what_is_no_page_has_no_history():
    """It is known from then on, whatever came; a transient one is forgotten."""
    for came, outcome, cause in (
        (NEW, "ok", ""),
        ("404", "gone", "gone"),
        ("403", "failed", "client"),
        ("IgnoreRequest", "refused", "refused"),
    ):
        once = judged(handed(visits=0, state=ONCE), came)
        assert (once.op, once.row.state, once.outcome, once.bit, once.change) == (REST, DONE, outcome, -1, None)
        assert (once.row.attempts, once.row.cause) == (1, CAUSES.index(cause))
        transient = judged(handed(visits=0, state=TRANSIENT), came)
        assert (transient.op, transient.outcome) == (DROP, outcome)
        assert once.counters == transient.counters == ({"pending": -1} | ({"failures_client": 1} if came == "403" else {}))
    assert judged(handed(visits=0, state=TRANSIENT), "500").op == DROP


@pytest.mark.parametrize("came", ["500", "429", "TimeoutError", "DNSLookupError", "truncated", "an unknown one"])
def test_what_is_fetched_once_is_tried_again_for_a_day_where_it_fails(came):
    """What it is to bring would be lost for good: nobody's link leads to it a second time."""
    observation, waited = judged(handed(visits=0, state=ONCE), came), 0.0
    assert observation.counters["pending"] == -1
    while observation.op == KEEP:
        row = observation.row
        assert (row.state, row.visits, row.failures, row.a, row.l) == (ONCE, 0, row.failed, row.e, row.e)
        waited += row.a
        assert judged(again(observation), NEW).row.state == DONE
        observation = judged(again(observation), came)
        assert "pending" not in observation.counters
    assert (observation.op, observation.row.state, observation.row.attempts) == (REST, DONE, 17)
    assert 43_200 < waited < 172_800


def test_an_error_that_the_spider_takes_is_the_answer_to_what_is_fetched_once():
    failed = Visit(RECEIVED, "500", 500)
    assert judged(handed(visits=0, state=ONCE), failed).row.state == ONCE
    failed.is_taken = True
    assert judged(handed(visits=0, state=ONCE), failed).row.state == DONE


def test_a_released_request_was_no_attempt():
    for state in (ACTIVE, ONCE, TRANSIENT):
        handout = handed(state=state)
        observation = judged(handout, "released")
        assert (observation.op, observation.row, observation.counters) == (RELEASE, handout.row, {})


def test_a_page_that_rules_say_to_fetch_once_is_done():
    rules = context(RULES=[{"host": "h", "revisit": False}])
    for came in (NEW, "500", "404"):
        observation = judged(handed(), came, rules)
        assert (observation.op, observation.row.state) == (REST, DONE)


def test_bounds_and_importance_are_those_that_rules_have_now():
    """What a request states goes before them."""
    old = {"importance": 9.0, "min_interval": 5.0, "max_interval": 6.0}
    row = judged(handed(**old), OLD, context(RULES=[{"host": "h", "importance": 3.0, "max_interval": 70.0}], MIN_INTERVAL=2.0)).row
    assert (row.importance, row.min_interval, row.max_interval) == (3.0, 2.0, 70.0)
    row = judged(handed(stated=4.0, **old), OLD, context(RULES=[{"host": "h", "importance": 3.0, "interval": 70.0}])).row
    assert (row.importance, row.min_interval, row.max_interval) == (4.0, 70.0, 70.0)
    assert judged(handed(**old), "500").row.importance == 1.0


def test_what_stands_by_goes_along_and_takes_over():
    """A page of which 400 s without a change are known changes at every visit."""
    page = {"shape": 1.0, "time": 400.0}
    observation = judged(handed(**page), NEW)
    recent = watch_one((0.0, 0.0, 0.0), 1.0, 400.0, 1.0, 50.0, 40.0, True)[0]
    row = observation.row
    assert (row.watch_shape, row.watch_time, row.evidence) == pytest.approx(recent)
    assert row.evidence > 0
    observation = judged(handed(**page, watch_shape=2.0, watch_time=30.0, evidence=ALARM - 0.1, relearned=3), NEW)
    row = observation.row
    assert (row.relearned, row.evidence, observation.counters["relearned"]) == (4, 0.0, 1)
    assert (row.shape, row.time) == (row.watch_shape, row.watch_time)
    assert row.time < 100.0
    untouched = judged(handed(**page, watch_shape=2.0), visit(NEW, tag=78)).row
    assert (untouched.watch_shape, untouched.evidence) == (2.0, 0.0)


def test_what_stands_by_falls_back_to_what_siblings_taught():
    row = judged(handed(pattern=9), NEW, context(planned(priors={9: (2.0, 500.0)}))).row
    recent = watch_one((0.0, 0.0, 0.0), 3.0, 100.0, 2.0, 500.0, 40.0, True)[0]
    assert (row.watch_shape, row.watch_time, row.evidence) == pytest.approx(recent)


def test_bits_are_tested_for_bursts():
    row = judged(handed(surprise=0.3, score=1.0, variance=2.0, spread=3.0), NEW).row
    chance = 1.0 - (1.0 + 40.0 / 100.0) ** -3.0
    assert (row.surprise, row.score, row.variance, row.spread) == pytest.approx(follow_bursts(Bursts(0.3, 1.0, 2.0, 3.0), chance, True))


def played(shape: float, visits: int, seed: int = 3):
    """A page whose changes are those of a Weibull process, visited every mean time between them; rows after each visit."""
    mean = 5000.0
    scale = mean / math.gamma(1 + 1 / shape)
    changes = np.cumsum(scale * np.random.default_rng(seed).weibull(shape, 3 * visits))
    within = context(planned(0.0, mean))
    observation, rows = judged(handed(visits=0), visit(bytes(16)), within), []
    for at in range(1, visits):
        edition = int(np.searchsorted(changes, mean * at)).to_bytes(16, "little")
        observation = judged(again(observation, mean), visit(edition), within)
        rows.append(observation.row)
    return rows


def test_a_bursty_page_is_found_from_its_bits_and_a_poisson_page_is_not():
    """And its bursts are not taken for new habits: what is known of it goes on growing."""
    rows = played(0.35, 600)
    known = [Bursts(row.surprise, row.score, row.variance, row.spread) for row in rows]
    assert known[199].is_bursty
    assert known[299].score > 0.15 * known[299].spread
    assert rows[-1].relearned == rows[199].relearned
    assert rows[-1].shape + rows[-1].time / 5000.0 > rows[199].shape + rows[199].time / 5000.0 + 100
    steady = played(1.0, 300)[-1]
    assert not Bursts(steady.surprise, steady.score, steady.variance, steady.spread).is_bursty
    assert steady.variance > 3


@pytest.mark.parametrize(("before", "after"), [(0.02, 0.2), (0.1, 0.01)])
def test_a_page_whose_habits_change_is_learned_anew(before, after):
    """Ten times as often, or a tenth as often, all of a sudden."""
    rng, interval, relearned, rates = np.random.default_rng(5), 20.0, 0, []
    within = context(planned(0.0, 40.0))
    for _ in range(20):
        observation, version = judged(handed(visits=0), visit(bytes(16)), within), 0
        for at in range(90):
            version += rng.poisson((before if at < 45 else after) * interval)
            observation = judged(again(observation, interval), visit(version.to_bytes(16, "little")), within)
        relearned += observation.row.relearned > 0
        rates.append(RatePosterior(observation.row.shape, observation.row.time).median)
    assert relearned >= 17
    assert abs(np.log(np.median(rates) / after)) < 0.7


def test_the_reference_does_not_drift():
    """Small differences add up: each is tolerated, but not their sum."""
    reference, bits = bytes(16), []
    for at in range(1, 9):
        new = ((1 << (3 * at)) - 1).to_bytes(16, "big")  # three bits more each time
        observation = judged(handed(content=reference), visit(new, distance=10))
        bits.append(observation.bit)
        assert observation.row.content == (new if observation.bit else reference)
        reference = observation.row.content
    assert bits == [0, 0, 0, 1, 0, 0, 0, 1]


def test_a_visit_without_a_fingerprint_leaves_all_as_it_was():
    """The next bit is about the time since the one that is stored; a first visit has been one all the same."""
    failing = Visit(RECEIVED + 1.0, fingerprint=Fingerprint(None, TAG, 0, {"fingerprints_failed": 1}), age=5.0)
    observation = judged(handed(10.0), failing)
    row = observation.row
    assert (observation.outcome, observation.bit, row.tag, row.content) == ("ok", -1, TAG, OLD)
    assert (row.shape, row.time, row.unseen, row.visits) == (3.0, 100.0, 11.0, 5)
    assert observation.counters["fingerprints_failed"] == 1
    assert judged(handed(visits=0), failing).row.unseen == 0.0
    assert judged(handed(10.0), Visit(RECEIVED)).row.unseen == 0.0  # nothing makes fingerprints here: it was seen


def test_a_cached_response_that_was_never_downloaded_shows_nothing_new():
    """Whatever is in it; the page is as it was when it was last seen."""
    handout = handed(10.0, Memory(etag=b'"1"', size=5), flags=UNCONDITIONAL)
    observation = judged(handout, visit(NEW, age=3.0, is_cached=True, is_downloaded=False, size=9))
    row = observation.row
    assert (observation.bit, observation.change, observation.memory, row.content) == (-1, None, None, OLD)
    assert (row.shape, row.time, row.unseen, row.visits, row.flags) == (3.0, 100.0, 10.0, 5, UNCONDITIONAL)
    first = judged(handed(visits=0), visit(NEW, is_cached=True, is_downloaded=False))
    assert (first.row.tag, first.row.visits) == (0, 1)


def test_a_cache_that_asked_the_server_saves_a_body():
    observation = judged(handed(), visit(OLD, is_cached=True, status=304, size=900))
    assert (observation.bit, observation.memory) == (0, None)
    assert (observation.counters["not_modified"], observation.counters["bytes_saved"]) == (1, 900)


def test_a_304_without_conditions_is_an_unchanged_page():
    """As Frontera's own fetchers may bring it; of a page never seen it says nothing."""
    observation = judged(handed(), Visit(RECEIVED, status=304))
    assert (observation.bit, observation.row.content, observation.memory) == (0, OLD, None)
    assert judged(handed(visits=0), Visit(RECEIVED, status=304)).bit == -1


def test_a_source_is_judged_by_its_entries():
    """One that cannot be read gives no bit; one that is damaged does."""
    for source, bit, content in (("whole", 1, NEW), ("damaged", 1, NEW), ("unreadable", -1, OLD)):
        observation = judged(handed(), visit(NEW, source=source))
        assert (observation.bit, observation.row.content) == (bit, content)
        assert observation.counters.get(f"sources_{source}", 0) == (source != "whole")
    read = judged(handed(memory=Memory(etag=b'"1"')), visit(OLD, source="whole"))
    assert after_entries(read, b"entries").memory.entries == b"entries"
    assert after_entries(read, None).memory.etag == b""


def test_nobody_asks_whether_a_block_page_is_still_the_same():
    handout, within = handed(memory=Memory(etag=b'"1"')), context()
    assert conditions_of(handout, TAG, within) is not None
    assert conditions_of(handed(memory=handout.memory, flags=UNCONDITIONAL), TAG, within) is None
    assert conditions_of(handout, TAG, context(CONDITIONAL_GET=False)) is None
    within.recent.blocks.stored = {f"h {OLD.hex()}".encode(): True}
    assert conditions_of(handout, TAG, within) is None


def test_lateness_is_that_of_the_download_where_it_is_known():
    assert judged(handed(lateness=0.5), visit(OLD)).lateness == 0.5
    assert judged(handed(lateness=0.5), visit(OLD, lateness=0.7)).lateness == 0.7
    assert judged(handed(lateness=None, visits=0), visit(OLD)).lateness is None


def test_callbacks_are_told_what_is_known():
    within, handout = context(planned(-3.0), MAX_INTERVAL=1e4), handed(log_price=-3.0)
    observation = judged(handout, NEW, within)
    posterior = RatePosterior(observation.row.shape, observation.row.time)
    assert told(handout, observation, within) == {
        "changed": True,
        "change_rate": pytest.approx(posterior.median),
        "interval": pytest.approx(wait_of(observation, -3.0)),
        "visits": 5,
    }
    failed = judged(handout, "500", within)
    for nothing in (None, failed):
        known = told(handout, nothing, within)
        assert (known["changed"], known["visits"]) == (None, 4)
        assert known["change_rate"] == pytest.approx(RatePosterior(3.0, 100.0).median)
    fresh = told(handed(visits=0), judged(handed(visits=0), NEW), context(planned(number=0, prior_time=0.0)))
    assert fresh == {"changed": None, "change_rate": None, "interval": None, "visits": 1}
    assert told(handed(state=ONCE), None, within) == NOTHING_KNOWN


def test_the_judge_changes_nothing_but_its_memory():
    """Neither handout nor visit; and the same again gives the same."""
    handout, came = handed(memory=Memory(etag=b'"1"')), visit(NEW, age=5.0)
    before = dataclasses.replace(handout)
    assert judged(handout, came) == judged(handout, came)
    assert handout == before
    assert handout.row.flags & CHECKED == 0
