"""``changes``: the change feed, for people and for pipes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Final

import click

from optimal_frontier.cli.interruption import Interruption
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import moment, printable, show_json_line
from optimal_frontier.cli.project import find_workplace, opened_namespace
from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.state.change_feed import FeedEntry, changes_after, feed_ends, last_changes

#: Entries that can be asked for: more than all partitions of a crawl keep.
_MOST: Final = 10**9
#: Seconds between two looks.
_PAUSE_S: Final = 0.5
#: Seconds between attempts to reach Redis again.
_RETRY_S: Final = 2.0
#: Digits of a fingerprint that tell two apart at a glance.
_SHOWN: Final = 8


@click.command()
@click.option("--limit", type=click.IntRange(0, _MOST), default=10, show_default=True, help="How many of those so far.")
@click.option("--follow", is_flag=True, help="Go on with what changes from now on, until Ctrl-C; an outage is waited for.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, one object a line, with whole fingerprints.")
@click.pass_obj
def changes(options: Options, limit: int, follow: bool, as_json: bool) -> None:
    """List pages that changed, the latest last: when, the fingerprints before and now, and the URL. The last 10,000 or so are kept."""
    with opened_namespace(find_workplace(options)) as namespace, Interruption() as interruption:
        places = feed_ends(namespace)
        told = last_changes(namespace, limit)
        _show(told, as_json)
        # What came between the two looks was told already.
        for change in told:
            places[change.partition] = change.id
        outage = False
        while follow and not interruption.wait(_RETRY_S if outage else _PAUSE_S):
            try:
                if outage:
                    namespace.connection.reconnect()
                    click.echo("Redis answers again", err=True)
                    outage = False
                _show(changes_after(namespace, places), as_json)
            except StateUnavailableError as error:
                if not outage:
                    click.echo(f"optimal-frontier: {error}; trying again", err=True)
                outage = True


def _show(told: Iterable[FeedEntry], as_json: bool) -> None:
    for change in told:
        if as_json:
            show_json_line(asdict(change))
        else:
            before, now = (text[:_SHOWN].ljust(_SHOWN, "-") for text in (change.previous, change.fingerprint))
            click.echo(printable(f"{moment(change.time)}  {before} -> {now}  {change.url}"))
