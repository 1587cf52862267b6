"""``plan``: makes one plan, or goes on making them as a process of its own."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from optimal_frontier.cli.interruption import Interruption
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import NOTHING, duration, moment, number, per_second, show_facts, show_json, show_json_line
from optimal_frontier.cli.project import Workplace, find_workplace, opened_namespace
from optimal_frontier.errors import OptimalFrontierError, StateError, StateUnavailableError

# The solver takes long to import, and few commands need it.
if TYPE_CHECKING:
    from optimal_frontier.frontier.planning.planner import Planner, PlanReport

#: Seconds between two looks while Redis is away or nothing was fetched yet.
_RETRY_S = 1.0


def _interval(ctx: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 < value < math.inf:
        raise click.BadParameter(f"{value:g}: expected a number of seconds above 0")
    return value


@click.command()
@click.option("--once", is_flag=True, help="Make one plan now (the default).")
@click.option("--every", type=float, metavar="S", callback=_interval, help="Go on planning, S seconds apart, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="As JSON; with --every a line per plan.")
@click.pass_obj
def plan(options: Options, once: bool, every: float | None, as_json: bool) -> None:
    """Solve for the price of a visit, and move the deadlines that it changes.

    Spiders do so themselves; one plan at a time is made, whoever makes it.
    """
    if once and every is not None:
        raise click.UsageError("--once and --every exclude each other")
    workplace = find_workplace(options)
    if every is None:
        report = _plan_once(workplace)
        if as_json:
            show_json(asdict(report))
        else:
            show_facts(_rows(report))
        return
    _plan_on(replace(workplace, settings=replace(workplace.settings, resolve_interval=every)), as_json)


def _plan_once(workplace: Workplace) -> PlanReport:
    from optimal_frontier.frontier.planning.planner import Planner

    with opened_namespace(workplace) as namespace:
        planner = Planner(namespace, workplace.settings)
        try:
            report = planner.plan()
        finally:
            with contextlib.suppress(OptimalFrontierError):
                planner.release()
    if report is None:
        raise StateError("another process holds the planner's lock, and plans itself; nothing was done")
    return report


def _plan_on(workplace: Workplace, as_json: bool) -> None:
    from optimal_frontier.frontier.planning.planner import Planner

    # Stopped by a signal at any time from here on, the lock is given back.
    with Interruption() as interruption, opened_namespace(workplace, create=True) as namespace:
        planner = Planner(namespace, workplace.settings)
        outage = ""
        wait = 0.0
        while not interruption.wait(wait):
            try:
                if outage:
                    namespace.connection.reconnect()
                    click.echo("Redis answers again", err=True)
                    outage = ""
                wait = _plan_if_due(planner, lambda report: _tell(report, as_json))
            except StateUnavailableError as error:
                if not outage:
                    click.echo(f"optimal-frontier: {error}; trying again", err=True)
                outage = str(error)
                wait = _RETRY_S
        with contextlib.suppress(StateUnavailableError):
            planner.release()


def _plan_if_due(planner: Planner, tell: Callable[[PlanReport], None]) -> float:
    """Plan if it is time to, and return the seconds to the next look."""
    longest = min(planner.settings.resolve_interval, _RETRY_S)
    due = planner.due_in()
    if due is None:
        return longest
    if due > 0:
        return due
    report = planner.plan()
    if report is None:
        return longest  # another one holds the lock, and publishes soon
    tell(report)
    return max(planner.due_in() or 0.0, 0.02)


def _tell(report: PlanReport, as_json: bool) -> None:
    if as_json:
        show_json_line(asdict(report))
    else:
        said = [
            f"{number(report.pages)} pages in {duration(report.seconds)}",
            f"{per_second(report.planned_rate)} planned",
            f"{number(report.written)} deadlines moved",
            f"freshness {_freshness(report)}",
        ]
        click.echo(f"{moment(report.time)}  {', '.join(said)}{'' if report.feasible else ', NOT FEASIBLE'}")


def _freshness(report: PlanReport) -> str:
    return f"{report.estimated_freshness:.1%}" if report.pages else NOTHING


def _rows(report: PlanReport) -> list[tuple[str, str]]:
    return [
        ("pages", f"{number(report.pages)} planned; {number(report.read)} rows read; {number(report.written)} deadlines moved"),
        ("took", duration(report.seconds)),
        ("budget", f"{per_second(report.budget)}, {per_second(report.revisit_budget)} for revisits"),
        (
            "planned",
            f"{per_second(report.planned_rate)}" + ("" if report.feasible else "  NOT FEASIBLE: intervals asked for were scaled down"),
        ),
        ("multiplier", number(report.multiplier)),
        ("freshness", f"{_freshness(report)} (estimated, weighted by importance)"),
    ]
