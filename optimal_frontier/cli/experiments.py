"""``simulate``: the experiments by name, and what all of them share (targets checked before the work is done, files, a progress bar)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from optimal_frontier.cli.drawing import check_drawable
from optimal_frontier.cli.named_commands import NamedCommands
from optimal_frontier.errors import ConfigurationError

#: Type of options that name a file to write.
FILE: Final = click.Path(dir_okay=False, path_type=Path)
_Result = TypeVar("_Result")
#: Experiment -> its module, the name of its command there, and what it does.
_EXPERIMENTS: Final = {
    "azar-figure-1": ("papers.azar.azar_commands", "azar_figure_1_command", "Hold schedules against the optimum."),
    "azar-figure-2": ("papers.azar.azar_commands", "azar_figure_2_command", "Show which pages the optimum visits."),
    "hubs": ("cli.hub_command", "hubs", "Find new articles on hubs that change fast."),
    "policies": ("cli.simulate_commands", "policies", "Hold policies against one that knows the rates."),
    "signals": ("cli.signal_command", "signals", "Listen to sources that tell of changes."),
    "trace": ("cli.trace_command", "trace", "Hold policies against each other on real changes."),
    "upadhyay-figure-2": ("papers.upadhyay.upadhyay_commands", "upadhyay_figure_2_command", "Hold estimators against a bound."),
    "upadhyay-regret": ("papers.upadhyay.upadhyay_commands", "upadhyay_regret_command", "Show what learning costs, by horizon."),
    "wolf-figure-7": ("papers.wolf.wolf_commands", "wolf_figure_7_command", "Show embarrassment by schemes of crawling."),
    "wolf-figure-8": ("papers.wolf.wolf_commands", "wolf_figure_8_command", "Show staleness by kinds of pages and crawls."),
    "wolf-figure-9": ("papers.wolf.wolf_commands", "wolf_figure_9_command", "Show staleness by the tail of updates."),
    "wolf-figure-10": ("papers.wolf.wolf_commands", "wolf_figure_10_command", "Give crawls slots of ten crawlers."),
}


class _Experiments(NamedCommands):
    """One that is unknown ends in a line that lists the others."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _EXPERIMENTS:
            raise ConfigurationError(f"simulate {args[0]}: unknown; known are {', '.join(self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def picture_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options that say where the picture goes."""
    for option in (
        click.option("--no-picture", is_flag=True, help="Draw nothing."),
        click.option("--out", type=FILE, metavar="FILE.png", help="Picture (PNG, SVG or PDF).  [default: the figure's name, .png]"),
    ):
        command = option(command)
    return command


def checked_targets(ctx: click.Context, out: Path | None, no_picture: bool, csv_path: Path | None) -> Path | None:
    """Say what cannot be written before the work is done; return where the picture goes."""
    if csv_path is not None and not csv_path.parent.is_dir():
        raise ConfigurationError(f"{csv_path}: there is no directory {csv_path.parent}")
    if no_picture:
        return None
    picture = out if out is not None else Path(f"{ctx.info_name}.png")
    try:
        check_drawable(picture)
    except ConfigurationError as error:
        if out is not None:
            raise
        click.echo(f"no picture: {error}", err=True)
        return None
    return picture


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows(rows)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written ({error.strerror or error})") from error


def tell_written(*paths: Path | None) -> None:
    for path in paths:
        if path is not None:
            click.echo(f"written: {path}", err=True)


def with_progress(results: Iterable[_Result], total: int) -> Iterator[_Result]:
    """Pass results on, with a bar on standard error if that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield from progress.track(results, total=total)


@click.group(cls=_Experiments, table=_EXPERIMENTS)
def simulate() -> None:
    """Repeat the papers' experiments, and hold policies against each other. Needs neither a Scrapy project nor Redis."""
