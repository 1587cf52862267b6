"""A session: one crawler's life in the frontier, from connecting to giving back its leases."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from optimal_frontier.errors import ConfigurationError, SchemaMismatchError
from optimal_frontier.frontier.admitting.claimed_identity import SCRAPYS, claim_identity
from optimal_frontier.frontier.dispatching.completion import Completion
from optimal_frontier.frontier.dispatching.courier import Courier
from optimal_frontier.frontier.dispatching.exchange import Dispatcher
from optimal_frontier.frontier.dispatching.held_pages import Returning
from optimal_frontier.frontier.dispatching.ping_taking import PingTaking, Words
from optimal_frontier.frontier.dispatching.server_watch import ServerWatch
from optimal_frontier.frontier.dispatching.url_taking import Converted, UrlTaking
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.connection import connect
from optimal_frontier.state.mending import mend, misfits
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.pings import RawPing
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.url_keys import Entry, UrlKeys

logger = logging.getLogger(__name__)

#: Attempts to join a namespace in which damage is done meanwhile.
_JOINS: Final = 3


class Session:
    """Connects, claims the namespace, and runs courier and planner until closed.

    Parameters
    ----------
    settings : FrontierSettings
        Parsed settings.
    project_dir : Path
        Where ``.scrapy`` is; used by the embedded server.
    spider : str
        The name that the namespace belongs to.
    wake : callable
        Called from another thread when there is something new to look at.
    identity : str
        By what pages are known: see `claim_identity`.
    longest_s : float or None
        See `Courier`.
    has : callable, optional
        Tells whether there is a callback or a class of requests of a name: held pages that have all that they need come back.

    Raises
    ------
    ConfigurationError, StateUnavailableError, SchemaMismatchError
        See `connect` and `Namespace.open`.
    """

    def __init__(
        self,
        settings: FrontierSettings,
        project_dir: Path,
        spider: str,
        wake: Callable[[], None],
        identity: str = SCRAPYS,
        has: Callable[[str], bool] | None = None,
        *,
        longest_s: float | None = None,
    ) -> None:
        # Here and not above: planning is large, and not every user of a courier plans.
        from optimal_frontier.frontier.planning.planner import Planner
        from optimal_frontier.frontier.planning.thread import PlannerThread

        self.settings = settings
        self.connection = connect(parse_redis_url(settings.redis_url, project_dir))
        try:
            self.namespace = Namespace(self.connection, settings.namespace)
            self.namespace.open(spider=spider, partitions=settings.partitions, former=settings.former_namespace, mends=True)
            claim_identity(self.namespace, identity)
            if policy := self.connection.eviction_policy():
                said = "Redis at %s removes pages without a word once its memory is full (maxmemory-policy %s): set it to noeviction"
                logger.warning(said, self.connection.spec.display, policy)
            self.dispatcher = Dispatcher(self.namespace, settings, ServerWatch(self.namespace))
            if settings.lease_seconds > self.dispatcher.lease_s:
                longest = self.dispatcher.lease_s
                said = (
                    "OPTIMAL_FRONTIER_LEASE_SECONDS = %g counts as %g: leases are renewed while their requests live, however long that is"
                )
                logger.warning(said, settings.lease_seconds, longest)
            self.dispatcher.join = partial(self._join, spider, identity)
        except BaseException:
            self.connection.close()
            raise
        self._url_taking: UrlTaking | None = None
        self._completion = Completion(self.namespace, settings.close_after or 1)
        complete_when = self.is_complete if settings.close_after is not None else None
        self.courier = Courier(self.dispatcher, wake, complete_when, longest_s=longest_s)
        self._returning = None if has is None else Returning(self.namespace, has, listed=self.settings.callbacks)
        self.planner = PlannerThread(Planner(self.namespace, settings), self.courier.look_again, self._bring_back)
        self.courier.start()
        self.planner.start()

    def take_in(
        self,
        convert: Callable[[Sequence[Entry]], Converted],
        read_pings: Callable[[Sequence[RawPing]], Words],
        run_there: Callable[[Callable[[], None]], Any],
    ) -> None:
        """Take in what is pushed into URL_KEYS from now on, if there are any, and pings; see `UrlTaking`."""
        pings = PingTaking(self.namespace, self.courier)
        self._url_taking = UrlTaking(self.settings.url_keys, UrlKeys(self.namespace), self.courier, convert, run_there, pings, read_pings)
        self._url_taking.start()

    def close(self) -> bool:
        """Send what is left, give back every lease, disconnect; return whether that was done in time."""
        if self._url_taking is not None:
            self._url_taking.stop()
        self.planner.stop()
        done = self.courier.stop()
        self.connection.close()
        return done

    def _join(self, spider: str, identity: str) -> None:
        """Join the namespace on a server that lost it; a planner that starts afresh has nothing in mind of the other one."""
        before = self.namespace.run_id
        for tries in range(_JOINS):
            mend(self.namespace, find=misfits)  # what is left there may be damaged, and would be taken for another program's
            self._put_back(spider)
            try:
                self.namespace.open(spider=spider, partitions=self.namespace.partitions)
                break
            except ConfigurationError:  # another crawler was first, and has made another number of partitions
                self.namespace.open(spider=spider)
                break
            except SchemaMismatchError:
                if tries == _JOINS - 1:
                    raise  # else the damage goes on while we join
        claim_identity(self.namespace, identity)
        if self.namespace.run_id != before:
            self.planner.planner = type(self.planner.planner)(self.namespace, self.settings)

    def _put_back(self, spider: str) -> None:
        """Put the spider's name back into a namespace that this crawler has opened before: it was its own, and still is."""
        meta = self.namespace.key("meta")
        owner = self.namespace.command("HGET", meta, "spider")
        if owner is not None and owner != spider.encode() and self.namespace.is_there():
            self.namespace.command("HSET", meta, "spider", spider)
            logger.error(
                "put right: meta spider was %r in the namespace of this crawler, %r", owner.decode("utf-8", "backslashreplace"), spider
            )

    def _bring_back(self) -> None:
        if self._returning is not None and self._returning.look():
            self.courier.look_again()

    def is_complete(self) -> bool:
        """Tell whether CLOSE_AFTER is reached: every page first visited, each that is revisited fetched that often; URL_KEYS empty."""
        if self.settings.close_after is None or (self.settings.url_keys and (self._url_taking is None or not self._url_taking.is_empty)):
            return False
        return self._completion.look() and self.namespace.is_there()  # a crawl that has gone has nothing that waits, either
