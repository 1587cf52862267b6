"""``simulate``: the experiments by name, and what all of them share (targets checked before the work is done, files, a progress bar).

An experiment's module is imported when the experiment is asked for, so no other command waits for it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from optimal_frontier.cli.drawing import check_drawable
from optimal_frontier.errors import ConfigurationError

#: Type of options that name a file to write.
FILE: Final = click.Path(dir_okay=False, path_type=Path)
_Result = TypeVar("_Result")
#: Experiment -> its module and the name of its command there.
_EXPERIMENTS: Final = {
    "azar-figure-1": ("papers.azar.azar_commands", "azar_figure_1_command"),
    "azar-figure-2": ("papers.azar.azar_commands", "azar_figure_2_command"),
    "hubs": ("cli.hub_command", "hubs"),
    "policies": ("cli.simulate_commands", "policies"),
    "signals": ("cli.signal_command", "signals"),
    "trace": ("cli.simulate_commands", "trace"),
    "upadhyay-figure-2": ("papers.upadhyay.upadhyay_commands", "upadhyay_figure_2_command"),
    "upadhyay-regret": ("papers.upadhyay.upadhyay_commands", "upadhyay_regret_command"),
    "wolf-figure-7": ("papers.wolf.wolf_commands", "wolf_figure_7_command"),
    "wolf-figure-8": ("papers.wolf.wolf_commands", "wolf_figure_8_command"),
    "wolf-figure-9": ("papers.wolf.wolf_commands", "wolf_figure_9_command"),
    "wolf-figure-10": ("papers.wolf.wolf_commands", "wolf_figure_10_command"),
}


class Experiments(click.Group):
    """Commands by name, imported when they are asked for; one that is unknown ends in a line that lists the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_EXPERIMENTS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _EXPERIMENTS:
            return None
        module, name = _EXPERIMENTS[cmd_name]
        command: click.Command = getattr(import_module(f"optimal_frontier.{module}"), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None:
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


@click.group(cls=Experiments)
def simulate() -> None:
    """Repeat the papers' experiments, and hold policies against each other. Needs neither a Scrapy project nor Redis."""
