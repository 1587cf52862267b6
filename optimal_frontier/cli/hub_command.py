"""``simulate hubs``: time to discovery beside freshness, with and without the value of discovery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from optimal_frontier.cli.experiments import FILE, checked_targets, tell_written, with_progress, write_csv
from optimal_frontier.cli.output import number, show_json, show_table
from optimal_frontier.simulation.comparing import Interval, interval
from optimal_frontier.simulation.hub_worlds import HUB_POLICIES, HubPolicy, HubReport, HubWorld, compare_hubs

_COLUMNS: Final = ("time_to_discovery", "found", "freshness", "of_known", "of_old", "hub_interval")
#: Those that are shares.
_SHARES: Final = ("found", "freshness", "of_known", "of_old")


@click.command("hubs")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, metavar="N", help="Worlds to average over.")
@click.option(
    "--days", type=click.FloatRange(0, 1000, min_open=True), default=12.0, show_default=True, metavar="D", help="Length of a crawl."
)
@click.option(
    "--new", type=click.FloatRange(0, 1e5, min_open=True), default=100.0, show_default=True, metavar="N", help="New articles a day."
)
@click.option(
    "--budget", type=click.FloatRange(0, 10, min_open=True), default=0.1, show_default=True, help="Share of what follows everything."
)
@click.option("--policy", "policies", type=click.Choice(HUB_POLICIES), multiple=True, help="These policies only; may be repeated.")
@click.option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write every single run.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def hubs(
    ctx: click.Context,
    seeds: int,
    days: float,
    new: float,
    budget: float,
    policies: tuple[HubPolicy, ...],
    csv_path: Path | None,
    as_json: bool,
) -> None:
    """Find new articles on hubs that change faster than the budget can follow.

    20 hubs and 3,000 articles; new ones appear on the hubs. "uniform" visits all known pages in turn. The plan without discovery visits
    pages for their own changes alone, the one with discovery (DISCOVERY_VALUE) for what they yield too; both learn. The clairvoyant knows
    change rates and yields. Discovery is the mean time from the appearance of an article until a visit finds it, freshness that of all
    pages that exist: an article that nobody has found has no copy. The second half of the time is measured.
    """
    checked_targets(ctx, None, True, csv_path)
    world = HubWorld(new_per_day=new, budget=budget)
    names = tuple(dict.fromkeys(policies)) or HUB_POLICIES
    reports = list(with_progress(compare_hubs(world, names, range(seeds), days), seeds * len(names)))
    if csv_path is not None:
        write_csv(
            csv_path, ("policy", "seed", *_COLUMNS), ([one.policy, one.seed, *(getattr(one, c) for c in _COLUMNS)] for one in reports)
        )
    if as_json:
        show_json({"figure": "hubs", "days": days, "runs": [asdict(one) for one in reports]})
    else:
        click.echo(f"{number(world.hubs)} hubs, {number(world.articles)} articles, {number(new)} new ones a day; {number(days)} days")
        click.echo()
        show_hubs(reports)
    tell_written(None, csv_path)


def show_hubs(reports: Sequence[HubReport]) -> None:
    """Show means over seeds, with 95% confidence, and time to discovery as a share of that of uniform visits."""
    uniform = {one.seed: one.time_to_discovery for one in reports if one.policy == "uniform"}
    rows = []
    for policy in dict.fromkeys(one.policy for one in reports):
        some = [one for one in reports if one.policy == policy]
        shares = [one.time_to_discovery / uniform[one.seed] for one in some if one.seed in uniform]
        cells = [_cell(interval([getattr(one, name) for one in some]), 100.0 if name in _SHARES else 1.0) for name in _COLUMNS]
        rows.append([cells[0], _cell(interval(shares), 1.0) if shares else "–", *cells[1:], policy])
    show_table(["days to discovery", "of uniform's", "found %", "fresh %", "of known", "of old", "hub every", "policy"], rows)


def _cell(of: Interval, factor: float) -> str:
    error = "" if of.error != of.error else f" ±{factor * of.error:.2f}"
    return f"{factor * of.mean:.3f}{error}" if factor == 1.0 else f"{factor * of.mean:.2f}{error}"
