"""What pages of the same pattern have taught of a page: where its prior comes from."""

from __future__ import annotations

from typing import Any

from optimal_frontier.cli.output import NOTHING, number, per_second
from optimal_frontier.estimation import RatePosterior
from optimal_frontier.frontier.patterns import pattern_of
from optimal_frontier.state.reading import PageReading


def sibling_facts(reading: PageReading) -> dict[str, Any] | None:
    """Return the pattern, how many pages taught its prior, and what; None for what is no page.

    Times in seconds, rates per second. ``pattern`` is None where pages of many patterns of the host share one; ``change_rate`` is the
    prior's median, None before the first plan that knew of a bit. ``pages`` counts each by the share of its posterior that is not the
    default prior.
    """
    prior, url = reading.prior, reading.record.get("url")
    if url is None or not reading.page["pattern"]:
        return None
    known = prior["shape"] > 0
    return {
        "pattern": None if reading.shares_pattern else pattern_of(url),
        "pages": prior["siblings"] if known else 0.0,
        "shape": prior["shape"] if known else None,
        "time": prior["time"] if known else None,
        "change_rate": RatePosterior(prior["shape"], prior["time"]).median if known else None,
    }


def sibling_line(facts: dict[str, Any] | None) -> str:
    """Return `sibling_facts` in a line."""
    if facts is None:
        return NOTHING
    where = facts["pattern"] or "other patterns of its host"
    if facts["change_rate"] is None:
        return f"{where}: nothing learned yet"
    by = f"{facts['pages']:.3g} taught" if facts["pages"] > 0 else "none yet; its host and the crawl teach"
    gamma = f"{number(facts['shape'])}, {number(facts['time'])} s"
    return f"{where}: {by} {per_second(facts['change_rate'])} (prior Gamma, shape and time {gamma})"
