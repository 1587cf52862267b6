"""``simulate wolf-figure-7`` to ``wolf-figure-10``: whole numbers of crawls for all kinds of pages, and slots for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from optimal_frontier.cli.experiments import FILE, checked_targets, picture_options, tell_written, with_progress, write_csv
from optimal_frontier.cli.output import number, show_facts, show_json, show_table
from optimal_frontier.papers.wolf.search_engine import SPREAD
from optimal_frontier.papers.wolf.wolf_drawing import draw_slots, draw_wolf_figure_7, draw_wolf_figure_8, draw_wolf_figure_9
from optimal_frontier.papers.wolf.wolf_figure_7 import CURVES, SKEWS, figure_7_checks, weighted_wins, wolf_figure_7
from optimal_frontier.papers.wolf.wolf_figure_8 import PANELS, figure_8_checks, wolf_figure_8
from optimal_frontier.papers.wolf.wolf_figure_9 import SHAPES, figure_9_checks, wolf_figure_9
from optimal_frontier.papers.wolf.wolf_figure_10 import (
    CRAWLERS,
    FIGURE_10_PAGES,
    FREE,
    SHARES,
    WINDOW,
    SlotDeviations,
    figure_10_checks,
    wolf_figure_10,
)
from optimal_frontier.papers.wolf.wolf_pages import FEWEST_TIMES, MEAN_RATE, MOST_TIMES, PAGES, SHAPE, USUAL_TIMES
from optimal_frontier.papers.wolf.wolf_schemes import CRAWLS_PER_PAGE, FIXED_CRAWLS_PER_PAGE, SCHEMES, Check, SchemePoint

#: What the paper does not say of its pages, and what is taken here.
_SHAPE_CHOSEN: Final = ("Pareto pages", f"shape {SHAPE:g}; scales follow from the rates")
_QUASI_CHOSEN: Final = (
    ("potential updates", f"{FEWEST_TIMES} to {USUAL_TIMES} a day, more where the rate is more, at most {MOST_TIMES}; at random times"),
    ("their probabilities", "rate / potential updates, the same at each; rates above the most are spread over the others"),
)
_CRAWLS_CHOSEN: Final = ("crawls per page", f"{FIXED_CRAWLS_PER_PAGE:g}")
_Command = Callable[..., None]


@dataclass(frozen=True)
class _Findings:
    """What a figure shows.

    Attributes
    ----------
    what : str
        Of the values.
    found : sequence of SchemePoint
        The curves.
    checks : sequence of Check
        Promises, and whether they hold.
    chosen, notes : sequence of (str, str)
        What the paper leaves open and is taken here; what differs from it.
    draw : callable
        Draws the points of so many pages into a file.
    """

    what: str
    found: Sequence[SchemePoint]
    checks: Sequence[Check]
    chosen: Sequence[tuple[str, str]]
    notes: Sequence[tuple[str, str]]
    draw: Callable[[Sequence[SchemePoint], int, Path], None]


def _options(pages: int, least: int) -> Callable[[_Command], _Command]:
    """Options that all of these commands have; the number of pages by default, and at least."""

    def add(command: _Command) -> _Command:
        for option in (
            click.option("--json", "as_json", is_flag=True, help="As JSON."),
            click.option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write every point."),
            picture_options,
            click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the pages."),
            click.option("--pages", type=click.IntRange(least), default=pages, show_default=True, metavar="N", help="Number of pages."),
        ):
            command = option(command)
        return command

    return add


@click.command("wolf-figure-7")
@_options(PAGES, 100)
@click.pass_context
def wolf_figure_7_command(
    ctx: click.Context, pages: int, seed: int, out: Path | None, no_picture: bool, csv_path: Path | None, as_json: bool
) -> None:
    """Show embarrassment by schemes of crawling (Wolf et al., 2002).

    A mixture of 60% Poisson, 30% Pareto and 10% quasi-deterministic pages with Zipf rates, 1.5 updates a day on average; weights are how
    often a client clicks on what turns out to be wrong. By crawls per page and day, and by how unequal rates are (theta 0: Zipf, 1: all
    alike).

    Exit code 1 if the weighted optimum is not best, or uniform not below proportional.
    """
    picture = checked_targets(ctx, out, no_picture, csv_path)
    found = list(with_progress(wolf_figure_7(pages, seed), (len(CRAWLS_PER_PAGE) + len(SKEWS)) * len(CURVES)))
    checks = figure_7_checks(found)
    wins = weighted_wins(found)
    told = " and ".join(f"{scheme} at {won} of {of} places" for scheme, (won, of) in wins.items())
    notes = [("weights", f"make {told} better; in the paper they make both worse")]
    chosen = [_SHAPE_CHOSEN, *_QUASI_CHOSEN, ("positions of a page", f"standard deviation {SPREAD:g}")]
    what = "weighted staleness (embarrassment level), %"
    _report(ctx, pages, seed, _Findings(what, found, checks, chosen, notes, draw_wolf_figure_7), picture, csv_path, as_json)


@click.command("wolf-figure-8")
@_options(PAGES, 100)
@click.pass_context
def wolf_figure_8_command(
    ctx: click.Context, pages: int, seed: int, out: Path | None, no_picture: bool, csv_path: Path | None, as_json: bool
) -> None:
    """Show staleness by kinds of pages and crawls (Wolf et al., 2002).

    Optimal, uniform and proportional crawls for the paper's mixture and for each kind of pages alone; Zipf rates, 1.5 updates a day on
    average.

    Exit code 1 if the optimum is not below uniform, uniform not below proportional, or copies of quasi-deterministic pages are stale at the
    most crawls.
    """
    picture = checked_targets(ctx, out, no_picture, csv_path)
    found = list(with_progress(wolf_figure_8(pages, seed), len(PANELS) * len(CRAWLS_PER_PAGE) * len(SCHEMES)))
    checks = figure_8_checks(found)
    chosen = [_SHAPE_CHOSEN, *_QUASI_CHOSEN]
    findings = _Findings("staleness by crawls per page, %", found, checks, chosen, [], draw_wolf_figure_8)
    _report(ctx, pages, seed, findings, picture, csv_path, as_json)


@click.command("wolf-figure-9")
@_options(PAGES, 100)
@click.pass_context
def wolf_figure_9_command(
    ctx: click.Context, pages: int, seed: int, out: Path | None, no_picture: bool, csv_path: Path | None, as_json: bool
) -> None:
    """Show staleness by the tail of updates (Wolf et al., 2002).

    Pareto pages with the same rates at every shape from 1.05 to 4; at 1 and below times between updates have no mean, and the paper's eq. 3
    says nothing.

    Exit code 1 if schemes are not in the paper's order, or staleness does not rise with the shape.
    """
    picture = checked_targets(ctx, out, no_picture, csv_path)
    found = list(with_progress(wolf_figure_9(pages, seed), len(SHAPES) * len(SCHEMES)))
    checks = figure_9_checks(found)
    best = {one.at: one.value for one in found if one.scheme == "optimal"}
    told = ", ".join(f"{100 * best[shape]:.2f}% at shape {shape:g}" for shape in (SHAPES[0], 2.0, SHAPES[-1]))
    notes = [("trend", f"optimal staleness rises with the shape: {told}; the paper has it rise towards small shapes")]
    findings = _Findings("staleness by shape, %", found, checks, [_CRAWLS_CHOSEN], notes, draw_wolf_figure_9)
    _report(ctx, pages, seed, findings, picture, csv_path, as_json)


@click.command("wolf-figure-10")
@_options(FIGURE_10_PAGES, 1000)
@click.pass_context
def wolf_figure_10_command(
    ctx: click.Context, pages: int, seed: int, out: Path | None, no_picture: bool, csv_path: Path | None, as_json: bool
) -> None:
    """Give crawls slots of ten crawlers (Wolf et al., 2002).

    The optimum's crawls, 2.5 per page, each as near to its ideal time as possible in sum, those of quasi-deterministic pages never
    early; with every slot taken, as in the paper, and with 1% of them free.

    Exit code 1 if a quasi-deterministic crawl is early, or fewer than 99.5% are within 20 slots of their ideal time where slots are free.
    """
    picture = checked_targets(ctx, out, no_picture, csv_path)
    found = list(with_progress(wolf_figure_10(pages, seed), len(FREE)))
    checks = figure_10_checks(found)
    shares = ", ".join(f"{share:.0%}" for share in SHARES)
    chosen = [
        ("pages", f"{shares} Poisson, Pareto and quasi-deterministic, {FIXED_CRAWLS_PER_PAGE:g} crawls each on average"),
        ("phases", "last crawl before at a random time of the last gap; the day of quasi-deterministic pages begins at random times"),
        _SHAPE_CHOSEN,
        *_QUASI_CHOSEN,
    ]
    if as_json:
        show_json({**_about(ctx, pages, seed, chosen, checks), "crawlers": CRAWLERS, "assignments": [_plain(one) for one in found]})
    else:
        _show_slots(found)
        show_facts(_chosen(chosen))
        click.echo()
        show_facts(_verdicts(checks))
    if csv_path is not None:
        rows = ([one.free, *row] for one in found for row in zip(one.edges[:-1], one.counts, one.quasi_counts, strict=True))
        write_csv(csv_path, ["free", "slots_late", "crawls", "quasi_deterministic"], rows)
    if picture is not None:
        draw_slots(found, picture)
    tell_written(picture, csv_path)
    ctx.exit(_code(checks))


def _report(
    ctx: click.Context, pages: int, seed: int, findings: _Findings, picture: Path | None, csv_path: Path | None, as_json: bool
) -> None:
    """Show curves, what was chosen, and what holds; write the files that are asked for, and exit."""
    found, checks = findings.found, findings.checks
    if as_json:
        points = [asdict(one) for one in found]
        show_json({**_about(ctx, pages, seed, findings.chosen, checks), "notes": dict(findings.notes), "points": points})
    else:
        click.echo(f"{number(pages)} pages, {MEAN_RATE:g} updates a day on average; {findings.what}")
        click.echo()
        _show_curves(found)
        show_facts(_chosen(findings.chosen))
        click.echo()
        show_facts([*findings.notes, *_verdicts(checks)])
    if csv_path is not None:
        write_csv(csv_path, ["panel", "at", "scheme", "value"], (tuple(asdict(one).values()) for one in found))
    if picture is not None:
        findings.draw(found, pages, picture)
    tell_written(picture, csv_path)
    ctx.exit(_code(checks))


def _show_curves(found: Sequence[SchemePoint]) -> None:
    schemes = list(dict.fromkeys(one.scheme for one in found))
    for panel in dict.fromkeys(one.panel for one in found):
        values = {(one.at, one.scheme): one.value for one in found if one.panel == panel}
        rows = [[f"{at:g}", *(f"{100 * values[at, name]:.3f}" for name in schemes)] for at in dict.fromkeys(at for at, _ in values)]
        show_table([panel, *(name.replace("weighted ", "w. ") for name in schemes)], rows, left=0)
        click.echo()


def _about(ctx: click.Context, pages: int, seed: int, chosen: Sequence[tuple[str, str]], checks: Sequence[Check]) -> dict[str, Any]:
    held = [{**asdict(check), "holds": check.holds} for check in checks]
    return {"figure": ctx.info_name, "pages": pages, "seed": seed, "chosen": dict(chosen), "checks": held}


def _chosen(chosen: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """What the paper leaves open, as rows."""
    return [("chosen", "as the paper does not say"), *((f"  {name}", value) for name, value in chosen)]


def _verdicts(checks: Sequence[Check]) -> list[tuple[str, str]]:
    return [
        (check.promise, f"holds; least: {check.where}" if check.holds else f"DOES NOT HOLD: {check.where}, off by {-check.slack:.3g}")
        for check in checks
    ]


def _code(checks: Sequence[Check]) -> int:
    return 0 if all(check.holds for check in checks) else 1


def _show_slots(found: Sequence[SlotDeviations]) -> None:
    first = found[0]
    share = first.quasi_deterministic / first.crawls
    click.echo(f"{number(first.crawls)} crawls, {share:.1%} of them quasi-deterministic, of {CRAWLERS} crawlers (paper: 20%, two minutes)")
    click.echo()
    rows = [
        [f"{one.free:.1%}", number(one.slots), f"{one.within:.3%}", f"{one.farthest:.1f}", number(one.early), f"{one.seconds:.1f}"]
        for one in found
    ]
    show_table(["free", "slots each", f"within {WINDOW} slots", "farthest", "early", "seconds"], rows, left=0)
    click.echo()


def _plain(one: SlotDeviations) -> dict[str, Any]:
    return {**asdict(one), "edges": one.edges.tolist(), "counts": one.counts.tolist(), "quasi_counts": one.quasi_counts.tolist()}
