"""``check``: do the invariants of what is stored hold?"""

from __future__ import annotations

from typing import Any

import click

from optimal_frontier.cli.output import number, printable, show_json
from optimal_frontier.cli.project import Options, find_workplace, opened_namespace
from optimal_frontier.state.checking import CheckReport, Finding, check_state

#: Lines that are shown to people.
_SHOWN = 100


@click.command()
@click.option("--repair", is_flag=True, help="Put right what can be without harm, while no crawl is running.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, all findings.")
@click.pass_context
def check(ctx: click.Context, repair: bool, as_json: bool) -> None:
    """Check the stored state, also while a crawl is running; exit 1 if something is wrong."""
    options: Options = ctx.obj
    with opened_namespace(find_workplace(options)) as namespace:
        report = check_state(namespace, repair=repair)
    if as_json:
        found, repaired = (list(map(_fields, findings)) for findings in (report.violations, report.repaired))
        show_json({"ok": not report.violations, "pages": report.pages, "violations": found, "repaired": repaired})
    else:
        _show(report, repair)
    if report.violations:
        ctx.exit(1)


def _show(report: CheckReport, repair: bool) -> None:
    findings = [f"{f.subject} {f.message}" for f in report.violations] + [f"repaired: {f.subject} {f.message}" for f in report.repaired]
    for line in findings[:_SHOWN]:
        click.echo(printable(line))
    if len(findings) > _SHOWN:
        click.echo(f"and {number(len(findings) - _SHOWN)} more; --json lists all")
    if report.repaired:
        click.echo(f"{number(len(report.repaired))} repaired; check again, as some repairs show what else is wrong")
    if not report.violations:
        click.echo(f"ok, {number(report.pages)} pages")
        return
    click.echo(f"{number(len(report.violations))} violations, {number(report.pages)} pages")
    mendable = sum(bool(finding.repair) for finding in report.violations)
    if mendable:
        how = (
            "the state changed meanwhile: stop the crawl, and try again" if repair else "--repair puts them right while no crawl is running"
        )
        click.echo(f"{number(mendable)} of them can be repaired; {how}")


def _fields(finding: Finding) -> dict[str, Any]:
    names = ("partition", "invariant", "subject", "message")
    return {name: getattr(finding, name) for name in names} | {"repairable": bool(finding.repair)}
