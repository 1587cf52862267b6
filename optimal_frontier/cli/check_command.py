"""``check``: do the invariants of what is stored hold?"""

from __future__ import annotations

from dataclasses import asdict

import click

from optimal_frontier.cli.output import number, printable, show_json
from optimal_frontier.cli.project import Options, find_workplace, opened_store
from optimal_frontier.frontier.deadlines import deadlines_at_most
from optimal_frontier.frontier.dispatcher import horizon_s
from optimal_frontier.state.consistency import check_state

#: Lines that are shown to people.
_SHOWN = 100


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON, all findings.")
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> None:
    """Check the stored state, also while a crawl is running; exit 1 if something is wrong."""
    options: Options = ctx.obj
    workplace = find_workplace(options)
    with opened_store(workplace) as store:
        report = check_state(store, deadlines_at_most, horizon_s(workplace.settings))
    if as_json:
        show_json({"ok": not report.violations, **asdict(report)})
    else:
        findings = [f"{f.subject} {f.message}" for f in report.violations] + [f"warning: {f.subject} {f.message}" for f in report.warnings]
        for line in findings[:_SHOWN]:
            click.echo(printable(line))
        if len(findings) > _SHOWN:
            click.echo(f"and {number(len(findings) - _SHOWN)} more; --json lists all")
        if not report.violations:
            click.echo(f"ok, {number(report.pages)} pages")
        else:
            click.echo(f"{number(len(report.violations))} violations, {number(report.pages)} pages")
    if report.violations:
        ctx.exit(1)
