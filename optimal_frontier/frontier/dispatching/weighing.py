"""Known pages get another importance, which counts as stated by their requests."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from optimal_frontier.frontier.dispatching.revising import DONE_NOW, ONCE_ONLY, UNKNOWN, UNREADABLE, revise_pages
from optimal_frontier.state.messages import NewPage
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import add_calls
from optimal_frontier.state.rows import ACTIVE, DONE, HEAD_BYTES, TAIL_BYTES, Row, split_tail


def weigh_pages(namespace: Namespace, partition: int, stated: Mapping[bytes, float]) -> dict[str, list[bytes]]:
    """Set the importance of pages of a partition; return them by what became of them, see `revise_pages`. Their requests stay.

    The next plan goes by it. Pages under way, and those that wait for their first visit, take it at their next visit. A page that was
    forgotten meanwhile stays so, unless that happens between two of the round trips that this takes: then it comes in anew.
    """
    told: dict[str, list[bytes]] = {}
    known: list[NewPage] = []
    pages = list(stated)
    names: dict[int, str] = {}
    values = namespace.command("HMGET", namespace.key("pages", partition), *pages, partition=partition) if pages else []
    rows = [Row.unpack(value) if value is not None and len(value) >= HEAD_BYTES + TAIL_BYTES else None for value in values]
    numbers = sorted({row.host for row in rows if row is not None})
    if numbers:
        stored = namespace.command("HMGET", namespace.key("hosts:names", partition), *numbers, partition=partition)
        for number, name in zip(numbers, stored, strict=True):
            with contextlib.suppress(UnicodeDecodeError):  # a damaged name would make another host of it
                if name is not None:
                    names[number] = name.decode()
    for page, value, row in zip(pages, values, rows, strict=True):
        if value is None:
            told.setdefault(UNKNOWN, []).append(page)
        elif row is None or row.host not in names:
            told.setdefault(UNREADABLE, []).append(page)
        elif row.state == DONE:
            told.setdefault(ONCE_ONLY, []).append(page)
        else:
            known.append(NewPage(page, names[row.host], row, stated[page], split_tail(value)[1]))
    namespace.run(add_calls(partition, known))
    told.setdefault(DONE_NOW, []).extend(new.page for new in known)
    revise_heads(namespace, partition, {new.page: stated[new.page] for new in known})
    return told


def revise_heads(namespace: Namespace, partition: int, stated: Mapping[bytes, float]) -> None:
    """Give heads of active pages the importance that their tails state, so that the next plan goes by it."""

    def change(page: bytes, row: Row) -> Row | str:
        return row._replace(importance=stated[page]) if row.state == ACTIVE and row.importance != stated[page] else ""

    if stated:
        revise_pages(namespace, partition, list(stated), change)
