"""Which pages a command is about: URLs, a file of them, all of a host, of a pattern, in a state, or all; and the work on them in chunks."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final, NamedTuple

import click

from optimal_frontier.cli.given_file import GivenFile
from optimal_frontier.cli.host_naming import HOST_HELP, host_given, partitions_of_host, unknown_host
from optimal_frontier.cli.interruption import Interruption
from optimal_frontier.cli.output import number, printable
from optimal_frontier.cli.page_identity import Identify
from optimal_frontier.cli.page_lists import RejectedLineError, read_rows
from optimal_frontier.cli.progress_bar import progress_bar
from optimal_frontier.errors import ConfigurationError, StateError
from optimal_frontier.state.aliases import locate
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.records import url_of_record
from optimal_frontier.state.rows import HEAD_BYTES, LISTED_STATES, STATE_NAMES, TAIL_BYTES, TRANSIENT, Row
from optimal_frontier.state.scanning import batches, read_host_names, scan_hash

#: Pages of one step: so many are done when Ctrl-C stops the work.
CHUNK: Final = 512
#: URLs that a dry run shows.
_SHOWN: Final = 10


class Chosen(NamedTuple):
    """A page that was chosen: its partition and its identity."""

    partition: int
    page: bytes


@dataclass(frozen=True)
class Selection:
    """What was given on the command line.

    Attributes
    ----------
    urls : tuple of str
    file : binary file or None
        One URL a line, or any list that ``import`` takes.
    host, pattern, state : str, compiled regex, str or None
        All that are given have to match. A state is ``active`` or ``retired``.
    everything : bool
    dry_run, yes : bool
        Only say what would be done; do it without asking.
    """

    urls: tuple[str, ...] = ()
    file: IO[bytes] | None = None
    host: str | None = None
    pattern: re.Pattern[str] | None = None
    state: str | None = None
    everything: bool = False
    dry_run: bool = False
    yes: bool = False

    def validate(self) -> None:
        """Check that it chooses something, in one way.

        Raises
        ------
        click.UsageError
            It does not.
        """
        named = bool(self.urls) + (self.file is not None)
        searched = self.host is not None or self.pattern is not None or self.state is not None
        if named + searched + self.everything != 1:
            raise click.UsageError("which pages? Give URLs, --file, some of --host, --pattern and --state, or --all: one of these four")

    @property
    def is_spelt_out(self) -> bool:
        """Whether each page was named on the command line, so that nobody need be asked."""
        return bool(self.urls)


@dataclass
class Found:
    """The pages that were chosen, without doubles; what named no page; and some URLs to show."""

    pages: dict[Chosen, None] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    rejected: int = 0
    shown: list[str] = field(default_factory=list)

    def take(self, chosen: Chosen, url: str) -> None:
        """Take a page that is called ``url``."""
        if chosen not in self.pages:
            self.pages[chosen] = None
            if len(self.shown) < _SHOWN:
                self.shown.append(url)


def selecting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the arguments and options that choose pages; it gets a checked `Selection`."""

    def chosen(**given: Any) -> Any:
        names = Selection.__dataclass_fields__
        selection = Selection(**{name: given.pop(name) for name in names})
        selection.validate()
        return command(selection=selection, **given)

    chosen.__doc__, chosen.__name__ = command.__doc__, command.__name__
    for option in (
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Only say how many pages it would be about, and change nothing."),
        click.option("--all", "everything", is_flag=True, help="All pages of the namespace."),
        click.option("--file", type=GivenFile(), help="Pages that FILE lists, one URL a line; - is standard input."),
        click.option("--state", type=click.Choice(LISTED_STATES), help="Pages in this state."),
        click.option("--pattern", metavar="REGEX", callback=_pattern, help="Pages whose URL it is found in."),
        click.option("--host", metavar="HOST", callback=host_given, help=f"Pages of a host, {HOST_HELP}."),
        click.argument("urls", nargs=-1, metavar="[URL]..."),
    ):
        chosen = option(chosen)
    return chosen


def _pattern(ctx: click.Context, parameter: click.Parameter, value: str | None) -> re.Pattern[str] | None:
    try:
        return None if value is None else re.compile(value)
    except re.error as error:
        raise click.BadParameter(f"{value!r}: expected a regular expression ({error})") from error


def find_pages(namespace: Namespace, selection: Selection, identify: Identify) -> Found:
    """Find the pages of a selection. A host, a pattern, a state or all: O(pages), in replies of bounded size, also while a crawl runs.

    Raises
    ------
    ConfigurationError
        A URL is none.
    StateError
        No page of the host is known.
    """
    found = Found()
    if selection.is_spelt_out or selection.file is not None:
        for some in batches_of(_named(selection, found), CHUNK):
            for url, place in zip(some, locate(namespace, map(identify, some)), strict=True):
                if place is None:
                    found.unknown.append(url)
                else:
                    found.take(Chosen(place.partition, place.page), url)
        return found
    host, pattern, wanted = selection.host, selection.pattern, selection.state and STATE_NAMES.index(selection.state)
    meant = None if host is None else partitions_of_host(namespace, host)
    is_known = host is None
    for partition in range(namespace.partitions) if meant is None else meant:
        names = read_host_names(namespace, partition) if meant is None else meant[partition]
        for page, url, state in _stored(namespace, partition, names, selection):
            is_known = True
            if wanted in (None, state) and (pattern is None or pattern.search(url) is not None):
                found.take(Chosen(partition, page), url)
    if host is not None and not is_known:
        raise unknown_host(host)
    return found


def _named(selection: Selection, found: Found) -> Iterator[str]:
    yield from selection.urls
    if selection.file is None:
        return
    name = str(getattr(selection.file, "name", "-"))
    for line, row in read_rows(selection.file, name):
        if isinstance(row, RejectedLineError):
            found.rejected += 1
            click.echo(printable(f"{name}:{line}: {row}"), err=True)
        else:
            yield row.url


def _stored(namespace: Namespace, partition: int, names: Mapping[int, str], selection: Selection) -> Iterator[tuple[bytes, str, int]]:
    """Yield page, URL and state of a partition's pages: with a host, of those that ``names`` names."""
    for page, value in scan_hash(namespace, "pages", partition):
        if len(value) < HEAD_BYTES + TAIL_BYTES:
            # Nothing is known of a damaged row; `--all` means it, too.
            if selection.everything:
                yield page, f"(damaged row {page.hex()})", 0
            continue
        row = Row.unpack(value)
        if row.state != TRANSIENT and (selection.host is None or row.host in names):
            yield page, url_of_record(value[HEAD_BYTES + TAIL_BYTES :], names.get(row.host, "")), row.state


def batches_of(values: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Cut what comes into lists."""
    some: list[Any] = []
    for value in values:
        some.append(value)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


def can_ask() -> bool:
    """Tell whether there is a person to ask."""
    return sys.stdin.isatty()


def confirmed(selection: Selection, found: Found, what: str) -> bool:
    """Ask whether to go on, unless that was answered before; False after a dry run.

    Parameters
    ----------
    selection : Selection
        As given.
    found : Found
        What it has chosen.
    what : str
        What is done to the pages: ``forget``.

    Raises
    ------
    ConfigurationError
        There is nobody to ask.
    """
    count = len(found.pages)
    pages = f"{number(count)} page{'' if count == 1 else 's'}"
    if selection.dry_run:
        click.echo(f"would {what} {pages}")
        for url in found.shown:
            click.echo(f"  {printable(url)}")
        if count > len(found.shown):
            click.echo(f"  and {number(count - len(found.shown))} more")
        return False
    if selection.yes or selection.is_spelt_out or not count:
        return True
    if not can_ask() or (selection.file is not None and getattr(selection.file, "name", "") in ("-", "<stdin>")):
        raise ConfigurationError(
            f"{what} {pages}? Nobody can be asked, as standard input is no terminal; --yes does it, --dry-run lists them"
        )
    return click.confirm(f"{what} {pages}?", default=False)


def in_chunks(found: Found, what: str, do: Callable[[int, list[bytes]], None]) -> bool:
    """Do something to all pages, a chunk at a time; return False where Ctrl-C or SIGTERM ended it.

    Parameters
    ----------
    found : Found
        The pages.
    what : str
        Stands in front of the progress bar.
    do : callable
        Called with a partition and pages of it.
    """
    by_partition: dict[int, list[bytes]] = {}
    for chosen in found.pages:
        by_partition.setdefault(chosen.partition, []).append(chosen.page)
    done = 0
    with Interruption() as interruption, progress_bar(what, len(found.pages)) as advance:
        for partition, pages in by_partition.items():
            for some in batches(pages, CHUNK):
                if interruption.happened:
                    break
                do(partition, list(some))
                done += len(some)
                advance(len(some))
    if done < len(found.pages):
        click.echo(f"stopped: {number(done)} of {number(len(found.pages))} done; the others are as they were", err=True)
    return done == len(found.pages)


def list_unknown(urls: Sequence[str], name: str, known: int) -> None:
    """List the URLs that name no page of the namespace ``name``.

    Raises
    ------
    StateError
        ``known``, the number of the others, is 0.
    """
    if urls and not known:
        more = f" and {number(len(urls) - 1)} more are" if len(urls) > 1 else " is"
        raise StateError(f"{urls[0]}{more} not known in namespace {name!r}")
    for url in urls[:_SHOWN]:
        click.echo(printable(f"{url} is not known"), err=True)
    if len(urls) > _SHOWN:
        click.echo(f"and {number(len(urls) - _SHOWN)} more are not known", err=True)
