"""The picture of a run: where the fetches went, and how fresh the copies were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from demo.record import FetchRecord
from demo.report import Report, freshness_over_time
from demo.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LogNorm

_INK = "#22303c"
_MUTED = "#7b8794"
_REACHED = "#1f6fb4"
_OPTIMUM = "#2a8c5a"
_UNIFORM = "#c2572b"
_SMOOTHED_OVER_S = 5


def plot_run(world: World, record: FetchRecord, report: Report, path: Path) -> None:
    """Draw a run.

    Parameters
    ----------
    world, record, report
        The truth, what the site served, and the figures made of both.
    path : Path
        The PNG to write.
    """
    # The object interface, so that no global backend or style is touched.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.5, 5.6), dpi=130, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
    rates, freshness = figure.subplots(1, 2, width_ratios=[1.12, 1])
    colours = _draw_rates(rates, world, report)
    bar = figure.colorbar(colours, ax=rates, pad=0.015, aspect=32)
    bar.set_label("importance", color=_INK)
    bar.outline.set_visible(False)
    _draw_freshness(freshness, world, record, report)
    for axes in (rates, freshness):
        _tidy(axes)
    figure.savefig(path)


def optimal_curve(importance: float, multiplier: float, points: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """The optimum's revisit rate against change rate at one importance, as a curve: (change rates, revisit rates).

    With r = change rate / revisit rate, a visit's marginal value is importance (1 - (1 + r) e^-r) / change rate; it equals the
    multiplier at the optimum, which gives both rates as functions of r.
    """
    ratio = np.geomspace(1e-3, 40.0, points)
    change_rate = importance * (-np.expm1(-ratio) - ratio * np.exp(-ratio)) / multiplier
    return change_rate, change_rate / ratio


def _draw_rates(axes: Axes, world: World, report: Report) -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    # Without the yellow end, which is hard to see on white.
    colours = ListedColormap(colormaps["viridis_r"](np.linspace(0.14, 1.0, 256)))
    norm: LogNorm = LogNorm(world.importance.min(), world.importance.max())
    length = report.end - report.start
    living = world.death > report.start
    changing = world.change_rate > 0
    # What a logarithmic scale cannot show has a place of its own: no visit below, never changing at the left.
    floor = 0.55 / length
    left = world.change_rate[changing].min() / 2.2
    x = np.where(changing, world.change_rate, left * np.geomspace(0.84, 1.19, world.pages))
    y = np.where(report.rates > 0, report.rates, floor)

    for rank in (1, 10, 100):
        importance = np.sort(world.importance)[-rank]
        at, rate = optimal_curve(importance, report.multiplier)
        at = np.where(at > left * 1.5, at, np.nan)
        axes.plot(at, rate, color=colours(norm(importance)), alpha=0.4, linewidth=1.6, zorder=1)
    planned = living & changing & (report.optimal_rates > 0)
    axes.scatter(
        x[planned], report.optimal_rates[planned], s=26, facecolors="none", edgecolors=_MUTED, linewidths=0.6, alpha=0.55, zorder=2
    )
    order = np.flatnonzero(living)[np.argsort(world.importance[living])]
    points = axes.scatter(
        x[order],
        y[order],
        c=world.importance[order],
        s=18 + 60 * np.sqrt(world.importance[order] / world.importance.max()),
        cmap=colours,
        norm=norm,
        edgecolors="white",
        linewidths=0.5,
        zorder=3,
    )
    axes.set(xscale="log", yscale="log", xlim=(left * 0.72, world.change_rate.max() * 1.3))
    axes.set_ylim(floor * 0.72, max(report.rates.max(), report.optimal_rates.max()) * 1.5)
    axes.axvline(left * 1.5, color=_MUTED, linewidth=0.7, linestyle=(0, (2, 3)), zorder=0)
    axes.axhline(floor * 1.35, color=_MUTED, linewidth=0.7, linestyle=(0, (2, 3)), zorder=0)
    note = {"color": _MUTED, "fontsize": 8.5}
    axes.text(left, axes.get_ylim()[1] * 0.93, "never\nchanges", ha="center", va="top", **note)
    axes.text(world.change_rate.max() * 1.25, floor * 1.42, "below: no visit in the window", ha="right", va="bottom", **note)
    axes.plot([], [], "o", markersize=5, markerfacecolor="none", markeredgecolor=_MUTED, label="optimum, page by page")
    axes.plot([], [], color=_MUTED, alpha=0.6, label="optimum at importance rank 1, 10, 100")
    axes.legend(loc="upper left", bbox_to_anchor=(0.11, 1.0), frameon=False, fontsize=8.5, labelcolor=_INK)
    axes.set_xlabel("change rate, per second")
    axes.set_ylabel("revisit rate, per second")
    axes.set_title(f"Where the fetches went, last {length:.0f} s")
    return points


def _draw_freshness(axes: Axes, world: World, record: FetchRecord, report: Report) -> None:
    begin = float(record.time[0])
    edges = np.linspace(begin, report.end, max(2, round(report.end - begin)) + 1)
    value = freshness_over_time(world, record, edges)
    middle = (edges[1:] + edges[:-1]) / 2 - begin
    kernel = np.ones(min(_SMOOTHED_OVER_S, len(value)))
    smooth = np.convolve(value, kernel, "same") / np.convolve(np.ones(len(value)), kernel, "same")
    half, end = report.start - begin, report.end - begin

    axes.axvspan(half, end, color="#eef2f6", zorder=0, linewidth=0)
    axes.plot(middle, value, color=_REACHED, alpha=0.3, linewidth=0.9)
    axes.plot(middle, smooth, color=_REACHED, linewidth=2.2)
    for level, colour, name, above in (
        (report.optimum, _OPTIMUM, "clairvoyant optimum", True),
        (report.uniform, _UNIFORM, "uniform revisiting", False),
    ):
        axes.hlines(level, half, end, color=colour, linewidth=1.8, linestyle=(0, (5, 2)))
        axes.annotate(
            f"{name} {level:.3f}",
            (end, level),
            (-4, 5 if above else -5),
            textcoords="offset points",
            ha="right",
            va="bottom" if above else "top",
            color=colour,
        )
    low = np.floor(6 * report.uniform) / 10
    axes.set(xlim=(0, end), ylim=(low, min(1.0, max(report.optimum, float(value.max())) * 1.06)))
    for line, text in enumerate((f"{report.gap_closed:.0%} of the gap closed", f"this crawl {report.reached:.3f}")):
        axes.annotate(
            text,
            ((half + end) / 2, low),
            (0, 18 + 20 * line),
            textcoords="offset points",
            ha="center",
            color=_REACHED,
            fontsize=12,
            fontweight="bold" if line == 0 else "normal",
        )
    axes.set_xlabel("seconds since the first fetch")
    axes.set_ylabel("importance-weighted freshness")
    axes.set_title(f"How fresh the copies were, {report.fetch_rate:.1f} fetches/s")


def _tidy(axes: Axes) -> None:
    axes.grid(True, which="major", color="#d8dee4", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_MUTED)
    axes.tick_params(which="both", colors=_MUTED, labelcolor=_INK)
    axes.xaxis.label.set_color(_INK)
    axes.yaxis.label.set_color(_INK)
    axes.title.set(color=_INK, fontsize=12, fontweight="bold")
