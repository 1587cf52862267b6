"""``forget``, ``force``, ``reparse`` and ``importance``: what a person may do to pages, one or many."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from optimal_frontier.cli.interruption import Interruption
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import duration, number
from optimal_frontier.cli.page_identity import check_url, identified_in
from optimal_frontier.cli.page_selection import Found, Selection, confirmed, find_pages, in_chunks, list_unknown, selecting
from optimal_frontier.cli.project import find_workplace, opened_namespace
from optimal_frontier.errors import ConfigurationError, StateError
from optimal_frontier.frontier.admitting.pages import stated_importance
from optimal_frontier.frontier.dispatching.forgetting import forget_pages
from optimal_frontier.frontier.dispatching.reparsing import GONE, Reparsing, fetches_per_second
from optimal_frontier.frontier.dispatching.revising import (
    DONE_NOW,
    IN_FLIGHT,
    ONCE_ONLY,
    UNKNOWN,
    UNREADABLE,
    WAITING,
    forced_or_why,
    revise_pages,
)
from optimal_frontier.frontier.dispatching.weighing import weigh_pages
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.reading import read_published

#: Seconds after which pages in flight are tried again, and how often: most fetches have ended by then.
_AGAIN_S, _TRIES = 1.0, 5
#: What became of pages -> what is said of them, behind their number.
_SAID = {
    WAITING: "waiting for their first visit",
    IN_FLIGHT: "in flight, and left as they are",
    ONCE_ONLY: "fetched once, and left as they are (reparse fetches them again)",
    GONE: "retired, and left as they are (force brings them back)",
    UNREADABLE: "damaged, and left as they are (see check)",
    UNKNOWN: "gone meanwhile",
}
#: Does something to pages of a partition, and says what became of which.
_Change = Callable[[int, list[bytes]], dict[str, list[bytes]]]


@click.command()
@selecting
@click.pass_obj
def forget(options: Options, selection: Selection) -> None:
    """Forget pages: their estimates, their history, their place in the queues. A crawl that finds one again adds it as new.

    Pages that are named on the command line are forgotten at once; of others the number is told, and asked for a yes.
    """
    forgotten = 0

    def forget_some(namespace: Namespace) -> Callable[[int, list[bytes]], None]:
        def do(partition: int, pages: list[bytes]) -> None:
            nonlocal forgotten
            forgotten += forget_pages(namespace, partition, pages)

        return do

    def told(found: Found) -> str:
        return f"forgotten: {selection.urls[0]}" if len(selection.urls) == 1 else f"{number(forgotten)} forgotten"

    _run(options, selection, "forget", lambda namespace, settings, found: (forget_some(namespace), told))


@click.command()
@selecting
@click.pass_obj
def force(options: Options, selection: Selection) -> None:
    """Make pages due now, with a full answer and a callback; retired ones come back.

    Pages that are named on the command line are due at once; of others the number is told, and asked for a yes.
    """

    def begin(namespace: Namespace, settings: FrontierSettings, found: Found) -> _Change:
        return lambda partition, pages: revise_pages(namespace, partition, pages, lambda page, row: forced_or_why(row))

    def one(told: dict[str, list[bytes]], url: str) -> str:
        if DONE_NOW in told:
            return f"due now: {url}"
        if ONCE_ONLY in told:
            raise StateError(f"{url} was to be fetched once, and was; reparse it to have it fetched again, or forget it")
        if UNREADABLE in told:
            raise StateError(f"what is stored of {url} cannot be read; see what `optimal-frontier check` says")
        return f"{'already in flight' if IN_FLIGHT in told else 'already waiting for its first visit'}: {url}"

    _change(options, selection, "force", begin, ("due now", one))


@click.command()
@click.option("--now", "at_once", is_flag=True, help="Make them due now, instead of one after the other as the budget allows.")
@selecting
@click.pass_obj
def reparse(options: Options, selection: Selection, at_once: bool) -> None:
    """Have pages parsed again: the next visit brings a full answer, and the callback is called whatever the answer is.

    A page keeps the time of its next visit, if that comes soon. Else it is brought forward, so that all pages are fetched within about
    pages / budget seconds, one after the other. Requests that were fetched once are fetched once more. Retired pages are left as they are:
    there is nothing to parse.
    """

    def begin(namespace: Namespace, settings: FrontierSettings, found: Found) -> _Change:
        prices = [read_published(namespace, k)[1] for k in range(namespace.partitions)]
        rate = math.inf if at_once else fetches_per_second(namespace, settings)
        reparsing = Reparsing(len(found.pages), rate, max(namespace.now(k) for k in range(namespace.partitions)), prices)
        if reparsing.span >= 1.0 and found.pages and not selection.dry_run:
            click.echo(f"all are due within {duration(reparsing.span)}, at {number(rate)}/s", err=True)
        return lambda partition, pages: revise_pages(namespace, partition, pages, lambda page, row: reparsing(partition, row))

    def one(told: dict[str, list[bytes]], url: str) -> str:
        if DONE_NOW in told:
            return f"{'due now' if at_once else 'to be parsed again'}: {url}"
        return f"{next(_SAID[name] for name in _SAID if name in told)}: {url}"

    _change(options, selection, "reparse", begin, ("to be parsed again", one))


def _importance(ctx: click.Context, parameter: click.Parameter, value: str) -> float:
    try:
        return stated_importance(float(value))
    except ValueError:
        raise ConfigurationError(f"importance VALUE is {value!r}: expected a number above 0, and URLs behind it") from None


class _ByValue(click.Command):
    """A command whose first argument is a number: one below 0 is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_below = bool(args) and args[0][:1] == "-" and args[0][1:2] in set("0123456789.")
        return super().parse_args(ctx, ["--", *args] if is_below else args)


@click.command(cls=_ByValue)
@click.argument("value", callback=_importance)
@selecting
@click.pass_obj
def importance(options: Options, selection: Selection, value: float) -> None:
    """Set the importance of pages to VALUE. It counts as stated by their requests, so RULES leave it alone.

    The next plan goes by it. A spider that yields a page with another importance later replaces it.
    """

    def begin(namespace: Namespace, settings: FrontierSettings, found: Found) -> _Change:
        return lambda partition, pages: weigh_pages(namespace, partition, dict.fromkeys(pages, value))

    _change(options, selection, f"set importance {number(value)} of", begin, (f"of importance {number(value)}", None))


def _change(
    options: Options,
    selection: Selection,
    what: str,
    begin: Callable[[Namespace, FrontierSettings, Found], _Change],
    words: tuple[str, Callable[[dict[str, list[bytes]], str], str] | None],
) -> None:
    """Change pages, try those in flight again for some seconds, and say what became of how many."""
    told: dict[str, list[bytes]] = {}
    done, one = words

    def started(namespace: Namespace, settings: FrontierSettings, found: Found) -> Any:
        change = begin(namespace, settings, found)
        missed: list[tuple[int, bytes]] = []

        def note(partition: int, pages: list[bytes], *, is_last: bool = False) -> None:
            for name, some in change(partition, pages).items():
                if name == IN_FLIGHT and not is_last:
                    missed.extend((partition, page) for page in some)
                else:
                    told.setdefault(name, []).extend(some)

        def sentence(found: Found) -> str:
            _try_again(missed, note, wait=not selection.is_spelt_out)
            if one is not None and len(selection.urls) == 1:
                return one(told, selection.urls[0])
            others = (f"{number(len(told[name]))} {said}" for name, said in _SAID.items() if name in told)
            return ", ".join([f"{number(len(told.get(DONE_NOW, ())))} {done}", *others])

        return note, sentence

    _run(options, selection, what, started)


def _try_again(missed: list[tuple[int, bytes]], note: Callable[..., None], *, wait: bool) -> None:
    with Interruption() as interruption:
        for turn in range(_TRIES):
            if not missed:
                return
            is_last = not wait or turn == _TRIES - 1 or interruption.wait(_AGAIN_S)
            some, missed[:] = list(missed), []
            for partition in sorted({partition for partition, _ in some}):
                note(partition, [page for k, page in some if k == partition], is_last=is_last)


def _run(options: Options, selection: Selection, what: str, begin: Callable[[Namespace, FrontierSettings, Found], Any]) -> None:
    """Find the pages, ask, do it in chunks, and say what came of it; exit 1 where something was named that is not known."""
    for url in selection.urls:
        check_url(url)
    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        found = find_pages(namespace, selection, identified_in(namespace, workplace))
        list_unknown(found.unknown, workplace.settings.namespace, len(found.pages))
        if confirmed(selection, found, what):
            do, sentence = begin(namespace, workplace.settings, found)
            is_whole = in_chunks(found, what, do)
            click.echo(sentence(found))
        else:
            is_whole = True
    if found.unknown or found.rejected or not is_whole:
        click.get_current_context().exit(1)
