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
    how = belief.how
    if not how[LEARNS]:
        return float(belief.rate[page])
    rates, shapes, times, prior_shapes, prior_times, *watched, _ = belief
    prior_shape, prior_time, shape, time = prior_shapes[page], prior_times[page], shapes[page], times[page]
    if shape <= 0.0:
        shape, time = prior_shape, prior_time
    takes_over = False
    if how[WATCHES]:
        recent_shapes, recent_times, evidences, surprises, scores, variances, spreads = watched
        watch = (recent_shapes[page], recent_times[page], evidences[page])
        watch, alarm = watch_one(watch, shape, time, prior_shape, prior_time, interval, changed)
        recent_shapes[page], recent_times[page], evidences[page] = watch
        chance = -math.expm1(-shape * math.log1p(interval / time))
        bursts = follow_bursts(Bursts(surprises[page], scores[page], variances[page], spreads[page]), chance, changed)
        surprises[page], scores[page], variances[page], spreads[page] = bursts
        takes_over = alarm and not (bursts[2] >= LEAST_VARIANCE and bursts[1] >= REJECTED * math.sqrt(bursts[2]))
    if takes_over:
        shape, time = recent_shapes[page], recent_times[page]
    else:
        shape, time = update_one(shape, time, interval, changed)
    shapes[page], times[page] = shape, time
    if how[ESTIMATE] == MEDIAN:
        rates[page] = rate = median_one(shape, time)
    elif how[ESTIMATE] == MEAN:
        rates[page] = rate = shape / time
    else:
        rate = rates[page]
    return float(rate)
