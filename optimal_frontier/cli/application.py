"""The command group: options, commands, and what an error looks like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from optimal_frontier import __version__
from optimal_frontier.cli.changes_command import changes
from optimal_frontier.cli.check_command import check
from optimal_frontier.cli.experiments import simulate
from optimal_frontier.cli.export_command import export
from optimal_frontier.cli.import_command import import_pages
from optimal_frontier.cli.metrics_command import metrics
from optimal_frontier.cli.migrate_command import migrate
from optimal_frontier.cli.noise_command import noise
from optimal_frontier.cli.output import printable
from optimal_frontier.cli.page_command import page
from optimal_frontier.cli.pages_command import pages
from optimal_frontier.cli.ping_commands import ping, sources
from optimal_frontier.cli.plan_command import plan
from optimal_frontier.cli.plot_command import plot
from optimal_frontier.cli.project import Options
from optimal_frontier.cli.rename_command import rename_callback
from optimal_frontier.cli.revise_commands import force, forget, importance, reparse
from optimal_frontier.cli.server_command import server
from optimal_frontier.cli.status_command import status
from optimal_frontier.cli.tracing import trace_git
from optimal_frontier.cli.whatif_command import whatif
from optimal_frontier.errors import ConfigurationError, OptimalFrontierError, StateUnavailableError

#: Exit codes: the answer is bad, wrong usage, Redis not reachable.
BAD_ANSWER, WRONG_USAGE, UNREACHABLE = 1, 2, 3


class _Group(click.Group):
    """A group whose commands end every error of ours in one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OptimalFrontierError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            click.echo(printable(f"optimal-frontier: {' | '.join(lines)}"), err=True)
            ctx.exit(_exit_code(error))


def _exit_code(error: OptimalFrontierError) -> int:
    if isinstance(error, ConfigurationError):
        return WRONG_USAGE
    return UNREACHABLE if isinstance(error, StateUnavailableError) else BAD_ANSWER


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--redis-url", metavar="URL", help="Instead of OPTIMAL_FRONTIER_REDIS_URL.")
@click.option("--namespace", metavar="NAME", help="Instead of OPTIMAL_FRONTIER_NAMESPACE.")
@click.option("--spider", metavar="NAME", help="The spider whose namespace is meant; the only one there is unless given.")
@click.option(
    "--project",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Scrapy project whose settings.py is read; the one around the working directory unless given.",
)
@click.version_option(__version__, package_name="optimal-frontier")
@click.pass_context
def main(ctx: click.Context, redis_url: str | None, namespace: str | None, spider: str | None, project: Path | None) -> None:
    """Look at a crawl that keeps its pages fresh, and steer it.

    Settings are read from the settings.py of the Scrapy project around the working directory. A spider's custom_settings, and what
    `scrapy crawl -s` sets, are not seen: repeat them as options.

    Exit codes: 0 good, 1 the answer is bad, 2 wrong usage, 3 Redis not reachable.
    """
    ctx.obj = Options(redis_url, namespace, project, spider)


_LOOKING = (status, metrics, pages, page, sources, noise, changes, whatif, plot, check)
_STEERING = (ping, plan, import_pages, export, migrate, forget, force, reparse, importance, rename_callback, server)
for _command in (*_LOOKING, *_STEERING, simulate, trace_git):
    main.add_command(_command)
