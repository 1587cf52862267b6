"""``import``: adds pages from a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Final

import click

from optimal_frontier.cli.output import number, printable
from optimal_frontier.cli.page import identity
from optimal_frontier.cli.project import Options, find_workplace, opened_store
from optimal_frontier.cli.rows import RejectedLineError, Row, read_rows
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.frontier.session import bounds_digest
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.records import NewPage
from optimal_frontier.state.store import Store

#: Pages per round trip.
_BATCH: Final = 1000


@dataclass
class ImportReport:
    """What became of the lines."""

    new: int = 0
    known: int = 0
    rejected: int = 0


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.pass_context
def import_pages(ctx: click.Context, file: IO[bytes]) -> None:
    """Add the pages of FILE, a CSV file (url[,importance], with a header or without) or JSON lines ({"url": ..., "importance": ...}); - is
    standard input.

    A page that is known already only has its importance updated. Lines that are no page are listed, the others are stored; exit 1 then.
    """
    options: Options = ctx.obj
    workplace = find_workplace(options)
    name = getattr(file, "name", "-")
    shown = "standard input" if name in ("-", "<stdin>") else str(name)

    report = ImportReport()

    def accepted() -> Iterator[Row]:
        for line, row in read_rows(file, shown):
            if isinstance(row, RejectedLineError):
                report.rejected += 1
                click.echo(printable(f"{shown}:{line}: {row}"), err=True)
            else:
                yield row

    with opened_store(workplace, create=True) as store:
        add_rows(store, workplace.settings, accepted(), report)
    click.echo(f"{number(report.new)} new, {number(report.known)} known, {number(report.rejected)} rejected")
    if report.rejected:
        ctx.exit(1)


def add_rows(store: Store, settings: FrontierSettings, rows: Iterable[Row], report: ImportReport) -> None:
    """Add pages as a spider's plain ``Request(url, meta={"importance": ...})`` would, and count them in ``report``."""
    dispatcher = Dispatcher(store, settings)
    batch: list[NewPage] = []

    def flush() -> None:
        if batch:
            new = dispatcher.exchange(Exchange(pages=batch)).new
            report.new += new
            report.known += len(batch) - new
            batch.clear()

    for row in rows:
        batch.append(_new_page(dispatcher, row))
        if len(batch) == _BATCH:
            flush()
    flush()
    _note_bounds(store, settings, report)


def _new_page(dispatcher: Dispatcher, row: Row) -> NewPage:
    # Frontera takes long to import, and no other command needs it.
    from frontera.core.models import Request

    from optimal_frontier.integrations.frontera.requests import encode_request

    meta = {} if row.importance is None else {b"scrapy_meta": {"importance": row.importance}}
    return dispatcher.new_page(identity(row.url), row.url, encode_request(Request(row.url, meta=meta)), importance=row.importance)


def _note_bounds(store: Store, settings: FrontierSettings, report: ImportReport) -> None:
    """See to it that a spider with other RULES or interval bounds than ours brings the new pages in line when it starts."""
    if report.new:
        ours = bounds_digest(settings)
        store.command("HSETNX", store.key("meta"), "bounds", ours)
        if store.hash("meta").get("bounds") != ours:
            store.command("HSET", store.key("meta"), "bounds", "mixed")
