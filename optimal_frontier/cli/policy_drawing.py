"""Simulated policies as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from optimal_frontier.cli.drawing import figure, save
from optimal_frontier.simulation import Standing

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
    "hindsight": ("black", ":"),
    "told-siblings": ("black", "-."),
    "all-times": ("black", "-"),
}


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
