"""``import``: adds pages from a list, or from a search log that says how important they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from typing import IO, Any, Final

import click

from optimal_frontier.cli.export_command import MAX_HEADER, ExportFile, import_export, unpacked
from optimal_frontier.cli.given_file import GivenFile
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import number, printable, show_facts, show_json
from optimal_frontier.cli.page_identity import Identify, claimed_in, identified_at, identity
from optimal_frontier.cli.page_lists import ListedPage, RejectedLineError, read_rows
from optimal_frontier.cli.project import Workplace, connected_namespace, find_workplace, opened_namespace
from optimal_frontier.cli.search_log import WeighedPages, weigh_pages
from optimal_frontier.frontier.admitting.pages import new_page
from optimal_frontier.frontier.dispatching import weighing
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.export_lines import is_header
from optimal_frontier.state.messages import NewPage
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import NEW, REPLACED, add_calls

#: Pages per round trip.
_BATCH: Final = 1000


@dataclass
class ImportReport:
    """What became of the lines."""

    new: int = 0
    known: int = 0
    rejected: int = 0


@click.command("import")
@click.argument("file", type=GivenFile())
@click.option("--merge", is_flag=True, help="FILE is an export: add the pages that the namespace does not know. Known ones stay.")
@click.option("--search-log", "is_search_log", is_flag=True, help="FILE is a search log: what was shown and clicked weighs the pages.")
@click.option("--json", "as_json", is_flag=True, help="What became of the lines as JSON.")
@click.pass_context
def import_pages(ctx: click.Context, file: IO[bytes], merge: bool, is_search_log: bool, as_json: bool) -> None:
    """Add the pages of FILE, a CSV file (url[,importance], with a header or without) or JSON lines ({"url": ..., "importance": ...}); or
    bring in an export with everything that was learned. - is standard input; what gzip has packed is unpacked.

    Of a list, a page that is known already only has its importance updated. Lines that are no page are listed, the others are stored; exit
    1 then.

    An export goes into a namespace that is not there yet, of as many PARTITIONS as the settings say. It cannot be opened before all is in
    it; after Ctrl-C run the same import again. With --merge, an export goes into a namespace that is there: pages that are not known come
    in, known ones stay as they are, but for those that wait for their first visit.

    With --search-log FILE has a line for each result that a search engine showed: CSV with a header that names url, position and clicked,
    or JSON lines with these names; page (of results, 1 unless given) and incorrect (probability that a stale copy is wrong, 1 unless
    given) may be there, other columns are passed over. Importance is how often a stale copy would embarrass (Wolf et al., eq. 8), with
    mean 1. A line that is no result ends the command with nothing stored.
    """
    options: Options = ctx.obj
    workplace = find_workplace(options)
    name = getattr(file, "name", "-")
    shown = "standard input" if name in ("-", "<stdin>") else str(name)
    with unpacked(file) as stream:
        is_export = is_header(stream.peek(MAX_HEADER).partition(b"\n")[0])
        if is_export and is_search_log:
            raise click.UsageError(f"{shown} is an export, and no search log")
        if merge and not is_export:
            raise click.UsageError(f"{shown} is no export; --merge is for these")
        if is_export:
            import_export(ctx, workplace, ExportFile(stream, shown), merge, as_json)
        elif is_search_log:
            _import_search_log(workplace, weigh_pages(stream, name, shown, identified_at(workplace)), as_json)
        else:
            _import_list(ctx, workplace, stream, shown, as_json)


def _import_list(ctx: click.Context, workplace: Workplace, file: IO[bytes], shown: str, as_json: bool) -> None:
    """Add listed pages, and say what became of the lines."""
    report = ImportReport()

    def accepted() -> Iterator[ListedPage]:
        for line, row in read_rows(file, shown):
            if isinstance(row, RejectedLineError):
                report.rejected += 1
                click.echo(printable(f"{shown}:{line}: {row}"), err=True)
            else:
                yield row

    rows = accepted()
    first = next(rows, None)
    if first is None:  # it begins no namespace, but one that could not be used is told all the same
        with connected_namespace(workplace, create=True) as namespace:
            namespace.open(create=False)
    else:
        with opened_namespace(workplace, create=True) as namespace:
            add_rows(namespace, workplace.settings, chain([first], rows), report, claimed_in(namespace, workplace))
    if as_json:
        show_json(asdict(report))
    else:
        click.echo(f"{number(report.new)} new, {number(report.known)} known, {number(report.rejected)} rejected")
    if report.rejected:
        ctx.exit(1)


def _import_search_log(workplace: Workplace, log: WeighedPages, as_json: bool) -> None:
    """Give the pages of a search log their importance, and say what came of it."""
    report = ImportReport()
    rows = (ListedPage(url, importance) for url, importance in log.importance.items())
    with opened_namespace(workplace, create=True) as namespace:
        add_rows(namespace, workplace.settings, rows, report, claimed_in(namespace, workplace))
        known = (namespace.command("HLEN", namespace.key("pages", k), partition=k) for k in range(namespace.partitions))
        others = max(0, sum(known) - len(log.importance))
    lowest, highest = min(log.importance.values()), max(log.importance.values())
    counts = log.counts
    if as_json:
        show_json(
            {
                "rows": counts.rows,
                "queries": counts.queries,
                "clicks": counts.clicks,
                "pages": len(log.importance),
                "new": report.new,
                "known": report.known,
                "lowest_importance": lowest,
                "highest_importance": highest,
                "at_least_importance": log.least,
                "embarrassing_clicks_per_query": log.embarrassing,
                "other_pages": others,
            }
        )
        return
    least = f"; {number(log.least)} at the least" if log.least else ""
    show_facts(
        [
            ("log", f"{number(counts.rows)} results of {number(counts.queries)} queries, {number(counts.clicks)} clicks"),
            ("pages", f"{number(len(log.importance))}: {number(report.new)} new, {number(report.known)} known"),
            ("importance", f"{number(lowest)} to {number(highest)}, mean 1{least}"),
            ("embarrassing", f"{number(log.embarrassing)} clicks per query, were all copies stale"),
            ("others", f"{number(others)} pages are not in the log and keep their importance"),
        ]
    )


def add_rows(
    namespace: Namespace, settings: FrontierSettings, rows: Iterable[ListedPage], report: ImportReport, identify: Identify = identity
) -> None:
    """Add pages as a spider's plain ``Request(url, meta={"importance": ...})`` from its start would, and count them in ``report``.

    A known page only gets the importance: its request, with callback and meta, is that of the spider.
    """
    batch: list[Any] = []
    for row in rows:
        batch.append(_new_page(settings, row, identify))
        if len(batch) == _BATCH:
            _add(namespace, batch, report)
    _add(namespace, batch, report)


def _add(namespace: Namespace, batch: list[NewPage], report: ImportReport) -> None:
    by_partition: dict[int, list[NewPage]] = defaultdict(list)
    for page in batch:
        by_partition[namespace.partition_of(page.host)].append(page)
    for partition, pages in by_partition.items():
        values = namespace.command("HMGET", namespace.key("pages", partition), *(page.page for page in pages), partition=partition)
        unknown = [page for page, value in zip(pages, values, strict=True) if value is None]
        said = [answer for reply in namespace.run(add_calls(partition, unknown)) for answer in reply]
        new = sum(answer == NEW for answer in said)
        report.new += new
        report.known += len(pages) - new
        # The next plan goes by what is stated now; pages under way take it at their next visit.
        stated = {page.page: page.stated for page, answer in zip(unknown, said, strict=True) if answer == REPLACED and page.stated}
        weighing.revise_heads(namespace, partition, stated)
        known = {page.page: page.stated for page, value in zip(pages, values, strict=True) if value is not None and page.stated}
        weighing.weigh_pages(namespace, partition, known)
    batch.clear()


def _new_page(settings: FrontierSettings, row: ListedPage, identify: Identify) -> NewPage:
    record: dict[str, Any] = {"url": row.url}
    if row.importance is not None:
        record["meta"] = {b"scrapy_meta": {"importance": row.importance}}
    return new_page(settings, identify(row.url), row.url, record, importance=row.importance)
