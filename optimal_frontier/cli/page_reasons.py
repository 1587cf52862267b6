"""Why a page is visited when it is, in sentences, from its facts (`page_facts`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from optimal_frontier.cli.failure_causes import cause_in_words
from optimal_frontier.cli.output import duration, number
from optimal_frontier.cli.page_clock import why_clock
from optimal_frontier.frontier.judging.outcomes import CALLBACK, ITEM
from optimal_frontier.settings import DAY_S, FrontierSettings
from optimal_frontier.state.reading import PageReading
from optimal_frontier.state.rows import CHECKED, SIGNALLED, Row

#: Relative difference up to which an interval counts as being at its bound.
_AT_BOUND: Final = 1e-6
#: Waits below this are none, seconds: somebody wants the page now.
_NOW_S: Final = 1e-6


def why(reading: PageReading, facts: dict[str, Any], settings: FrontierSettings) -> str:
    """Return the sentences of ``page`` about a page: how often it is visited and why, what is wrong with it, and when it is due."""
    return " ".join(filter(None, (_why_so_often(reading, facts, settings), _why_failing(facts), _when(facts))))


def _why_so_often(reading: PageReading, facts: dict[str, Any], settings: FrontierSettings) -> str:
    if facts["state"] == "retired":
        return (
            "Retired: it was gone (404, 410, or sent to the home page) twice in a row; a link to it, a day later, or `optimal-frontier "
            "force` brings it back."
        )
    if facts["held"]:
        return f"Held: the spider that runs no longer has all that its request needs ({facts['held']}); it comes back with that."
    if facts["lost_items"] and facts["visits"]:
        return _why_again(facts)
    if facts["state"] in ("once", "transient", "done"):
        so_far = "That is done." if facts["state"] == "done" else _why_not_yet(facts["failures"])
        return f"Fetched once and not revisited, as its request or RULES say. {so_far}".rstrip()
    if facts["attempts"] == 0:
        return "Not visited yet; first visits go by priority, then importance, then arrival."
    if facts["visits"] == 0:
        return _why_not_yet(facts["failures"])
    if facts["failures"]:
        return f"It fails ({facts['failures']} in a row), so it is tried at growing intervals."
    if facts["model"]["name"] == "quasi-deterministic":
        return _why_timed(facts)
    said = [_why_rate(reading, facts, settings), why_clock(facts["clock"])]
    young = facts["young"]
    if young is not None and young["is_early"]:
        said.append(_why_young(young))
    elif reading.row.flags & CHECKED:
        said.append("It is looked at again soon, to check what its last visit showed.")
    elif reading.row.flags & SIGNALLED:
        said.append(_why_signalled(facts))
    if facts["model"]["is_bursty"]:
        said.append("Its changes come in bursts; the Poisson model makes a mean of them.")
    return " ".join(filter(None, said))


def _why_not_yet(failures: int) -> str:
    """Say what becomes of a page that was never seen.

    Examples
    --------
    >>> _why_not_yet(1), _why_not_yet(0)
    ('Never fetched: 1 attempt failed; tried again at growing intervals.', '')
    """
    return f"Never fetched: {failures} attempt{'' if failures == 1 else 's'} failed; tried again at growing intervals." if failures else ""


def _why_young(young: dict[str, Any]) -> str:
    """Say why a page that has just appeared is looked at early.

    Examples
    --------
    >>> _why_young({"change_rate": 0.025, "until_seconds": 128.0})
    'It is young: pages of its kind change every 40 s until they are 2.13 min old, so it is looked at before its interval says.'
    """
    if young["change_rate"] is None:
        return "It has just appeared, and is looked at early, as some are: to learn how often such pages change while they are young."
    each, until = duration(1.0 / young["change_rate"]), duration(young["until_seconds"])
    return f"It is young: pages of its kind change every {each} until they are {until} old, so it is looked at before its interval says."


def _why_signalled(facts: dict[str, Any]) -> str:
    """Say what sources of signals do to the deadline of a page."""
    signals = sum(source["signals"] for source in facts["sources"] if source["counts"] is not False)
    if signals:
        return f"{signals} signal{'s' if signals > 1 else ''} of a change came since it was seen, so it is visited sooner."
    return "Sources tell of its changes, and are silent; a signal would bring its visit nearer."


def _why_again(facts: dict[str, Any]) -> str:
    """Say why a page is fetched again whose callback or item pipeline raised."""
    kept = "" if facts["state"] == "once" else ", never later than by its rate"
    return f"Its items may be lost ({facts['lost_items']['error']}), so it is fetched again, in full, at growing intervals{kept}."


def _why_rate(reading: PageReading, facts: dict[str, Any], settings: FrontierSettings) -> str:
    row, published = reading.row, reading.published
    interval, threshold = facts["interval"], facts["threshold"]
    every = duration(interval) + (" on average" if facts["policy"] == "poisson" else "")
    longest = row.max_interval * published.stretch
    if row.is_pinned:
        scaled = ", stretched because such intervals do not fit the budget" if published.stretch > 1 + _AT_BOUND else ""
        return f"Every {every}: pinned by RULES{scaled}."
    if threshold is None:
        return "Fetched before the first plan, which will give it a rate."
    if published.exploring.is_even:
        return f'Every {every}: all pages are explored at even intervals (EXPLORATION "{facts["exploration"]}").'
    hub = facts["hub"]
    if hub is not None and hub["counts"] and interval is not None:
        return _why_hub(row, facts, every, longest)
    best, price = number(facts["marginal_at_rate_0"]), number(threshold)
    is_worthless = (facts["marginal_at_rate_0"] or 0.0) <= threshold
    if facts["given_up"] and not is_worthless:
        return f"Given up while the price was higher: a visit is worth up to {best}, the price is {price} now; the next plan takes it back."
    if is_worthless and interval is not None and interval < longest * (1 - _AT_BOUND):
        lasting = number(math.exp(min(published.lasting_price_at(row.host, reading.log_price), 700.0)))
        return f"Every {every}: by the price {lasting} that lasts; that of now, {price}, is above what any visit to it is worth, {best}."
    if interval is None:
        what = "importance / change rate = " if settings.objective == "freshness" else "its importance = "
        if facts["exploration_interval"] is not None:
            learning = f"Every {duration(facts['exploration_interval'])}, so that it goes on being learned"
            return f"{learning}: the best that a visit could be worth is {best}, the price {price}."
        return f"Not revisited: the best that a visit could be worth, {what}{best}, is below the price {price}."
    if interval <= row.min_interval * (1 + _AT_BOUND):
        return f"Every {every}: worth more than that (price {price}), but held to its shortest interval."
    explored = facts["exploration_interval"]
    if explored is not None and explored < interval * (1 - _AT_BOUND):
        picked = f'picked in phase {published.exploration.get("exploration_number", "")} (EXPLORATION "{facts["exploration"]}")'
        return f"Every {duration(explored)} at least: {picked}; by the price every {every}."
    if interval >= longest * (1 - _AT_BOUND):
        worth = f"the best that a visit could be worth is {best}, the price {price}"
        return (
            f"Every {every}: held to its longest interval; {worth}."
            if is_worthless
            else f"Every {every}: its longest interval (price {price})."
        )
    limit = ""
    if facts["price"] is not None and threshold > facts["price"] * (1 + _AT_BOUND):
        limit = f", more than in the crawl ({number(facts['price'])}): its host is at its limit (HOST_DELAY, HOST_MAX_RATE)"
    return f"Every {every}: a visit is worth the price then, {price}{limit}."


def _why_hub(row: Row, facts: dict[str, Any], every: str, longest: float) -> str:
    """Say how often a page that yields new ones is visited."""
    held, interval = "", facts["interval"]
    if interval <= row.min_interval * (1 + _AT_BOUND):
        held = ", held to its shortest interval"
    elif interval >= longest * (1 - _AT_BOUND):
        held = ", held to its longest interval"
    return f"Visited every {every}{held}: it yields {new_pages(facts['hub'])} (price {number(facts['threshold'])})."


def new_pages(hub: Mapping[str, Any]) -> str:
    """Return the rate of new pages of a hub, in a unit of which there is at least one; of a source, words on known pages are among them.

    Examples
    --------
    >>> [new_pages({"new_pages_per_second": rate / 86_400, "is_source": False}) for rate in (72, 1, 0.25)]
    ['3 new pages an hour', '1 new page a day', '0.25 new pages a day']
    >>> new_pages({"new_pages_per_second": 2.0, "is_source": True})
    '2 new pages and words on known ones a second'
    """
    rate = hub["new_pages_per_second"]
    units = (("a second", 1.0), ("a minute", 60.0), ("an hour", 3600.0))
    unit, seconds = next((one for one in units if rate * one[1] >= 1.0 - _AT_BOUND), ("a day", DAY_S))
    count = number(rate * seconds)
    words = " and words on known ones" if hub["is_source"] else ""
    return f"{count} new page{'' if count == '1' and not words else 's'}{words} {unit}"


def _why_timed(facts: dict[str, Any]) -> str:
    """Say which update times are visited, and why not the others."""
    model, threshold = facts["model"], facts["threshold"]
    bought = [moment_of(row["seconds"], model["period"]) for row in model["update_times"] if row["bought"]]
    price = f" (price {number(threshold)})" if threshold is not None else ""
    if not bought:
        return (
            f"No visit at an update time is worth the price{price}; it is looked at once in {duration(facts['max_interval'] or math.inf)}."
        )
    rest = len(model["update_times"]) - len(bought)
    left = "" if not rest else f"; a visit at the other {rest} would be worth less than that" if rest > 1 else "; one at the other is not"
    return f"Visited at or soon after {', '.join(bought)}, never shortly before: visits there are worth the price{price}{left}."


def moment_of(seconds: float, period: float) -> str:
    """Return an update time: of the day, or within another period.

    Examples
    --------
    >>> moment_of(21_600.0, 86_400.0), moment_of(90.0, 3600.0)
    ('06:00 UTC', '1.5 min')
    """
    if period != DAY_S:
        return duration(seconds)
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes // 60):02}:{int(minutes % 60):02}" + (f":{rest:02g}" if rest else "") + " UTC"


def _why_failing(facts: dict[str, Any]) -> str:
    """Say why a page that fails waits; empty for one that does not, or whose last failure is not known."""
    cause = facts["failed_by"]
    if facts["state"] in ("retired", "transient") or cause in (None, CALLBACK, ITEM):
        return ""
    if facts["gone"]:
        if facts["host_held"]:
            return "Most pages of its host are gone (404, 410), so it is held, not retired, and asked for at growing intervals."
        return "It was gone (404, 410, or sent to the home page) and is looked at once more before it is retired."
    return f"At its last attempt {cause_in_words(cause)}."


def _when(facts: dict[str, Any]) -> str:
    if facts["in_flight"]:
        return "A request for it is under way."
    due, numbers = facts["due_in_seconds"], facts["numbers"]
    if numbers is not None and numbers["l"] is not None and numbers["l"] < _NOW_S:
        return "It is wanted now."
    if due is None:
        return ""
    if due < 0:
        return f"Its deadline passed {duration(-due)} ago."
    return f"Due in {duration(due)}."
