"""``whatif``: what another budget would buy, and what budget a freshness takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import duration, number, per_second, show_facts, show_json, show_table
from optimal_frontier.cli.project import find_workplace, opened_namespace
from optimal_frontier.settings import FrontierSettings

# The solver takes long to import, and few commands need it.
if TYPE_CHECKING:
    from optimal_frontier.frontier.planning.curve import CrawlCurve, Limit

#: Budgets that are shown unless some are asked for, in units of the present one.
LADDER: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
#: Share of the budget from which on what cannot be used is said.
_NOTABLE: Final = 0.01
#: Share of freshness from which on a reason why there is no more is said.
_NOTABLE_LOSS: Final = 0.0005


class _Rate(click.ParamType[float]):
    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            rate = float(value)
        except ValueError:
            rate = math.nan
        if not 0 < rate < math.inf:
            self.fail(f"{value}: expected fetches per second, above 0", param, ctx)
        return rate


class _Share(click.ParamType[float]):
    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            share = math.nan
        if not 0 < share <= 1:
            self.fail(f"{value}: expected a freshness above 0 and up to 1, as 0.95 or 95%", param, ctx)
        return share


class _ManyValues(click.Command):
    """``--rate 10 20`` means ``--rate 10 --rate 20``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        expanded: list[str] = []
        option, wants_value = "", False
        for word in args:
            if wants_value:
                wants_value = False
            elif word.partition("=")[0] in ("--rate", "--freshness"):
                option, value = word.partition("=")[::2]
                wants_value = not value
            elif word.startswith("-"):
                option = ""
            elif option:
                expanded.append(option)
            expanded.append(word)
        return super().parse_args(ctx, expanded)


@click.command(cls=_ManyValues)
@click.option("--rate", "rates", type=_Rate(), metavar="R...", multiple=True, help="Budgets, fetches per second.")
@click.option("--freshness", "shares", type=_Share(), metavar="F...", multiple=True, help="Freshness (0.95 or 95%) to find the budget for.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def whatif(options: Options, rates: tuple[float, ...], shares: tuple[float, ...], as_json: bool) -> None:
    """Show what other budgets would buy, from the estimates as they stand.

    Without --rate and --freshness, budgets around the present one. Nothing is changed.
    """
    from optimal_frontier.frontier.planning.curve import read_crawl_curve

    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        answer = forecast(read_crawl_curve(namespace, workplace.settings), workplace.settings, rates, shares)
    if as_json:
        show_json(answer)
        return
    _show(answer)


def forecast(curve: CrawlCurve, settings: FrontierSettings, rates: Sequence[float], shares: Sequence[float]) -> dict[str, Any]:
    """Return what ``whatif --json`` shows. Rates per second, freshness and its differences as shares of 1.

    Parameters
    ----------
    curve : CrawlCurve
        Of the crawl.
    settings : FrontierSettings
        Its settings.
    rates : sequence of float
        Budgets to look at; a ladder around the present one if both are empty.
    shares : sequence of float
        Freshness values to find the budget for.

    Returns
    -------
    dict
        ``present``: the crawl as it is; ``rates``: a row per budget; ``targets``: a row per freshness, with ``budget`` None where no budget
        is enough; ``limit``: the best that any budget can buy, and the shares that are out of reach by their causes.
    """
    asked = list(rates) if rates or shares else [factor * curve.present for factor in LADDER]
    now = curve.at(curve.present)

    def row(budget: float) -> dict[str, Any]:
        point = now if budget == curve.present else curve.at(budget)
        fields = asdict(point) | {"gain": point.freshness - now.freshness, "is_present": budget == curve.present}
        fields["found_after_seconds"] = curve.found_after(budget)
        return fields if settings.objective == "freshness" else fields | {"changes_per_second": curve.changes(budget)}

    limit = curve.limit()
    targets = []
    for share in shares:
        found = curve.budget_for(share)
        targets.append(
            {
                "freshness": share,
                "reachable": found is not None,
                "budget": found.budget if found else None,
                "times_present": found.budget / curve.present if found else None,
                "slope": found.slope if found else None,
                "feasible": found.feasible if found else None,
            }
        )
    return {
        "objective": settings.objective,
        "exploration": settings.exploration,
        "budget_is_measured": settings.crawl_rate is None,
        "pages": len(curve.problem.importance),
        "pending_first_visit": curve.waiting,
        "present": row(curve.present),
        "rates": [row(budget) for budget in asked],
        "targets": targets,
        "limit": asdict(limit),
    }


def why_no_more(limit: Limit) -> str:
    """Say where the freshness that no budget can buy is lost."""
    causes = {
        "pages without a first visit": limit.not_fetched,
        "shortest intervals (MIN_INTERVAL, RULES)": limit.bounds,
        "limits of hosts (HOST_DELAY, HOST_MAX_RATE)": limit.hosts,
        "pages that fail": limit.failures,
    }
    lost = [f"{share:.1%} to {cause}" for cause, share in causes.items() if share >= _NOTABLE_LOSS]
    return "the rest is lost: " + ", ".join(lost) if lost else "short of all by a rounding error"


def _show(answer: dict[str, Any]) -> None:
    if answer["rates"]:
        changes = answer["objective"] == "changes"
        shown = {row["budget"]: row for row in [answer["present"], *answer["rates"]]}
        names = ["budget/s", "for revisits/s", "freshness", "gain", "next 1/s adds", "multiplier"]
        if changes:
            names.insert(4, "changes seen/s")
        if answer["present"]["found_after_seconds"] is not None:
            names.append("new pages found after")
        show_table([*names, ""], [_cells(shown[budget], answer, changes) for budget in sorted(shown)])
    elif answer["targets"]:
        now = answer["present"]
        show_facts([("present", f"{per_second(now['budget'])} gives {_percent(now['freshness'])}")])
    from optimal_frontier.frontier.planning.curve import Limit

    limit = Limit(**answer["limit"])
    for target in answer["targets"]:
        click.echo(_sentence(target, answer, limit))


def _cells(row: dict[str, Any], answer: dict[str, Any], changes: bool) -> list[str]:
    notes = []
    if row["is_present"]:
        notes.append("present, as measured" if answer["budget_is_measured"] else "present")
    if not row["feasible"]:
        notes.append("intervals asked for do not fit")
    if row["unused"] > _NOTABLE * row["budget"]:
        notes.append(f"{per_second(row['unused'])} cannot be used")
    cells = [
        number(row["budget"]),
        number(row["revisit_budget"]),
        _percent(row["freshness"]),
        "" if row["is_present"] else f"{100 * row['gain']:+.2f} points",
        f"{100 * row['slope']:.3g} points",
        number(row["multiplier"]),
        ", ".join(notes),
    ]
    if changes:
        cells.insert(4, number(row["changes_per_second"]))
    if row["found_after_seconds"] is not None:
        cells.insert(-1, duration(row["found_after_seconds"]))
    return cells


def _sentence(target: dict[str, Any], answer: dict[str, Any], limit: Limit) -> str:
    share = f"{100 * target['freshness']:.6g}%"
    if target["reachable"]:
        scaled = "" if target["feasible"] else "; the intervals asked for (RULES, MAX_INTERVAL) do not fit it"
        return f"{share} takes {per_second(target['budget'])}, {target['times_present']:.3g} times the present budget{scaled}"
    waits = answer["pending_first_visit"]
    later = f" ({number(waits)} wait for theirs)" if waits and limit.not_fetched >= _NOTABLE_LOSS else ""
    best = f"{_percent(limit.freshness)} at {per_second(limit.budget)}"
    return f"{share} is out of reach of any budget: the best is {best}; {why_no_more(limit)}{later}"


def _percent(share: float) -> str:
    return f"{share:.2%}"
