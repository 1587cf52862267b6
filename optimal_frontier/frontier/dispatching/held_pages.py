"""Held pages come back: soon after a spider is there that has what they need, or as they are yielded with another callback."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from optimal_frontier.frontier.judging.holding import returned
from optimal_frontier.settings import PREFIX
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import revise_calls
from optimal_frontier.state.records import is_class, needs_of, unpack_record
from optimal_frontier.state.rows import HEAD_BYTES, HELD, TAIL_BYTES, Row, split_tail
from optimal_frontier.state.scanning import BATCH, read_host_names, scan_hash

logger = logging.getLogger(__name__)

#: Counter of pages that are held now.
COUNTER = "held"
#: Seconds from one look at held pages to the next, and share of the time that looks may take: a look reads all pages.
AGAIN_S: Final = 60.0
_LOOKING_SHARE: Final = 0.02


class Returning:
    """Looks now and then for held pages that may come back: crawlers with other code may hold them at any time.

    Parameters
    ----------
    namespace : Namespace
    has : callable
        Tells whether there is a callback or a class of requests of a name, as `needs_of` has it.
    clock : callable, optional
        Seconds, from any origin.
    listed : collection of str, optional
        CALLBACKS.
    """

    def __init__(
        self,
        namespace: Namespace,
        has: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
        listed: Collection[str] | None = None,
    ) -> None:
        self._namespace, self._has, self._clock, self._listed = namespace, has, clock, listed
        self._next = -math.inf

    def look(self) -> int:
        """Bring back those that may, if it is time for that; return how many."""
        began = self._clock()
        if began < self._next:
            return 0
        # What stays held is told once.
        back = bring_back(self._namespace, self._has, tell=self._next == -math.inf, listed=self._listed)
        took = self._clock() - began
        self._next = began + max(AGAIN_S, took / _LOOKING_SHARE)
        return back


def bring_back(namespace: Namespace, has: Callable[[str], bool], *, tell: bool = True, listed: Collection[str] | None = None) -> int:
    """Let those held pages be fetched again whose requests have all that they need; return how many. The log may tell what stays held.

    O(pages) of partitions that hold any, in replies of bounded size; the others cost one command.
    """
    back, missing = 0, Counter[str]()
    for k in range(namespace.partitions):
        if namespace.counts(k).get(COUNTER, 0) <= 0:
            continue
        hosts = read_host_names(namespace, k)
        some: list[tuple[bytes, bytes]] = []
        for page, value in _held(scan_hash(namespace, "pages", k)):
            lacks = [name for name in _needs(value, hosts) if not has(name)]
            missing.update(lacks[:1])
            if not lacks:
                some.append((page, value))
            if len(some) == BATCH:
                back, some = back + _return(namespace, k, some), []
        back += _return(namespace, k, some)
    if back:
        logger.info("%d held pages come back: the spider has their callbacks", back)
    for name, count in sorted(missing.items() if tell else ()):
        logger.warning(told_of(count, name, listed))
    return back


def bring_back_replaced(namespace: Namespace, partition: int, pages: Sequence[bytes]) -> int:
    """Let those of these pages be fetched again that are held: they were yielded with a callback that the spider has."""
    if not int(namespace.command("HGET", namespace.key("stats", partition), COUNTER, partition=partition) or 0):
        return 0
    values = namespace.command("HMGET", namespace.key("pages", partition), *pages, partition=partition)
    return _return(namespace, partition, list(_held((page, value) for page, value in zip(pages, values, strict=True) if value)))


def told_of(count: int, name: str, listed: Collection[str] | None = None) -> str:
    """Return the line of the log about pages that are held, as ``name`` is missing, one of `needs_of` their records.

    ``listed`` are those of CALLBACKS; None without that setting.
    """
    pages = "1 page is" if count == 1 else f"{count} pages are"
    if is_class(name):
        return f"{pages} held, as no class {name!r} of requests is loaded: fetched again once a module of the project imports it"
    if listed is not None and name not in listed and name != "parse":
        return (
            f"{pages} held, as {PREFIX}CALLBACKS does not list {name!r}: fetched again once it does, and the spider has that method, "
            f"or after `optimal-frontier rename-callback {name} NEW`"
        )
    return (
        f"{pages} held, as the spider has no method {name!r}: fetched again as soon as it has, "
        f"or after `optimal-frontier rename-callback {name} NEW`"
    )


def _held(pages: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    for page, value in pages:
        if len(value) >= HEAD_BYTES + TAIL_BYTES and Row.unpack(value).flags & HELD:
            yield page, value


def _needs(value: bytes, hosts: dict[int, str]) -> tuple[str, ...]:
    try:
        return needs_of(unpack_record(split_tail(value)[1], hosts.get(Row.unpack(value).host, "")))
    except ValueError:
        return ()


def _return(namespace: Namespace, partition: int, pages: Sequence[tuple[bytes, bytes]]) -> int:
    if not pages:
        return 0
    now = namespace.now(partition)
    rows = ((page, Row.unpack(value)) for page, value in pages)
    calls = revise_calls(partition, [(page, row.b, returned(row, now), None) for page, row in rows])
    return sum(reply.count(1) for reply in namespace.run(calls))
