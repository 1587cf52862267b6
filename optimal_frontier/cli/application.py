"""The command group: options, names of commands, and what an error looks like."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

import click

from optimal_frontier import __version__
from optimal_frontier.cli.named_commands import NamedCommands
from optimal_frontier.cli.options import Options
from optimal_frontier.errors import ConfigurationError, OptimalFrontierError, StateUnavailableError

#: Exit codes: the answer is bad, wrong usage, Redis not reachable.
BAD_ANSWER, WRONG_USAGE, UNREACHABLE = 1, 2, 3
#: What standard output says that takes no more.
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

#: Command -> its module, its name there, and what it does.
_COMMANDS: Final = {
    "changes": ("cli.changes_command", "changes", "List pages that changed, the latest last."),
    "check": ("cli.check_command", "check", "Check the stored state; --repair mends it."),
    "export": ("cli.export_command", "export", "Write everything that was learned to a file."),
    "force": ("cli.revise_commands", "force", "Make pages due now; retired ones come back."),
    "forget": ("cli.revise_commands", "forget", "Forget pages and what was learned of them."),
    "import": ("cli.import_command", "import_pages", "Add pages from a file, or bring in an export."),
    "importance": ("cli.revise_commands", "importance", "Set the importance of pages."),
    "metrics": ("cli.metrics_command", "metrics", "Serve the numbers of `status` for Prometheus."),
    "migrate": ("cli.migrate_command", "migrate", "Bring an older namespace to the present schema."),
    "noise": ("cli.noise_command", "noise", "Tell which sections change on every visit."),
    "page": ("cli.page_command", "page", "Explain one page: estimate, price, next visit."),
    "pages": ("cli.pages_command", "pages", "List pages, the largest of what is sorted by first."),
    "ping": ("cli.ping_commands", "ping", "Say that pages have changed."),
    "plan": ("cli.plan_command", "plan", "Solve for the price of a visit, and move deadlines."),
    "plot": ("cli.plot_command", "plot", "Draw the crawl as it is estimated now."),
    "rename-callback": ("cli.rename_command", "rename_callback", "Give stored requests another callback."),
    "reparse": ("cli.revise_commands", "reparse", "Have pages parsed again at their next visit."),
    "server": ("cli.server_command", "server", "Run the embedded server of the project."),
    "simulate": ("cli.experiments", "simulate", "Repeat the papers' experiments; compare policies."),
    "sources": ("cli.ping_commands", "sources", "List sources of signals, and what each is worth."),
    "status": ("cli.status_command", "status", "Show how the crawl is doing."),
    "trace-git": ("cli.tracing", "trace_git", "Turn a git history into events of pages."),
    "whatif": ("cli.whatif_command", "whatif", "Show what other budgets would buy."),
}


class _Application(NamedCommands):
    """A group whose commands end every error of ours in one line and an exit code."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        # What has started us may have closed these; files and connections must not get their numbers.
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # not every encoding has a dash
        try:
            return super().main(*arguments, **options)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            click.echo(f"optimal-frontier: the answer cannot be written: {error.strerror or error}", err=True)
            _drop_output()
            sys.exit(BAD_ANSWER)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OptimalFrontierError as error:
            from optimal_frontier.cli.output import printable

            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            click.echo(printable(f"optimal-frontier: {' | '.join(lines)}"), err=True)
            _drop_output()
            ctx.exit(_exit_code(error))


def _drop_output() -> None:
    """Let go of what standard output does not take, as Python would try it again at exit, with a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(error: OptimalFrontierError) -> int:
    if isinstance(error, ConfigurationError):
        return WRONG_USAGE
    return UNREACHABLE if isinstance(error, StateUnavailableError) else BAD_ANSWER


@click.group(cls=_Application, table=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
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
