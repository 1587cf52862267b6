"""``migrate``: brings a namespace of a previous schema to the present one."""

from __future__ import annotations

import time

import click

from optimal_frontier.cli.interruption import Interruption
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import duration, number
from optimal_frontier.cli.progress_bar import progress_bar
from optimal_frontier.cli.project import connected_namespace, find_workplace, nothing_stored
from optimal_frontier.errors import StateError
from optimal_frontier.state.namespace import SCHEMA
from optimal_frontier.state.reading import is_empty


@click.command()
@click.pass_obj
def migrate(options: Options) -> None:
    """Bring a namespace that a previous version wrote to the present schema, in place; stop its crawlers first.

    What was learned is written beside the old keys; then these are removed. Redis has to hold both meanwhile. After Ctrl-C, or any other
    end, run it again. Make an `export` with the version that wrote the namespace, or a copy of Redis's data, if you want a way back.
    """
    from optimal_frontier.frontier.migrating.migration import Migration

    workplace = find_workplace(options)
    began = time.monotonic()
    with connected_namespace(workplace, former=True) as namespace:
        name = namespace.name
        if is_empty(namespace):
            raise nothing_stored(workplace, namespace)
        migration = Migration(namespace, workplace.settings.partitions)
        if migration.is_done:
            click.echo(f"namespace {name!r} has schema {SCHEMA} already")
            return
        before = migration.schema
        header, lines = migration.header()
        if header is not None:
            with Interruption() as interruption, progress_bar("migrating", int(header["pages"])) as advance:
                is_whole = migration.take_over(header, lines, advance, lambda: interruption.happened)
            if not is_whole:
                raise StateError("stopped: the namespace is as it was; run it again")
        migration.settle()
    took = duration(time.monotonic() - began)
    done = (
        f"{number(migration.pages)} pages taken over from schema {before}" if header is not None else "the migration that had begun is done"
    )
    click.echo(f"{done}, in {took}; the namespace {name!r} has schema {SCHEMA}")
    if migration.left_out:
        click.echo(f"{number(migration.left_out)} pages could not be read, and were left out", err=True)
        click.get_current_context().exit(1)
