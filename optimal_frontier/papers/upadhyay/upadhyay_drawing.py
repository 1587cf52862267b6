"""Figure 2 of Upadhyay et al. and the regret of exploring as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from optimal_frontier.cli.drawing import figure, save
from optimal_frontier.papers.upadhyay.upadhyay_figure_2 import EstimationError
from optimal_frontier.papers.upadhyay.upadhyay_regret import Growth, Regret

#: Name, colour, kind of line and marker of the estimators and of the bound.
_ESTIMATOR_LOOKS: Final = {
    "bound": ("bound (Lemma 3)", "#0072b2", "--", "s"),
    "moment": ("moment matching", "#009e73", "-", "o"),
    "likelihood": ("maximum likelihood", "#d55e00", "-", "^"),
}
#: Colour, kind of line and marker of the policies that explore.
_REGRET_LOOKS: Final = {
    "theorem-1": ("#0072b2", "-", "o"),
    "square-root": ("#009e73", "-", "s"),
    "doubling": ("#009e73", ":", "D"),
    "epsilon": ("#d55e00", "-", "^"),
    "epsilon-root": ("#d55e00", ":", "v"),
}


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
