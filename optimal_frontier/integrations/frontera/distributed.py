"""The backend for Frontera's workers: a strategy worker says which pages there are, a DB worker does all else."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

from frontera.core.components import DistributedBackend

from optimal_frontier.errors import ConfigurationError, OptimalFrontierError, StateUnavailableError
from optimal_frontier.integrations.frontera.backend import OptimalBackend
from optimal_frontier.integrations.frontera.bus_codec import CODEC
from optimal_frontier.integrations.frontera.components import FrontierQueue, FrontierStates
from optimal_frontier.integrations.frontera.requests import IS_LINK
from optimal_frontier.integrations.frontera.url_identity import DOMAIN
from optimal_frontier.settings import PREFIX, FrontierSettings

#: Longest outage that a strategy worker waits out, and how long until it tries again, seconds.
_OUTAGE_S: Final = 30.0
_RETRY_S: Final = 0.5
_CONDITIONAL_GET: Final = f"{PREFIX}CONDITIONAL_GET"
#: Put into meta by Frontera's workers and by the spiders' middlewares, which do so at every visit.
_MADE_AGAIN: Final = (b"jid", DOMAIN)


class StoredStates(FrontierStates):
    """States of pages as they are stored now.

    Frontera's strategies note at once that a page is queued. Here that counts when the DB worker has stored it: a message that gets lost
    on its way leaves the page unknown, and the next link to it brings it in.
    """

    #: When the outage began that is going on, local monotonic time; 0: none is.
    _lost_at = 0.0

    def update_cache(self, objs: Any) -> None:
        pass

    def set_states(self, objs: Any) -> None:
        """Read the states; a worker waits for that in an outage, as it loses the message that it cannot deal with.

        Raises
        ------
        StateUnavailableError
            The outage is long. The worker takes no signal while it waits, and the bus drops what it has no room for.
        """
        while True:
            self.flush(force_clear=True)
            try:
                super().set_states(objs)
            except StateUnavailableError:
                self._lost_at = self._lost_at or time.monotonic()
                if time.monotonic() - self._lost_at > _OUTAGE_S:
                    raise
                time.sleep(_RETRY_S)
                with contextlib.suppress(OptimalFrontierError):  # the next attempt says so
                    self._session().connection.reconnect()
            else:
                self._lost_at = 0.0
                return

    def fetch(self, fingerprints: Any) -> None:
        pass  # they are read when they are asked for


class DistributedOptimalBackend(OptimalBackend, DistributedBackend):  # type: ignore[misc]  # frontera is untyped
    """`OptimalBackend` under Frontera's DB worker and strategy worker.

    Pages come in by the score messages of the strategy worker alone; the score is the importance. Leases, results and all that is learned
    are the DB worker's, as they are any crawler's. Nothing is kept in the strategy worker.
    """

    def __init__(self, settings: FrontierSettings, project_dir: Path, manager: Any) -> None:
        super().__init__(settings, project_dir, manager)
        self._has_strategy = False

    @classmethod
    def local(cls, manager: Any) -> Self:
        """Return a backend without workers, which is `OptimalBackend`; Frontera 0.7 itself never asks for one."""
        return cls.from_manager(manager)

    @classmethod
    def db_worker(cls, manager: Any) -> Self:
        """Return the backend of a DB worker.

        Raises
        ------
        ConfigurationError
            A setting is outside its range, or MESSAGE_BUS_CODEC is one of Frontera's.
        """
        check_codec(manager.settings)
        # Links reach the strategy worker by a bus that may lose them. They come again with the page, where that is not answered by a 304.
        if manager.settings.get(_CONDITIONAL_GET) is None:
            manager.settings.set(_CONDITIONAL_GET, False)
        backend = cls.from_manager(manager)
        backend._has_strategy = True
        backend._queue = FrontierQueue(lambda: backend.session, backend._take, backend._admit)
        return backend

    @classmethod
    def strategy_worker(cls, manager: Any) -> Self:
        """Return the backend of a strategy worker, which asks it for states; raises as `db_worker`."""
        check_codec(manager.settings)
        backend = cls.from_manager(manager)
        backend._states = StoredStates(lambda: backend.session, backend._pages.identity_of, backend._urls.of_fingerprint, 0)
        return backend

    def add_seeds(self, seeds: Iterable[Any]) -> None:
        if not self._has_strategy:
            super().add_seeds(seeds)

    def links_extracted(self, request: Any, links: Iterable[Any]) -> None:
        if not self._has_strategy:
            super().links_extracted(request, links)

    def get_next_requests(self, max_next_requests: int, **kwargs: Any) -> list[Any]:
        """Return requests that are due, up to ``max_next_requests`` for each of ``partitions``, which are those of the spider feed."""
        return super().get_next_requests((max_next_requests or 64) * len(kwargs.get("partitions") or [0]), **kwargs)

    def _admit(self, requests: Iterable[Any]) -> None:
        """Store what the strategy has scheduled; what no page links to is a seed, which is kept for a server that loses everything."""
        requests = list(requests)
        for request in requests:
            for name in _MADE_AGAIN:
                request.meta.pop(name, None)
        seeds = [request for request in requests if IS_LINK not in request.meta]
        links = [request for request in requests if IS_LINK in request.meta]
        if seeds:
            super().add_seeds(seeds)
        if links:
            self._add(links)


def check_codec(settings: Any) -> None:
    """Refuse Frontera's own codecs, with which no message arrives.

    Raises
    ------
    ConfigurationError
        MESSAGE_BUS_CODEC is one of them.
    """
    codec = settings.get("MESSAGE_BUS_CODEC")
    if str(codec).startswith("frontera."):
        raise ConfigurationError(f"MESSAGE_BUS_CODEC: expected {CODEC}, as {codec} fails with msgpack 1.0 and with ZeroMQ")
