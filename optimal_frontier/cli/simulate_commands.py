"""``simulate policies``: policies side by side in worlds of chance. What it shares with ``simulate trace`` is here, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np

from optimal_frontier.cli.experiments import FILE, checked_targets, picture_options, tell_written, with_progress, write_csv
from optimal_frontier.cli.output import number, show_json, show_table
from optimal_frontier.cli.policy_drawing import draw_policies
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.simulation import (
    DEFAULT_LEARNER,
    LEARNERS,
    POLICY_NAMES,
    PROCESSES,
    STANDARD_WORLDS,
    WORLDS,
    Interval,
    Report,
    Standing,
    SyntheticWorld,
    compare,
    standings,
    synthetic_world,
)


def comparing_options(names: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options of both commands; the names are those of policies."""
    options = (
        click.option("--json", "as_json", is_flag=True, help="As JSON, freshness by time included."),
        click.option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write every single run."),
        picture_options,
        click.option(
            "--replan",
            type=click.FloatRange(0, min_open=True),
            metavar="DAYS",
            help="Days between two plans. Default: 0.4 of the time in which the budget visits every page once.",
        ),
        click.option(
            "--learner",
            type=click.Choice(list(LEARNERS)),
            default=DEFAULT_LEARNER,
            show_default=True,
            help="Who learns: a live crawl, the posterior alone, or one thing more.",
        ),
        click.option("--policy", "policies", type=click.Choice(names), multiple=True, help="These policies only; may be repeated."),
    )

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        for option in options:
            command = option(command)
        return command

    return with_options


@click.command("policies")
@click.option("--world", "worlds", type=click.Choice(list(WORLDS)), multiple=True, help="These worlds only; may be repeated.")
@click.option(
    "--process",
    "processes",
    type=click.Choice(list(PROCESSES)),
    multiple=True,
    default=["poisson"],
    show_default=True,
    help="How pages change; may be repeated.",
)
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, metavar="N", help="Sets of pages to average over.")
@click.option("--days", type=click.FloatRange(0, min_open=True), default=400.0, show_default=True, metavar="D", help="Length of a crawl.")
@click.option("--pages", type=click.IntRange(1), default=1000, show_default=True, metavar="N", help="Pages of a world.")
@click.option(
    "--visits",
    "budgets",
    type=click.FloatRange(0, min_open=True),
    multiple=True,
    metavar="V",
    help="Budget, visits per page and day; the world's own by default. May be repeated.",
)
@comparing_options(POLICY_NAMES)
@click.pass_context
def policies(
    ctx: click.Context,
    worlds: tuple[str, ...],
    processes: tuple[str, ...],
    seeds: int,
    days: float,
    pages: int,
    budgets: tuple[float, ...],
    policies: tuple[str, ...],
    learner: str,
    replan: float | None,
    out: Path | None,
    no_picture: bool,
    csv_path: Path | None,
    as_json: bool,
) -> None:
    """Hold policies against a crawler that knows the change rates.

    Worlds A (importance and change rate uniform), B (Pareto and lognormal) and C (Zipf and uniform), 1,000 pages, 400 days; change rates
    are unknown and learned from one bit a visit. Freshness is measured over the second half. The clairvoyant knows the rates; the
    optimum, where there is a formula, is that of perfectly even visits. "behind" is by how much a policy falls short of "median", the
    default of a crawl, with a 95% confidence interval over seeds. In S and M, which are not shown unless asked for, half
    of the pages arrive during the crawl; S has sites and sections whose pages change alike, M sections of two kinds of pages.
    """
    for option, value in (("--days", days), *(("--visits", visits) for visits in budgets), ("--replan", replan)):
        finite(option, value)
    picture = checked_targets(ctx, out, no_picture, csv_path)
    chosen = _worlds(worlds or STANDARD_WORLDS, processes, budgets, pages)
    names = tuple(dict.fromkeys(policies)) or POLICY_NAMES
    runs = compare(chosen, names, range(seeds), days, replan=replan, learner=learner)
    reports = list(with_progress(runs, len(chosen) * seeds * len(names)))
    found = standings(reports)
    write_reports(csv_path, reports)
    if as_json:
        show_json({"figure": ctx.info_name, "pages": pages, "days": days, "standings": [asdict_plain(one) for one in found]})
    else:
        for name in dict.fromkeys(one.world for one in found):
            budget = next(report.budget for report in reports if report.world == name)
            click.echo(f"world {name}: {number(pages)} pages, {number(budget)} visits a day for {number(days)} days, {_seeds(seeds)}")
            click.echo("in % of importance, of the clairvoyant and of the optimum; ± 95% confidence")
            click.echo()
            _show_standings([one for one in found if one.world == name])
            click.echo()
    if picture is not None:
        draw_policies(found, 1.0, "days", picture)
    tell_written(picture, csv_path)


def asdict_plain(standing: Standing) -> dict[str, Any]:
    """Return a standing as JSON has it."""
    plain = asdict(standing)
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in plain.items()}


def _show_standings(found: Sequence[Standing]) -> None:
    rows = []
    for one in sorted(found, key=lambda one: -one.freshness.mean):
        shares = (one.freshness, one.of_clairvoyant, one.of_optimum, one.behind_default)
        rows.append([*(per_cent(share) for share in shares), number(round(one.visited)), one.policy])
    show_table(["fresh", "clairvoyant", "optimum", "behind", "visited", "policy"], rows)


def _worlds(names: Sequence[str], processes: Sequence[str], budgets: Sequence[float], pages: int) -> list[SyntheticWorld]:
    """Every world under every process with every budget; the budget is in the name where there are several."""
    found = []
    for name, process, budget in product(dict.fromkeys(names), dict.fromkeys(processes), dict.fromkeys(budgets) or (None,)):
        world = synthetic_world(name, process, pages, budget)
        found.append(world if len(set(budgets)) < 2 else replace(world, name=f"{world.name}, {budget:g} visits a page"))
    return found


def per_cent(share: Interval) -> str:
    """Return a mean and its interval in per cent."""
    if np.isnan(share.mean):
        return "–"
    return f"{100 * share.mean:.2f}" + ("" if np.isnan(share.error) else f" ±{100 * share.error:.2f}")


def write_reports(path: Path | None, reports: Sequence[Report]) -> None:
    """Write every run, if it is wanted."""
    if path is not None:
        names = [
            "world",
            "policy",
            "seed",
            "pages",
            "horizon",
            "burn_in",
            "budget",
            "freshness",
            "optimum",
            "fraction",
            "visits",
            "visited",
        ]
        write_csv(path, names, ([getattr(report, name) for name in names] for report in reports))


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count > 1 else ''}"


def finite(option: str, value: float | None) -> None:
    """Refuse what is not finite."""
    if value is not None and not np.isfinite(value):
        raise ConfigurationError(f"{option}: expected a finite number")
