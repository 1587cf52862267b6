"""Figures 1 and 2 of Azar et al. as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from optimal_frontier.cli.drawing import figure, save
from optimal_frontier.papers.azar.azar_figure_1 import Bar, Point
from optimal_frontier.papers.azar.azar_figure_2 import RefreshRates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Name, colour, kind of line and marker of each policy, in the order of the legend; told apart without colour as well.
_LOOKS: Final = {
    "optimum": ("optimum", "black", "--", ""),
    "eq-6": ("eq. 6 + EDF", "#0072b2", "-", "o"),
    "algorithm-2": ("Algorithm 2 + EDF", "#d55e00", "-", "s"),
    "change-rate": ("change-rate-directed", "#009e73", "-", "^"),
    "utility": ("utility-proportional", "#cc79a7", "-", "v"),
    "uniform": ("uniform", "#7f7f7f", "-", "D"),
}
_RED: Final = "#c00000"


def draw_azar_figure_1(found: Sequence[Point], bars: Sequence[Bar], seeds: int, path: Path) -> None:
    """Draw freshness against bandwidth, mean and standard deviation over seeds, and policies that have bars as shares of the optimum."""
    kinds = list(dict.fromkeys(point.utilities for point in found))
    drawn = figure(5.2 * len(kinds), 7.6)
    axes = drawn.subplots(2, len(kinds), squeeze=False, sharex=True, sharey="row", height_ratios=(3, 2))
    barred = {bar.policy for bar in bars}
    lowest = min(0.983, *(point.ratio - 1e-3 for point in found if point.policy in barred))
    for (upper, lower), kind in zip(axes.T, kinds, strict=True):
        points = [point for point in found if point.utilities == kind]
        for policy in _LOOKS:
            of_policy = [point for point in points if point.policy == policy]
            _line(upper, policy, of_policy, [p.freshness for p in of_policy], [p.freshness_spread for p in of_policy])
            if policy in barred:
                _line(lower, policy, of_policy, [p.ratio for p in of_policy], [p.ratio_spread for p in of_policy])
        for bar in bars:
            lower.axhline(bar.at_least, color=_LOOKS[bar.policy][1], linestyle=":", linewidth=1.2)
            name = f"bar of {_LOOKS[bar.policy][0]}: {bar.at_least:g}"
            lower.annotate(name, (0.0, bar.at_least), (5, -3), xycoords=("axes fraction", "data"), textcoords="offset points", va="top")
        lower.axhline(1.0, color="black", linestyle="--", linewidth=1)
        upper.set(title=f"{kind.capitalize()} utilities", ylim=(0, 1))
        lower.set(xlabel="bandwidth (visits per unit of time)", ylim=(lowest, 1.001))
        _bandwidth_axis(lower, points)
    axes[0, 0].set_ylabel("freshness (share of importance up to date)")
    axes[1, 0].set_ylabel("share of the optimum")
    for axis in axes.flat:
        axis.grid(alpha=0.25)
    handles, names = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3 if len(kinds) > 1 else 2, frameon=False)
    drawn.suptitle("Azar et al. 2018, figure 1\n" + (f"mean and standard deviation over {seeds} seeds" if seeds > 1 else "one seed"))
    save(drawn, path)


def draw_azar_figure_2(found: RefreshRates, path: Path) -> None:
    """Draw pages by change probability and importance, coloured by how often the optimum visits them, and the line of the threshold."""
    drawn = figure(7.0, 5.2)
    axis = drawn.subplots()
    visited = found.visited
    axis.scatter(
        found.change_probability[~visited],
        found.importance[~visited],
        s=14,
        facecolors="none",
        edgecolors="#b0b0b0",
        linewidths=0.7,
        label=f"never visited ({np.count_nonzero(~visited)} pages)",
    )
    dots = axis.scatter(
        found.change_probability[visited],
        found.importance[visited],
        c=found.rates[visited],
        s=26,
        cmap="viridis",
        vmin=0,
        zorder=3,
        label=f"visited ({np.count_nonzero(visited)} pages)",
    )
    ends = np.array([0.0, min(1.0, 1.0 / found.threshold)])
    axis.plot(ends, found.threshold * ends, color=_RED, zorder=4, label=f"importance = {found.threshold:.3g} × change probability")
    axis.set(
        xlabel="change probability (per slot)",
        ylabel="importance",
        xlim=(0, 1.01),
        ylim=(0, 1.01),
        title="Azar et al. 2018, figure 2: which pages the optimum visits",
    )
    drawn.colorbar(dots, label="refresh rate (visits per slot)")
    drawn.legend(loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    save(drawn, path)


def _line(axis: Axes, policy: str, points: Sequence[Point], values: Sequence[float], spreads: Sequence[float]) -> None:
    if not points:
        return
    name, colour, style, marker = _LOOKS[policy]
    order = np.argsort([point.bandwidth for point in points])
    at = np.array([point.bandwidth for point in points])[order]
    mean, spread = np.array(values)[order], np.nan_to_num(np.array(spreads))[order]
    axis.fill_between(at, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    on_top = 4 if policy == "optimum" else 3
    axis.plot(at, mean, color=colour, linestyle=style, marker=marker or None, markersize=4, linewidth=1.4, label=name, zorder=on_top)


def _bandwidth_axis(axis: Axes, points: Sequence[Point]) -> None:
    at = sorted({point.bandwidth for point in points})
    axis.set_xscale("log")
    axis.set_xticks(at, [f"{value:g}" for value in at])
    axis.minorticks_off()
