"""A thread that takes what other programs push into Redis: URL_KEYS, which it gives to the courier as pages, and pings."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from optimal_frontier.errors import OptimalFrontierError, StateError, StateUnavailableError
from optimal_frontier.frontier.admitting.addresses import without_passwords
from optimal_frontier.frontier.dispatching.courier import Courier
from optimal_frontier.frontier.dispatching.ping_taking import PingTaking, Words
from optimal_frontier.settings import PREFIX
from optimal_frontier.state.messages import NewPage
from optimal_frontier.state.pings import RawPing
from optimal_frontier.state.url_keys import TYPES, Entry, UrlKeys

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

#: Seconds between two looks at keys that are empty, or that another process takes from.
LOOK_S: Final = 1.0
#: Entries that are taken at once from a key, and a second by this process, so that neither Redis nor the reactor is held up.
BATCH: Final = 100
MOST_PER_S: Final = 1000
#: Seconds until the next try after an error that is none of an entry's.
_AFTER_ERROR_S: Final = 10.0


@dataclass
class Converted:
    """What became of entries: pages, and why others are none, by their place among the entries."""

    pages: list[NewPage] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)


class UrlTaking:
    """Takes entries until it is stopped; any number of processes may run one, the lock lets one take at a time.

    Parameters
    ----------
    keys : sequence of str
        URL_KEYS.
    store : UrlKeys
        Where they are.
    courier : Courier
        Started.
    convert : callable
        Makes pages of entries; it raises nothing.
    run_there : callable
        Passes a function to the thread that ``convert`` belongs to, and does not wait.
    pings : PingTaking, optional
        Takes pings, too.
    read_pings : callable, optional
        Makes words of pings; it raises nothing, and belongs to the same thread.
    """

    def __init__(
        self,
        keys: Sequence[str],
        store: UrlKeys,
        courier: Courier,
        convert: Callable[[Sequence[Entry]], Converted],
        run_there: Callable[[Callable[[], None]], Any],
        pings: PingTaking | None = None,
        read_pings: Callable[[Sequence[RawPing]], Words] | None = None,
    ) -> None:
        #: Whether there was nothing to take when it looked last.
        self.is_empty = False
        self._keys, self._store, self._courier = keys, store, courier
        self._convert, self._run_there = convert, run_there
        self._pings, self._read_pings = pings, read_pings
        self._warned: set[tuple[str, str]] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="optimal_frontier-urls", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the thread; what it has read and not stored stays where it is. Before the courier stops."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        wait = 0.0
        while not self._stopping.wait(wait):
            try:
                taken = self.look() + self._look_at_pings()
                wait = max(taken / MOST_PER_S, 0.01) if taken else LOOK_S
            except StateUnavailableError:
                wait = LOOK_S  # the courier reports outages and reconnects
            except OptimalFrontierError as error:
                self._warn_once("", "error", "%sURL_KEYS or pings: %s; trying again", PREFIX, error)
                wait = _AFTER_ERROR_S
            except Exception:
                logger.exception("%sURL_KEYS or pings: nothing can be taken; trying again", PREFIX)
                wait = _AFTER_ERROR_S
        try:
            self._store.release_lock()
        except OptimalFrontierError as error:
            logger.debug("%s", error)  # it expires

    def look(self) -> int:
        """Take a batch of each key that has something; return how many entries there were."""
        waiting = []
        for key in self._keys:
            kind = self._store.type_of(key)
            if kind in TYPES:
                waiting.append((key, kind))
            elif kind != "none":
                self._warn_once(key, kind, "%sURL_KEYS: the key %r holds a %s, no list, set or zset; it is left alone", PREFIX, key, kind)
        if not waiting:
            self.is_empty = True
            return 0
        self.is_empty = False
        if not self._store.take_lock():
            return 0
        return sum(self._take(key, kind) for key, kind in waiting)

    def _look_at_pings(self) -> int:
        if self._pings is None or self._read_pings is None:
            return 0
        read = self._read_pings
        return self._pings.look(self._store.take_lock, lambda pings: self._there(lambda: read(pings)))

    def _take(self, key: str, kind: str) -> int:
        try:
            entries = self._store.read(key, kind, BATCH)
        except StateUnavailableError:
            raise
        except StateError as error:  # it is another type by now, or the user may not read it
            self._warn_once(key, "unreadable", "%sURL_KEYS: the key %r cannot be read: %s", PREFIX, key, error)
            return 0
        if not entries:  # another process has taken them since
            return 0
        converted = self._there(lambda: self._convert(entries))
        if converted is None or not self._stored(converted.pages):
            return 0
        refused = [(_without_passwords(entries[at]), without_passwords(reason)) for at, reason in converted.refused.items()]
        # Another process that has taken over by now stores the same pages, and removes the entries itself.
        if self._store.take_lock():
            self._store.put_aside(key, refused)
            self._store.remove(key, kind, entries)
            self._store.count(len(entries) - len(refused), len(refused))
        if refused:
            entry, reason = refused[0]
            self._warn_once(
                key,
                "refused",
                "%sURL_KEYS: the entry %r of %r was put aside: %s (further ones are counted, not logged)",
                PREFIX,
                entry.raw[:200].decode("utf-8", "backslashreplace"),
                key,
                reason,
            )
        return len(entries)

    def _there(self, read: Callable[[], _T]) -> _T | None:
        """Let entries be read where that belongs; None if it is to stop before."""
        answers: SimpleQueue[_T] = SimpleQueue()
        self._run_there(lambda: answers.put(read()))
        while not self._stopping.is_set():
            try:
                return answers.get(timeout=0.1)
            except Empty:
                continue
        return None

    def _stored(self, pages: Sequence[NewPage]) -> bool:
        """Store pages; False if it is to stop before that is sure."""
        if not pages:
            return True
        stored = threading.Event()
        self._courier.add(pages, stored.set)
        while not stored.wait(0.1):
            if self._stopping.is_set() or self._courier.failure is not None:
                return False
        return True

    def _warn_once(self, key: str, topic: str, message: str, *arguments: Any) -> None:
        if (key, topic) not in self._warned:
            self._warned.add((key, topic))
            logger.warning(message, *arguments)


def _without_passwords(entry: Entry) -> Entry:
    return entry._replace(raw=without_passwords(entry.raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape"))
