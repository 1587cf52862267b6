"""Which update model a page has, and why: rows and sentences of ``page``."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimal_frontier.cli.output import duration, number
from optimal_frontier.frontier.deadlines import times_of
from optimal_frontier.frontier.timed_pages import probabilities_of
from optimal_frontier.settings import DAY_S
from optimal_frontier.state.reading import PageReading


def model_facts(reading: PageReading) -> dict[str, Any]:
    """Return what ``page --json`` shows as ``model``.

    ``poisson``, or ``quasi-deterministic`` with its update times (s within the period), the probability that is believed of each and the
    one that RULES state, and whether the plan buys a visit.
    """
    if reading.times is None:
        return {"name": "poisson"}
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


def model_line(model: dict[str, Any]) -> str:
    """Return the row of a table.

    Examples
    --------
    >>> model_line({"name": "poisson"})
    'Poisson: it may change at any time, and no rule names update times'
    """
    if model["name"] == "poisson":
        return "Poisson: it may change at any time, and no rule names update times"
    source = "learned" if model["is_learned"] else "stated"
    times = ", ".join(f"{_moment(row['seconds'], model['period'])} ({row['probability']:.0%})" for row in model["update_times"])
    return f"quasi-deterministic, by RULES: changes at {times} of every {duration(model['period'])}; probabilities {source}"


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
