"""The facts of a page, from its row and the last plan: what ``page`` explains and ``pages`` lists. Times in seconds, rates per second."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.cli.page_clock import clock_facts
from optimal_frontier.detection.noisy_sections import Noise, noise_of
from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.bursts import LEAST_VARIANCE, REJECTED, Bursts
from optimal_frontier.estimation.change_points import alarm_of
from optimal_frontier.estimation.signal_sources import LEAST_PRECISION
from optimal_frontier.estimation.trust import Trust
from optimal_frontier.estimation.validator_trust import ValidatorTrust
from optimal_frontier.frontier.admitting.patterns import pattern_of
from optimal_frontier.frontier.judging.gone import is_held
from optimal_frontier.frontier.judging.heard import SILENCE, Heard, heard_of
from optimal_frontier.frontier.judging.hubs import worth_of, yield_of
from optimal_frontier.frontier.judging.noise import PageNoise, noise_of_memory
from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.frontier.judging.source_worths import Source, source_of
from optimal_frontier.frontier.judging.update_times import Republished, bought_times, interval_of_timed, key_of, republished
from optimal_frontier.frontier.judging.validators import FOUND_OUT, USELESS
from optimal_frontier.frontier.judging.waits import (
    Terms,
    change_rates_of,
    discovery_of,
    interval_of,
    is_early_look,
    is_given_up,
)
from optimal_frontier.optimization.objectives import marginal_values
from optimal_frontier.scheduling.exploration import NEVER_S
from optimal_frontier.scheduling.numbers import Numbers, deadline
from optimal_frontier.scheduling.signals import evidence, unannounced
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.host_words import Counts
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.published import Published
from optimal_frontier.state.reading import PageReading
from optimal_frontier.state.records import needs_of
from optimal_frontier.state.rows import ACTIVE, APPEARED, DONE, HELD, HUB, KEPT_BITS, RETIRED, SIGNALLED, STATE_NAMES, Row
from optimal_frontier.state.source_lessons import NOTHING_KNOWN

#: Probability inside the interval of the change rate.
LEVEL: Final = 0.95

Floats = NDArray[np.float64]


def page_facts(reading: PageReading, asked: bytes, url: str, settings: FrontierSettings) -> dict[str, Any]:
    """Return what ``page --json`` shows, without its ``why``; None where nothing is known yet.

    Parameters
    ----------
    reading : PageReading
        What is stored.
    asked : bytes
        Identity of the URL that was asked for.
    url : str
        That URL.
    settings : FrontierSettings
        Of the project: OBJECTIVE, POLICY, RULES.

    Returns
    -------
    dict
        ``change_rate`` is the posterior median. ``rate`` is the inverse of ``interval``, the wait at the present price within the bounds;
        under ``policy`` ``poisson`` that is a mean. ``price`` is what a visit has to be worth in the crawl (multiplier of the objective),
        ``threshold`` the same on the page's host, which is higher where that is at its limit. ``marginal`` is what one more visit per
        second to this page would add at its rate, ``marginal_at_rate_0`` at none. ``numbers`` are those of the deadline; ``given_up`` tells
        that no visit was worth the price when they were made.
    """
    # What a request states counts from the next visit on, or the next plan.
    row, published = reading.row._replace(importance=reading.stated or reading.row.importance), reading.published
    terms = Terms(reading.log_price, published, settings)
    estimate = _estimate(row, published)
    used = estimate["change_rate"]
    timed = _update_times(reading, settings)
    yielded = worth_of(reading.memory, settings) if row.flags & HUB and timed is None else 0.0
    interval = _interval(row, terms, timed, yielded, heard_by(reading, used) if row.flags & SIGNALLED else SILENCE)
    rate = None if interval is None else _inverse(interval)
    due = deadline_of(row, reading.log_price)
    is_past = due is not None and due < reading.now and not reading.is_leased
    is_planned = "log_price" in published.fields
    waits = row.b == 0 and row.state not in (RETIRED, DONE) and not reading.is_leased
    policy = "periodic" if row.is_pinned else settings.policy
    threshold = _exp(published.log_price_at(row.host, reading.log_price)) if is_planned else None
    marginal = at_rate_0 = None
    if used is not None and timed is None:
        at_rate_0 = marginal_values(row.importance, used, 0.0, settings.objective, "periodic").item()
        marginal = None if rate is None else marginal_values(row.importance, used, rate, settings.objective, policy).item()
        if rate and yielded and marginal is not None:
            marginal += discovery_of(yielded, terms) * (1.0 if policy == "poisson" else 0.5) / rate**2
    return {
        "url": reading.record.get("url", url),
        "fingerprint": reading.page.hex(),
        "partition": reading.partition,
        "alias_of": reading.record.get("url", url) if reading.page != asked else None,
        "aliases": list(reading.aliases),
        "state": STATE_NAMES[row.state] if row.state < len(STATE_NAMES) else "unknown",
        "host": reading.host,
        "importance": row.importance,
        "attempts": row.attempts,
        "visits": row.visits,
        "observations": row.observations,
        "changes": row.changes,
        "bits": format(row.bits, f"0{KEPT_BITS}b")[KEPT_BITS - min(row.observations, KEPT_BITS) :],
        **estimate,
        "model": _model(row, reading, timed, terms),
        "siblings": _siblings(reading),
        "young": _young(reading),
        "clock": clock_facts(reading, settings),
        "hub": _hub(reading, settings),
        "noise": noise_facts(noise_of_memory(reading.memory)),
        "habits": {"relearned": row.relearned, "evidence": row.evidence, "alarm": alarm_of(row.shape)},
        "min_interval": row.min_interval,
        "max_interval": row.max_interval if row.max_interval < NEVER_S else None,
        "rate": rate,
        "interval": interval,
        "policy": policy,
        "exploration": published.exploration.get("exploration"),
        "exploration_interval": _explored(reading, terms) if is_planned else None,
        "price": _exp(reading.log_price) if is_planned else None,
        "threshold": threshold,
        "marginal": marginal,
        "marginal_at_rate_0": at_rate_0,
        "planned_at": published.time if is_planned else None,
        "given_up": is_given_up(row) and not yielded if is_planned else None,
        "numbers": _numbers(row),
        "deadline": due,
        "due_in_seconds": None if due is None else due - reading.now,
        "lateness_seconds": reading.now - due if is_past and due is not None else 0.0,
        "queued": waits or (reading.score is not None and not reading.is_leased),
        "in_flight": reading.is_leased,
        "waiting_for_first_visit": waits,
        "host_opens_in_seconds": reading.host_opens - reading.now if reading.host_opens > reading.now else None,
        "failures": row.failures,
        "gone": row.gone,
        "failed_by": CAUSES[row.cause] or None if row.failures and row.cause < len(CAUSES) else None,
        "lost_items": None if (lost := reading.memory.lost) is None else {"cause": lost.cause, "error": lost.error},
        "held": ", ".join(needs_of(reading.record)) if row.flags & HELD else None,
        "host_held": is_held(reading.words.good, reading.words.missing),
        "last_attempt_seconds_ago": reading.now - row.b / 1e6 if row.b else None,
        "last_seen_seconds_ago": reading.now - row.b / 1e6 + row.unseen if row.visits else None,
        "content_fingerprint": row.content.hex() if row.tag else None,
        "last_modified": trust_facts(reading.words.header),
        "lastmod": trust_facts(reading.words.sitemap),
        "sources": source_facts(reading, used),
        "validators": validator_facts(reading.words.validators, reading.memory),
        "time": reading.now,
    }


def deadline_of(row: Row, log_price: float) -> float | None:
    """Return when a page is due, seconds since the epoch; None where it is never, or has no deadline."""
    if row.state != ACTIVE or row.b == 0:
        return None
    due = deadline(row.b / 1e6, Numbers(row.a, row.s, row.e, row.l), log_price)
    return due if math.isfinite(due) and due < NEVER_S else None


def change_rates(heads: NDArray[np.void], published: Published) -> Floats:
    """Return the believed change rates of many pages, per second; nan for those of which nothing is believed, as before the first plan.

    Of a page whose posterior is damaged it is the rate of a page of which nothing was learned.
    """
    shape, time = heads["shape"], heads["time"]
    is_sound = (shape > 0) & (time > 0) & np.isfinite(shape) & np.isfinite(time)
    rates = change_rates_of({"shape": np.where(is_sound, shape, 0.0), "time": time, "pattern": heads["pattern"]}, published)
    return np.where(rates > 0.0, rates, np.nan)


def trust_facts(counts: Counts) -> dict[str, Any] | None:
    """Return the trust in a host's last-change times; None if it was never checked.

    ``trusted``, and counts, of which the last 40 checks of each kind are left: ``unchanged`` visits, of which ``moved`` had a newer last
    change all the same; ``changed`` visits, of which ``wrong`` had an old one, or one too sudden.
    """
    trust = Trust(*counts)
    if trust == Trust():
        return None
    names = ("unchanged", "moved", "changed", "wrong")
    return {"trusted": trust.is_earned, **{name: getattr(trust, name) for name in names}}


def validator_facts(counts: Counts, memory: Memory) -> dict[str, Any]:
    """Return the validators of a page, and the trust in the 304s of its host.

    Of the page ``etag`` and ``last_modified`` (None: there is none), ``etag_useless`` (it changes although the content does not),
    ``unchecked`` (304s since the last full answer) and ``found_out`` (two of them were lies). Of its host ``trusted``, ``told`` (changes
    that the server told when it was asked with conditions), ``checks`` (304s that were checked) and ``lies`` (of these).
    """
    trust = ValidatorTrust(*counts)
    return {
        "etag": memory.etag.decode("latin-1") or None,
        "last_modified": memory.last_modified.decode("latin-1") or None,
        "etag_useless": memory.misses >= USELESS,
        "unchecked": memory.unchecked,
        "found_out": memory.lies >= FOUND_OUT,
        "trusted": trust.is_believed,
        **{name: int(getattr(trust, name)) for name in ("told", "checks", "lies")},
    }


def heard_by(reading: PageReading, change_rate: float | None) -> Heard:
    """Return what sources of signals say of a page of a believed change rate, 1/s."""
    seen = reading.row.b / 1e6 - reading.row.unseen

    def known_of(source: str) -> Source:
        return source_of(source, reading.sources.get(source, NOTHING_KNOWN))

    return heard_of(reading.memory.signals, change_rate, known_of, seen, reading.now)


def source_facts(reading: PageReading, change_rate: float | None) -> list[dict[str, Any]]:
    """Return what the sources of signals that watch a page are worth to it.

    Of each ``name``, ``signals`` (since the last good response), ``watched_since``, ``recall`` (share of the changes that it tells of),
    ``false_rate`` (signals per second that no change caused), ``precision`` (share of its signals that are true), ``counts`` (it is worth
    listening to), and ``moves_seconds`` (by how much one signal brings the next visit nearer). The latter five are None while no change
    rate is believed.
    """
    facts = []
    heard = heard_by(reading, change_rate)
    for told in reading.memory.signals:
        fact: dict[str, Any] = {"name": told.source, "signals": told.n, "watched_since": told.since}
        known: dict[str, Any] = dict.fromkeys(("recall", "false_rate", "precision", "counts", "moves_seconds"))
        if change_rate is not None and change_rate > 0:
            believed = source_of(told.source, reading.sources.get(told.source, NOTHING_KNOWN)).believed
            false_rate, precision = believed.false_rate(change_rate), believed.precision(change_rate)
            counts = precision >= LEAST_PRECISION
            moves = evidence(change_rate, believed.recall, false_rate) / unannounced(change_rate, heard.recalls) if counts else 0.0
            known = dict(zip(known, (believed.recall, false_rate, precision, counts, moves), strict=True))
        facts.append(fact | known)
    return facts


def noise_facts(kept: PageNoise | None) -> dict[str, Any] | None:
    """Return what is known of a page's noise; None where no sections are kept of it."""
    if kept is None:
        return None
    found, history = noise_of(kept.history), kept.history
    judged = "fingerprint" if not kept.is_noisy else "other sections" if kept.has_steady_sections else "nothing"
    counts = {"noisy": kept.is_noisy, "judged_by": judged, "pairs": history.pairs, "quick_pairs": history.quick_pairs}
    return counts | {name: list(getattr(found, name)) for name in Noise._fields}


def _estimate(row: Row, published: Published) -> dict[str, Any]:
    has_bits = row.shape > 0 and row.time > 0
    known = published.believed(row.pattern, row.shape, row.time) if has_bits else published.prior_of(row.pattern)
    if known is None or not all(math.isfinite(value) for value in known):
        return {"posterior": None, "change_rate": None, "change_rate_mean": None, "change_rate_interval": None}
    posterior = RatePosterior(*known)
    return {
        "posterior": {"shape": posterior.shape, "time": posterior.time, "is_prior": not has_bits},
        "change_rate": posterior.median,
        "change_rate_mean": posterior.mean,
        "change_rate_interval": list(posterior.interval(LEVEL)),
    }


def _update_times(reading: PageReading, settings: FrontierSettings) -> Republished | None:
    timetable = settings.rules.of(str(reading.record.get("url", ""))).update_times
    return None if timetable is None else republished(timetable, reading.memory)


def _interval(row: Row, terms: Terms, timed: Republished | None, yielded: float, heard: Heard) -> float | None:
    if row.state != ACTIVE or row.visits == 0:
        return None
    interval = interval_of(row, terms, yielded, heard) if timed is None else interval_of_timed(timed, row, terms)
    if interval is not None and is_given_up(row) and not yielded:
        interval = row.max_interval * terms.published.stretch
    return interval if interval is not None and interval < NEVER_S else None


def _explored(reading: PageReading, terms: Terms) -> float | None:
    """Return the longest wait that exploration gives a page; None where it gives none."""
    row, published = reading.row, terms.published
    longest = row.max_interval * published.stretch
    asked = published.exploring.longest(reading.page, longest)
    return asked if asked < longest and math.isfinite(asked) else None


def _numbers(row: Row) -> dict[str, float | None] | None:
    """Return the numbers of the next deadline; None in front of a first visit, where a rank stands in their place."""
    if row.b == 0 or row.state != ACTIVE:
        return None
    waits = {name: getattr(row, name) for name in ("a", "s", "e", "l")}
    return {"b": row.b / 1e6, **{name: value if abs(value) < NEVER_S else None for name, value in waits.items()}}


def _model(row: Row, reading: PageReading, timed: Republished | None, terms: Terms) -> dict[str, Any]:
    if timed is None:
        bursts = Bursts(row.surprise, row.score, row.variance, row.spread)
        test = {"statistic": bursts.z, "rejected_from": REJECTED, "has_enough_bits": bursts.variance >= LEAST_VARIANCE}
        return {"name": "poisson", "is_bursty": bursts.is_bursty, **test}
    timetable = timed.timetable
    rows = [
        {"seconds": at, "probability": believed, "stated": stated, "bought": bought}
        for at, believed, stated, bought in zip(
            timetable.times, timed.probabilities, timetable.probabilities, bought_times(timed, row, terms), strict=True
        )
    ]
    is_learned = bool(reading.memory.betas) and reading.memory.timetable == key_of(timetable)
    return {"name": "quasi-deterministic", "period": timetable.period, "is_learned": is_learned, "update_times": rows}


def _hub(reading: PageReading, settings: FrontierSettings) -> dict[str, Any] | None:
    """Return how many new pages come of a page a second, their mean importance, and whether that counts; None for one that is no hub."""
    known = yield_of(reading.memory)
    if known is None or not reading.row.flags & HUB:
        return None
    return {
        "new_pages_per_second": known.rate,
        "mean_importance": known.mean_importance,
        "is_source": bool(reading.memory.entries),
        "counts": settings.discovery_value,
    }


def _siblings(reading: PageReading) -> dict[str, Any] | None:
    """Return the pattern of a page, how many pages taught its prior, and what; None for what is no page."""
    row, url = reading.row, reading.record.get("url")
    if url is None or not row.pattern:
        return None
    taught = reading.published.priors.get(row.pattern)
    return {
        "pattern": pattern_of(url),
        "pages": reading.siblings,
        "shape": taught[0] if taught else None,
        "time": taught[1] if taught else None,
        "change_rate": RatePosterior(*taught).median if taught else None,
    }


def _young(reading: PageReading) -> dict[str, Any] | None:
    """Return how old a young page is, and how often its kind changes while it is; None of all others."""
    row, birth = reading.row, reading.memory.birth
    if birth is None or not row.flags & APPEARED:
        return None
    youth = reading.published.youth_of(row.host, row.pattern)
    return {
        "seconds_ago": reading.now - birth.at,
        "change_rate": youth.rate if youth else None,
        "until_seconds": youth.until if youth else None,
        "is_early": is_early_look(row),
    }


def _inverse(value: float) -> float:
    return 1.0 / value if value > 0 else math.inf


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
