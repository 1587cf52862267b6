"""The papers' figures as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from optimal_frontier.cli.drawing import figure, save
from optimal_frontier.simulation import Bar, EstimationError, Growth, Point, RefreshRates, Regret, Standing

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
#: Name, colour, kind of line and marker of estimators; the same without a name of what explores.
_ESTIMATOR_LOOKS: Final = {
    "bound": ("bound (Lemma 3)", "#0072b2", "--", "s"),
    "moment": ("moment matching", "#009e73", "-", "o"),
    "likelihood": ("maximum likelihood", "#d55e00", "-", "^"),
}
_REGRET_LOOKS: Final = {
    "theorem-1": ("#0072b2", "-", "o"),
    "square-root": ("#009e73", "-", "s"),
    "doubling": ("#009e73", ":", "D"),
    "epsilon": ("#d55e00", "-", "^"),
    "epsilon-root": ("#d55e00", ":", "v"),
}
#: Colour and kind of line of simulated policies; those of one family share a colour.
_POLICY_LOOKS: Final = {
    "clairvoyant": ("black", "--"),
    "median": ("#0072b2", "-"),
    "mean": ("#0072b2", ":"),
    "thompson": ("#56b4e9", "-"),
    "epsilon": ("#56b4e9", "--"),
    "explore-then-commit": ("#009e73", "-"),
    "explore-doubling": ("#009e73", ":"),
    "uniform": ("#7f7f7f", "-"),
    "change-rate": ("#7f7f7f", ":"),
    "importance": ("#7f7f7f", "--"),
    "nutch": ("#d55e00", "-"),
    "nutch-tuned": ("#d55e00", ":"),
    "stormcrawler": ("#e69f00", "-"),
    "frontera": ("#cc79a7", "-"),
}


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


def draw_policies(found: Sequence[Standing], unit: float, unit_name: str, path: Path) -> None:
    """Draw freshness over time, and means after the burn-in with their confidence intervals; a column for each world."""
    worlds = list(dict.fromkeys(one.world for one in found))
    drawn = figure(max(7.0, 4.6 * len(worlds)), 8.2)
    axes = drawn.subplots(2, len(worlds), squeeze=False)
    for (upper, lower), world in zip(axes.T, worlds, strict=True):
        of_world = sorted((one for one in found if one.world == world), key=lambda one: one.freshness.mean)
        for one in of_world[::-1]:
            colour, style = _POLICY_LOOKS.get(one.policy, ("#7f7f7f", "-"))
            upper.stairs(one.by_time, one.edges / unit, baseline=None, color=colour, linestyle=style, linewidth=1.3, label=one.policy)
        for place, one in enumerate(of_world):
            error = 0.0 if np.isnan(one.freshness.error) else one.freshness.error
            colour = _POLICY_LOOKS.get(one.policy, ("#7f7f7f", "-"))[0]
            lower.errorbar(one.freshness.mean, place, xerr=error, fmt="o", color=colour, capsize=3, markersize=4)
        lower.set_yticks(range(len(of_world)), [one.policy for one in of_world])
        # The first visits would take most of the height.
        later = [one.by_time[len(one.by_time) // 8 :] for one in of_world]
        low, high = float(np.min(later)), float(np.max(later))
        margin = 0.05 * (high - low) + 1e-6
        upper.set(title=world, xlabel=unit_name, xlim=(0, of_world[0].edges[-1] / unit), ylim=(low - margin, high + margin))
        lower.set(xlabel="freshness after the burn-in")
        for axis in (upper, lower):
            axis.grid(alpha=0.25)
    axes[0, 0].set_ylabel("freshness (share of importance up to date)")
    handles, names = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=5 if len(worlds) > 1 else 3, frameon=False, fontsize="small")
    seeds = max(one.seeds for one in found)
    drawn.suptitle("Simulated policies" + (f", mean over {seeds} seeds" if seeds > 1 else ""))
    save(drawn, path)


def draw_upadhyay_figure_2(found: Sequence[EstimationError], path: Path) -> None:
    """Draw quartiles of both estimators' errors and of the bound against the number of visits, a panel for each pair of rates."""
    visit_rates, change_rates = (list(dict.fromkeys(getattr(one, name) for one in found)) for name in ("visit_rate", "change_rate"))
    drawn = figure(max(7.0, 3.6 * len(change_rates)), 1.2 + 3.2 * len(visit_rates))
    axes = drawn.subplots(len(visit_rates), len(change_rates), squeeze=False, sharex=True, sharey=True)
    for row, visit_rate in zip(axes, visit_rates, strict=True):
        for axis, change_rate in zip(row, change_rates, strict=True):
            panel = [one for one in found if (one.visit_rate, one.change_rate) == (visit_rate, change_rate)]
            at = [one.visits for one in panel]
            for name, (label, colour, style, marker) in _ESTIMATOR_LOOKS.items():
                low, middle, high = np.array([getattr(one, name) for one in panel]).T
                looks = {"color": colour, "linestyle": style, "marker": marker, "markersize": 4, "capsize": 2}
                axis.errorbar(at, middle, (middle - low, high - middle), label=label, **looks)
            axis.set(xscale="log", yscale="log", title=f"change rate {change_rate:g}, {visit_rate:g} visits per unit of time")
            axis.title.set_fontsize("medium")
            axis.grid(alpha=0.25)
    for axis in axes[-1]:
        axis.set_xlabel("visits")
    for axis in axes[:, 0]:
        axis.set_ylabel("|estimate − rate|")
    handles, names = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    drawn.suptitle("Upadhyay et al. 2020, figure 2: median and quartiles of the error")
    save(drawn, path)


def draw_upadhyay_regret(found: Sequence[Regret], grown: Sequence[Growth], path: Path) -> None:
    """Draw mean regrets against the horizon, and the bound of Theorem 1."""
    drawn = figure(7.2, 5.4)
    axis = drawn.subplots()
    horizons = sorted({one.horizon for one in found})
    bounds = [np.mean([one.bound for one in found if one.horizon == at and one.policy == "theorem-1"]) for at in horizons]
    axis.plot(horizons, bounds, color="black", linestyle="--", label="bound of Theorem 1")
    for growth in grown:
        colour, style, marker = _REGRET_LOOKS.get(growth.policy, ("#7f7f7f", "-", "o"))
        mean = [np.mean([one.regret for one in found if one.horizon == at and one.policy == growth.policy]) for at in horizons]
        label = f"{growth.policy}: T^{growth.exponent:.2f}"
        axis.plot(horizons, mean, color=colour, linestyle=style, marker=marker, markersize=4, label=label)
    axis.set(xscale="log", yscale="log", xlabel="horizon T (rounds)", ylabel="regret (rounds of all importance)")
    axis.grid(alpha=0.25)
    seeds = len({one.seed for one in found})
    axis.set_title("Regret of exploring" + (f", mean over {seeds} seeds" if seeds > 1 else ""))
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
