"""``simulate upadhyay-figure-2`` and ``simulate upadhyay-regret``: how fast change rates are learned, and what learning them costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from optimal_frontier.cli.experiments import FILE, checked_targets, picture_options, tell_written, with_progress, write_csv
from optimal_frontier.cli.output import number, show_facts, show_json, show_table
from optimal_frontier.papers.upadhyay.upadhyay_drawing import draw_upadhyay_figure_2, draw_upadhyay_regret
from optimal_frontier.papers.upadhyay.upadhyay_figure_2 import CHANGE_RATES, DELTA, VISIT_RATES, VISITS, EstimationError, upadhyay_figure_2
from optimal_frontier.papers.upadhyay.upadhyay_regret import HORIZONS, PAGES, REGRET_POLICIES, Growth, Regret, growths, regrets


@click.command("upadhyay-figure-2")
@click.option("--simulations", type=click.IntRange(2), default=1000, show_default=True, metavar="N", help="Histories per point.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of visits and changes.")
@picture_options
@click.option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write every point.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def upadhyay_figure_2_command(
    ctx: click.Context, simulations: int, seed: int, out: Path | None, no_picture: bool, csv_path: Path | None, as_json: bool
) -> None:
    """Hold estimators against a bound (Upadhyay et al., 2020).

    A page changes and is visited at the times of two Poisson processes; each visit says whether it changed. How far off are moment
    matching (eq. 7) and maximum likelihood, both clipped to [0.1, 1], and how far may the former be by Lemma 3, with probability 0.9?

    Exit code 1 if more than a tenth of the estimates of any point are further off than the bound.
    """
    picture = checked_targets(ctx, out, no_picture, csv_path)
    points = len(CHANGE_RATES) * len(VISIT_RATES) * len(VISITS)
    found = list(with_progress(upadhyay_figure_2(simulations, seed), points))
    lowest = min(found, key=lambda one: one.covered)
    if csv_path is not None:
        names = [f"{name}_{quartile}" for name in ("moment", "likelihood", "bound") for quartile in ("25", "50", "75")]
        rows = ([one.change_rate, one.visit_rate, one.visits, *one.moment, *one.likelihood, *one.bound, one.covered] for one in found)
        write_csv(csv_path, ["change_rate", "visit_rate", "visits", *names, "covered"], rows)
    holds = lowest.covered >= 1.0 - DELTA
    if as_json:
        about = {"figure": ctx.info_name, "simulations": simulations, "seed": seed, "delta": DELTA, "holds": holds}
        show_json({**about, "points": [asdict(one) for one in found]})
    else:
        _show_figure_2(found, simulations)
        place = f"change rate {lowest.change_rate:g}, {lowest.visit_rate:g} visits per unit of time, {lowest.visits} visits"
        said = "holds" if holds else "DOES NOT HOLD"
        told = f"{said}: covers at least {1 - DELTA:g} of the estimates everywhere; lowest {lowest.covered:.4f}"
        show_facts([("Lemma 3", f"{told} ({place})")])
    if picture is not None:
        draw_upadhyay_figure_2(found, picture)
    tell_written(picture, csv_path)
    ctx.exit(0 if holds else 1)


@click.command("upadhyay-regret")
@click.option("--seeds", type=click.IntRange(2), default=40, show_default=True, metavar="N", help="Sets of pages to average over.")
@click.option("--pages", type=click.IntRange(2), default=PAGES, show_default=True, metavar="N", help="Pages of a set.")
@picture_options
@click.option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write every single run.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def upadhyay_regret_command(
    ctx: click.Context, seeds: int, pages: int, out: Path | None, no_picture: bool, csv_path: Path | None, as_json: bool
) -> None:
    """Show what learning costs, by horizon (Upadhyay et al., 2020).

    Explore-then-commit, for the time that Theorem 1 asks for, for the square root of the horizon, and by the doubling trick, against its
    bound and against phased epsilon-greedy. Time is in rounds, in each of which the budget visits every page once; regret
    is freshness lost against who knows the change rates, summed over time.

    Exit code 1 if the bound fails more often than it may, or the regret of explore-then-commit grows faster than the square root of
    the horizon, by more than 0.005 and two standard errors.
    """
    picture = checked_targets(ctx, out, no_picture, csv_path)
    found = list(with_progress(regrets(pages, range(seeds)), seeds * len(HORIZONS) * len(REGRET_POLICIES)))
    grown = growths(found)
    bounded = [one for one in found if not np.isnan(one.bound)]
    broken = float(np.mean([one.regret > one.bound for one in bounded]))
    theorem = next(one for one in grown if one.policy == "theorem-1")
    holds = broken <= DELTA and theorem.exponent <= 0.505 + 2.0 * theorem.error
    if csv_path is not None:
        write_csv(csv_path, ["policy", "horizon", "seed", "regret", "bound"], (list(asdict(one).values()) for one in found))
    if as_json:
        means = [{"policy": name, "horizon": at, "regret": _mean(found, name, at)} for name in REGRET_POLICIES for at in HORIZONS]
        about = {"figure": ctx.info_name, "pages": pages, "seeds": seeds, "bound_broken": broken, "holds": holds}
        show_json({**about, "growth": [asdict(one) for one in grown], "means": means})
    else:
        _show_regret(found, grown, pages, seeds)
        largest = max(one.regret / one.bound for one in bounded)
        show_facts(
            [
                ("bound", f"{'holds' if broken <= DELTA else 'DOES NOT HOLD'}: regret of theorem-1 at most {largest:.3f} of it"),
                ("exponent", f"of theorem-1 {theorem.exponent:.4f} ± {theorem.error:.4f} (the bound's is 0.5)"),
            ]
        )
    if picture is not None:
        draw_upadhyay_regret(found, grown, picture)
    tell_written(picture, csv_path)
    ctx.exit(0 if holds else 1)


def _show_figure_2(found: Sequence[EstimationError], simulations: int) -> None:
    click.echo(f"median error over {number(simulations)} simulations, and median bound")
    click.echo()
    rows = [
        [f"{one.change_rate:g}", f"{one.visit_rate:g}", number(one.visits)]
        + [f"{quartiles[1]:.4f}" for quartiles in (one.moment, one.likelihood, one.bound)]
        + [f"{one.covered:.3f}"]
        for one in found
    ]
    show_table(["change rate", "visit rate", "visits", "moments", "likelihood", "bound", "covered"], rows, left=0)
    click.echo()


def _show_regret(found: Sequence[Regret], grown: Sequence[Growth], pages: int, seeds: int) -> None:
    click.echo(f"mean regret over {seeds} sets of {number(pages)} pages, in rounds of all importance")
    click.echo()
    rows = []
    for at in HORIZONS:
        bound = float(np.mean([one.bound for one in found if one.policy == "theorem-1" and one.horizon == at]))
        rows.append([number(at), *(f"{_mean(found, name, at):,.1f}" for name in REGRET_POLICIES), f"{bound:,.0f}"])
    by_policy = {one.policy: one for one in grown}
    rows.append(["exponent", *(f"{by_policy[name].exponent:.3f}" for name in REGRET_POLICIES), ""])
    rows.append(["", *(f"±{by_policy[name].error:.3f}" for name in REGRET_POLICIES), ""])
    show_table(["rounds", *REGRET_POLICIES, "bound"], rows, left=0)
    click.echo()


def _mean(found: Sequence[Regret], policy: str, horizon: float) -> float:
    return float(np.mean([one.regret for one in found if (one.policy, one.horizon) == (policy, horizon)]))
