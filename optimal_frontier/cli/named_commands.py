"""Groups of commands that are known by name, and imported when they are asked for: nobody waits for what another command needs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class NamedCommands(click.Group):
    """A group of commands that are imported one at a time.

    Parameters
    ----------
    table : mapping of str to tuple of str
        By name of the command: its module (in this package), what it is called there, and what it does, in a few words.
    **options
        Of `click.Group`.
    """

    def __init__(self, *, table: Mapping[str, tuple[str, str, str]], **options: Any) -> None:
        # These stand for the commands where only their names are wanted: in help, in suggestions for names that are unknown.
        told = {name: click.Command(name, short_help=summary) for name, (_, _, summary) in table.items()}
        super().__init__(**{**options, "commands": told})
        self._table = table

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, told, rest = super().resolve_command(ctx, args)
        if name is None or told is None:
            return name, told, rest
        module, attribute, _ = self._table[name]
        return name, getattr(import_module(f"optimal_frontier.{module}"), attribute), rest
