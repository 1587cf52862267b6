"""``server``: the embedded server on its own."""

from __future__ import annotations

import shlex

import click

from optimal_frontier.cli.interruption import Interruption
from optimal_frontier.cli.project import Options, find_workplace
from optimal_frontier.errors import ConfigurationError, StateUnavailableError

#: Seconds between two looks whether the server lives.
_LOOK_S = 1.0


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
            click.echo(f"look    redis-cli -s {shlex.quote(path)} hgetall {shlex.quote(f'{workplace.settings.namespace}:{{0}}:stats')}")
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
