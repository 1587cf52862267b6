"""Conditional requests: what is sent, and what 304s, full answers and checks leave for the next fetch."""

from __future__ import annotations

import dataclasses

import handed_out
import pytest
from handed_out import NEW, OLD, RECEIVED, TAG, context, judged, planned
from hypothesis import given
from hypothesis import strategies as st

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.validator_trust import ALARM, MOST_EVIDENCE, MOST_UNCHECKED, TOLD, ValidatorTrust
from optimal_frontier.frontier.judging.validators import NO_VALIDATORS, USELESS, Validators, conditions_of, unseen_s
from optimal_frontier.frontier.judging.visits import not_modified_visit
from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory
from optimal_frontier.state.messages import Handout, Observation
from optimal_frontier.state.rows import CHECKED, ONCE

BOTH = Validators(b'"1"', b"Tue, 05 Mar 2024 10:00:00 GMT")
MEMORY = Memory(etag=b'"1"', last_modified=BOTH.last_modified, size=1000)
KNOWN_HOST = HostWords(validators=(0.0, 100.0, 100.0, 0.0))
DISTRUSTED = HostWords(validators=(ALARM + 0.1, 0.0, 3.0, 3.0))


def handed(memory: Memory = MEMORY, **values: object) -> Handout:
    """A page that changes about every 1,000 s, seen 40 s ago, which may come back every second."""
    return handed_out.handed(memory=memory, **({"time": 3000.0} | values))


HANDOUT = handed()


def full_answer(handout: Handout, sent: Validators | None, found: Validators, size: int = 1000, content: bytes = OLD) -> Observation:
    came = handed_out.visit(content, asked=sent, validators=found, size=size)
    return judged(handout, came, context(planned()))


def not_modified(handout: Handout, sent: Validators, found: Validators = NO_VALIDATORS) -> Observation:
    headers = {name: value for name, value in zip((b"ETag", b"Last-Modified"), found, strict=True) if value}
    came = dataclasses.replace(not_modified_visit(headers, sent, RECEIVED, 0.0), age=None)
    return judged(handout, came, context(planned()))


def left(observation: Observation) -> Memory:
    return observation.handout.memory if observation.memory is None else observation.memory


def is_checked(observation: Observation) -> bool:
    return bool(observation.row.flags & CHECKED)


def checks(observation: Observation) -> tuple[float, ...]:
    """What was added to the trust in the host: score, told, checks, lies."""
    before = observation.handout.words.validators
    after = (observation.words or observation.handout.words).validators
    return tuple(b - a for a, b in zip(before, after, strict=True))


def share(of, **values: object) -> float:
    """How often ``of`` holds over the visits of a page."""
    return sum(bool(of(handed(failed=at, **values))) for at in range(4000)) / 4000


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
        handed(state=ONCE),
        handed(tag=TAG + 1),
        handed(NOTHING_REMEMBERED),
        handed(MEMORY._replace(check=True)),
    ],
)
def test_a_full_answer_is_asked_for_where_it_is_needed(handout):
    """First visits, requests that are no pages, fingerprints of other settings, nothing to ask with, and checks."""
    assert conditions_of(handout, TAG) is None


@pytest.mark.parametrize("values", [{"words": DISTRUSTED}, {"memory": MEMORY._replace(lies=2)}])
def test_who_is_not_believed_is_probed_now_and_then(values):
    assert share(lambda h: conditions_of(h, TAG), **values) == pytest.approx(1 / 20, abs=0.01)


def test_an_etag_that_changes_without_the_content_is_given_up():
    """Then Last-Modified goes alone, which it would not in its company; a 304 or a change ends the count."""
    handout = HANDOUT
    for at in range(USELESS):
        assert conditions_of(handout, TAG) == Validators(b'"%d"' % (at + 1), BOTH.last_modified)
        found = Validators(b'"%d"' % (at + 2), BOTH.last_modified)
        handout = handed(left(full_answer(handout, conditions_of(handout, TAG), found)))
    asked = [conditions_of(handed(handout.memory, failed=at), TAG).etag for at in range(400)]
    assert 0 < len(asked) - asked.count(b"") < 60
    sent = Validators(b'"4"', b"")
    assert left(not_modified(handout, sent)).misses == 0
    assert left(full_answer(handout, sent, Validators(b'"5"', b""), content=NEW)).misses == 0


def test_a_304_is_an_unchanged_bit_and_keeps_what_is_stored():
    handout = handed(words=KNOWN_HOST, failed=1)
    observation = not_modified(handout, BOTH, Validators(b'"2"', b""))
    posterior = RatePosterior(3.0, 3000.0)
    posterior.update(40.0, False)
    assert (observation.bit, observation.row.shape, observation.row.time) == (0, posterior.shape, posterior.time)
    assert observation.counters == {"visits": 1, "observations": 1, "not_modified": 1, "bytes_saved": 1000}
    assert observation.memory == MEMORY._replace(etag=b'"2"', unchecked=1, unseen=40.0)
    assert not is_checked(observation)
    assert observation.row.content == OLD


def test_what_another_concept_remembers_is_kept():
    """Several set fields of the memory for the same observation."""
    handout = handed(MEMORY._replace(entries=b"12345678", aliases=(b"x" * 12,)))
    for observation in (full_answer(handout, None, BOTH, 5), not_modified(handout, BOTH)):
        assert (left(observation).entries, left(observation).aliases) == (b"12345678", (b"x" * 12,))
    assert left(not_modified(handed(MEMORY._replace(misses=2)), Validators(b"", b"x"))).misses == 2


@pytest.mark.parametrize(("words", "expected"), [(HostWords(), 1 / 3), (KNOWN_HOST, 1 / 50), (DISTRUSTED, 1.0)])
def test_304s_are_checked_by_how_well_the_host_is_known(words, expected):
    assert share(lambda h: is_checked(not_modified(h, BOTH)), words=words) == pytest.approx(expected, abs=0.025)


def test_a_page_that_lied_once_is_checked_more_often():
    doubted = MEMORY._replace(lies=1)
    asks = share(lambda h: is_checked(not_modified(h, BOTH)), memory=doubted, words=KNOWN_HOST)
    assert asks == pytest.approx(1 / 3, abs=0.025)
    assert conditions_of(handed(doubted), TAG) == BOTH


def test_a_page_is_checked_after_so_many_304s_at_least():
    handout = handed(MEMORY._replace(unchecked=MOST_UNCHECKED - 1), words=KNOWN_HOST)
    observation = not_modified(handout, BOTH)
    assert is_checked(observation)
    assert (observation.row.a, observation.row.l) == (1.0, 1.0)  # as soon as its least interval is over
    assert left(observation).check
    assert conditions_of(handed(left(observation)), TAG) is None


def test_a_page_that_changes_before_a_check_is_not_checked():
    handout = handed(MEMORY._replace(unchecked=MOST_UNCHECKED), time=2.0, elapsed=0.5)
    assert not is_checked(not_modified(handout, BOTH))


#: Seen 1 s ago by a 304, and 500 s before that in full.
CHECK = handed(MEMORY._replace(check=True, unchecked=9, unseen=500.0), elapsed=1.0)


def test_a_check_that_agrees_costs_the_bit_of_its_own_interval():
    observation = full_answer(CHECK, None, BOTH)
    assert (observation.row.shape, observation.row.time) == (3.0, 3001.0)
    score, *counts = checks(observation)
    assert -1.0 < score < 0.0
    assert counts == [0, 1, 0]
    assert observation.memory == MEMORY


def test_a_lie_is_found_and_its_bits_are_taken_back():
    """The change lies somewhere in the time since the last full answer, and what the 304s taught is gone."""
    observation = full_answer(CHECK, None, BOTH, content=NEW)
    posterior = RatePosterior(3.0, 2500.0)
    posterior.update(501.0, True)
    assert (observation.bit, observation.row.shape, observation.row.time) == (1, *map(pytest.approx, (posterior.shape, posterior.time)))
    assert checks(observation) == pytest.approx((MOST_EVIDENCE, 0, 1, 1))
    assert observation.counters["validator_lies"] == 1
    assert observation.memory == MEMORY._replace(lies=1)


def test_a_second_lie_of_a_page_is_not_held_against_its_host():
    """It may be no worse than a page that differs on every fetch."""
    doubted = handed(CHECK.memory._replace(lies=1), elapsed=1.0)
    observation = full_answer(doubted, None, BOTH, content=NEW)
    assert checks(observation) == (0, 0, 1, 1)
    assert observation.memory.lies == 2
    assert observation.bit == 1


def test_a_change_that_may_have_come_since_the_304_is_held_against_nobody():
    hot = handed(CHECK.memory, elapsed=1.0, time=10.0)
    observation = full_answer(hot, None, BOTH, content=NEW)
    assert checks(observation)[1:] == (0, 1, 0)
    assert "validator_lies" not in observation.counters
    assert observation.memory.lies == 0
    assert unseen_s(hot, 1, 1.0) == 0.0


def test_what_304s_said_is_not_believed_of_a_host_that_lies():
    """Nor where the visit is no check: the host was found out at another page."""
    unseen = MEMORY._replace(unseen=500.0)
    handout = handed(unseen, words=DISTRUSTED)
    assert unseen_s(handout, 1, 40.0) == 500.0
    assert unseen_s(handout, 0, 40.0) == 0.0
    assert unseen_s(handed(unseen), 1, 40.0) == 0.0


def test_a_change_that_is_told_speaks_for_the_server_and_clears_the_page():
    handout = handed(MEMORY._replace(lies=2))
    observation = full_answer(handout, BOTH, Validators(b'"2"', b""), 900, NEW)
    assert checks(observation) == (-TOLD, 1, 0, 0)
    assert observation.memory == Memory(etag=b'"2"', size=900)


def test_the_score_of_a_host_is_that_of_the_reference():
    trust = ValidatorTrust()
    for verdict, evidence in (*[("lies", MOST_EVIDENCE)] * 4, *[("told", -TOLD)] * 3):
        handout = handed(CHECK.memory if verdict == "lies" else MEMORY, elapsed=1.0, words=HostWords(validators=tuple(trust)))
        observation = full_answer(handout, None if verdict == "lies" else BOTH, BOTH, content=NEW)
        trust = trust.after(verdict, evidence)
        assert observation.words.validators == pytest.approx(tuple(trust))


def test_what_needs_nothing_costs_nothing():
    bare = handed(NOTHING_REMEMBERED)
    assert full_answer(bare, None, NO_VALIDATORS).memory is None
    assert full_answer(HANDOUT, None, BOTH).memory is None  # nothing new
    assert full_answer(HANDOUT, None, NO_VALIDATORS).memory == NOTHING_REMEMBERED
    assert NOTHING_REMEMBERED.pack() == b""
    assert Memory.unpack(MEMORY.pack()) == MEMORY
