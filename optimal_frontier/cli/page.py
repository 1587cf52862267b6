"""``page``: why one page is visited when it is."""

from __future__ import annotations

from typing import Any

import click

from optimal_frontier.cli.announcers import announcer_line
from optimal_frontier.cli.explanation import LEVEL, explain
from optimal_frontier.cli.identity import identified_in, identity
from optimal_frontier.cli.noise_facts import noise_line
from optimal_frontier.cli.output import NOTHING, duration, moment, number, per_second, show_facts, show_json
from optimal_frontier.cli.project import Options, find_workplace, opened_store
from optimal_frontier.cli.siblings import sibling_line
from optimal_frontier.cli.troubles import page_rows
from optimal_frontier.cli.trust import trust_line, validator_line
from optimal_frontier.cli.update_model import model_line
from optimal_frontier.errors import StateError
from optimal_frontier.state.reading import read_page


@click.command()
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with all digits.")
@click.pass_obj
def page(options: Options, url: str, as_json: bool) -> None:
    """Explain one page: estimate, importance, rate, threshold, next deadline, last bits.

    Identity is the request fingerprint of a GET of URL, by the fingerprinter that the crawl has.
    """
    identity(url)  # what is no URL needs no server
    workplace = find_workplace(options)
    with opened_store(workplace) as store:
        fingerprint = identified_in(store, workplace)(url)
        reading = read_page(store, fingerprint)
    if reading is None:
        raise StateError(f"{url} is not known in namespace {workplace.settings.namespace!r}")
    answer = explain(reading, url, fingerprint, workplace.settings)
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
    failures = answer["failures"]
    due = moment(answer["deadline"])
    if answer["due_in_seconds"] is not None:
        due += f", {_relative(answer['due_in_seconds'])}"
    mean = " on average" if answer["policy"] == "poisson" else ""
    choice = f', EXPLORATION "{answer["exploration"]}"' if answer["exploration"] else ""
    place = "in flight" if answer["in_flight"] else "queued" if answer["queued"] else "not queued"
    return [
        ("url", answer["url"]),
        ("fingerprint", f"{answer['fingerprint']}  slot {answer['slot']}"),
        ("state", f"{answer['state']}, {place}"),
        ("host", answer["host"] + (f", opens in {duration(opens)}" if opens else "")),
        ("importance", number(answer["importance"])),
        ("visits", f"{answer['visits']} of {answer['attempts']} attempts" + (f", {failures} failures in a row" if failures else "")),
        ("observations", f"{answer['observations']}, {answer['changes']} of them changes"),
        ("last bits", f"{answer['bits'] or NOTHING}  (1 changed, newest last)"),
        ("posterior", f"Gamma, shape and time {gamma}" + (" (the prior)" if posterior and posterior["is_prior"] else "")),
        ("change rate", f"{per_second(answer['change_rate'])}{spread}, mean {number(answer['change_rate_mean'])}"),
        ("model", model_line(answer["model"])),
        ("habits", _habits(answer["habits"])),
        ("siblings", sibling_line(answer["siblings"])),
        *([("noise", noise_line(answer["noise"]))] if answer["noise"] else []),
        ("planned with", f"{per_second(answer['planned_change_rate'])}{choice}"),
        ("interval bounds", f"{duration(answer['min_interval'])} to {longest}, at least {duration(answer['min_gap'])} apart"),
        (
            "revisit rate",
            f"{per_second(answer['rate'])}, every {duration(answer['interval'])}{mean}" if answer["rate"] else number(answer["rate"]),
        ),
        ("threshold", number(answer["threshold"])),
        ("marginal", f"{number(answer['marginal'])} at this rate, {number(answer['marginal_at_rate_0'])} at rate 0"),
        ("credit", f"{number(answer['credit'])} (due at 1)") if answer["visit_value"] is None else ("visit value", _by_price(answer)),
        ("next deadline", due),
        ("last attempt", _ago(answer["last_attempt_seconds_ago"])),
        ("last seen", _ago(answer["last_seen_seconds_ago"])),
        ("content", answer["content_fingerprint"] or NOTHING),
        ("Last-Modified", trust_line(answer["last_modified"])),
        *page_rows(answer),
        *([("lastmod", trust_line(answer["lastmod"]))] if answer["lastmod"] else []),
        *([("announcers", words)] if (words := announcer_line(answer["announcers"])) else []),
        ("validators", validator_line(answer["validators"])),
        ("why", answer["why"]),
    ]


def _habits(habits: dict[str, Any]) -> str:
    often = {0: "never", 1: "once"}.get(habits["relearned"], f"{habits['relearned']} times")
    return f"learned anew {often}; evidence of a change since {number(habits['evidence'])}, from {number(habits['alarm'])} on it is again"


def _by_price(answer: dict[str, Any]) -> str:
    return f"{number(answer['visit_value'])} now, to be {number(answer['live_price'])} (the live price)"


def _ago(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{duration(seconds)} ago"


def _relative(seconds: float) -> str:
    return f"in {duration(seconds)}" if seconds >= 0 else f"{duration(-seconds)} ago"
