"""``page``: why one page is visited when it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import click

from optimal_frontier.cli.failure_causes import cause_in_words, some_of
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import NOTHING, duration, moment, number, per_second, printable, show_facts, show_json
from optimal_frontier.cli.page_clock import clock_line
from optimal_frontier.cli.page_facts import LEVEL, page_facts
from optimal_frontier.cli.page_identity import check_url, identified_in
from optimal_frontier.cli.page_reasons import moment_of, new_pages, why
from optimal_frontier.cli.project import find_workplace, opened_namespace
from optimal_frontier.cli.shared_noise_facts import of_page, page_words, shared_noise
from optimal_frontier.cli.template_facts import template_changes, template_line
from optimal_frontier.errors import StateError
from optimal_frontier.estimation.sibling_priors import MOST_SHAPE
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.judging.outcomes import CALLBACK, ITEM
from optimal_frontier.state.messages import page_of
from optimal_frontier.state.reading import read_page


@click.command()
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with all digits.")
@click.pass_obj
def page(options: Options, url: str, as_json: bool) -> None:
    """Explain one page: estimate, importance, rate, price, next deadline, last bits.

    Identity is the request fingerprint of a GET of URL, by the fingerprinter that the crawl has.
    """
    check_url(url)
    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        asked = page_of(identified_in(namespace, workplace)(url))
        reading = read_page(namespace, asked, host_of(url))
        changes = [] if reading is None else template_changes(namespace, reading.host)
        shared = [] if reading is None else shared_noise(namespace, reading.host)
    if reading is None:
        raise StateError(f"{url} is not known in namespace {workplace.settings.namespace!r}")
    facts = page_facts(reading, asked, url, workplace.settings)
    facts |= {"template_changes": changes, "shared_noise": of_page(shared, reading.row)}
    answer = facts | {"why": why(reading, facts, workplace.settings)}
    if as_json:
        show_json(answer)
    else:
        show_facts(_rows(answer))


def _rows(answer: dict[str, Any]) -> list[tuple[str, str]]:
    interval = answer["change_rate_interval"]
    posterior = answer["posterior"]
    spread = f" ({LEVEL:.0%} between {number(interval[0])} and {number(interval[1])})" if interval else ""
    gamma = f"{number(posterior['shape'])}, {number(posterior['time'])} s" if posterior else NOTHING
    longest = duration(answer["max_interval"]) if answer["max_interval"] is not None else "any"
    opens = answer["host_opens_in_seconds"]
    is_taken = answer["failed_by"] not in (CALLBACK, ITEM)
    what = "of them" if not is_taken else "failure" if answer["failures"] == 1 else "failures"
    in_a_row = f", {answer['failures']} {what} in a row" if answer["failures"] else ""
    due = moment(answer["deadline"])
    if answer["due_in_seconds"] is not None:
        due += f", {_relative(answer['due_in_seconds'])}"
    mean = " on average" if answer["policy"] == "poisson" else ""
    choice = f'; EXPLORATION "{answer["exploration"]}"' if answer["exploration"] else ""
    place = "held" if answer["held"] else "in flight" if answer["in_flight"] else "queued" if answer["queued"] else "not queued"
    return [
        ("url", answer["url"]),
        ("fingerprint", f"{answer['fingerprint']}  partition {answer['partition']}"),
        ("state", f"{answer['state']}, {place}"),
        ("host", answer["host"] + (f", opens in {duration(opens)}" if opens else "")),
        ("importance", number(answer["importance"])),
        ("visits", f"{answer['visits']} of {answer['attempts']} attempts" + (in_a_row if is_taken else f"{in_a_row} without their items")),
        ("observations", f"{answer['observations']}, {answer['changes']} of them changes"),
        ("last bits", f"{answer['bits'] or NOTHING}  (1 changed, newest last)"),
        ("posterior", f"Gamma, shape and time {gamma}" + (" (the prior)" if posterior and posterior["is_prior"] else "")),
        ("change rate", f"{per_second(answer['change_rate'])}{spread}, mean {number(answer['change_rate_mean'])}{choice}"),
        ("model", _model_line(answer["model"])),
        ("habits", _habits(answer["habits"])),
        ("siblings", _sibling_line(answer["siblings"])),
        *([("young", _young_line(answer["young"]))] if answer["young"] else []),
        *([("clock", clock_line(answer["clock"]))] if answer["clock"] else []),
        *([("hub", _hub_line(answer["hub"]))] if answer["hub"] else []),
        *([("shared noise", page_words(answer["shared_noise"]))] if answer["shared_noise"] else []),
        *([("template", template_line(answer["template_changes"]))] if answer["template_changes"] else []),
        *([("noise", _noise_line(answer["noise"]))] if answer["noise"] else []),
        ("interval bounds", f"{duration(answer['min_interval'])} to {longest}"),
        ("revisit rate", f"{per_second(answer['rate'])}, every {duration(answer['interval'])}{mean}" if answer["rate"] else NOTHING),
        ("price", _price(answer)),
        ("marginal", f"{number(answer['marginal'])} at this rate, {number(answer['marginal_at_rate_0'])} at rate 0"),
        ("numbers", _numbers(answer["numbers"])),
        ("next deadline", due),
        ("last attempt", _ago(answer["last_attempt_seconds_ago"])),
        ("last seen", _ago(answer["last_seen_seconds_ago"])),
        ("content", answer["content_fingerprint"] or NOTHING),
        ("Last-Modified", _trust_line(answer["last_modified"])),
        *([("moved from", some_of(answer["aliases"]))] if answer["aliases"] else []),
        *([("last failure", _failure_line(answer))] if answer["failed_by"] and is_taken else []),
        *([("lost items", f"{cause_in_words(lost['cause'])}: {lost['error']}")] if (lost := answer["lost_items"]) else []),
        *([("lastmod", _trust_line(answer["lastmod"]))] if answer["lastmod"] else []),
        *([("sources", _source_line(answer["sources"]))] if answer["sources"] else []),
        ("validators", _validator_line(answer["validators"])),
        ("why", answer["why"]),
    ]


def _price(answer: Mapping[str, Any]) -> str:
    price, here = answer["price"], answer["threshold"]
    if price is None:
        return NOTHING
    return number(here) if here == price else f"{number(here)} on its host, which is at its limit; {number(price)} in the crawl"


def _numbers(numbers: Mapping[str, float | None] | None) -> str:
    """Say what the deadline is made of.

    Examples
    --------
    >>> _numbers({"b": 0.0, "a": None, "s": 0.0, "e": 1.0, "l": None})
    'a never, s 0 s, e 1 s, l never after the last visit'
    """
    if numbers is None:
        return NOTHING
    waits = (f"{name} {duration(math.inf if (wait := numbers[name]) is None else wait)}" for name in ("a", "s", "e", "l"))
    return f"{', '.join(waits)} after the last visit"


def _habits(habits: Mapping[str, Any]) -> str:
    often = {0: "never", 1: "once"}.get(habits["relearned"], f"{habits['relearned']} times")
    return f"learned anew {often}; evidence of a change since {number(habits['evidence'])}, from {number(habits['alarm'])} on it is again"


def _model_line(model: Mapping[str, Any]) -> str:
    """Return the update model of a page in a line.

    Examples
    --------
    >>> _model_line({"name": "poisson", "is_bursty": False, "statistic": 0.5, "rejected_from": 3.2, "has_enough_bits": True})
    'Poisson: its bits do not speak against it (test for bursts 0.5, rejected from 3.2 on)'
    """
    if model["name"] == "quasi-deterministic":
        source = "learned" if model["is_learned"] else "stated"
        times = ", ".join(f"{moment_of(row['seconds'], model['period'])} ({row['probability']:.0%})" for row in model["update_times"])
        return f"quasi-deterministic, by RULES: changes at {times} of every {duration(model['period'])}; probabilities {source}"
    test = f"test for bursts {number(model['statistic'])}, rejected from {number(model['rejected_from'])} on"
    if model["is_bursty"]:
        return f"Poisson, though its changes come in bursts ({test})"
    few = "" if model["has_enough_bits"] else "; its bits tell too little so far"
    return f"Poisson: its bits do not speak against it ({test}{few})"


def _young_line(young: Mapping[str, Any]) -> str:
    """Say how old a page is that has appeared, and what its kind does at that age.

    Examples
    --------
    >>> _young_line({"seconds_ago": 90.0, "change_rate": 0.025, "until_seconds": 128.0})
    'appeared 1.5 min ago; pages of its kind change at 0.025/s until they are 2.13 min old'
    """
    line = f"appeared {duration(young['seconds_ago'])} ago"
    if young["change_rate"] is None:
        return f"{line}; pages of its kind are not known to change more often at first"
    return f"{line}; pages of its kind change at {per_second(young['change_rate'])} until they are {duration(young['until_seconds'])} old"


def _sibling_line(facts: Mapping[str, Any] | None) -> str:
    if facts is None:
        return NOTHING
    if facts["change_rate"] is None:
        return f"{facts['pattern']}: nothing learned yet"
    by = f"{number(facts['pages'])} taught" if facts["pages"] else "none yet; its host and the crawl teach"
    gamma = f"{number(facts['shape'])}, {number(facts['time'])} s"
    what = "its pages are alike: Gamma" if facts["shape"] > MOST_SHAPE else "prior Gamma"
    return f"{facts['pattern']}: {by} {per_second(facts['change_rate'])} ({what}, shape and time {gamma})"


def _hub_line(facts: Mapping[str, Any]) -> str:
    """Say what new pages come of a hub.

    Examples
    --------
    >>> _hub_line({"new_pages_per_second": 3 / 3600, "mean_importance": 1.0, "is_source": False, "counts": True})
    'yields 3 new pages an hour, of mean importance 1'
    """
    off = "" if facts["counts"] else "; that does not count, as DISCOVERY_VALUE is off"
    return f"yields {new_pages(facts)}, of mean importance {number(facts['mean_importance'])}{off}"


def _noise_line(facts: Mapping[str, Any]) -> str:
    kinds = (("within_seconds", "changes within seconds"), ("on_every_visit", "on every visit"), ("own_text", "own text changes"))
    said = [f"{what}: {', '.join(facts[name])}" for name, what in kinds if facts[name]]
    how = {"nothing": "noisy, gives no bits", "other sections": "noisy, judged by its other sections", "fingerprint": "not noisy"}
    pairs = f"{facts['pairs']} pairs of visits compared, {facts['quick_pairs']} of them second fetches"
    return "; ".join([how[facts["judged_by"]], *said, pairs])


def _trust_line(facts: Mapping[str, Any] | None) -> str:
    if facts is None:
        return "not checked yet"
    return (
        f"{'' if facts['trusted'] else 'not '}trusted: wrong at {number(facts['wrong'])} of {number(facts['changed'])} visits that found a "
        f"change, moved at {number(facts['moved'])} of {number(facts['unchanged'])} that found none"
    )


def _validator_line(facts: Mapping[str, Any]) -> str:
    useless = " (useless: it changes although the content does not)" if facts["etag_useless"] else ""
    known = [f"ETag {facts['etag']}{useless}"] if facts["etag"] else []
    known += ["Last-Modified"] if facts["last_modified"] else []
    believed = "not believed" if not facts["trusted"] else "not believed of this page" if facts["found_out"] else "believed"
    checks = f"{number(facts['lies'])} lies in {number(facts['checks'])} checks, {number(facts['told'])} changes told"
    return f"{' and '.join(known) or 'none'}; 304s of its host are {believed}: {checks}"


def _source_line(facts: Sequence[Mapping[str, Any]]) -> str:
    said = []
    for known in facts:
        words = "nothing is known of the page yet"
        if known["counts"] is False:
            words = "not listened to, its signals are hardly ever true"
        elif known["counts"]:
            words = f"tells of {known['recall']:.0%} of its changes, {known['precision']:.0%} of its signals are true"
            words += f"; one brings the visit nearer by {duration(known['moves_seconds'])}"
        said.append(f"{printable(known['name'])}: {number(known['signals'])} signals since it was seen; {words}")
    return ". ".join(said)


def _failure_line(answer: Mapping[str, Any]) -> str:
    held = "; its host is held: 404 or 410 for most pages" if answer["host_held"] else ""
    return cause_in_words(answer["failed_by"]) + held


def _ago(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{duration(seconds)} ago"


def _relative(seconds: float) -> str:
    return f"in {duration(seconds)}" if seconds >= 0 else f"{duration(-seconds)} ago"
