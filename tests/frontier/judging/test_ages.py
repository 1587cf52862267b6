"""From what a page says about its last change to the observation: what is used, when, and what is noted of its host."""

from __future__ import annotations

import dataclasses

import pytest

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.state.columns import ACTIVE, ONCE
from optimal_frontier.state.records import Handout, Published

OLD, NEW = b"o" * 16, b"n" * 16
EARNED = (30.0, 0.0, 30.0, 0.0)
PUBLISHED = Published(1.0, 5000.0)
#: A page last seen 1,000 s ago, after which the response took 10 s.
HANDOUT = Handout(5, b"1@1", 0.5, 990.0, 2.0, 0.0, 1.0, ACTIVE, 3.0, 5000.0, 4, 4, 0.1, True, 77, OLD, {}, 1000.0, EARNED, EARNED)


def judged(content, age=None, published=PUBLISHED, **changes):
    return judge_visit(dataclasses.replace(HANDOUT, **changes), content, 77, 1010.0, published, age=age)


def by_bit(changed, shape=3.0, time=5000.0):
    posterior = RatePosterior(shape, time)
    posterior.update(1000.0, changed)
    return posterior.shape, posterior.time


def test_a_trusted_change_counts_as_one_and_the_time_since():
    observation = judged(NEW, 400.0)
    assert (observation.shape, observation.time) == (4.0, 5400.0)
    assert (observation.bit, observation.words) == (1, "header:agrees:used")


@pytest.mark.parametrize(
    ("content", "age", "words"),
    [
        (NEW, None, ""),
        (NEW, 1030.0, "header:lies:none"),
        (NEW, 0.0, "header:lies:none"),
        (OLD, 1500.0, "header:agrees:none"),
        (OLD, 400.0, "header:lies:none"),
    ],
)
def test_else_the_bit_counts_alone(content, age, words):
    """Nothing is said; it lies; or it says no more than the bit."""
    observation = judged(content, age)
    assert (observation.shape, observation.time) == by_bit(content == NEW)
    assert observation.words == words


def test_what_a_host_says_is_not_used_before_it_is_trusted():
    observation = judged(NEW, 400.0, header_trust=(0.0, 0.0, 5.0, 0.0))
    assert (observation.shape, observation.time) == by_bit(True)
    assert observation.words == "header:agrees:distrusted"


def test_an_age_of_whole_seconds_needs_an_interval_of_a_hundred():
    short = judged(NEW, 40.0, elapsed=80.0)
    assert short.words == ""
    assert judged(NEW, 40.0, elapsed=90.0).words == "header:agrees:used"


def test_an_age_may_miss_the_last_visit_by_what_answers_take():
    """It then counts as the whole interval."""
    observation = judged(NEW, 1015.0)
    assert (observation.shape, observation.time) == (4.0, 6000.0)


def test_a_first_visit_to_a_trusted_host_teaches_half_a_change():
    new = {"visits": 0, "elapsed": -1.0, "shape": 0.0, "time": 0.0}
    observation = judged(NEW, 8000.0, **new)
    assert (observation.bit, observation.shape, observation.time) == (-1, 1.5, 9000.0)
    assert observation.words == "header:none:used"
    for nothing in (judged(NEW, None, **new), judged(NEW, 8000.0, header_trust=(0.0,) * 4, **new), judged(NEW, 8000.0, Published(), **new)):
        assert (nothing.shape, nothing.time, nothing.words) == (0.0, 0.0, "")


def test_what_was_not_believed_at_the_first_visit_may_be_at_the_second():
    """An unchanged page says the same thing again: 1,000 s of it are in the bit, what was before counts half."""
    second = {"visits": 1, "shape": 0.0, "time": 0.0}
    observation = judged(OLD, 8000.0, **second)
    assert (observation.shape, observation.time) == (1.5, 5000.0 + 1000.0 + 3500.0)
    assert observation.words == "header:agrees:used"
    changed = judged(NEW, 400.0, **second)
    assert (changed.shape, changed.time) == (2.0, 5400.0)
    doubtful = judged(OLD, 8000.0, header_trust=(0.0,) * 4, **second)
    assert (doubtful.shape, doubtful.time, doubtful.words) == (1.0, 6000.0, "header:agrees:distrusted")


#: A page that changes about every 100,000 s, last seen that long ago.
SITEMAP = {"elapsed": 99_990.0, "time": 300_000.0}


def test_a_sitemap_knows_nothing_of_the_time_after_it():
    """Told 20,000 s ago, a change 30,000 s before: no change in those, nothing known of the others."""
    observation = judged(NEW, lastmod=(19_990.0, 30_000.0, 60.0), **SITEMAP)
    assert (observation.shape, observation.time) == (4.0, 330_000.0)
    assert observation.words == "sitemap:agrees:used"


@pytest.mark.parametrize(
    ("content", "lastmod", "words"),
    [
        (NEW, (19_990.0, 90_000.0, 60.0), "sitemap:none:none"),  # it may have changed since
        (NEW, (990.0, 110_000.0, 60.0), "sitemap:lies:none"),  # that is too short for it
        (OLD, (19_990.0, 30_000.0, 60.0), "sitemap:lies:none"),
        (OLD, (19_990.0, 90_000.0, 60.0), "sitemap:agrees:none"),
        (NEW, (120_000.0, 30_000.0, 60.0), ""),  # said before the last visit
        (NEW, (19_990.0, 30_000.0, 86_400.0), ""),  # a date, and no interval of a hundred days
    ],
)
def test_a_sitemap_is_checked_as_far_as_it_goes(content, lastmod, words):
    observation = judged(content, lastmod=lastmod, **SITEMAP)
    assert observation.words == words
    if not words.endswith("used"):
        posterior = RatePosterior(3.0, 300_000.0)
        posterior.update(100_000.0, content == NEW)
        assert (observation.shape, observation.time) == (posterior.shape, posterior.time)


def test_of_two_words_the_trusted_one_is_used_and_the_header_first():
    """Each with a trust of its own."""
    both = {"lastmod": (19_990.0, 30_000.0, 60.0), **SITEMAP}
    assert judged(NEW, 50_000.0, **both).words == "header:agrees:used sitemap:agrees:none"
    second = judged(NEW, 50_000.0, header_trust=(0.0,) * 4, **both)
    assert second.words == "header:agrees:distrusted sitemap:agrees:used"
    assert (second.shape, second.time) == (4.0, 330_000.0)


def test_a_request_that_is_no_page_and_content_under_other_settings_say_nothing():
    assert judged(NEW, 400.0, kind=ONCE).words == ""
    other = judged(NEW, 400.0, content_tag=78)
    assert (other.bit, other.shape, other.time, other.words) == (-1, 3.0, 5000.0, "")
