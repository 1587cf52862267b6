"""``simulate azar-figure-1`` and ``simulate azar-figure-2``: schedules against the optimum, and which pages the optimum visits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from optimal_frontier.cli.experiments import FILE, checked_targets, picture_options, tell_written, with_progress, write_csv
from optimal_frontier.cli.output import number, show_facts, show_json, show_table
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.papers.azar.azar_drawing import draw_azar_figure_1, draw_azar_figure_2
from optimal_frontier.papers.azar.azar_figure_1 import (
    BANDWIDTHS,
    BARS,
    OPTIMUM,
    PAGES,
    SLOTS_PER_PAGE,
    Bar,
    Measurement,
    Point,
    bars,
    measurements,
    points,
)
from optimal_frontier.papers.azar.azar_figure_2 import RefreshRates, azar_figure_2
from optimal_frontier.papers.azar.azar_policies import POLICIES
from optimal_frontier.simulation.azar_pages import UTILITIES

#: Headings of the policies.
_NAMES: Final = {
    OPTIMUM: "optimum",
    "algorithm-2": "alg. 2",
    "eq-6": "eq. 6",
    "change-rate": "change",
    "utility": "utility",
    "uniform": "uniform",
}
#: Ends of the bands in which figure 2's table counts pages.
_IMPORTANCE_BANDS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_CHANGE_BANDS: Final = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@click.command("azar-figure-1")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, metavar="N", help="Sets of pages to average over.")
@click.option("--pages", type=click.IntRange(2), default=PAGES, show_default=True, metavar="N", help="Pages of a set.")
@click.option("--utilities", type=click.Choice(UTILITIES), help="One of the two kinds only.")
@click.option(
    "--bandwidth",
    "bandwidths",
    type=click.FloatRange(0, min_open=True),
    multiple=True,
    metavar="R",
    help=f"Visits per unit of time; may be repeated. Default: {', '.join(f'{share:g}' for share in BANDWIDTHS)} per page.",
)
@picture_options
@click.option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write every single measurement.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def azar_figure_1_command(
    ctx: click.Context,
    seeds: int,
    pages: int,
    utilities: Any,
    bandwidths: tuple[float, ...],
    out: Path | None,
    no_picture: bool,
    csv_path: Path | None,
    as_json: bool,
) -> None:
    """Hold schedules against the optimum (Azar et al., 2018).

    1,000 pages change at rates uniform on (0, 1]; their importance is Zipf (exponent 2, 1 to 10,000) or uniform on (0, 1]. The optimum
    is that of evenly spaced visits, which bounds every schedule. Each policy's rates are made a sequence of slots by Algorithm 3 (EDF),
    repeated for ever; its freshness is the exact expectation.

    Exit code 1 if Algorithm 2 + EDF falls below 0.985 of the optimum anywhere, or eq. 6 + EDF below 0.999.
    """
    picture = checked_targets(ctx, out, no_picture, csv_path)
    rates = sorted(set(bandwidths)) or [share * pages for share in BANDWIDTHS]
    if not np.isfinite(rates).all():
        raise ConfigurationError("--bandwidth: expected a finite number")
    kinds = (utilities,) if utilities else UTILITIES
    steps = len(kinds) * seeds * len(rates) * (1 + len(POLICIES))
    measured = list(with_progress(measurements(pages, range(seeds), rates, kinds), steps))
    found, held = points(measured), bars(measured)
    if csv_path is not None:
        write_csv(csv_path, [field.name for field in fields(Measurement)], (tuple(asdict(one).values()) for one in measured))
    if as_json:
        about = {"figure": ctx.info_name, "pages": pages, "seeds": seeds, "slots_per_page": SLOTS_PER_PAGE}
        passed = [{**asdict(bar), "holds": bar.holds} for bar in held]
        show_json({**about, "points": [asdict(point) for point in found], "bars": passed})
    else:
        _show_figure_1(found, held, seeds)
    if picture is not None:
        draw_azar_figure_1(found, held, seeds, picture)
    tell_written(picture, csv_path)
    ctx.exit(0 if all(bar.holds for bar in held) else 1)


@click.command("azar-figure-2")
@click.option("--seeds", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Sets of pages; the first one is drawn.")
@click.option("--pages", type=click.IntRange(2), default=200, show_default=True, metavar="N", help="Pages of a set.")
@picture_options
@click.option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write every page.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def azar_figure_2_command(
    ctx: click.Context, seeds: int, pages: int, out: Path | None, no_picture: bool, csv_path: Path | None, as_json: bool
) -> None:
    """Show which pages the optimum visits (Azar et al., 2018).

    One visit per slot; importance and change probability uniform on (0, 1]; the optimum of Problem 1 (Algorithm 1). A page is visited
    if and only if importance / change probability exceeds the threshold.

    Exit code 1 if a page lies on the wrong side of that line.
    """
    picture = checked_targets(ctx, out, no_picture, csv_path)
    found = list(with_progress((azar_figure_2(pages, seed) for seed in range(seeds)), seeds))
    misplaced = sum(one.misplaced for one in found)
    if csv_path is not None:
        names = ["seed", "importance", "change_probability", "rate", "threshold"]
        write_csv(csv_path, names, _pages_of(found))
    if as_json:
        about = {"figure": ctx.info_name, "pages": pages, "seeds": seeds, "misplaced": misplaced}
        per_seed = [{"seed": seed, **_summary(one)} for seed, one in enumerate(found)]
        show_json({**about, "bands": _bands(found), "sets": per_seed})
    else:
        _show_figure_2(found, misplaced)
    if picture is not None:
        draw_azar_figure_2(found[0], picture)
    tell_written(picture, csv_path)
    ctx.exit(0 if misplaced == 0 else 1)


def _show_figure_1(found: Sequence[Point], held: Sequence[Bar], seeds: int) -> None:
    by_place = {(point.utilities, point.bandwidth, point.policy): point for point in found}
    for kind in dict.fromkeys(point.utilities for point in found):
        click.echo(f"{kind} utilities, mean ± standard deviation over {seeds} seed{'s' if seeds > 1 else ''}")
        click.echo("visits per unit of time; optimum in % of importance, policies in % of optimum")
        click.echo()
        rows: list[list[str]] = []
        for bandwidth in dict.fromkeys(point.bandwidth for point in found):
            of_row = {name: by_place[kind, bandwidth, name] for name in _NAMES}
            best = of_row.pop(OPTIMUM)
            cells = [_per_cent(best.freshness, best.freshness_spread, 2)]
            cells += [_per_cent(p.ratio, p.ratio_spread, 3 if p.policy in BARS else 2) for p in of_row.values()]
            means, spreads = zip(*cells, strict=True)
            rows += [[number(bandwidth), *means], ["", *spreads]]
        show_table(["visits", *_NAMES.values()], rows, left=0)
        click.echo()
    show_facts((f"{_NAMES[bar.policy]} + EDF", _verdict(bar)) for bar in held)


def _verdict(bar: Bar) -> str:
    worst = bar.lowest
    place = f"{worst.utilities}, bandwidth {number(worst.bandwidth)}, seed {worst.seed}"
    said = "holds" if bar.holds else "DOES NOT HOLD"
    return f"{said}: at least {bar.at_least:g} of the optimum everywhere; lowest {worst.ratio:.5f} ({place})"


def _show_figure_2(found: Sequence[RefreshRates], misplaced: int) -> None:
    summaries = [_summary(one) for one in found]
    rows = [("pages", f"{number(len(found[0].rates))} in each of {number(len(found))} sets; mean ± standard deviation over sets")]
    rows += [(name.replace("_", " "), _mean_and_spread([one[name] for one in summaries])) for name in summaries[0]]
    show_facts(rows)
    click.echo()
    click.echo("mean refresh rate in units of 1/pages, by importance (rows) and change probability (columns)")
    click.echo()
    heads = [f"to {high:g}" for high in _CHANGE_BANDS[1:]]
    table = [[f"{band['importance'][0]:g} to {band['importance'][1]:g}", *(number(v, 3) for v in band["rates"])] for band in _bands(found)]
    show_table(["importance", *heads], table, left=0)
    click.echo()
    verdict = "holds: a page is visited if and only if importance / change probability exceeds the threshold"
    show_facts([("threshold", verdict if misplaced == 0 else f"DOES NOT HOLD: {number(misplaced)} pages on the wrong side")])


def _summary(found: RefreshRates) -> dict[str, float]:
    rates = np.sort(found.rates)[::-1]
    return {
        "threshold": found.threshold,
        "visited": int(found.visited.sum()),
        "highest_rate": float(rates[0]),
        "freshness": found.freshness,
    }


def _bands(found: Sequence[RefreshRates]) -> list[dict[str, Any]]:
    """Mean rate times pages in each band, over all sets; the most important pages first."""
    importance = np.concatenate([one.importance for one in found])
    change = np.concatenate([one.change_probability for one in found])
    relative = np.concatenate([one.rates * len(one.rates) for one in found])
    counts, _, _ = np.histogram2d(importance, change, bins=(_IMPORTANCE_BANDS, _CHANGE_BANDS))
    sums, _, _ = np.histogram2d(importance, change, bins=(_IMPORTANCE_BANDS, _CHANGE_BANDS), weights=relative)
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    bands = zip(_IMPORTANCE_BANDS[:-1], _IMPORTANCE_BANDS[1:], means.tolist(), strict=True)
    return [{"importance": [low, high], "change_probability": _CHANGE_BANDS, "rates": row} for low, high, row in bands][::-1]


def _pages_of(found: Sequence[RefreshRates]) -> Iterator[tuple[float, ...]]:
    for seed, one in enumerate(found):
        for importance, change, rate in zip(one.importance.tolist(), one.change_probability.tolist(), one.rates.tolist(), strict=True):
            yield seed, importance, change, rate, one.threshold


def _per_cent(mean: float, spread: float, digits: int) -> tuple[str, str]:
    return f"{100 * mean:.{digits}f}", "" if math.isnan(spread) else f"±{100 * spread:.{digits}f}"


def _mean_and_spread(values: Sequence[float]) -> str:
    mean = number(float(np.mean(values)))
    return f"{mean} ± {number(float(np.std(values, ddof=1)), 2)}" if len(values) > 1 else mean
