"""Sources of signals at a visit: what it teaches of them, what they leave of its bit, and how long a page is left alone."""

from __future__ import annotations

import math
from dataclasses import replace

import msgpack
import numpy as np
import pytest
from handed_out import AT, NEW, OLD, again, context, handed, judged, planned, visit, wait_of

from optimal_frontier.estimation.quantile import median_one
from optimal_frontier.estimation.signal_sources import KINDS, LEAST_PRECISION, Believed, SignalSource, SignalVisit
from optimal_frontier.frontier.judging.heard import SILENCE, answered, heard_of
from optimal_frontier.frontier.judging.judge import Context, is_news
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.source_worths import lessons_of_sources, source_of
from optimal_frontier.scheduling.signals import wait_with_sources
from optimal_frontier.state.memory import Memory, Signals
from optimal_frontier.state.messages import Handout
from optimal_frontier.state.rows import CHECKED, HUB, SIGNALLED
from optimal_frontier.state.source_lessons import Record

NAME, FEED = "h sitemap", "h feed"


def learned(visits: list[SignalVisit], known: SignalSource = SignalSource()) -> SignalSource:  # noqa: B008  # frozen
    """What visits teach."""
    for one in visits:
        known = known.after(one, KINDS["sitemap"])
    return known


def record_in(known: SignalSource) -> Record:
    """As it is stored."""
    return (*known[:5], *known.likelihoods)


#: Of a source of whose changes most are told of, and nearly all signals are true; of one that tells of nothing, often.
TRUE = learned([SignalVisit(30.0, 1, True, 0.03), SignalVisit(30.0, 0, False, 0.03)] * 60)
LYING = learned([SignalVisit(30.0, 9, True, 0.03), SignalVisit(30.0, 9, False, 0.03)] * 60)


def within(known: SignalSource = TRUE, name: str = NAME, **settings: object) -> Context:
    """The price of a visit 0.05, and so much known of a source."""
    recent = Recent()
    recent.sources.learn({name: record_in(known)})
    return context(planned(math.log(5.0)), recent, **settings)


def test_a_record_that_no_visit_has_made_says_nothing() -> None:
    """Changes within no time at all, for one: judging goes on as if nothing were known."""
    rng = np.random.default_rng(3)
    odd = [0.0, -1.0, 1e-300, 5e-324, 1e300, -1e300, 1.0, 7.0]
    nothing = source_of(FEED, (0.0,) * len(record_in(TRUE)))
    assert source_of(FEED, (0.0, 5.0, *record_in(SignalSource())[2:])).believed == nothing.believed
    for _ in range(3000):
        source_of(FEED, tuple(rng.choice(odd, len(record_in(TRUE))).tolist()))


def told(n: int = 0, unsure: int = 0, since: float = AT - 1e6, name: str = NAME) -> Signals:
    """A source that has watched the page for long, and sent so many signals since the last visit."""
    return Signals(name, since, AT - 5.0, n, unsure)


def watched(*signals: Signals, **values: object) -> Handout:
    """A page that sources watch; a change in 33 s is believed, and it was seen 40 s ago."""
    return handed(memory=Memory(signals=signals or (told(),), size=5), log_price=math.log(5.0), **values)


def test_a_silent_source_leaves_a_page_alone_for_longer() -> None:
    """By what it leaves untold, on the clock of that; one that lies changes nothing, and nor does its flag."""
    plain = judged(handed(log_price=math.log(5.0)), OLD, within())
    silent = judged(watched(), OLD, within())
    assert wait_of(silent, math.log(5.0)) > 1.5 * wait_of(plain, math.log(5.0))
    assert silent.row.flags & SIGNALLED
    lying = judged(watched(), OLD, within(LYING))
    assert lying.row == plain.row
    rate = 3.0 / 100.0
    heard = heard_of((told(),), rate, lambda _: source_of(NAME, record_in(TRUE)), AT, AT)
    assert heard.recall > 0.8
    expected, _ = wait_with_sources(math.log(5.0), 1.0, rate, heard.recalls, heard.false_rates)
    assert expected > wait_with_sources(math.log(5.0), 1.0, rate, (), ())[0]


@pytest.mark.parametrize(("content", "counter"), [(NEW, "signals_true"), (OLD, "signals_false")])
def test_a_visit_answers_the_signals_and_teaches_of_the_source(content: bytes, counter: str) -> None:
    observation = judged(watched(told(2)), content, within())
    assert observation.memory is not None
    assert observation.memory.signals == (told(0),)
    assert observation.memory.size == 0
    assert observation.counters[counter] == 2
    ((name, lesson),) = observation.lessons
    ((keep, sums),) = lessons_of_sources([source_of(NAME, record_in(TRUE))], [0], [lesson])
    assert name == NAME
    assert keep == 0.998
    assert sums[0] > 0.0
    assert sums[3] > 0.0
    # The likelihood of a good source rises with a change, and falls without one.
    assert (sums[-2] > sums[5]) == (content == NEW)


def test_silence_before_a_change_is_a_change_that_was_not_told_of() -> None:
    ((_, lesson),) = judged(watched(), NEW, within()).lessons
    ((_, sums),) = lessons_of_sources([source_of(NAME, record_in(TRUE))], [0], [lesson])
    assert sums[-1] < sums[5]
    assert sums[3] == pytest.approx(0.0, abs=1e-9)


def test_a_source_that_named_the_page_since_its_last_visit_teaches_only_by_signals() -> None:
    """Nor was it silent before, so the bit counts in full."""
    new = told(since=AT - 10.0)
    observation = judged(watched(new), NEW, within())
    assert observation.lessons == []
    assert observation.row.time == judged(handed(), NEW, within()).row.time
    assert len(judged(watched(new._replace(n=1)), NEW, within()).lessons) == 1


def test_what_the_last_visit_may_have_seen_speaks_not_against_the_source() -> None:
    ((_, (_, signals, *_)),) = judged(watched(told(1, unsure=1)), OLD, within()).lessons
    assert signals == 0


@pytest.mark.parametrize("came", ["500", "404", "RobotsDenied"])
def test_a_visit_that_shows_nothing_answers_no_signal(came: str) -> None:
    """It is owed still, after the backoff."""
    observation = judged(watched(told(1)), came, within())
    assert observation.lessons == ()
    assert (observation.memory or observation.handout.memory).signals == (told(1),)


def test_a_good_visit_without_a_bit_answers_signals_and_teaches_nothing() -> None:
    """Fingerprints of other settings."""
    observation = judged(watched(told(1), tag=78), NEW, within())
    assert observation.lessons == ()
    assert observation.memory is not None
    assert observation.memory.signals == (told(0),)


def test_several_sources_learn_one_by_one() -> None:
    observation = judged(watched(told(1), told(0, name=FEED)), NEW, within())
    assert [name for name, _ in observation.lessons] == [NAME, FEED]
    both = dict(observation.lessons)
    assert both[NAME][1] == 1 > both[FEED][1] == 0


def test_an_unchanged_page_is_judged_as_ever_and_a_change_that_was_told_of_counts_once() -> None:
    page = {"shape": 3.0, "time": 100.0}
    row = judged(watched(told(1), **page), OLD, within()).row
    assert (row.shape, row.time) == (3.0, 140.0)
    row = judged(watched(told(1), **page), NEW, within()).row
    recall = source_of(NAME, record_in(TRUE)).believed.recall
    assert (row.shape, row.time) == (pytest.approx(4.0, abs=0.05), pytest.approx(100.0 + 40.0 * recall, abs=2.0))
    assert row.watch_shape == 0.0  # habits are not watched by visits that signals chose
    assert judged(watched(**page), NEW, within()).row.watch_shape > 0.0


@pytest.mark.parametrize("flag", [HUB, CHECKED])
def test_hubs_and_checks_go_by_their_own_numbers(flag: int) -> None:
    memory = Memory(signals=(told(),))
    before = handed(memory=memory, flags=HUB if flag == HUB else 0, log_price=math.log(5.0))
    observation = judged(before, OLD, within())
    if flag == HUB:
        assert not observation.row.flags & SIGNALLED
        alone = judged(handed(flags=HUB, log_price=math.log(5.0)), OLD, within()).row
        assert observation.row.a == pytest.approx(alone.a, rel=1e-9)
    assert heard_of((), 0.1, lambda _: source_of(NAME, record_in(TRUE)), AT, AT) is SILENCE


def test_pinned_pages_keep_their_interval() -> None:
    pinned = within(RULES=[{"host": "h", "interval": 77.0}])
    observation = judged(watched(), OLD, pinned)
    assert wait_of(observation) == pytest.approx(77.0)
    assert not observation.row.flags & SIGNALLED


def test_even_intervals_of_an_exploration_are_no_pings() -> None:
    """A fixed wait with the flag would put every page that a source watches before all others."""
    said = {"exploration": "explore-then-commit", "exploration_horizon": "9", "exploration_rounds": "0"}
    even = Context((known := within()).settings, planned(math.log(5.0), 97.0, exploration=said), known.recent)
    row = judged(watched(), OLD, even).row
    assert row.e == row.l
    assert not row.flags & SIGNALLED


def test_a_source_below_the_least_precision_counts_for_nothing() -> None:
    """Neither its signals nor its silence."""
    heard = heard_of((told(50),), 0.03, lambda _: source_of(NAME, record_in(LYING)), AT, AT)
    assert heard is SILENCE
    recall, lessons = answered((told(50),), (3.0, 100.0), AT, 1.0, False, lambda _: source_of(NAME, record_in(LYING)))
    assert (recall, len(lessons)) == (0.0, 1)
    assert 0.0 < LEAST_PRECISION < 0.5


def test_of_a_silent_source_the_recall_is_what_it_is_at_the_median() -> None:
    """Found or not: sources that count for some pages and not for others, and beliefs that say little."""
    rng = np.random.default_rng(4)
    recalls = []
    for _ in range(2000):
        even, slope = rng.choice([0.0, 10 ** rng.uniform(-5, 0)]), rng.choice([0.0, 10 ** rng.uniform(-2, 2)])
        believed = Believed(rng.random() ** 3, even, slope, 9.0)
        source = replace(source_of(NAME, record_in(TRUE)), believed=believed, least_rate=believed.least_rate)
        shape, time = 10 ** rng.uniform(-1.5, 1.5), 10 ** rng.uniform(-1, 5)
        said = heard_of((told(),), median_one(shape, time), lambda _, source=source: source, AT, AT)
        recalls.append(said.recall)
        recall, _ = answered((told(),), (shape, time), AT, 1.0, True, lambda _, source=source: source)
        assert recall == said.recall
        if 0.0 < believed.least_rate < math.inf:
            assert believed.precision(believed.least_rate) == pytest.approx(LEAST_PRECISION)
    assert 0.2 < np.mean(np.array(recalls) > 0.0) < 0.8
    recall, _ = answered((told(), told(1, name=FEED)), (1.0, 1.0), AT, 1.0, True, lambda _: source_of(NAME, record_in(TRUE)))
    assert recall is None


def test_what_is_remembered_survives_being_stored() -> None:
    handout = again(judged(watched(told(3)), NEW, within()))
    assert handout.memory.signals == (told(0),)
    assert is_news(judged(handout, visit(b"m" * 16), within()))


def test_what_sources_have_said_is_read_as_what_it_should_be() -> None:
    """What another version may have written, with its types; what nobody can have, not at all."""

    def read(*stored: object) -> Signals:
        (signals,) = Memory.unpack(msgpack.packb({"signals": [stored]})).signals
        return signals

    assert read(NAME, 5, 6.0, 1.0, True) == Signals(NAME, 5.0, 6.0, 1, 1)
    assert isinstance(read(NAME, 5, 6.0, 1.0, True).n, int)
    assert read(7, 5.0, 6.0, 1, 0).source == "7"
    times, counts = ((NAME, math.nan, 6.0, 1, 0), (NAME, 5.0, math.inf, 1, 0)), ((NAME, 5.0, 6.0, -1, 0), (NAME, 5.0, 6.0, 1, 2**63))
    for stored in (*times, *counts, (NAME, 5.0)):
        with pytest.raises(ValueError, match="cannot be read"):
            read(*stored)
