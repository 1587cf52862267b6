"""Why a page is visited when it is: its estimate, its rate and its deadline, from what is stored."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optimal_frontier.cli.announcers import announcer_facts
from optimal_frontier.cli.estimates import Chosen, chosen_of, marginal_value, prior_of
from optimal_frontier.cli.noise_facts import noise_facts
from optimal_frontier.cli.output import duration, number
from optimal_frontier.cli.siblings import sibling_facts
from optimal_frontier.cli.troubles import page_troubles, why_failing
from optimal_frontier.cli.trust import trust_facts, validator_facts
from optimal_frontier.cli.update_model import model_facts, why_bursty, why_timed, worth_of_bursty
from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.change_points import ALARM
from optimal_frontier.frontier.deadlines import LivePrice, deadlines, goes_by_price, with_update_times
from optimal_frontier.frontier.noisy_pages import noise_of_memory
from optimal_frontier.scheduling import credit_at
from optimal_frontier.scheduling.index import visit_value
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.columns import ACTIVE, DONE, INDEX, ONCE, PAGE, PLAN, RETIRED, SEEN, STATE_NAMES
from optimal_frontier.state.reading import PageReading
from optimal_frontier.state.update_times import StoredTimes

#: Probability inside the interval of the change rate.
LEVEL = 0.95
#: Bits that are kept of a page.
_KEPT_BITS = 32
#: Relative difference up to which a rate counts as being at its bound.
_AT_BOUND = 1e-6
#: Relative difference from the threshold up to which a visit is worth "as much": a plan may be older than the estimate.
_MOVED = 0.02


def explain(reading: PageReading, url: str, fingerprint: bytes, settings: FrontierSettings) -> dict[str, Any]:
    """Return what ``page --json`` shows. Times in seconds, rates per second; None where nothing is known yet.

    Parameters
    ----------
    reading : PageReading
        What is stored.
    url : str
        As it was asked for.
    fingerprint : bytes
        Its identity.
    settings : FrontierSettings
        For the objective and the host's limit.

    Returns
    -------
    dict
        ``change_rate`` is the posterior median, ``planned_change_rate`` what the last plan's EXPLORATION makes of the posterior as it
        stands; ``policy`` tells whether ``interval`` is kept evenly (``periodic``) or as a mean (``poisson``); ``threshold`` the
        multiplier of the last plan; ``marginal`` what one more visit per second to this page would add by the planned change rate, at its
        rate (``marginal_at_rate_0``: at none); under DISPATCH "index" ``visit_value`` what a visit is worth now, and ``live_price`` what it
        has to be worth.
    """
    page, seen, plan = reading.page, reading.seen, reading.plan
    estimate = _estimate(reading)
    chosen = _chosen(reading, estimate)
    used = estimate["change_rate"] if chosen is None else chosen.change_rate
    threshold = float(reading.published["multiplier"]) if int(reading.published.get("pages", 0)) else None
    rate = plan["rate"] if plan["base_time"] > 0 else None
    policy = _policy(reading)
    due = _deadline(reading)
    is_past = due is not None and due < reading.now and reading.lease is None
    waiting = page["state"] not in (DONE, RETIRED) and seen["attempts"] == 0 and reading.lease is None
    answer = {
        "url": reading.record.get("url", url),
        "fingerprint": reading.troubles.fingerprint.hex() if reading.troubles.fingerprint else fingerprint.hex(),
        **page_troubles(reading, fingerprint, url),
        "slot": reading.slot,
        "state": STATE_NAMES[page["state"]] if page["state"] < len(STATE_NAMES) else "unknown",
        "host": reading.host,
        "importance": page["importance"],
        "attempts": seen["attempts"],
        "visits": seen["visits"],
        "observations": seen["observations"],
        "changes": seen["changes"],
        "bits": format(seen["bits"], f"0{_KEPT_BITS}b")[_KEPT_BITS - min(seen["observations"], _KEPT_BITS) :],
        **estimate,
        "model": model_facts(reading, used),
        "siblings": sibling_facts(reading),
        "noise": noise_facts(noise_of_memory(reading.memory)),
        "habits": {"relearned": reading.watch.relearned, "evidence": reading.watch.evidence, "alarm": ALARM},
        "min_interval": _inverse(page["max_rate"]),
        "max_interval": _inverse(page["min_rate"]),
        "min_gap": page["gap"],
        "rate": rate,
        "interval": None if rate is None else _inverse(rate),
        "policy": policy,
        "exploration": reading.published.get("exploration"),
        "planned_change_rate": used,
        "exploration_interval": None if chosen is None else _inverse(chosen.least_rate),
        "threshold": threshold,
        "marginal": None if used is None or rate is None else marginal_value(page["importance"], used, rate, settings.objective, policy),
        "marginal_at_rate_0": None if used is None else marginal_value(page["importance"], used, 0.0, settings.objective),
        "planned_at": plan["base_time"] or None,
        **_by_price(reading),
        "credit": _credit(reading),
        "deadline": due,
        "due_in_seconds": None if due is None else due - reading.now,
        "lateness_seconds": reading.now - due if is_past and due is not None else 0.0,
        "queued": reading.queued is not None or waiting,
        "in_flight": reading.lease is not None,
        "waiting_for_first_visit": waiting,
        "host_opens_in_seconds": max(0.0, reading.host_opens - reading.now) if reading.host_opens is not None else None,
        "failures": seen["failures"],
        "gone": seen["gone"],
        "last_attempt_seconds_ago": reading.now - seen["last_attempt"] if seen["attempts"] else None,
        "last_seen_seconds_ago": reading.now - seen["last_seen"] if seen["visits"] else None,
        "content_fingerprint": reading.content.hex() if reading.content_tag else None,
        "last_modified": trust_facts(reading.header_trust),
        "lastmod": trust_facts(reading.sitemap_trust),
        "announcers": announcer_facts(reading.announcers, reading.is_put_forward),
        "validators": validator_facts(reading.validator_trust, reading.memory),
        "time": reading.now,
    }
    if reading.times is not None:
        answer["marginal"] = answer["marginal_at_rate_0"] = None  # of visits at any time
    elif answer["model"].get("is_planned") and used is not None and rate is not None:
        answer["marginal"], answer["marginal_at_rate_0"] = worth_of_bursty(reading, used, rate, settings.objective)
    # RETIRED, DONE and ONCE requests have no next visit to speak of.
    if page["state"] != ACTIVE:
        answer["rate"] = answer["interval"] = answer["marginal"] = answer["credit"] = None
    answer["why"] = " ".join(filter(None, (_why(reading, answer, settings, chosen), why_failing(reading), _when(answer))))
    return answer


def _row(values: dict[str, Any], layout: np.dtype) -> np.ndarray:
    return np.array([tuple(values[name] for name in layout.names or ())], layout)


def _rows(reading: PageReading) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return _row(reading.page, PAGE), _row(reading.seen, SEEN), _row(reading.plan, PLAN), _row(reading.index, INDEX)


def _by_price(reading: PageReading) -> dict[str, float | None]:
    """Return what a visit is worth now, and the price at which it is made; None for a page that does not go by price."""
    live = LivePrice.of(reading.price)
    if live is None or reading.times is not None or not goes_by_price(*_rows(reading))[0]:
        return {"visit_value": None, "live_price": None}
    value = visit_value(reading.index["weight"], reading.index["change_rate"], reading.now - reading.seen["last_seen"], live.objective)
    return {"visit_value": value, "live_price": float(live.of_hosts(np.array([reading.page["host"]]))[0])}


def _inverse(value: float) -> float | None:
    return None if value <= 0 else 0.0 if value > 1e299 else 1.0 / value


def _estimate(reading: PageReading) -> dict[str, Any]:
    shape, time = reading.seen["shape"], reading.seen["time"]
    has_bits = shape > 0 and time > 0
    known = (shape, time) if has_bits else prior_of(reading.published)
    if not has_bits and known is not None and reading.prior["shape"] > 0:
        known = reading.prior["shape"], reading.prior["time"]
    if known is None or not all(math.isfinite(value) for value in known):
        return {"posterior": None, "change_rate": None, "change_rate_mean": None, "change_rate_interval": None}
    posterior = RatePosterior(*known)
    return {
        "posterior": {"shape": posterior.shape, "time": posterior.time, "is_prior": not has_bits},
        "change_rate": posterior.median,
        "change_rate_mean": posterior.mean,
        "change_rate_interval": list(posterior.interval(LEVEL)),
    }


def _chosen(reading: PageReading, estimate: dict[str, Any]) -> Chosen | None:
    posterior = estimate["posterior"]
    return None if posterior is None else chosen_of(reading, posterior["shape"], posterior["time"])


def _policy(reading: PageReading) -> str:
    """Return how the visits of the page follow each other by the last plan; pinned ones are evenly spaced whatever the policy."""
    is_pinned = reading.page["min_rate"] >= reading.page["max_rate"]
    return "periodic" if is_pinned else reading.published.get("policy", "periodic")


def _deadline(reading: PageReading) -> float | None:
    if reading.page["state"] != ACTIVE or reading.seen["attempts"] == 0:
        return None
    if reading.lease is not None:
        return float(reading.lease["due"])
    if reading.seen["visits"] > 0 and reading.plan["base_time"] == 0 and reading.queued is not None:
        return reading.queued  # set by the multiplier that was published when it was visited
    page, seen, plan, index = _rows(reading)
    due_by = deadlines(page, seen, plan, index, LivePrice.of(reading.price), np.array([reading.slot]))
    if reading.times is not None:
        timetable, learned, bought = reading.times
        slots = np.array([reading.slot])
        times = StoredTimes(slots, [learned], np.array([bought]), {learned.number: timetable})
        due_by = with_update_times(due_by, times, slots, page, seen, plan, times.bought)
    due = float(due_by[0])
    return due if math.isfinite(due) else None


def _credit(reading: PageReading) -> float | None:
    seen, plan = reading.seen, reading.plan
    if seen["visits"] == 0 or plan["base_time"] == 0:
        return None
    return float(credit_at(reading.now, seen["carry"], seen["settled"], plan["rate"], plan["base_time"], plan["base_credit"]))


def _why(reading: PageReading, answer: dict[str, Any], settings: FrontierSettings, chosen: Chosen | None) -> str:
    page, seen = reading.page, reading.seen
    if page["state"] == RETIRED:
        return "Retired: it was gone (404 or 410) twice in a row; a link to it, a day later, or `optimal-frontier force` brings it back."
    if page["state"] in (ONCE, DONE):
        return "Fetched once and not revisited, as its request or RULES say." + (" That is done." if page["state"] == DONE else "")
    if seen["attempts"] == 0:
        return "Not visited yet; first visits go by priority, then importance, then arrival."
    if seen["visits"] == 0:
        return f"Never fetched: {seen['failures']} attempts failed; tried again at growing intervals."
    if answer["rate"] is None:
        return "Fetched for the first time after the last plan; the next one gives it a rate."
    if reading.times is not None:
        return why_timed(answer["model"], answer["threshold"], answer["max_interval"])
    choice = "" if chosen is None or page["min_rate"] >= page["max_rate"] else _why_chosen(chosen, answer)
    model = why_bursty(answer["model"], reading.published.get("policy", "periodic")) if answer["model"]["name"] == "weibull" else ""
    return " ".join(filter(None, (_why_rate(reading, answer, settings, chosen), choice, model)))


def _why_chosen(chosen: Chosen, answer: dict[str, Any]) -> str:
    """Say what the change rate is that was planned with, unless it is the median, and who is explored."""
    progress, rate = chosen.progress, f"{number(chosen.change_rate)}/s"
    name = f'(EXPLORATION "{progress.exploration}")'
    if progress.exploration == "mean":
        return f"Planned with the mean of its posterior, {rate} {name}."
    if progress.exploration == "thompson":
        return f"Planned with draw {progress.number} from its posterior, {rate} {name}."
    if progress.exploration == "epsilon" and chosen.is_explored:
        return f"Picked in phase {progress.number}, so it is visited every {duration(answer['exploration_interval'])} at least {name}."
    if progress.exploration != "explore-then-commit":
        return ""
    until = progress.rounds + progress.rounds_left
    if progress.is_exploring:
        return f"All pages are explored at even intervals until round {number(until)}; this is round {number(progress.rounds)} {name}."
    again = f"; it is explored again from round {number(until)} on, this is round {number(progress.rounds)}" if math.isfinite(until) else ""
    if chosen.is_committed:
        return f"Planned with the mean that it had when exploring ended, {rate}{again} {name}."
    return f"It joined after exploring ended: planned with the mean of its posterior, {rate}{again} {name}."


def _why_rate(reading: PageReading, answer: dict[str, Any], settings: FrontierSettings, chosen: Chosen | None) -> str:
    page, rate, threshold = reading.page, answer["rate"], answer["threshold"]
    every = duration(answer["interval"]) + (" on average" if answer["policy"] == "poisson" else "")
    least, most = page["min_rate"], page["max_rate"]
    worth, price = number(answer["marginal_at_rate_0"]), number(threshold)
    if rate <= 0 and threshold is not None and (answer["marginal_at_rate_0"] or 0.0) < threshold:
        what = "importance / change rate = " if settings.objective == "freshness" else "its importance = "
        what = "" if answer["model"].get("is_planned") else what
        return f"Not revisited: the best that a visit could be worth, {what}{worth}, is below the threshold {price}."
    if rate <= 0:
        return "Not revisited by the last plan; what was learned since will count in the next."
    if least >= most:
        scaled = "" if rate >= least * (1 - _AT_BOUND) else ", scaled down because such intervals do not fit the budget"
        return f"Every {every}: pinned by RULES{scaled}."
    if reading.seen["failures"]:
        return f"Every {every}: it fails ({reading.seen['failures']} in a row), so it is tried at growing intervals."
    if rate >= most * (1 - _AT_BOUND):
        return f"Every {every}: worth more than that (threshold {price}), but held to its shortest interval."
    host = "its host is at its limit (HOST_DELAY, HOST_MAX_RATE)"
    may_be_full = settings.host_period > 0 and threshold is not None
    if chosen is not None and chosen.progress.is_exploring:
        return f"Every {every}."
    explored = 0.0 if chosen is None else chosen.least_rate
    is_above_worth = (answer["marginal"] or 0.0) < (1 - _AT_BOUND) * (threshold or 0.0)
    if least < rate <= explored * (1 + _AT_BOUND) and is_above_worth:
        return f"Every {every}, so that it goes on being learned: the best that a visit could be worth is {worth}, the threshold {price}."
    if rate <= least * (1 + _AT_BOUND):
        if may_be_full and (answer["marginal_at_rate_0"] or 0.0) > threshold * (1 + _MOVED):
            return (
                f"Every {every}: held to its longest interval; a visit could be worth {worth}, above the threshold {price}, "
                f"but {host}, where other pages are worth more."
            )
        return f"Every {every}: held to its longest interval; the best that a visit could be worth is {worth}, the threshold {price}."
    now = number(answer["marginal"])
    if may_be_full and (answer["marginal"] or 0.0) > threshold * (1 + _MOVED):
        return (
            f"Every {every}: one more visit is then worth {now}, more than the threshold {price}: {host}, "
            "or what was learned since the last plan will count in the next."
        )
    return f"Every {every}: one more visit is then worth {now}, as much as anywhere else (threshold {price})."


def _when(answer: dict[str, Any]) -> str:
    if answer["in_flight"]:
        return "A request for it is under way."
    due = answer["due_in_seconds"]
    if answer["visit_value"] is not None:
        return _when_by_price(answer)
    if due is None:
        return ""
    if due < 0:
        return f"Its deadline passed {duration(-due)} ago."
    waits = "" if answer["queued"] else ", beyond what is queued ahead"
    return f"Due in {duration(due)}{waits}."


def _when_by_price(answer: dict[str, Any]) -> str:
    value, price, due = number(answer["visit_value"]), number(answer["live_price"]), answer["due_in_seconds"]
    if answer["visit_value"] >= answer["live_price"]:
        return f"A visit is worth {value} now, as much as the live price {price} or more: it is among the next."
    if due is None:
        return f"A visit is worth {value} now; at the live price {price} it is not visited again."
    if due < 0:
        return f"A visit is worth {value} now, below the live price {price}; its longest interval ended {duration(-due)} ago."
    return f"A visit is worth {value} now; it reaches the live price {price}, or its longest interval ends, in {duration(due)}."
