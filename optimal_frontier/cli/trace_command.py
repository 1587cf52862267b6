"""``simulate trace``: policies side by side on recorded changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from optimal_frontier.cli.experiments import checked_targets, tell_written, with_progress
from optimal_frontier.cli.output import number, show_facts, show_json, show_table
from optimal_frontier.cli.policy_drawing import draw_policies
from optimal_frontier.cli.simulate_commands import asdict_plain, comparing_options, finite, per_cent, write_reports
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.simulation import (
    ORACLE_NAMES,
    POLICY_NAMES,
    Interval,
    Run,
    Standing,
    Trace,
    TraceWorld,
    read_trace,
    reports_of,
    standings,
)

_DAY_S: Final = 86_400.0
#: Policies that are compared unless told.
_POLICIES: Final = ("uniform", "nutch-tuned", "median", "epsilon", "clairvoyant", *ORACLE_NAMES)
#: Budget unless told, fetches per change.
_FETCHES: Final = 5.0


@dataclass(frozen=True)
class _Crawl:
    """One trace under one budget."""

    world: TraceWorld
    trace: str
    budget: str
    pages: int
    changes: int
    seconds: float

    @property
    def days(self) -> float:
        return self.seconds / _DAY_S


@click.command("trace")
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--fetches-per-change",
    "fetches",
    type=click.FloatRange(0, min_open=True),
    multiple=True,
    metavar="K",
    help=f"Budget: fetches for each change that there is; may be repeated.  [default: {_FETCHES:g}, without --every]",
)
@click.option("--every", type=click.FloatRange(0, min_open=True), metavar="DAYS", help="Budget: days per page and visit.")
@click.option(
    "--burn-in", type=click.FloatRange(0, 1, max_open=True), default=0.25, show_default=True, help="Share of the time that is not measured."
)
@click.option("--seeds", type=click.IntRange(1), default=4, show_default=True, metavar="N", help="Crawls that start in different ways.")
@click.option(
    "--last", type=click.FloatRange(0, min_open=True), metavar="DAYS", help="The last part of each file only: pages that exist in it."
)
@click.option("--existing", is_flag=True, help="Pages only that exist at the beginning.")
@click.option("--max-pages", type=click.IntRange(1), metavar="N", help="The first pages of each file only.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Processes.")
@comparing_options((*POLICY_NAMES, *ORACLE_NAMES))
@click.pass_context
def trace(
    ctx: click.Context,
    files: tuple[Path, ...],
    fetches: tuple[float, ...],
    every: float | None,
    burn_in: float,
    seeds: int,
    last: float | None,
    existing: bool,
    max_pages: int | None,
    jobs: int,
    policies: tuple[str, ...],
    learner: str,
    replan: float | None,
    out: Path | None,
    no_picture: bool,
    csv_path: Path | None,
    as_json: bool,
) -> None:
    """Hold policies against each other on recorded changes.

    FILE has a line page,time,event for everything that happened (seconds; created, changed or gone); `trace-git` makes one from any
    git history. A fourth column is the importance of the page; without it pages are equally important. Without the third one all are
    changes, but for the first one of a page, which creates it. Staleness is the share of pages x time in which a copy was not
    current, as it happened. A page counts while it exists, and after that until a visit finds it gone. Seeds differ in the order of
    first visits and in the phase of all visits.

    The clairvoyant knows each page's mean rate. "hindsight": the best constant intervals, found on the changes that they are measured
    on. "told-siblings": mean rates, and which other pages changed when a visit sees a change (at the same second). "all-times": all
    times of changes. Several files end with geometric means.
    """
    for option, value in (("--every", every), ("--last", last), ("--replan", replan), *(("--fetches-per-change", k) for k in fetches)):
        finite(option, value)
    picture = checked_targets(ctx, out, no_picture, csv_path)
    names = tuple(dict.fromkeys(policies)) or _POLICIES
    crawls = [
        crawl
        for name, file in _named(files).items()
        for crawl in _crawls(name, _part(_read(file), file, last, existing, max_pages), fetches, every)
    ]
    between = None if replan is None else replan * _DAY_S
    runs = [
        Run(crawl.world, policy, crawl.seconds, seed, burn_in * crawl.seconds, between, learner)
        for crawl in crawls
        for seed in range(seeds)
        for policy in names
    ]
    reports = list(with_progress(reports_of(runs, jobs), len(runs)))
    found = standings(reports)
    write_reports(csv_path, reports)
    if as_json:
        _show_json(ctx.info_name, crawls, found)
    else:
        _show(crawls, found, burn_in, seeds)
    if picture is not None:
        draw_policies(found, _DAY_S, "days", picture)
    tell_written(picture, csv_path)


def _named(files: Sequence[Path]) -> dict[str, Path]:
    stems = [file.stem for file in files]
    return {stem if stems.count(stem) == 1 else str(file): file for stem, file in zip(stems, files, strict=True)}


def _read(file: Path) -> Trace:
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            return read_trace(lines, str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: cannot be read ({getattr(error, 'strerror', None) or error})") from error


def _part(read: Trace, file: Path, last: float | None, existing: bool, max_pages: int | None) -> Trace:
    try:
        read = read.last(read.length if last is None else last * _DAY_S, newcomers=not existing)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from error
    if max_pages is not None:
        read = read.first(max_pages)
    if not len(read.changes.times):
        raise ConfigurationError(f"{file}: no page changes in that time")
    return read


def _crawls(name: str, read: Trace, fetches: Sequence[float], every: float | None) -> list[_Crawl]:
    """The trace under each budget; the budget is in the name of the world where there are several."""
    pages, changes = len(read.names), len(read.changes.times)
    chosen = dict.fromkeys(fetches) or ({} if every is not None else {_FETCHES: None})
    budgets = {f"{k:g} fetch{'' if k == 1 else 'es'} a change": k * changes / read.length for k in chosen}
    if every is not None:
        budgets[f"a visit to a page in {every:g} days"] = pages / (every * _DAY_S)
    return [
        _Crawl(read.world(name if len(budgets) == 1 else f"{name}, {told}", budget), name, told, pages, changes, read.length)
        for told, budget in budgets.items()
    ]


def _means(crawls: Sequence[_Crawl], found: Sequence[Standing]) -> list[dict[str, Any]]:
    """Geometric means over traces of staleness as a share of uniform's, by budget and policy; none for a single trace."""
    shares: dict[tuple[str, str], list[float]] = {}
    budgets = {crawl.world.name: crawl.budget for crawl in crawls}
    for one in found:
        if one.of_uniform.mean > 0.0:
            shares.setdefault((budgets[one.world], one.policy), []).append(one.of_uniform.mean)
    return [
        {"budget": budget, "policy": policy, "traces": len(several), "of_uniform": float(np.exp(np.mean(np.log(several))))}
        for (budget, policy), several in shares.items()
        if len({crawl.trace for crawl in crawls}) > 1
    ]


def _show_json(figure: str | None, crawls: Sequence[_Crawl], found: Sequence[Standing]) -> None:
    about = [
        {
            "world": crawl.world.name,
            "trace": crawl.trace,
            "budget": crawl.budget,
            "visits_per_day": crawl.world.budget * _DAY_S,
            "pages": crawl.pages,
            "changes": crawl.changes,
            "days": crawl.days,
        }
        for crawl in crawls
    ]
    show_json({"figure": figure, "crawls": about, "standings": [asdict_plain(one) for one in found], "means": _means(crawls, found)})


def _show(crawls: Sequence[_Crawl], found: Sequence[Standing], burn_in: float, seeds: int) -> None:
    for crawl in crawls:
        facts = [
            ("trace", crawl.trace),
            ("pages", number(crawl.pages) + ("" if np.ptp(crawl.world.importance) else ", equally important")),
            ("changes", f"{number(crawl.changes)} in {number(round(crawl.days))} days"),
            ("budget", f"{crawl.budget}: {number(crawl.world.budget * _DAY_S)} visits a day"),
            ("measured", f"the last {100 * (1 - burn_in):.0f}% of the time" + (f"; {seeds} seeds, ± 95% confidence" if seeds > 1 else "")),
        ]
        show_facts(facts)
        click.echo()
        rows = []
        for one in sorted((one for one in found if one.world == crawl.world.name), key=lambda one: -one.freshness.mean):
            stale = Interval(1.0 - one.freshness.mean, one.freshness.error)
            rows.append([per_cent(stale), _share(one.of_uniform), number(round(one.visits)), number(round(one.visited)), one.policy])
        show_table(["stale %", "of uniform", "visits", "visited", "policy"], rows)
        click.echo()
    means = _means(crawls, found)
    for budget in dict.fromkeys(one["budget"] for one in means):
        of_budget = sorted((one for one in means if one["budget"] == budget), key=lambda one: one["of_uniform"])
        click.echo(f"geometric means, {budget}")
        click.echo()
        show_table(
            ["of uniform", "traces", "policy"], [[f"{one['of_uniform']:.3f}", number(one["traces"]), one["policy"]] for one in of_budget]
        )
        click.echo()


def _share(share: Interval) -> str:
    if np.isnan(share.mean):
        return "–"
    return f"{share.mean:.3f}" + ("" if np.isnan(share.error) else f" ±{share.error:.3f}")
