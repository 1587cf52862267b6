"""``check``: do the invariants of what is stored hold?"""

from __future__ import annotations

import math
from typing import Any

import click

from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import number, printable, show_json
from optimal_frontier.cli.project import find_workplace, opened_namespace
from optimal_frontier.frontier.dispatching.setting_aside import mend_put_aside, set_aside
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.checking import UNSOUND, CheckReport, Finding, check_state
from optimal_frontier.state.namespace import Namespace

#: Lines that are shown to people.
_SHOWN = 100
#: Rounds of repairs, at most, after which there is no less to repair.
_ROUNDS = 4


@click.command()
@click.option("--repair", is_flag=True, help="Put right what can be without harm, while no crawl is running.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, all findings.")
@click.pass_context
def check(ctx: click.Context, repair: bool, as_json: bool) -> None:
    """Check the stored state, also while a crawl is running; exit 1 if something is wrong."""
    options: Options = ctx.obj
    workplace = find_workplace(options)
    with opened_namespace(workplace, mends=True) as namespace:
        report = _repaired(namespace, workplace.settings) if repair else check_state(namespace)
    if as_json:
        found, repaired = (list(map(_fields, findings)) for findings in (report.violations, report.repaired))
        show_json({"ok": not report.violations, "pages": report.pages, "violations": found, "repaired": repaired})
    else:
        _show(report, repair)
    if report.violations:
        ctx.exit(1)


def _repaired(namespace: Namespace, settings: FrontierSettings) -> CheckReport:
    """Repair what can be; again, as some repairs show what else is wrong."""
    repaired: list[Finding] = []
    left, rounds = math.inf, 0  # since it was fewer
    while rounds < _ROUNDS:
        report = _mended(namespace, settings, check_state(namespace, repair=True))
        repaired += report.repaired
        if not report.repaired:
            break
        rounds = 0 if len(report.violations) < left else rounds + 1
        left = min(left, len(report.violations))
    return CheckReport(report.pages, report.violations, repaired)


def _mended(namespace: Namespace, settings: FrontierSettings, report: CheckReport) -> CheckReport:
    """Put aside what cannot be read, and mend all that was put aside."""
    unreadable = [finding for finding in report.violations if finding.invariant in UNSOUND]
    for k in {finding.partition for finding in unreadable}:
        pages = {bytes.fromhex(f.subject.removeprefix("page ")): f.message for f in unreadable if f.partition == k}
        set_aside(namespace, k, pages)
    told = {f"page {one.page.hex()}": (one, what) for one, what in mend_put_aside(namespace, settings)}
    left = [f for f in report.violations if f.subject not in told or f.invariant not in (*UNSOUND, "put aside")]
    mended = [Finding(one.partition, "put aside", page, f"was put aside: {one.reason}; {what}") for page, (one, what) in told.items()]
    return CheckReport(report.pages, left, report.repaired + mended)


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
