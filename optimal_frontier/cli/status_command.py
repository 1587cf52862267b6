"""``status``: how the crawl is doing."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import click
import numpy as np

from optimal_frontier.cli.failure_causes import failure_facts, failure_rows
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import NOTHING, duration, moment, number, per_second, show_facts, show_json, size
from optimal_frontier.cli.project import find_workplace, opened_namespace
from optimal_frontier.cli.shared_noise_facts import shared_counts, shared_words
from optimal_frontier.cli.template_facts import template_facts, template_rows
from optimal_frontier.frontier.admitting.traps import REASONS
from optimal_frontier.frontier.planning.exploring import Progress
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.namespace import number_of
from optimal_frontier.state.reading import StatusReading, read_status

#: A plan is overdue after so many RESOLVE_INTERVALs.
_OVERDUE = 3.0
#: Share of the budget from which on what cannot be used is said.
_NOTABLE = 0.01
#: What a plan publishes of clocks of neighbourhoods.
_CLOCKS = ("groups", "clocks_open", "rhythms_open", "young_patterns")
#: What it publishes of each partition; all else is of the crawl.
_OF_PARTITIONS = ("pages", "planned_rate", "budget", "revisit_budget", *_CLOCKS)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def status(options: Options, as_json: bool) -> None:
    """Show how the crawl is doing: pages, lateness, budget, the last plan, what was learned."""
    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        answer = describe(read_status(namespace), workplace.settings)
    answer = {"namespace": workplace.settings.namespace, "redis": workplace.spec.display, **answer}
    if as_json:
        show_json(answer)
    else:
        show_facts(_rows(answer))


def describe(reading: StatusReading, settings: FrontierSettings) -> dict[str, Any]:
    """Return the fields of ``status --json``; None where nothing is known yet. Times in seconds, rates per second.

    ``multiplier`` is the price of a visit by the last plan, ``price`` the one by which visits are handed out now: the mean of the
    partitions'.
    """
    counts, published = reading.counts(), _last_plan(reading)
    plan = {}
    for name, value in published.items():
        with contextlib.suppress(ValueError):  # some are texts
            plan[name] = float(value)
    # A plan of no page has learned nothing.
    learned = plan if plan.get("pages") else {}
    lateness = np.concatenate([partition.lateness for partition in reading.partitions])
    late = np.percentile(lateness, [50, 99]) if len(lateness) else (None, None)
    planned = "time" in plan
    # Without a plan the first one counts as due since the namespace was opened.
    since = plan.get("time") if planned else (number_of(reading.meta.get("opened")) or reading.now) if counts.get("fetched", 0) else None
    return {
        "spider": reading.meta.get("spider"),
        "partitions": len(reading.partitions),
        "unserved_partitions": list(reading.unserved),
        "pages": counts.get("pages", 0),
        "fetched": counts.get("fetched", 0),
        "pending_first_visit": counts.get("pending", 0),
        "retired": counts.get("retired", 0),
        "hosts": sum(partition.hosts for partition in reading.partitions),
        "due": sum(partition.due for partition in reading.partitions),
        "in_flight": sum(partition.in_flight for partition in reading.partitions),
        "lateness_seconds": {"p50": late[0], "p99": late[1]},
        "visits": counts.get("visits", 0),
        "failures": counts.get("failures", 0),
        "observations": counts.get("observations", 0),
        "changes": counts.get("changes", 0),
        "noise": {"found": counts.get("noisy", 0), "calmed": counts.get("noisy_calmed", 0), "checks": counts.get("noise_checks", 0)}
        | shared_counts(reading),
        "signals": {"told": counts.get("signals", 0), **{name: counts.get(f"signals_{name}", 0) for name in ("moved", "true", "false")}},
        "pings": {name: counts.get(f"pings_{name}", 0) for name in ("taken", "unknown", "refused")},
        **failure_facts(reading),
        **template_facts(reading),
        "pushed": {"taken": counts.get("pushed", 0), "refused": counts.get("pushed_refused", 0)},
        "put_aside": counts.get("set_aside", 0),
        "trapped": {reason: counts.get(f"trapped_{reason}", 0) for reason in REASONS},
        "canonical": {what: counts.get(f"canonical_{what}", 0) for what in ("followed", "refused", "offhost")},
        "not_modified": counts.get("not_modified", 0),
        "bytes_saved": counts.get("bytes_saved", 0),
        "validator_lies": counts.get("validator_lies", 0),
        "budget": plan.get("budget", settings.crawl_rate),
        "revisit_budget": plan.get("revisit_budget"),
        "policy": published.get("policy"),
        "exploration": published.get("exploration"),
        "exploration_rounds": plan.get("exploration_rounds"),
        "exploration_number": int(plan["exploration_number"]) if "exploration_number" in plan else None,
        "exploration_held": int(plan["exploration_held"]) if "exploration_held" in plan else None,
        "hubs": int(plan["hubs"]) if "hubs" in plan else None,
        "neighbourhoods": {name: int(plan[name]) for name in _CLOCKS} if plan.keys() >= set(_CLOCKS) else None,
        "discovered": counts.get("discovered", 0),
        "given_up": int(plan["given_up"]) if "given_up" in plan else None,
        "is_exploring": Progress.of_plan(published).is_exploring if "exploration" in published else None,
        "planned_rate": plan.get("planned_rate"),
        "unused": plan.get("unused"),
        "hosts_at_limit": int(plan["hosts_at_limit"]) if "hosts_at_limit" in plan else None,
        "feasible": bool(plan["feasible"]) if "feasible" in plan else None,
        "stretch": plan.get("stretch"),
        "estimated_freshness": learned.get("estimated_freshness"),
        "multiplier": learned.get("multiplier"),
        "price": _price(reading) if learned else None,
        "change_rate": {name: learned.get(f"change_rate_{name}") for name in ("p10", "p50", "p90")},
        "last_plan": {"time": plan["time"], "seconds": plan.get("seconds"), "pages": int(plan.get("pages", 0))} if planned else None,
        "plan_overdue": since is not None and reading.now - since > _OVERDUE * settings.resolve_interval,
        "time": reading.now,
    }


def _last_plan(reading: StatusReading) -> dict[str, str]:
    """Return the last plan of the crawl: the newest one, with the sums of what is told by partition."""
    newest = max((partition.published for partition in reading.partitions), key=lambda published: published.time)
    fields = dict(newest.fields)
    for name in _OF_PARTITIONS:
        told = [partition.published.fields[name] for partition in reading.partitions if name in partition.published.fields]
        if told:
            fields[name] = repr(sum(map(float, told)))
    return fields


def _price(reading: StatusReading) -> float:
    """Return the price at which visits are handed out: the geometric mean over partitions with pages."""
    prices = [partition.log_price for partition in reading.partitions if partition.log_price is not None and partition.counts.get("pages")]
    return math.exp(min(sum(prices) / len(prices), 700.0)) if prices else 0.0


def _rows(answer: dict[str, Any]) -> list[tuple[str, str]]:
    late, rates, last = answer["lateness_seconds"], answer["change_rate"], answer["last_plan"]
    overdue = "  OVERDUE: is a crawl or `optimal-frontier plan --every` running?" if answer["plan_overdue"] else ""
    retired = f", {number(answer['retired'])} of them retired" if answer["retired"] else ""
    feasible = "  NOT FEASIBLE: intervals asked for were scaled down" if answer["feasible"] is False else ""
    plan = f"{moment(last['time'])}, {duration(last['seconds'])} for {number(last['pages'])} pages" if last else "none yet"
    spider = f" of spider {answer['spider']}" if answer["spider"] else ""
    freshness = answer["estimated_freshness"]
    unused = answer["unused"] or 0.0
    bound = ""
    # A plan of no page leaves all of the budget to first visits.
    if last and last["pages"] and unused > _NOTABLE * (answer["budget"] or 0):
        bound = f"; {per_second(unused)} more cannot be used: limits of hosts (HOST_DELAY, HOST_MAX_RATE) or of pages bind"
    by = " by posterior medians" if answer["exploration"] == "explore-then-commit" else ""
    memoryless = ", memoryless visits" if answer["policy"] == "poisson" else ""
    return [
        ("namespace", f"{answer['namespace']}{spider} at {answer['redis']}"),
        *([("not served", _unserved(answer["unserved_partitions"]))] if answer["unserved_partitions"] else []),
        ("in flight", f"{number(answer['in_flight'])} requests"),
        ("pages", f"{number(answer['pages'])} on {number(answer['hosts'])} hosts{retired}"),
        ("fetched", f"{number(answer['fetched'])}, {number(answer['pending_first_visit'])} wait for their first visit"),
        ("visits", f"{number(answer['visits'])}, {number(answer['failures'])} failures"),
        *failure_rows(answer),
        *template_rows(answer),
        ("changes", f"{number(answer['changes'])} in {number(answer['observations'])} observations"),
        *([("noise", _noise(answer["noise"]))] if answer["noise"]["checks"] or answer["noise"]["shared_hosts"] else []),
        ("not modified", _not_modified(answer)),
        *([("put aside", f"{number(answer['put_aside'])} damaged pages: see `optimal-frontier check`")] if answer["put_aside"] else []),
        *_not_followed(answer),
        *([("pushed", _pushed(answer["pushed"]))] if any(answer["pushed"].values()) else []),
        *([("signals", _signals(answer["signals"]))] if answer["signals"]["told"] else []),
        *([("pings", _pings(answer["pings"]))] if any(answer["pings"].values()) else []),
        ("change rate", f"p10 {per_second(rates['p10'])}, p50 {per_second(rates['p50'])}, p90 {per_second(rates['p90'])}"),
        ("due", f"{number(answer['due'])} past their deadline"),
        ("lateness", f"p50 {duration(late['p50'])}, p99 {duration(late['p99'])} (last 1,000 revisits)"),
        ("budget", f"{per_second(answer['budget'])}, {per_second(answer['revisit_budget'])} for revisits" if answer["budget"] else "auto"),
        ("planned", f"{per_second(answer['planned_rate'])}{memoryless}{feasible}{bound}"),
        *([("hubs", _hubs(answer))] if answer["hubs"] or answer["discovered"] else []),
        *([("neighbourhoods", _neighbourhoods(answer["neighbourhoods"]))] if answer["neighbourhoods"] else []),
        *([("given up", _given_up(answer))] if answer["given_up"] else []),
        ("exploration", _exploration(answer)),
        (
            "price",
            NOTHING if answer["price"] is None else f"{number(answer['price'])} of a visit; {number(answer['multiplier'])} by the plan",
        ),
        ("freshness", NOTHING if freshness is None else f"{freshness:.1%} (estimated{by}, weighted by importance)"),
        ("last plan", plan + overdue),
    ]


def _unserved(partitions: list[int]) -> str:
    """Name partitions without a crawler.

    Examples
    --------
    >>> _unserved([0, 4, 5, 6])
    'partitions 0, 4-6: no crawler fetches their pages (SERVE_PARTITIONS)'
    """
    among = set(partitions)
    starts = [k for k in partitions if k - 1 not in among]
    ends = [k for k in partitions if k + 1 not in among]
    spans = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in zip(starts, ends, strict=True))
    return f"partitions {spans}: no crawler fetches their pages (SERVE_PARTITIONS)"


def _hubs(answer: dict[str, Any]) -> str:
    return f"{number(answer['hubs'] or 0)}; revisits have found {number(answer['discovered'])} new pages"


def _neighbourhoods(counts: dict[str, int]) -> str:
    """Say of how many hosts the clocks count.

    Examples
    --------
    >>> _neighbourhoods({"groups": 12, "clocks_open": 1, "rhythms_open": 0, "young_patterns": 2})
    '12 groups of pages; 1 host on their clocks, 0 by the hour of the day; 2 patterns change more often while pages are young'
    """
    hosts = f"{number(counts['clocks_open'])} host{'' if counts['clocks_open'] == 1 else 's'}"
    line = f"{number(counts['groups'])} groups of pages; {hosts} on their clocks, {number(counts['rhythms_open'])} by the hour of the day"
    if not (young := counts["young_patterns"]):
        return line
    return f"{line}; {number(young)} pattern{' changes' if young == 1 else 's change'} more often while pages are young"


def _given_up(answer: dict[str, Any]) -> str:
    return f"{number(answer['given_up'])} pages change too fast for the budget: visited once in their longest interval"


def _not_modified(answer: dict[str, Any]) -> str:
    lies = f"; {number(answer['validator_lies'])} found to be lies" if answer["validator_lies"] else ""
    return f"{number(answer['not_modified'])} answers 304, {size(answer['bytes_saved'])} saved{lies}"


def _not_followed(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Say how often links led into traps, and what became of canonical links; nothing where there were none."""
    lines = []
    if any(answer["trapped"].values()):
        by_reason = ", ".join(f"{number(links)} by {reason}" for reason, links in answer["trapped"].items() if links)
        lines.append(("traps", f"links not followed: {by_reason}"))
    if any(answer["canonical"].values()):
        followed, refused, offhost = (number(links) for links in answer["canonical"].values())
        lines.append(("canonical", f"{followed} pages became aliases; {refused} times refused, {offhost} times of another host"))
    return lines


def _noise(counts: dict[str, int]) -> str:
    calmed = f", {number(counts['calmed'])} of them calm again" if counts["calmed"] else ""
    found = f"{number(counts['found'])} pages found to differ within seconds{calmed}" if counts["found"] else ""
    return "; ".join(filter(None, [found, shared_words(counts), f"{number(counts['checks'])} second fetches for that"]))


def _signals(counts: dict[str, int]) -> str:
    return (
        f"{number(counts['told'])} changes told by sources, {number(counts['moved'])} moved a deadline;"
        f" after {number(counts['true'])} a change was found, after {number(counts['false'])} none"
    )


def _pings(counts: dict[str, int]) -> str:
    dropped = "".join(
        f", {number(counts[name])} {what}" for name, what in (("unknown", "of no page"), ("refused", "refused")) if counts[name]
    )
    return f"{number(counts['taken'])} taken{dropped}"


def _pushed(counts: dict[str, int]) -> str:
    refused = f", {number(counts['refused'])} put aside" if counts["refused"] else ""
    return f"{number(counts['taken'])} URLs taken from URL_KEYS{refused}"


def _exploration(answer: dict[str, Any]) -> str:
    name = answer["exploration"]
    if name is None:
        return NOTHING
    at = {"epsilon": "phase", "explore-then-commit": "stretch"}.get(name)
    what = f", {at} {answer['exploration_number']}" if at else ""
    if name == "explore-then-commit":
        what += ", exploring" if answer["is_exploring"] else ", committed"
    held = f"{number(answer['exploration_held'])} pages at a rate that it asks for"
    return f"{name}{what}, round {number(answer['exploration_rounds'])}; {held}"
