"""What is done to stored pages from outside of their visits: they are wanted now, or changed; a held host gets its pages back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from optimal_frontier.frontier.admitting.revival import due_at, forced
from optimal_frontier.frontier.dispatching.work import grouped
from optimal_frontier.frontier.judging.backoff import backoff_s
from optimal_frontier.frontier.judging.gone import HELD_FAILURES
from optimal_frontier.state.aliases import follow_all
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import revise_calls
from optimal_frontier.state.rows import ACTIVE, HEAD_BYTES, RETIRED, Row

#: What becomes of a page that is revised.
DONE_NOW, WAITING, IN_FLIGHT, ONCE_ONLY = "done", "waiting for their first visit", "in flight", "fetched once"
UNKNOWN, UNREADABLE = "not known", "unreadable"
#: Answer of `revise`: the page is under way, or waits for its first visit.
_HELD: Final = 2
#: Times that pages are read again which were visited meanwhile.
_MOST_TURNS: Final = 5
#: Pages that are read at once, so that no call takes long.
_AT_ONCE: Final = 256
#: What `retired:H` has comes back if it was retired within so many seconds.
LATELY_S: Final = 86_400.0


def force_wanted(namespace: Namespace, wanted: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Make known pages due now, by a few round trips for `_AT_ONCE` of them; return those that are under way.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    wanted : sequence of (int, bytes)
        Partition and identity of each.
    """
    found = (place for at in range(0, len(wanted), _AT_ONCE) for place in follow_all(namespace, wanted[at : at + _AT_ONCE]))
    places = [place for place in found if place is not None]
    under_way: list[tuple[int, bytes]] = []
    for partition, there in grouped(places, lambda place: place.partition).items():
        for at in range(0, len(there), _AT_ONCE):
            pages = [place.page for place in there[at : at + _AT_ONCE]]
            told = revise_pages(namespace, partition, pages, lambda _, row: forced_or_why(row))
            under_way += [(partition, page) for page in told.get(IN_FLIGHT, [])]
    return under_way


def forced_or_why(row: Row) -> Row | str:
    """Return the row of a page that somebody wants now, or why it cannot be had."""
    return forced(row) if row.state in (ACTIVE, RETIRED) or row.b == 0 else ONCE_ONLY


def revise_pages(
    namespace: Namespace, partition: int, pages: Sequence[bytes], change: Callable[[bytes, Row], Row | str]
) -> dict[str, list[bytes]]:
    """Give pages of a partition other heads.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    partition : int
        Of the pages.
    pages : sequence of bytes
        Their identities.
    change : callable
        From page and head to the new head, or to a text that says why it stays.

    Returns
    -------
    dict
        Pages by what became of them: `DONE_NOW`, `WAITING`, `IN_FLIGHT`, `UNKNOWN`, `UNREADABLE`, or a text of ``change``.
    """
    told: dict[str, list[bytes]] = {}
    todo = list(dict.fromkeys(pages))
    for _ in range(_MOST_TURNS):
        if not todo:
            break
        revisions: list[tuple[bytes, float, Row, Memory | None]] = []
        values = namespace.command("HMGET", namespace.key("pages", partition), *todo, partition=partition)
        for page, value in zip(todo, values, strict=True):
            if value is None or len(value) < HEAD_BYTES:
                told.setdefault(UNKNOWN if value is None else UNREADABLE, []).append(page)
                continue
            row = Row.unpack(value)
            new = change(page, row)
            if isinstance(new, str):
                told.setdefault(new, []).append(page)
            else:
                revisions.append((page, row.b, new, None))
        answers = [answer for reply in namespace.run(revise_calls(partition, revisions)) for answer in reply]
        # A page that was visited since it was read is read again.
        todo = [page for (page, *_), answer in zip(revisions, answers, strict=True) if answer == 0]
        held = [page for (page, *_), answer in zip(revisions, answers, strict=True) if answer == _HELD]
        scores = namespace.command("ZMSCORE", namespace.key("q", partition), *held, partition=partition) if held else []
        for page, score in zip(held, scores, strict=True):
            told.setdefault(WAITING if score is None else IN_FLIGHT, []).append(page)
        done = [page for (page, *_), answer in zip(revisions, answers, strict=True) if answer == 1]
        if done:
            told.setdefault(DONE_NOW, []).extend(done)
    if todo:
        told.setdefault(IN_FLIGHT, []).extend(todo)
    return told


def bring_back(namespace: Namespace, partition: int, host: int) -> int:
    """Bring back what was retired of a host within the last day, as it is held for mass deletion now; return how many pages."""
    key, now = namespace.key(f"retired:{host}", partition), namespace.now(partition)
    pages = list(dict.fromkeys(namespace.command("LRANGE", key, 0, -1, partition=partition)))
    values = namespace.command("HMGET", namespace.key("pages", partition), *pages, partition=partition) if pages else []
    revisions: list[tuple[bytes, float, Row, Memory | None]] = []
    for page, value in zip(pages, values, strict=True):
        row = Row.unpack(value) if value is not None and len(value) >= HEAD_BYTES else Row(state=0)
        if row.state != RETIRED or row.host != host or now - row.b / 1e6 > LATELY_S:
            continue
        failures = max(row.failures, HELD_FAILURES)
        due = row.b / 1e6 + max(row.min_interval, backoff_s(page, failures))
        revisions.append((page, row.b, due_at(row._replace(state=ACTIVE, failures=failures), due), None))
    back: int = sum(reply.count(1) for reply in namespace.run(revise_calls(partition, revisions, "gone_held=1")))
    namespace.command("DEL", key, partition=partition)
    return back
