"""``server``: the embedded server on its own."""

from __future__ import annotations

import shlex

import click

from optimal_frontier.cli.interruption import Interruption
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.project import Workplace, find_namespace, find_workplace
from optimal_frontier.errors import ConfigurationError, OptimalFrontierError, StateUnavailableError
from optimal_frontier.state.connection import connect

#: Seconds between two looks whether the server lives.
_LOOK_S = 1.0


def _namespace(workplace: Workplace) -> str:
    """Return the namespace that a person may want to look at; ``SPIDER`` stands in it where there is not one."""
    try:
        with connect(workplace.spec) as connection:
            name = find_namespace(workplace, connection)
    except OptimalFrontierError:
        name = f"{workplace.settings.former_namespace}:SPIDER"
    return name.replace("*", "SPIDER")


@click.command()
@click.pass_obj
def server(options: Options) -> None:
    """Run the project's embedded server, or join it, until Ctrl-C; it goes on while a spider uses it."""
    from optimal_frontier.state.embedded import EmbeddedServer

    workplace = find_workplace(options)
    data_dir = workplace.spec.data_dir
    if data_dir is None:
        raise ConfigurationError(
            f"OPTIMAL_FRONTIER_REDIS_URL is {workplace.spec.display}: expected embedded, a server of yours is not run here"
        )
    with Interruption() as interruption:
        hold = EmbeddedServer(data_dir)
        try:
            path = hold.ensure()
            click.echo(f"data    {data_dir}")
            click.echo(f"socket  {path}")
            click.echo(f"look    redis-cli -s {shlex.quote(path)} hgetall {shlex.quote(f'{_namespace(workplace)}:{{0}}:stats')}")
            failed = False
            while not interruption.wait(_LOOK_S):
                try:
                    hold.ensure()
                    failed = False
                except StateUnavailableError as error:
                    if not failed:
                        click.echo(f"optimal-frontier: {error}; trying again", err=True)
                    failed = True
        finally:
            hold.release()
