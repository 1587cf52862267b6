"""From a handout and what came back to the observation that is stored: change bit, posterior, rate until the next plan."""

from __future__ import annotations

import struct
from typing import Literal

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.optimization.single import periodic_rate_at, poisson_rate_at
from optimal_frontier.scheduling import LOAD, PRIOR_SHAPE
from optimal_frontier.state.columns import ACTIVE
from optimal_frontier.state.records import Handout, Observation, Published


def change_bit(handout: Handout, fingerprint: bytes, tag: int) -> int:
    """Return 1 (changed), 0 (unchanged) or -1: a first visit, or the stored fingerprint was made under other settings."""
    if handout.visits == 0 or handout.content_tag != tag:
        return -1
    return int(fingerprint != handout.content)


def judge_visit(
    handout: Handout,
    fingerprint: bytes,
    tag: int,
    responded: float,
    published: Published,
    *,
    objective: Literal["freshness", "changes"] = "freshness",
    policy: Literal["periodic", "poisson"] = "periodic",
    lateness: float | None = None,
) -> Observation:
    """Return the observation of a successful fetch.

    Parameters
    ----------
    handout : Handout
        The lease.
    fingerprint : bytes
        16 bytes.
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

    Returns
    -------
    Observation
        With outcome ``ok``. The interval of a bit runs from the last successful observation to this response.
    """
    if handout.kind != ACTIVE:
        return Observation(handout.slot, handout.token, "ok", responded)
    bit = change_bit(handout, fingerprint, tag)
    shape, time = handout.shape, handout.time
    interval = handout.elapsed + (responded - handout.received)
    if bit >= 0 and interval > 0:
        prior_time = published.prior_time or interval
        posterior = RatePosterior(shape, time) if shape > 0 else RatePosterior(PRIOR_SHAPE, prior_time)
        posterior.update(interval, bool(bit))
        shape, time = posterior.shape, posterior.time
    rate = 0.0
    if not handout.planned and published.multiplier <= 0 and published.prior_time > 0:
        # The last plan explores at even intervals, or has budget for all: a new page gets what every page gets.
        rate = min(max(LOAD / published.prior_time, handout.min_rate), handout.max_rate)
    elif not handout.planned and published.prior_time > 0:
        known = (shape, time) if shape > 0 else (PRIOR_SHAPE, published.prior_time)
        rate = rate_between_plans(handout, RatePosterior(*known).median, published, objective, policy)
    content = struct.pack("<I16s", tag, fingerprint)
    return Observation(handout.slot, handout.token, "ok", responded, bit, shape, time, content, rate, lateness)


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
