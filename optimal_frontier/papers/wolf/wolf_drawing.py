"""Figures 7 to 10 of Wolf et al. as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from optimal_frontier.cli.drawing import figure, save
from optimal_frontier.papers.wolf.wolf_figure_7 import BY_CRAWLS, WEIGHTED
from optimal_frontier.papers.wolf.wolf_figure_10 import WINDOW, SlotDeviations
from optimal_frontier.papers.wolf.wolf_schemes import SchemePoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colour and marker of schemes; weighted ones have full lines, the others broken ones where there are both.
_LOOKS: Final = {"optimal": ("#0072b2", "o"), "uniform": ("#7f7f7f", "D"), "proportional": ("#009e73", "^")}
_ALL, _QUASI, _EDGE = "#9ecae1", "#d55e00", "#c00000"
#: Slots on either side that are drawn at least.
_REACH: Final = 30
_CRAWLS: Final = "crawls per page and day"


def draw_wolf_figure_7(found: Sequence[SchemePoint], pages: int, path: Path) -> None:
    """Draw embarrassment against crawls per page, and against the Zipf-like parameter."""
    panels = list(dict.fromkeys(one.panel for one in found))
    drawn = figure(5.4 * len(panels), 5.2)
    axes = drawn.subplots(1, len(panels), squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        _curves(axis, [one for one in found if one.panel == panel])
        axis.set_xlabel(_CRAWLS if panel == BY_CRAWLS else "θ (0: Zipf's law, 1: all pages change equally often)")
    axes[0].set_ylabel("embarrassment (weighted staleness)")
    handles, names = axes[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    drawn.suptitle(f"Wolf et al. 2002, figure 7: {pages:,} pages")
    save(drawn, path)


def draw_wolf_figure_8(found: Sequence[SchemePoint], pages: int, path: Path) -> None:
    """Draw staleness against crawls per page, a panel for each kind of pages."""
    panels = list(dict.fromkeys(one.panel for one in found))
    drawn = figure(9.6, 7.6)
    axes = drawn.subplots(2, 2)
    for axis, panel in zip(axes.flat, panels, strict=True):
        _curves(axis, [one for one in found if one.panel == panel])
        axis.set_title(panel.capitalize(), fontsize="medium")
    for axis in axes[-1]:
        axis.set_xlabel(_CRAWLS)
    for axis in axes[:, 0]:
        axis.set_ylabel("staleness")
    handles, names = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    drawn.suptitle(f"Wolf et al. 2002, figure 8: {pages:,} pages")
    save(drawn, path)


def draw_wolf_figure_9(found: Sequence[SchemePoint], pages: int, path: Path) -> None:
    """Draw staleness against the shape of the tail."""
    drawn = figure(7.0, 5.0)
    axis = drawn.subplots()
    _curves(axis, found)
    axis.axvspan(1.0, 2.0, color="#f0f0f0", zorder=0, label="heavy tail (infinite variance)")
    axis.set(xlabel="shape of the Pareto tail, at the same mean", ylabel="staleness", xlim=(1.0, None))
    drawn.legend(loc="outside lower center", ncols=4, frameon=False)
    drawn.suptitle(f"Wolf et al. 2002, figure 9: {pages:,} Pareto pages")
    save(drawn, path)


def draw_slots(found: Sequence[SlotDeviations], path: Path) -> None:
    """Draw how many crawls are how far from their ideal times, a panel for each share of free slots."""
    drawn = figure(5.4 * len(found), 5.0)
    axes = drawn.subplots(1, len(found), squeeze=False, sharey=True)[0]
    for axis, one in zip(axes, found, strict=True):
        for counts, colour, label in ((one.counts, _ALL, "all crawls"), (one.quasi_counts, _QUASI, "quasi-deterministic crawls")):
            # An empty bar has no height on a logarithmic axis.
            axis.stairs(np.maximum(counts, 0.5), one.edges, baseline=0.5, fill=True, color=colour, label=label)
        for at in (-WINDOW, WINDOW):
            axis.axvline(at, color=_EDGE, linestyle="--", linewidth=1, label=f"± {WINDOW} slots" if at > 0 else None)
        reach = max(_REACH, one.farthest)
        axis.set(yscale="log", xlabel="slots after (before: negative) the ideal time", xlim=(-reach, reach), ylim=(0.5, None))
        taken = "every slot taken" if one.free == 0 else f"{one.free:.1%} of slots free"
        axis.set_title(f"{taken}: {one.within:.2%} within {WINDOW} slots", fontsize="medium")
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("crawls")
    handles, names = axes[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    drawn.suptitle(f"Wolf et al. 2002, figure 10: {found[0].crawls:,} crawls")
    save(drawn, path)


def _curves(axis: Axes, points: Sequence[SchemePoint]) -> None:
    both = any(one.scheme.startswith(WEIGHTED) for one in points)
    for scheme in dict.fromkeys(one.scheme for one in points):
        colour, marker = _LOOKS[scheme.removeprefix(WEIGHTED)]
        style = "--" if both and not scheme.startswith(WEIGHTED) else "-"
        at, value = np.array([(one.at, one.value) for one in points if one.scheme == scheme]).T
        axis.plot(at, value, color=colour, linestyle=style, marker=marker, markersize=4, linewidth=1.4, label=scheme)
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    axis.grid(alpha=0.25)
