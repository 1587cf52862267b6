"""From a handout and what came back to the observation that is stored: change bit, posterior, rate until the next plan."""

from __future__ import annotations

import math
import struct
from typing import Literal

from optimal_frontier.detection import is_changed
from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.announced import update_announced
from optimal_frontier.estimation.bursts import Bursts, follow_bursts
from optimal_frontier.estimation.change_points import watch_one
from optimal_frontier.estimation.forgetting import forget_one
from optimal_frontier.estimation.update_probabilities import learn_update, stated_beta
from optimal_frontier.frontier.ages import learn, learn_at_first, words_of
from optimal_frontier.frontier.validators import unseen_s
from optimal_frontier.optimization.single import periodic_rate_at, poisson_rate_at
from optimal_frontier.scheduling import LOAD, PRIOR_SHAPE
from optimal_frontier.scheduling.update_times import passed
from optimal_frontier.state.columns import ACTIVE
from optimal_frontier.state.records import Handout, Observation, Published, Republished, Surprises, UpdateTimes, Watched


def change_bit(handout: Handout, fingerprint: bytes | None, tag: int, distance: int = 0) -> int:
    """Return 1 (changed), 0 (unchanged) or -1: a first visit, no fingerprint, or the stored one was made under other settings.

    ``distance`` is the number of bits in which fingerprints of an unchanged page may differ.
    """
    if fingerprint is None or handout.visits == 0 or handout.content_tag != tag:
        return -1
    return int(is_changed(handout.content, fingerprint, distance))


def judge_visit(
    handout: Handout,
    fingerprint: bytes | None,
    tag: int,
    responded: float,
    published: Published,
    *,
    objective: Literal["freshness", "changes"] = "freshness",
    policy: Literal["periodic", "poisson"] = "periodic",
    lateness: float | None = None,
    age: float | None = None,
    half_life: float | None = None,
    distance: int = 0,
) -> Observation:
    """Return the observation of a successful fetch.

    Parameters
    ----------
    handout : Handout
        The lease.
    fingerprint : bytes or None
        16 bytes; None where none could be made: then there is no bit, the stored one stays, and the next bit is about all of the time
        since that.
    tag : int
        Tag of the fingerprint settings, not 0.
    responded : float
        Local monotonic time at which the response came, seconds.
    published : Published
        Multiplier and prior of the last plan.
    objective : str
        ``freshness`` or ``changes``.
    policy : str
        ``periodic`` or ``poisson``.
    lateness : float, optional
        Seconds from the deadline to the start of the download.
    age : float, optional
        Seconds since the page last changed, by the header of the response; used as far as the host is trusted.
    half_life : float, optional
        HALF_LIFE, seconds; None forgets nothing.
    distance : int, optional
        Bits in which fingerprints of an unchanged page may differ. While it is unchanged the stored fingerprint stays, or many small
        differences would add up unseen.

    Returns
    -------
    Observation
        With outcome ``ok``. The interval of a bit runs from the last successful observation to this response.
    """
    if handout.kind != ACTIVE:
        return Observation(handout.slot, handout.token, "ok", responded)
    bit = change_bit(handout, fingerprint, tag, distance)
    if fingerprint is None:
        age = None
        responded = handout.received - handout.elapsed if handout.visits else responded
    shape, time = handout.shape, handout.time
    interval = handout.elapsed + (responded - handout.received)
    words, watch, surprises = "", None, None
    said = words_of(handout, age, responded)
    if bit >= 0 and interval > 0:
        prior = prior_of(handout, published) or (PRIOR_SHAPE, interval)
        known = (shape, time) if shape > 0 else prior
        unseen = unseen_s(handout, bit, interval)
        if unseen > 0:
            # It may have changed at any time since its last full answer: what 304s have taught of that is taken back.
            interval += unseen
            known = (known[0], max(known[1] - unseen, min(known[1], prior[1])))
        if half_life is not None:
            known = forget_one(*known, interval, half_life, *prior)
        if handout.was_announced:
            shape, time = update_announced(*known, interval, bool(bit))
        else:
            recent, is_other = watch_one(handout.watch[:3], *known, *prior, interval, bool(bit))
            chance = -math.expm1(-known[0] * math.log1p(interval / known[1]))
            bursts = follow_bursts(Bursts(*handout.surprises), chance, bool(bit))
            surprises = Surprises(*bursts)
            # The watch takes each burst for a new habit, and would leave the page with what ten bits say.
            is_other = is_other and not bursts.is_bursty
            watch = Watched(*recent, handout.watch.relearned + is_other)
            shape, time, words = learn(*known, interval, bool(bit), said, handout.visits == 1 and shape <= 0)
            if is_other:
                shape, time, _ = recent
    elif handout.visits == 0 and (believed := prior_of(handout, published)):
        shape, time, words = learn_at_first(*believed, said) or (shape, time, words)
    rate = 0.0
    if not handout.planned and published.multiplier <= 0 and published.prior_time > 0:
        # The last plan explores at even intervals, or has budget for all: a new page gets what every page gets.
        rate = min(max(LOAD / published.prior_time, handout.min_rate), handout.max_rate)
    elif not handout.planned and published.prior_time > 0:
        known = (shape, time) if shape > 0 else prior_of(handout, published) or (PRIOR_SHAPE, published.prior_time)
        rate = rate_between_plans(handout, RatePosterior(*known).median, published, objective, policy)
    content = b"" if fingerprint is None else struct.pack("<I16s", tag, handout.content if bit == 0 else fingerprint)
    learned = learn_update_times(handout.republished, bool(bit)) if bit >= 0 and handout.republished is not None else None
    return Observation(
        handout.slot, handout.token, "ok", responded, bit, shape, time, content, rate, lateness, words, watch, learned, surprises
    )


def learn_update_times(republished: Republished, changed: bool) -> UpdateTimes:
    """Return what is known of a page's update times after a bit: it speaks of those that were passed since the page was last seen."""
    timetable, learned, since, until = republished
    betas = learned.betas or tuple(map(stated_beta, timetable.probabilities))
    return UpdateTimes(learned.number, tuple(learn_update(betas, passed(timetable, since, until), changed)))


def prior_of(handout: Handout, published: Published) -> tuple[float, float] | None:
    """Return shape and time (s) of what is believed of a page without a bit; None before the first plan.

    What its siblings taught by the last plan, or the default prior if that is not known: of a pattern that is new since.
    """
    if handout.prior_shape > 0:
        return handout.prior_shape, handout.prior_time
    return (PRIOR_SHAPE, published.prior_time) if published.prior_time > 0 else None


def rate_between_plans(
    handout: Handout,
    change_rate: float,
    published: Published,
    objective: Literal["freshness", "changes"],
    policy: Literal["periodic", "poisson"],
) -> float:
    """Return the revisit rate (1/s) that a page without a plan is worth at the published multiplier."""
    bounds = {"min_rate": handout.min_rate, "max_rate": handout.max_rate}
    if policy == "poisson":
        return poisson_rate_at(handout.importance, change_rate, published.multiplier, **bounds)
    return periodic_rate_at(handout.importance, change_rate, published.multiplier, objective, **bounds)
