"""``simulate signals``: crawls of worlds in which sources tell of changes, not always and not always truly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from optimal_frontier.cli.experiments import FILE, checked_targets, tell_written, with_progress, write_csv
from optimal_frontier.cli.output import number, show_json, show_table
from optimal_frontier.simulation.comparing import Interval, interval
from optimal_frontier.simulation.signal_crawl import SIGNAL_POLICIES, SignalPolicy, SignalReport, compare_signals
from optimal_frontier.simulation.signal_worlds import FALSE_SIGNALS, FalseSignals, SignalWorld
from optimal_frontier.simulation.worlds import WORLDS

_COLUMNS: Final = ("freshness", "early", "optimum", "recall")


@click.command("signals")
@click.option("--world", "base", type=click.Choice(list(WORLDS)), default="A", show_default=True, help="Pages and budget.")
@click.option("--recall", type=click.FloatRange(0, 1), default=0.6, show_default=True, help="Share of the changes that are signalled.")
@click.option(
    "--false",
    type=click.FloatRange(0, 1000),
    default=1.0,
    show_default=True,
    metavar="N",
    help="False signals for each true one; for each change, where there are no true ones.",
)
@click.option(
    "--false-by",
    type=click.Choice(FALSE_SIGNALS),
    default="changes",
    show_default=True,
    help="They come as often as a page changes, to all pages alike, or to all pages of a source whenever it is read.",
)
@click.option(
    "--delay", type=click.FloatRange(0, 1000), default=0.0, show_default=True, metavar="DAYS", help="By which true signals are late."
)
@click.option("--repeats", type=click.IntRange(1, 100), default=1, show_default=True, metavar="N", help="How often each true one is given.")
@click.option("--pages", type=click.IntRange(1), default=1000, show_default=True, metavar="N", help="Pages of the world.")
@click.option("--sources", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Sources that they belong to.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, metavar="N", help="Worlds to average over.")
@click.option(
    "--days", type=click.FloatRange(0, 10_000, min_open=True), default=200.0, show_default=True, metavar="D", help="Length of a crawl."
)
@click.option("--policy", "policies", type=click.Choice(SIGNAL_POLICIES), multiple=True, help="These policies only; may be repeated.")
@click.option("--csv", "csv_path", type=FILE, metavar="FILE", help="Write every single run.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def signals(
    ctx: click.Context,
    /,
    seeds: int,
    days: float,
    policies: tuple[SignalPolicy, ...],
    csv_path: Path | None,
    as_json: bool,
    false_by: FalseSignals,
    **of_world: str | float,
) -> None:
    """Listen to sources that tell of changes, not always and not always truly.

    "without" does not listen, "learned" finds out what each source is worth, "known" knows it; all three know the change rates. "rates"
    and "rates learned" are the first two where change rates are learned as well. "greedy" and "greedy-ncis" are the policies of
    Busa-Fekete et al. 2025: always the page whose visit is worth most now, without signals and with known ones. Freshness is measured
    over the second half, "early" before that. The optimum is that of the best thresholds, for who knows everything but the times of
    changes. "recall" is what is believed of the sources in the end.
    """
    checked_targets(ctx, None, True, csv_path)
    world = SignalWorld(false_by=false_by, **of_world)  # type: ignore[arg-type]  # as the options have them
    names = tuple(dict.fromkeys(policies)) or SIGNAL_POLICIES
    reports = list(with_progress(compare_signals(world, names, range(seeds), days), seeds * len(names)))
    if csv_path is not None:
        write_csv(
            csv_path, ("policy", "seed", *_COLUMNS), ([one.policy, one.seed, *(getattr(one, c) for c in _COLUMNS)] for one in reports)
        )
    if as_json:
        show_json({"figure": "signals", "days": days, "world": asdict(world), "runs": [asdict(one) for one in reports]})
    else:
        click.echo(
            f"world {world.base}: {number(world.pages)} pages of {number(world.sources)} sources; recall {number(world.recall)}, "
            f"{number(world.false)} false signals for each true one; {number(days)} days"
        )
        click.echo()
        show_signals(reports)
    tell_written(None, csv_path)


def show_signals(reports: Sequence[SignalReport]) -> None:
    """Show means over seeds, with 95% confidence, and how far each policy is ahead of the one that does not listen, seed by seed."""
    rows = []
    without = {one.seed: one.freshness for one in reports if one.policy == "without"}
    for policy in dict.fromkeys(one.policy for one in reports):
        some = [one for one in reports if one.policy == policy]
        ahead = [one.freshness - without[one.seed] for one in some if one.seed in without]
        columns = (
            interval([one.freshness for one in some]),
            interval([one.freshness / one.optimum for one in some]),
            interval(ahead),
            interval([one.early for one in some]),
        )
        recall = interval([one.recall for one in some]).mean
        rows.append([*(_per_cent(column) for column in columns), "–" if recall != recall else f"{recall:.2f}", policy])
    show_table(["fresh %", "of optimum %", "ahead", "early", "recall", "policy"], rows)


def _per_cent(value: Interval) -> str:
    if value.mean != value.mean:
        return "–"
    error = "" if value.error != value.error else f" ±{100 * value.error:.2f}"
    return f"{100 * value.mean:.2f}{error}"
