"""From what a page says about its last change to the observation: what is used, when, and what is noted of its host."""

from __future__ import annotations

import pytest
from handed_out import AT, NEW, OLD, RECEIVED, TAG, again, context, handed, judged, planned, visit

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.trust import Trust
from optimal_frontier.state.host_words import NO_CHECKS, HostWords
from optimal_frontier.state.memory import Lastmod, Memory
from optimal_frontier.state.rows import ONCE

EARNED = (30.0, 0.0, 30.0, 0.0)
TRUSTED = HostWords(EARNED, EARNED)
PUBLISHED = planned(0.0, 5000.0)


def judged_with(content, age=None, published=PUBLISHED, lastmod=None, **values):
    """Of a page last seen 1,000 s ago, after which the response took 10 s; ``lastmod``: told so long ago, of a change so long before."""
    known = {"elapsed": 990.0, "time": 5000.0, "words": TRUSTED} | values
    if lastmod is not None:
        told, age_then, resolution = lastmod
        known["memory"] = Memory(lastmod=Lastmod(AT - told - age_then, resolution, AT - told))
    return judged(handed(**known), visit(content, RECEIVED + 10.0, age=age), context(published))


def notes(observation, words=TRUSTED):
    """What was noted: kind:verdict:use of each word, as far as it shows in the counts of the host and in the counters."""
    before, after = words, observation.words or words
    said = []
    for kind in ("header", "sitemap"):
        old, new = getattr(before, kind), getattr(after, kind)
        if old != new:
            changed = observation.bit == 1
            lies = new[3 if changed else 1] >= (old[3 if changed else 1]) * 0.975 + 0.5
            said.append(f"{kind}:{'lies' if lies else 'agrees'}")
    return " ".join(said), observation.counters.get("ages", 0), observation.counters.get("ages_distrusted", 0)


def by_bit(changed, shape=3.0, time=5000.0):
    posterior = RatePosterior(shape, time)
    posterior.update(1000.0, changed)
    return posterior.shape, posterior.time


def test_a_trusted_change_counts_as_one_and_the_time_since():
    observation = judged_with(NEW, 400.0)
    assert (observation.row.shape, observation.row.time) == (4.0, 5400.0)
    assert (observation.bit, notes(observation)) == (1, ("header:agrees", 1, 0))


@pytest.mark.parametrize(
    ("content", "age", "words"),
    [
        (NEW, None, ""),
        (NEW, 1030.0, "header:lies"),
        (NEW, 0.0, "header:lies"),
        (OLD, 1500.0, "header:agrees"),
        (OLD, 400.0, "header:lies"),
    ],
)
def test_else_the_bit_counts_alone(content, age, words):
    """Nothing is said; it lies; or it says no more than the bit."""
    observation = judged_with(content, age)
    assert (observation.row.shape, observation.row.time) == pytest.approx(by_bit(content == NEW))
    assert notes(observation) == (words, 0, 0)


def test_what_a_host_says_is_not_used_before_it_is_trusted():
    early = HostWords((0.0, 0.0, 5.0, 0.0))
    observation = judged_with(NEW, 400.0, words=early)
    assert (observation.row.shape, observation.row.time) == pytest.approx(by_bit(True))
    assert notes(observation, early) == ("header:agrees", 0, 1)


def test_an_age_of_whole_seconds_needs_an_interval_of_a_hundred():
    assert notes(judged_with(NEW, 40.0, elapsed=80.0)) == ("", 0, 0)
    assert notes(judged_with(NEW, 40.0, elapsed=90.0)) == ("header:agrees", 1, 0)


def test_an_age_may_miss_the_last_visit_by_what_answers_take():
    """It then counts as the whole interval."""
    observation = judged_with(NEW, 1015.0)
    assert (observation.row.shape, observation.row.time) == (4.0, 6000.0)


def test_a_first_visit_to_a_trusted_host_teaches_half_a_change():
    observation = judged_with(NEW, 8000.0, visits=0, time=0.0)
    assert (observation.bit, observation.row.shape, observation.row.time) == (-1, 1.5, 9000.0)
    assert notes(observation) == ("", 1, 0)
    unplanned = planned(number=0, prior_time=0.0)
    for other in ({"age": None}, {"words": HostWords()}, {"published": unplanned}):
        nothing = judged_with(NEW, **({"age": 8000.0, "visits": 0, "time": 0.0} | other))
        assert (nothing.row.shape, nothing.row.time, nothing.words) == (0.0, 0.0, None)


def test_what_was_not_believed_at_the_first_visit_may_be_at_the_second():
    """An unchanged page says the same thing again: 1,000 s of it are in the bit, what was before counts half."""
    second = {"visits": 1, "shape": 0.0, "time": 0.0}
    observation = judged_with(OLD, 8000.0, **second)
    assert (observation.row.shape, observation.row.time) == (1.5, 5000.0 + 1000.0 + 3500.0)
    assert notes(observation) == ("header:agrees", 1, 0)
    changed = judged_with(NEW, 400.0, **second)
    assert (changed.row.shape, changed.row.time) == (2.0, 5400.0)
    doubtful = judged_with(OLD, 8000.0, words=HostWords(), **second)
    assert (doubtful.row.shape, doubtful.row.time, notes(doubtful, HostWords())) == (1.0, 6000.0, ("header:agrees", 0, 1))


#: A page that changes about every 100,000 s, last seen that long ago.
SITEMAP = {"elapsed": 99_990.0, "time": 300_000.0}


def test_a_sitemap_knows_nothing_of_the_time_after_it():
    """Told 20,000 s ago, a change 30,000 s before: no change in those, nothing known of the others."""
    observation = judged_with(NEW, lastmod=(19_990.0, 30_000.0, 60.0), **SITEMAP)
    assert (observation.row.shape, observation.row.time) == (4.0, 330_000.0)
    assert notes(observation) == ("sitemap:agrees", 1, 0)


@pytest.mark.parametrize(
    ("content", "lastmod", "words"),
    [
        (NEW, (19_990.0, 90_000.0, 60.0), ""),  # it may have changed since
        (NEW, (990.0, 110_000.0, 60.0), "sitemap:lies"),  # that is too short for it
        (OLD, (19_990.0, 30_000.0, 60.0), "sitemap:lies"),
        (OLD, (19_990.0, 90_000.0, 60.0), "sitemap:agrees"),
        (NEW, (120_000.0, 30_000.0, 60.0), ""),  # said before the last visit
        (NEW, (19_990.0, 30_000.0, 86_400.0), ""),  # a date, and no interval of a hundred days
        (NEW, (-5.0, 30_000.0, 60.0), ""),  # said while the page was in flight
    ],
)
def test_a_sitemap_is_checked_as_far_as_it_goes(content, lastmod, words):
    observation = judged_with(content, lastmod=lastmod, **SITEMAP)
    assert notes(observation) == (words, 0, 0)
    posterior = RatePosterior(3.0, 300_000.0)
    posterior.update(100_000.0, content == NEW)
    assert (observation.row.shape, observation.row.time) == pytest.approx((posterior.shape, posterior.time))


def test_of_two_words_the_trusted_one_is_used_and_the_header_first():
    """Each with a trust of its own."""
    both = {"lastmod": (19_990.0, 30_000.0, 60.0), **SITEMAP}
    first = judged_with(NEW, 50_000.0, **both)
    assert (first.row.shape, first.row.time) == (4.0, 350_000.0)
    assert notes(first) == ("header:agrees sitemap:agrees", 1, 0)
    doubtful = HostWords(NO_CHECKS, EARNED)
    second = judged_with(NEW, 50_000.0, words=doubtful, **both)
    assert notes(second, doubtful) == ("header:agrees sitemap:agrees", 1, 1)
    assert (second.row.shape, second.row.time) == (4.0, 330_000.0)


def test_a_request_that_is_no_page_and_content_under_other_settings_say_nothing():
    assert judged_with(NEW, 400.0, state=ONCE).words is None
    other = judged_with(NEW, 400.0, tag=TAG + 1)
    assert (other.bit, other.row.shape, other.row.time, other.words) == (-1, 3.0, 5000.0, None)


def test_trust_is_earned_in_fifteen_changes_and_lost_in_five():
    """Until then the posterior is that of the bits."""
    within = context(PUBLISHED)
    observation, used, distrusted = judged(handed(visits=0), visit(bytes(16)), within), 0, 0
    for at in range(1, 24):
        handout = again(observation, 1000.0)
        earned = Trust(*handout.words.header).is_earned
        age = 400.0 if at <= 16 else 0.0
        observation = judged(handout, visit(at.to_bytes(16, "little"), age=age), within)
        used += observation.counters.get("ages", 0)
        distrusted += observation.counters.get("ages_distrusted", 0)
        if at == 16:
            assert earned
            assert (observation.row.shape, observation.row.time) == pytest.approx((handout.row.shape + 1.0, handout.row.time + 400.0))
        elif at < 16:
            assert not earned
    assert (used, distrusted) == (1, 15)
    assert not Trust(*again(observation).words.header).is_earned


def test_counts_fade_as_the_reference_says():
    within, trust = context(PUBLISHED), Trust()
    observation, content = judged(handed(visits=0), visit(b"x" * 16), within), b"x" * 16
    for at in range(60):
        changed, age = at % 3 == 0, (400.0, 1500.0, 2.0, None)[at % 4]
        content = bytes([65 + at]) * 16 if changed else content
        observation = judged(again(observation, 1000.0), visit(content, age=age), within)
        if age is not None:
            trust = trust.after(changed, age != 400.0 if changed else age != 1500.0)
        words = observation.words or observation.handout.words
        assert words.header == pytest.approx((trust.unchanged, trust.moved, trust.changed, trust.wrong), rel=1e-5)
        assert words.sitemap == NO_CHECKS


def test_pages_of_a_host_that_are_in_flight_together_add_up():
    """Each was handed out before the others had ended; hosts are kept apart."""
    within = context(PUBLISHED)
    for at in range(5):
        last = judged(handed(990.0, time=5000.0, page=bytes([at]) * 12), visit(NEW, age=400.0), within)
    trust = Trust()
    for _ in range(5):
        trust = trust.after(True, False)
    assert last.words.header == pytest.approx((0.0, 0.0, trust.changed, 0.0))
    other = judged(handed(990.0, time=5000.0, host="other"), visit(NEW, age=400.0), within)
    assert other.words.header[2] == 1.0
