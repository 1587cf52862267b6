"""``ping``: tell a crawl that pages have changed. ``sources``: what the word of each source of signals has been worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any, Final

import click

from optimal_frontier.cli.given_file import GivenFile
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import NOTHING, duration, number, printable, show_json, show_table
from optimal_frontier.cli.page_identity import Identify, identified_in
from optimal_frontier.cli.page_selection import list_unknown
from optimal_frontier.cli.project import find_workplace, opened_namespace
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.estimation.signal_sources import LEAST_PRECISION
from optimal_frontier.frontier.admitting.pinged import check_source, check_url
from optimal_frontier.frontier.judging.source_worths import source_of
from optimal_frontier.scheduling.signals import evidence, unannounced
from optimal_frontier.state.aliases import locate
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.pings import write_pings
from optimal_frontier.state.source_lessons import Record, is_ping
from optimal_frontier.state.source_records import all_sources

#: Pings that are sent at once.
_BATCH: Final = 1000


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option("--source", metavar="NAME", help="Who says so; what its word is worth is learned by this name.")
@click.option("--file", type=GivenFile(), help="A file of URLs, one a line; - is the standard input.")
@click.pass_obj
def ping(options: Options, urls: tuple[str, ...], source: str | None, file: IO[bytes] | None) -> None:
    """Say that pages have changed. A crawl that runs visits them as soon as that is worth it; one that starts later, then.

    A ping is the word of its source, and counts for what that has been worth; without --source it is taken for that of a person, who is
    believed. It makes no pages: URLs that are not known are listed, and nothing is sent of them. `force` fetches pages whatever they are
    worth.
    """
    if not urls and file is None:
        raise click.UsageError("which pages? Give URLs, or --file")
    try:
        if source is not None:
            check_source(source)
        for url in urls:
            check_url(url)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    sent = skipped = 0
    waiting, unknown = list(urls), list[str]()
    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        try:
            identify = identified_in(namespace, workplace)
        except ConfigurationError as error:
            identify = None  # only the crawl can tell then: it drops pings of other URLs
            click.echo(printable(f"sent without a look at which pages are known: {error}"), err=True)
        for line in _lines(file):
            try:
                check_url(line)
            except ValueError:
                skipped += 1
                continue
            waiting.append(line)
            if len(waiting) >= _BATCH:
                sent += write_pings(namespace, _known(namespace, identify, waiting, unknown), source)
                waiting = []
        sent += write_pings(namespace, _known(namespace, identify, waiting, unknown), source)
    list_unknown(unknown, workplace.settings.namespace, sent)
    left = f"; {number(skipped)} lines are no URLs" if skipped else ""
    click.echo(f"{number(sent)} {'ping' if sent == 1 else 'pings'} sent{left}")


def _known(namespace: Namespace, identify: Identify | None, urls: Sequence[str], unknown: list[str]) -> Sequence[str]:
    """Return those that name a page; the others go to ``unknown``."""
    if identify is None:
        return urls
    places = locate(namespace, map(identify, urls))
    unknown += [url for url, place in zip(urls, places, strict=True) if place is None]
    return [url for url, place in zip(urls, places, strict=True) if place is not None]


def _lines(file: IO[bytes] | None) -> Iterator[str]:
    for raw in file or ():
        line = raw.decode("utf-8", "replace").strip()
        if line and not line.startswith("#"):
            yield line


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def sources(options: Options, as_json: bool) -> None:
    """List the sources of signals, and what the word of each has been worth.

    CHANGES is how many were expected of the pages that it watches, SIGNALS how many it has sent; old ones fade. RECALL is the share of
    changes that it tells of, TRUE the share of its signals that are, and one signal MOVES the next visit nearer by so much, all for a page
    that changes as often as those that it watches do. A source whose signals are hardly ever true is not listened to.
    """
    with opened_namespace(find_workplace(options)) as namespace:
        known = all_sources(namespace)
    facts = [describe(name, record) for name, record in sorted(known.items())]
    if as_json:
        show_json(facts)
    elif not facts:
        click.echo("no sitemap, feed or ping has told of a page yet")
    else:
        show_table(("source", "changes", "signals", "recall", "true", "moves"), map(_row, facts))


def describe(name: str, record: Record) -> dict[str, Any]:
    """Return the fields of ``sources --json`` of one source. Times in seconds, rates per second."""
    source = source_of(name, record)
    known, believed = source.record, source.believed
    rate = known.changes / known.time if known.time > 0 else 0.0
    facts: dict[str, Any] = {
        "name": name,
        "is_ping": is_ping(name),
        "changes": known.changes,
        "signals": known.signals,
        "change_rate": rate or None,
    }
    values: dict[str, Any] = dict.fromkeys(("recall", "precision", "false_rate", "moves_seconds"))
    if rate > 0:
        precision, false_rate = believed.precision(rate), believed.false_rate(rate)
        is_heard = precision >= LEAST_PRECISION
        moves = evidence(rate, believed.recall, false_rate) / unannounced(rate, [believed.recall]) if is_heard else 0.0
        values = {"recall": believed.recall, "precision": precision, "false_rate": false_rate, "moves_seconds": moves}
    return facts | values


def _row(facts: dict[str, Any]) -> Sequence[str]:
    counts = (number(round(facts[name], 1)) for name in ("changes", "signals"))
    shares = (NOTHING if facts[name] is None else f"{facts[name]:.0%}" for name in ("recall", "precision"))
    return [printable(facts["name"]), *counts, *shares, duration(facts["moves_seconds"])]
