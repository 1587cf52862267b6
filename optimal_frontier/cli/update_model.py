"""Which update model a page has, and why: rows and sentences of ``page``."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from optimal_frontier.cli.output import duration, number
from optimal_frontier.estimation.bursts import LEAST_VARIANCE, REJECTED, Bursts, sure_correlation
from optimal_frontier.frontier.deadlines import times_of
from optimal_frontier.frontier.exploring import Progress
from optimal_frontier.frontier.timed_pages import probabilities_of
from optimal_frontier.scheduling.bursty_pages import BurstyPages
from optimal_frontier.settings import DAY_S
from optimal_frontier.state.reading import PageReading


def model_facts(reading: PageReading, change_rate: float | None) -> dict[str, Any]:
    """Return what ``page --json`` shows as ``model``, given the Poisson rate that a plan would use, per second.

    ``poisson``, or ``weibull`` with shape and mean (s) that fit and whether plans go by it, both with the statistic of the test; or
    ``quasi-deterministic`` with its update times (s within the period), the probability that is believed of each and the one that RULES
    state, and whether the plan buys a visit.
    """
    if reading.times is None:
        return _of_bits(reading, change_rate)
    timetable, learned, mask = reading.times
    planned = reading.plan["base_time"] > 0
    bought = times_of([mask], len(timetable.times))[0] if planned else np.ones(len(timetable.times), bool)
    rows = [
        {"seconds": at, "probability": believed, "stated": stated, "bought": bool(chosen)}
        for at, believed, stated, chosen in zip(
            timetable.times, probabilities_of(learned, timetable), timetable.probabilities, bought, strict=True
        )
    ]
    return {"name": "quasi-deterministic", "period": timetable.period, "is_learned": bool(learned.betas), "update_times": rows}


def _of_bits(reading: PageReading, change_rate: float | None) -> dict[str, Any]:
    bursts, published = Bursts(*reading.surprises), reading.published
    test = {"statistic": bursts.z, "rejected_from": REJECTED, "has_enough_bits": bursts.variance >= LEAST_VARIANCE}
    if not bursts.is_bursty or not change_rate or not reading.seen["observations"]:
        return {"name": "poisson", **test}
    pages = _fitted(reading, change_rate)
    is_planned = published.get("policy", "periodic") != "poisson" and not Progress.of_plan(published).is_exploring
    return {"name": "weibull", "shape": float(pages.shape[0]), "mean": float(pages.mean[0]), "is_planned": is_planned, **test}


def _fitted(reading: PageReading, change_rate: float) -> BurstyPages:
    bursts = Bursts(*reading.surprises)
    changes, observations = (np.array([reading.seen[name]]) for name in ("changes", "observations"))
    correlation = sure_correlation(bursts.score, bursts.variance, bursts.spread)
    return BurstyPages.of_bits(np.zeros(1, np.int64), changes, observations, np.atleast_1d(correlation), np.array([change_rate]))


def worth_of_bursty(
    reading: PageReading, change_rate: float, rate: float, objective: Literal["freshness", "changes"]
) -> tuple[float, float]:
    """Return what one more visit per second adds to the objective at ``rate`` visits per second, and at none, by the fitted model."""
    pages, importance = _fitted(reading, change_rate), reading.page["importance"]
    now, most = (importance * float(pages.worth(np.array([at]), objective)[0]) for at in (rate, 0.0))
    return now, most


def model_line(model: dict[str, Any]) -> str:
    """Return the row of a table.

    Examples
    --------
    >>> model_line({"name": "poisson", "statistic": 0.5, "rejected_from": 3.2, "has_enough_bits": True})
    'Poisson: its bits do not speak against it (test for bursts 0.5, rejected from 3.2 on)'
    """
    if model["name"] != "quasi-deterministic":
        test = f"test for bursts {number(model['statistic'])}, rejected from {number(model['rejected_from'])} on"
        if model["name"] == "weibull":
            fitted = f"Weibull of shape {number(model['shape'])}, a change in {duration(model['mean'])} on average"
            planned = "" if model["is_planned"] else "; planned as Poisson"
            return f"heavy-tailed, {fitted}: its changes come in bursts ({test}){planned}"
        few = "" if model["has_enough_bits"] else "; its bits tell too little so far"
        return f"Poisson: its bits do not speak against it ({test}{few})"
    source = "learned" if model["is_learned"] else "stated"
    times = ", ".join(f"{_moment(row['seconds'], model['period'])} ({row['probability']:.0%})" for row in model["update_times"])
    return f"quasi-deterministic, by RULES: changes at {times} of every {duration(model['period'])}; probabilities {source}"


def why_bursty(model: dict[str, Any], policy: str) -> str:
    """Say by which model a bursty page is planned."""
    if model["is_planned"]:
        return f"Its changes come in bursts, so a visit is worth what a Weibull model of shape {number(model['shape'])} says."
    reason = 'POLICY "poisson" visits at random' if policy == "poisson" else "all pages are explored at even intervals"
    return f"Its changes come in bursts, but it is planned as Poisson: {reason}."


def why_timed(model: dict[str, Any], threshold: float | None, longest: float | None) -> str:
    """Say which update times are visited, and why not the others."""
    bought = [_moment(row["seconds"], model["period"]) for row in model["update_times"] if row["bought"]]
    price = f" (threshold {number(threshold)})" if threshold is not None else ""
    if not bought:
        return f"No visit at an update time is worth the threshold{price}; it is looked at once in {duration(longest)}."
    rest = len(model["update_times"]) - len(bought)
    left = "" if not rest else f"; a visit at the other {rest} would be worth less than that" if rest > 1 else "; one at the other is not"
    return f"Visited at or soon after {', '.join(bought)}, never shortly before: visits there are worth the threshold{price}{left}."


def _moment(seconds: float, period: float) -> str:
    if period != DAY_S:
        return duration(seconds)
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes // 60):02}:{int(minutes % 60):02}" + (f":{rest:02g}" if rest else "") + " UTC"
