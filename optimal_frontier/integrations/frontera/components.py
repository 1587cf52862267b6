"""Frontera's three components (queue, metadata, states) over our store; the backend is built of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from frontera.core.components import Metadata, Queue, States

from optimal_frontier.frontier.dispatching.session import Session
from optimal_frontier.integrations.frontera.requests import PAGE
from optimal_frontier.state.aliases import locate
from optimal_frontier.state.messages import page_of
from optimal_frontier.state.rows import Row


class FrontierQueue(Queue):  # type: ignore[misc]  # frontera is untyped
    """The queues of first visits and deadlines; Frontera's own partitions are not used."""

    def __init__(self, session: Callable[[], Session], take: Callable[..., list[Any]], add: Callable[[Iterable[Any]], None]) -> None:
        self._session, self._take, self._add = session, take, add

    def get_next_requests(self, max_n_requests: int, partition_id: int = 0, **kwargs: Any) -> list[Any]:
        return self._take(max_n_requests, **kwargs)

    def schedule(self, batch: Iterable[tuple[Any, float, Any, bool]]) -> None:
        """Store the requests of ``(fingerprint, score, request, schedule)``; the score is the importance."""
        wanted = []
        for _, score, request, schedule in batch:
            if schedule:
                if PAGE in request.meta:
                    request.meta.pop(b"importance", None)  # as it was stated before
                if (stated := _importance_of(score)) is not None:
                    request.meta.setdefault(b"importance", stated)
                wanted.append(request)
        self._add(wanted)

    def count(self) -> int:
        """Return the number of pages and requests that are to be fetched, now or later."""
        counts = self._session().namespace.counts()
        return counts.get("pages", 0) - counts.get("retired", 0)


class FrontierMetadata(Metadata):  # type: ignore[misc]  # frontera is untyped
    """Everything that is known of a page is written when it is added and when its lease ends; nothing is left to do here."""

    def add_seeds(self, seeds: Any) -> None:
        pass

    def page_crawled(self, response: Any) -> None:
        pass

    def links_extracted(self, request: Any, links: Any) -> None:
        pass

    def request_error(self, page: Any, error: Any) -> None:
        pass


class FrontierStates(States):  # type: ignore[misc]  # frontera is untyped
    """Frontera's states, read from the rows: not crawled, queued, crawled, error.

    Parameters
    ----------
    session : callable
        Returns the open session.
    identify : callable
        Frontera request -> identity.
    of_fingerprint : callable
        Frontera's fingerprint -> identity.
    most : int
        States that are cached: STATE_CACHE_SIZE.
    """

    def __init__(
        self, session: Callable[[], Session], identify: Callable[[Any], bytes], of_fingerprint: Callable[[Any], bytes], most: int
    ) -> None:
        self._session, self._identify, self._of_fingerprint, self._most = session, identify, of_fingerprint, most
        self._cache: dict[bytes, int] = {}

    def update_cache(self, objs: Any) -> None:
        for obj in objs if isinstance(objs, Iterable) else [objs]:
            self._cache[self._identify(obj)] = obj.meta[b"state"]

    def set_states(self, objs: Any) -> None:
        many = list(objs) if isinstance(objs, Iterable) else [objs]
        identities = [self._identify(obj) for obj in many]
        known = {i: self._cache[i] for i in identities if i in self._cache}  # to read others may clear the cache
        self._read([i for i in identities if i not in known])
        for obj, identity in zip(many, identities, strict=True):
            obj.meta[b"state"] = known.get(identity, self._cache.get(identity, States.DEFAULT))

    def flush(self, force_clear: bool = False) -> None:
        if force_clear or len(self._cache) > self._most:
            self._cache.clear()

    def fetch(self, fingerprints: Any) -> None:
        self._read([self._of_fingerprint(fingerprint) for fingerprint in fingerprints])

    def _read(self, wanted: list[bytes]) -> None:
        if not wanted:
            return
        self.flush()
        namespace, moved = self._session().namespace, []
        names = [page_of(identity) for identity in wanted]
        for k in range(namespace.partitions):
            values, aliases = namespace.commands([["HMGET", namespace.key(name, k), *names] for name in ("pages", "aliases")], partition=k)
            for identity, value, alias in zip(wanted, values, aliases, strict=True):
                if value is not None:
                    self._note(identity, value)
                elif alias is not None:
                    moved.append(identity)
        for identity, place in zip(moved, locate(namespace, moved), strict=True):
            if place is not None:
                self._note(identity, place.value)

    def _note(self, identity: bytes, value: bytes) -> None:
        with contextlib.suppress(ValueError):  # a damaged row is put aside when its page is due; it costs no other its state
            self._cache[identity] = _state_of(Row.unpack(value))


def _importance_of(score: Any) -> Any:
    """Return the importance that a score states; None: it states none. What is no number at all is warned of where it is read."""
    try:
        number = float(score or 0.0)
    except (TypeError, ValueError, OverflowError):
        return score
    return number if number > 0 else None


def _state_of(row: Row) -> int:
    if row.failures:
        return int(States.ERROR)
    return int(States.CRAWLED if row.visits else States.QUEUED)
