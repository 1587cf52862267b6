"""Conditional requests: what is sent, and what 304s, full answers and checks leave for the next fetch."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.validators import ALARM, MOST_UNCHECKED
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.frontier.validators import (
    NO_VALIDATORS,
    USELESS,
    Validators,
    after_full_answer,
    after_not_modified,
    conditions_of,
    unseen_s,
)
from optimal_frontier.state.columns import ACTIVE, ONCE
from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory
from optimal_frontier.state.records import Handout, Observation, Published

TAG, OLD, NEW = 77, b"o" * 16, b"n" * 16
BOTH = Validators(b'"1"', b"Tue, 05 Mar 2024 10:00:00 GMT")
MEMORY = Memory(etag=b'"1"', last_modified=BOTH.last_modified, size=1000)
#: A page that changes about every 1,000 s, seen 40 s ago, which may come back every second.
HANDOUT = Handout(5, b"1@1", 0.5, 40.0, 2.0, 0.0, 1.0, ACTIVE, 3.0, 3000.0, 4, 4, 0.1, True, TAG, OLD, {}, 1000.0, memory=MEMORY)
KNOWN_HOST = (0.0, 100.0, 100.0, 0.0)
DISTRUSTED = (ALARM + 0.1, 0.0, 3.0, 3.0)


def handed(memory: Memory = MEMORY, **values: object) -> Handout:
    return dataclasses.replace(HANDOUT, memory=memory, **values)


def seen(handout: Handout, content: bytes = OLD) -> Observation:
    return judge_visit(handout, content, TAG, 1000.0, Published(1.0, 50.0))


def share(of, **values: object) -> float:
    """How often ``of`` holds over the visits of a page."""
    return sum(bool(of(handed(attempts=at, **values))) for at in range(4, 4004)) / 4000


@given(st.binary(max_size=400), st.one_of(st.none(), st.binary(max_size=100)))
def test_whatever_a_server_sends_is_kept_as_sent_or_not_at_all(etag, date):
    """Nothing that would end a header, and nothing long."""
    kept = Validators.of(etag, date)
    assert kept.etag in (b"", etag.strip())
    assert kept.last_modified in (b"", (date or b"").strip())
    assert not any(byte < 32 or byte == 127 for value in kept for byte in value)
    assert len(kept.etag) <= 256 >= 4 * len(kept.last_modified)
    memory = Memory(etag=kept.etag, last_modified=kept.last_modified)
    assert Memory.unpack(memory.pack()) == memory


def test_validators_are_sent_as_they_came():
    assert conditions_of(HANDOUT, TAG) == BOTH
    assert conditions_of(handed(Memory(last_modified=BOTH.last_modified)), TAG) == Validators(b"", BOTH.last_modified)


@pytest.mark.parametrize(
    "handout",
    [
        handed(visits=0),
        handed(kind=ONCE),
        handed(content_tag=TAG + 1),
        handed(NOTHING_REMEMBERED),
        handed(dataclasses.replace(MEMORY, check=True)),
    ],
)
def test_a_full_answer_is_asked_for_where_it_is_needed(handout):
    """First visits, requests that are no pages, fingerprints of other settings, nothing to ask with, and checks."""
    assert conditions_of(handout, TAG) is None


@pytest.mark.parametrize("values", [{"validator_trust": DISTRUSTED}, {"memory": dataclasses.replace(MEMORY, lies=2)}])
def test_who_is_not_believed_is_probed_now_and_then(values):
    assert share(lambda h: conditions_of(h, TAG), **values) == pytest.approx(1 / 20, abs=0.01)


def test_an_etag_that_changes_without_the_content_is_given_up():
    """Then Last-Modified goes alone, which it would not in its company; a 304 or a change ends the count."""
    handout = HANDOUT
    for at in range(USELESS):
        assert conditions_of(handout, TAG) == Validators(b'"%d"' % (at + 1), BOTH.last_modified)
        found = Validators(b'"%d"' % (at + 2), BOTH.last_modified)
        left = after_full_answer(seen(handout), handout, conditions_of(handout, TAG), found, 1000).memory
        handout = handed(left)
    asked = [conditions_of(dataclasses.replace(handout, attempts=at), TAG).etag for at in range(400)]
    assert 0 < len(asked) - asked.count(b"") < 60
    sent = Validators(b'"4"', b"")
    assert after_not_modified(seen(handout), handout, sent, NO_VALIDATORS).memory.misses == 0
    assert after_full_answer(seen(handout, NEW), handout, sent, Validators(b'"5"', b""), 1).memory.misses == 0


def test_a_304_is_an_unchanged_bit_and_keeps_what_is_stored():
    handout = handed(validator_trust=KNOWN_HOST)
    observation = after_not_modified(seen(handout), handout, BOTH, Validators(b'"2"', b""))
    posterior = RatePosterior(3.0, 3000.0)
    posterior.update(40.0, False)
    assert (observation.bit, observation.shape, observation.time) == (0, posterior.shape, posterior.time)
    assert observation.counters == {"not_modified": 1, "bytes_saved": 1000}
    assert observation.memory == dataclasses.replace(MEMORY, etag=b'"2"', unchecked=1, unseen=40.0)
    assert not observation.again


def test_what_another_concept_remembers_is_kept():
    """Several set fields of the memory for the same observation."""
    observation = dataclasses.replace(seen(HANDOUT), memory=dataclasses.replace(MEMORY, misses=2))
    assert after_not_modified(observation, HANDOUT, Validators(b"", b"x"), NO_VALIDATORS).memory.etag == b'"1"'
    assert after_full_answer(observation, HANDOUT, None, BOTH, 5).memory.size == 5


@pytest.mark.parametrize(("trust", "expected"), [((0.0, 0.0, 0.0, 0.0), 1 / 3), (KNOWN_HOST, 1 / 50), (DISTRUSTED, 1.0)])
def test_304s_are_checked_by_how_well_the_host_is_known(trust, expected):
    asks = share(lambda h: after_not_modified(seen(h), h, BOTH, NO_VALIDATORS).again, validator_trust=trust)
    assert asks == pytest.approx(expected, abs=0.025)


def test_a_page_that_lied_once_is_checked_more_often():
    doubted = dataclasses.replace(MEMORY, lies=1)
    asks = share(lambda h: after_not_modified(seen(h), h, BOTH, NO_VALIDATORS).again, memory=doubted, validator_trust=KNOWN_HOST)
    assert asks == pytest.approx(1 / 3, abs=0.025)
    assert conditions_of(handed(doubted), TAG) == BOTH


def test_a_page_is_checked_after_so_many_304s_at_least():
    handout = handed(dataclasses.replace(MEMORY, unchecked=MOST_UNCHECKED - 1), validator_trust=KNOWN_HOST)
    observation = after_not_modified(seen(handout), handout, BOTH, NO_VALIDATORS)
    assert observation.again
    assert observation.memory.check
    assert conditions_of(handed(observation.memory), TAG) is None


def test_a_page_that_changes_before_a_check_is_not_checked():
    handout = handed(dataclasses.replace(MEMORY, unchecked=MOST_UNCHECKED), time=2.0, elapsed=0.5)
    assert not after_not_modified(seen(handout), handout, BOTH, NO_VALIDATORS).again


#: Seen 1 s ago by a 304, and 500 s before that in full.
CHECK = handed(dataclasses.replace(MEMORY, check=True, unchecked=9, unseen=500.0), elapsed=1.0)


def test_a_check_that_agrees_costs_the_bit_of_its_own_interval():
    observation = after_full_answer(seen(CHECK), CHECK, None, BOTH, 1000)
    assert (observation.shape, observation.time) == (3.0, 3001.0)
    assert observation.words.startswith("validators=agrees=-0.")
    assert observation.memory == MEMORY


def test_a_lie_is_found_and_its_bits_are_taken_back():
    """The change lies somewhere in the time since the last full answer, and what the 304s taught is gone."""
    observation = after_full_answer(seen(CHECK, NEW), CHECK, None, BOTH, 1000)
    posterior = RatePosterior(3.0, 2500.0)
    posterior.update(501.0, True)
    assert (observation.bit, observation.shape, observation.time) == (1, posterior.shape, posterior.time)
    assert observation.words.startswith("validators=lies=2.99")
    assert observation.memory == dataclasses.replace(MEMORY, lies=1)


def test_a_second_lie_of_a_page_is_not_held_against_its_host():
    """It may be no worse than a page that differs on every fetch."""
    doubted = handed(dataclasses.replace(CHECK.memory, lies=1), elapsed=1.0)
    observation = after_full_answer(seen(doubted, NEW), doubted, None, BOTH, 1000)
    assert observation.words == "validators=lies=0"
    assert observation.memory.lies == 2
    assert observation.bit == 1


def test_a_change_that_may_have_come_since_the_304_is_held_against_nobody():
    hot = dataclasses.replace(CHECK, time=10.0)
    observation = after_full_answer(seen(hot, NEW), hot, None, BOTH, 1000)
    assert observation.words.startswith("validators=unclear=")
    assert observation.memory.lies == 0
    assert unseen_s(hot, 1, 1.0) == 0.0


def test_what_304s_said_is_not_believed_of_a_host_that_lies():
    """Nor where the visit is no check: the host was found out at another page."""
    handout = handed(dataclasses.replace(MEMORY, unseen=500.0), validator_trust=DISTRUSTED)
    assert unseen_s(handout, 1, 40.0) == 500.0
    assert unseen_s(handout, 0, 40.0) == 0.0
    assert unseen_s(handed(dataclasses.replace(MEMORY, unseen=500.0)), 1, 40.0) == 0.0


def test_a_change_that_is_told_speaks_for_the_server_and_clears_the_page():
    handout = handed(dataclasses.replace(MEMORY, lies=2))
    observation = after_full_answer(seen(handout, NEW), handout, BOTH, Validators(b'"2"', b""), 900)
    assert observation.words == "validators=told=-1.0"
    assert observation.memory == Memory(etag=b'"2"', size=900)


def test_what_needs_nothing_costs_nothing():
    bare = handed(NOTHING_REMEMBERED)
    assert after_full_answer(seen(bare), bare, None, NO_VALIDATORS, 1000).memory is None
    assert after_full_answer(seen(HANDOUT), HANDOUT, None, BOTH, 1000).memory is None  # nothing new
    assert after_full_answer(seen(HANDOUT), HANDOUT, None, NO_VALIDATORS, 1000).memory == NOTHING_REMEMBERED
    assert NOTHING_REMEMBERED.pack() == b""
    assert Memory.unpack(MEMORY.pack()) == MEMORY
