"""``plot``: the crawl in pictures, from the estimates as they stand."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

from optimal_frontier.cli.drawing import check_drawable, figure, label_log_axis, save
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import number, per_second
from optimal_frontier.cli.project import Workplace, find_workplace, opened_namespace
from optimal_frontier.cli.whatif_command import why_no_more
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings import FrontierSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optimal_frontier.frontier.planning.curve import CrawlCurve

#: Dots of a picture; of a larger crawl so many pages are drawn at random.
MOST_DOTS: Final = 20_000
#: The curve goes from the present budget divided by this to the present budget times this.
_REACH: Final = 16.0
#: Plans that a curve is made of, and fewer of them from so many pages on; between two plans it follows their slopes.
_PLANS, _FEWER_PLANS, _MANY_PAGES = 25, 11, 200_000
_STEPS_BETWEEN: Final = 12
#: Relative difference up to which a rate counts as being at its least.
_AT_BOUND: Final = 1e-6
#: Characters in a line of a legend.
_LINE_LENGTH: Final = 100

#: What the change rates of plans are, by EXPLORATION.
_WHICH: Final = {
    "median": "median of what is believed",
    "epsilon": "median of what is believed",
    "explore-then-commit": "median of what is believed",
}

_INK, _MUTED, _CURVE, _PRESENT, _LINE = "#22303c", "#7b8794", "#1f6fb4", "#c2572b", "#b3322e"


@click.command()
@click.argument("kind", metavar="KIND")
@click.argument("path", metavar="OUT.png", type=click.Path(path_type=Path))
@click.pass_obj
def plot(options: Options, kind: str, path: Path) -> None:
    """Draw the crawl as it is estimated now, into a PNG (or SVG, PDF).

    KIND is `frontier` (freshness against budget, with the present budget and its slope) or `rates` (each page by change rate and
    importance, coloured by revisit rate, with the threshold below which no visit is worth its price). Nothing is changed.
    """
    draw = KINDS.get(kind)
    if draw is None:
        raise ConfigurationError(f"plot {kind}: unknown; known are {', '.join(sorted(KINDS))}")
    check_drawable(path)
    # The solver takes long to import, and few commands need it.
    from optimal_frontier.frontier.planning.curve import read_crawl_curve

    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        drawn = draw(read_crawl_curve(namespace, workplace.settings), workplace)
    save(drawn, path)
    click.echo(f"written: {path}")


def draw_frontier(curve: CrawlCurve, workplace: Workplace) -> Figure:
    """Freshness against budget."""
    drawn = figure(8.0, 5.0)
    axes = drawn.subplots()
    limit = curve.limit()
    now = curve.at(curve.present)
    low, high = curve.present / _REACH, curve.present * _REACH
    budgets, freshness = smooth(curve, low, high)
    axes.plot(budgets, freshness, color=_CURVE, linewidth=2, label="freshness of the best plan")
    measured = "measured" if workplace.settings.crawl_rate is None else "CRAWL_RATE"
    present = f"present budget ({measured}): {per_second(curve.present)} gives {now.freshness:.1%}"
    axes.plot([curve.present], [now.freshness], "o", color=_PRESENT, markersize=8, label=present)
    # A straight line bends on a logarithmic axis.
    near = np.geomspace(curve.present / 2, 2 * curve.present, 200)
    slope = f"the tangent there: one more fetch/s adds {number(100 * now.slope, 3)} points (multiplier {number(now.multiplier)})"
    axes.plot(near, now.freshness + now.slope * (near - curve.present), color=_PRESENT, linewidth=1.2, linestyle="--", label=slope)
    best = f"best of any budget: {limit.freshness:.1%}; {why_no_more(limit)}"
    axes.axhline(limit.freshness, color=_MUTED, linewidth=1, linestyle=":", label=textwrap.fill(best, _LINE_LENGTH))
    axes.set_xscale("log", subs=[2, 5])
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.02)
    _name(axes, "budget, fetches per second", "expected freshness, weighted by importance")
    axes.yaxis.set_major_formatter(_formatter(lambda value, _: f"{value:.0%}"))
    for show in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        show(_formatter(lambda value, _: f"{value:g}"))
    axes.tick_params(axis="x", which="both", length=4, pad=4)
    _entitle(axes, workplace, f"what a budget buys ({number(len(curve.problem.importance))} pages)")
    drawn.legend(loc="outside lower center", fontsize=9, frameon=False)
    return drawn


def smooth(curve: CrawlCurve, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Return budgets and freshness between two budgets: from a few plans, and between these by the cubic that has their slopes.

    Returns
    -------
    tuple of ndarray
        Budgets evenly spaced on a logarithmic scale, fetches per second, and freshness.
    """
    plans = _PLANS if len(curve.problem.importance) < _MANY_PAGES else _FEWER_PLANS
    budgets = np.geomspace(low, high, plans)
    points = [curve.at(float(budget)) for budget in budgets]
    value = np.array([point.freshness for point in points])
    slope = np.array([point.slope for point in points]) * budgets  # d freshness / d log budget
    step = np.log(high / low) / (plans - 1)
    t = np.linspace(0, 1, _STEPS_BETWEEN, endpoint=False)[:, None]
    # Hermite's cubics, one column per piece.
    pieces = (
        (1 + 2 * t) * (1 - t) ** 2 * value[:-1]
        + t**2 * (3 - 2 * t) * value[1:]
        + step * (t * (1 - t) ** 2 * slope[:-1] - t**2 * (1 - t) * slope[1:])
    )
    between = np.clip(pieces, value[:-1], value[1:]).T.ravel()
    return np.geomspace(low, high, (plans - 1) * _STEPS_BETWEEN + 1), np.append(between, value[-1])


def draw_rates(curve: CrawlCurve, workplace: Workplace) -> Figure:
    """Azar's figure 2: importance against change rate, a dot per page, coloured by its revisit rate; and the threshold line."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    settings = workplace.settings
    plan = curve.plan(curve.present)
    problem, rates = curve.problem, plan.rates
    importance, change_rate = problem.importance, problem.change_rate
    # A pinned page is visited at its own rate, which is its least one too.
    least = np.minimum(np.maximum(problem.min_rate, problem.asked), problem.max_rate)
    left = (rates <= least * (1 + _AT_BOUND)) & (problem.min_rate < problem.max_rate)
    pages = len(rates)
    drawn_pages = np.arange(pages)
    if pages > MOST_DOTS:
        drawn_pages = np.random.default_rng(0).choice(pages, MOST_DOTS, replace=False)
    drawn = figure(8.0, 6.0)
    axes = drawn.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    size = 14.0 if len(drawn_pages) < 2000 else 4.0
    out, visited = drawn_pages[left[drawn_pages]], drawn_pages[~left[drawn_pages]]
    if len(out):
        rest = "visited no more than they must be (MAX_INTERVAL, RULES, EXPLORATION)" if least[left].any() else "not visited again"
        label = f"{number(int(left.sum()))} pages {rest}"
        axes.scatter(change_rate[out], importance[out], size, marker="x", linewidths=0.7, color=_MUTED, label=label)
    if len(visited):
        low, high = _span(rates[~left])
        scale = LogNorm(low, high)
        label = f"{number(int((~left).sum()))} pages revisited at their own rates"
        # Without the yellow end, which is hard to see on white.
        colours = ListedColormap(colormaps["viridis_r"](np.linspace(0.14, 1.0, 256)))
        dots = axes.scatter(change_rate[visited], importance[visited], size, c=rates[visited], norm=scale, cmap=colours, label=label)
        bar = drawn.colorbar(dots, ax=axes, pad=0.015, aspect=32)
        label_log_axis(bar.ax.yaxis, low, high)
        bar.set_label("revisit rate, visits per second", color=_INK)
    _draw_threshold(axes, change_rate[drawn_pages], importance[drawn_pages], plan.multiplier, settings)
    _name(axes, f"change rate, changes per second ({_WHICH[settings.exploration]})", "importance")
    some = f"\n{MOST_DOTS:,} of {pages:,} pages are drawn, chosen at random" if pages > MOST_DOTS else ""
    _entitle(axes, workplace, f"which pages a budget of {per_second(curve.present)} is spent on{some}")
    drawn.legend(loc="outside lower center", fontsize=9, frameon=False)
    return drawn


def _span(rates: np.ndarray) -> tuple[float, float]:
    """Return the least and the largest rate, a little apart where all are one."""
    low, high = float(rates.min()), float(rates.max())
    return (low, high) if high > low * 1.01 else (low / 1.01, high * 1.01)


def _draw_threshold(axes: Axes, change_rate: np.ndarray, importance: np.ndarray, multiplier: float, settings: FrontierSettings) -> None:
    x = np.array([change_rate.min() / 1.5, change_rate.max() * 1.5])
    bottom, top = importance.min() / 1.5, importance.max() * 1.5
    if settings.objective == "freshness":
        y, what = multiplier * x, "importance / change rate"
    else:
        y, what = np.full(2, multiplier), "importance"
    if settings.objective == "changes" and multiplier > 0:
        bottom = min(bottom, multiplier / 1.5)
    axes.set_xlim(*x)
    axes.set_ylim(bottom, top)
    label_log_axis(axes.xaxis, *x)
    label_log_axis(axes.yaxis, bottom, top)
    hosts = "; pages on a host at its limit pay more" if max(settings.host_pause, settings.slot_period) > 0 else ""
    if multiplier <= 0:
        label = "no threshold: there is budget for all that bounds and limits of hosts allow"
        axes.plot([], [], " ", label=label)
    elif y.max() < bottom:
        axes.plot([], [], " ", label=f"threshold: {what} = {number(multiplier)}, below all of these pages{hosts}")
    elif y.min() > top:
        axes.plot([], [], " ", label=f"threshold: {what} = {number(multiplier)}, above all of these pages{hosts}")
    else:
        axes.plot(x, y, color=_LINE, linewidth=1.4, label=f"threshold: {what} = {number(multiplier)}, the multiplier{hosts}")


def _entitle(axes: Axes, workplace: Workplace, title: str) -> None:
    # A namespace may hold what the font does not, and what Matplotlib would take for a formula.
    namespace = workplace.settings.namespace.encode("ascii", "backslashreplace").decode()
    axes.set_title(f"{namespace}: {title}", color=_INK, fontsize=11, parse_math=False)


def _name(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, color=_INK)
    axes.set_ylabel(y, color=_INK)
    axes.grid(True, which="major", color="#e3e8ec", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _formatter(shown: Callable[[float, Any], str]) -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(shown)


#: Kinds of pictures, and who draws them.
KINDS: Final[dict[str, Callable[[CrawlCurve, Workplace], Any]]] = {"frontier": draw_frontier, "rates": draw_rates}
