"""What a simulated crawl makes of bits, by the functions of `estimation`: the order in which they come is that of a live crawl."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from optimal_frontier.estimation.bursts import LEAST_VARIANCE, REJECTED, Bursts, follow_bursts
from optimal_frontier.estimation.change_points import watch_one
from optimal_frontier.estimation.filtering import update_one
from optimal_frontier.estimation.quantile import median_one

Values = Any

#: Places in `Belief.how`: whether bits are learned from, whether changed habits are watched for, and which rate numbers are made from ...
LEARNS: Final = 0
WATCHES: Final = 1
ESTIMATE: Final = 2
#: ... the one that the last plan gave, the median of the posterior, or its mean.
GIVEN: Final = 0
MEDIAN: Final = 1
MEAN: Final = 2


class Belief(NamedTuple):
    """What is believed of each page; arrays (n,) but for `how`.

    Attributes
    ----------
    rate
        The change rate that numbers are made from.
    shape, time
        Gamma posterior; shape 0 where there is no bit yet and the prior is meant.
    prior_shape, prior_time
        Gamma prior by the last plan.
    recent_shape, recent_time, evidence
        What stands by in case that habits change, see `estimation.change_points`.
    surprise, score, variance, spread
        `estimation.bursts.Bursts`.
    how : int (3,)
        What is done with a bit.
    """

    rate: Values
    shape: Values
    time: Values
    prior_shape: Values
    prior_time: Values
    recent_shape: Values
    recent_time: Values
    evidence: Values
    surprise: Values
    score: Values
    variance: Values
    spread: Values
    how: Values


def new_belief(pages: int, learns: bool, watches: bool, estimate: int) -> Belief:
    """Return the belief of a crawl that has not seen anything."""
    of_pages = {name: np.zeros(pages) for name in Belief._fields if name != "how"}
    return Belief(**of_pages, how=np.array([learns, watches, estimate], dtype=np.int64))


def learn_bit(belief: Belief, page: int, interval: float, changed: bool) -> float:
    """Take in one bit of a page, some time after the visit before; return the change rate that numbers are made from."""
    if not belief.how[LEARNS]:
        return float(belief.rate[page])
    prior_shape, prior_time = belief.prior_shape[page], belief.prior_time[page]
    shape, time = belief.shape[page], belief.time[page]
    if shape <= 0.0:
        shape, time = prior_shape, prior_time
    takes_over = False
    if belief.how[WATCHES]:
        watch = (belief.recent_shape[page], belief.recent_time[page], belief.evidence[page])
        watch, alarm = watch_one(watch, shape, time, prior_shape, prior_time, interval, changed)
        belief.recent_shape[page], belief.recent_time[page], belief.evidence[page] = watch[0], watch[1], watch[2]
        chance = -math.expm1(-shape * math.log1p(interval / time))
        bursts = Bursts(belief.surprise[page], belief.score[page], belief.variance[page], belief.spread[page])
        bursts = follow_bursts(bursts, chance, changed)
        belief.surprise[page], belief.score[page] = bursts[0], bursts[1]
        belief.variance[page], belief.spread[page] = bursts[2], bursts[3]
        takes_over = alarm and not (bursts[2] >= LEAST_VARIANCE and bursts[1] >= REJECTED * math.sqrt(bursts[2]))
    if takes_over:
        shape, time = belief.recent_shape[page], belief.recent_time[page]
    else:
        shape, time = update_one(shape, time, interval, changed)
    belief.shape[page], belief.time[page] = shape, time
    if belief.how[ESTIMATE] == MEDIAN:
        belief.rate[page] = median_one(shape, time)
    elif belief.how[ESTIMATE] == MEAN:
        belief.rate[page] = shape / time
    return float(belief.rate[page])
