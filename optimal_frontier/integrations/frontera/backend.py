"""The Frontera backend: one face of the dispatcher. It never waits for Redis where the caller cannot (inside Scrapy)."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from frontera.core.components import Backend
from w3lib.util import to_bytes

from optimal_frontier.detection import parse_lastmod
from optimal_frontier.errors import ConfigurationError, StateUnavailableError
from optimal_frontier.frontier.admitting.pages import move_of, new_page
from optimal_frontier.frontier.admitting.traps import is_trap
from optimal_frontier.frontier.dispatching.exchange import SlotRoom
from optimal_frontier.frontier.dispatching.session import Session
from optimal_frontier.frontier.hosts import names_of
from optimal_frontier.frontier.judging.fingerprinting import Fingerprinting
from optimal_frontier.frontier.judging.hubs import FoundLinks, after_links
from optimal_frontier.frontier.judging.judge import conditions_of, judge
from optimal_frontier.frontier.judging.visits import Visit, failed_visit
from optimal_frontier.integrations.frontera.components import FrontierMetadata, FrontierQueue, FrontierStates
from optimal_frontier.integrations.frontera.configuration import settings_of
from optimal_frontier.integrations.frontera.content_hash import CONTENT_HASH
from optimal_frontier.integrations.frontera.plain_visits import asking_request, plain_visit
from optimal_frontier.integrations.frontera.requests import (
    ANNOUNCEMENT,
    HANDOUT,
    IMPORTANCE,
    IS_LINK,
    KIND,
    LASTMOD,
    OBSERVATION,
    SOURCE,
    depth_of,
    identity_of,
    record_of,
    request_of,
)
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import PAGE_BYTES, Handout, Move, NewPage, Observation
from optimal_frontier.state.partition import revise_calls
from optimal_frontier.state.rows import ACTIVE, ONCE, TRANSIENT

logger = logging.getLogger(__name__)

#: Name that a namespace belongs to when it is used without a spider.
NO_SPIDER: Final = "frontera"
#: Pages that are remembered as stored, with their importance, so that links to them cost no round trip.
_KNOWN_PAGES: Final = 200_000
#: Seconds after which they are told to the store again: one of them may have been retired, and is linked still.
_KNOWN_S: Final = 3600.0
#: Longest wait for one exchange when used without Scrapy, seconds.
_EXCHANGE_S: Final = 30.0


class OptimalBackend(Backend):  # type: ignore[misc]  # frontera is untyped
    """Frontera backend that revisits pages at the rates that keep them freshest.

    From a plain ``FrontierManager`` it connects in `frontier_start`, and its calls wait for Redis. Scrapy's scheduler attaches its own
    `Session` first; then no call waits.

    Attributes
    ----------
    moves : int
        Pages that were given another identity.
    """

    component_name = "Optimal Frontier Backend"

    def __init__(self, settings: FrontierSettings, project_dir: Path) -> None:
        self.settings = settings
        self.project_dir = project_dir
        self._session: Session | None = None
        self._attached = False
        self._unstorable: Callable[[Any, Exception], Any] | None = None
        self._identify: Callable[[Any], bytes] = identity_of
        self.moves = 0
        #: The visit whose links may still come, without Scrapy: the meta of its request, and its observation.
        self._last: tuple[dict[Any, Any], Observation] | None = None
        self._event = threading.Event()
        self.fingerprinting = Fingerprinting(settings)
        self._known: dict[bytes, float] = {}
        self._known_generation = 0
        self._known_until = 0.0
        self._hosts: dict[str, list[str]] = {}
        self._warned = self._warned_lastmod = False
        self._queue = FrontierQueue(lambda: self.session, self._take, self._add)
        self._metadata = FrontierMetadata()
        self._states = FrontierStates(lambda: self.session)

    @classmethod
    def from_manager(cls, manager: Any) -> OptimalBackend:
        return cls(settings_of(manager.settings), Path.cwd())

    @property
    def session(self) -> Session:
        """The open session."""
        if self._session is None:
            raise ConfigurationError("the frontier is not started: call frontier_start (FrontierManager.start) first")
        return self._session

    @property
    def queue(self) -> FrontierQueue:
        return self._queue

    @property
    def metadata(self) -> FrontierMetadata:
        return self._metadata

    @property
    def states(self) -> FrontierStates:
        return self._states

    def attach(self, session: Session, unstorable: Callable[[Any, Exception], Any], identify: Callable[[Any], bytes]) -> None:
        """Use an open session of the caller's, who also closes it; calls then never wait for Redis.

        Parameters
        ----------
        session : Session
            Open.
        unstorable : callable
            Gets a request (the one in its ``SOURCE``) that cannot be stored, and the reason.
        identify : callable
            Frontera request of a record -> its identity, 20 bytes.
        """
        self._session = session
        self._attached = True
        self._unstorable = unstorable
        self._identify = identify

    def frontier_start(self) -> None:
        if self._session is None:
            self._session = Session(self.settings, self.project_dir, NO_SPIDER, self._event.set)

    def frontier_stop(self) -> None:
        if self._session is not None and not self._attached:
            self._session.close()
            self._session = None

    # Pages come in.

    def add_seeds(self, seeds: Iterable[Any]) -> None:
        self._add(seeds)

    def links_extracted(self, request: Any, links: Iterable[Any]) -> None:
        handout: Handout | None = request.meta.get(HANDOUT)
        late = self._last[1] if self._last is not None and self._last[0] is request.meta else None
        if late is not None:
            handout = late.handout
        # Links of a first visit are of all the time before it.
        counts = self.settings.discovery_value and handout is not None and handout.row.visits > 0
        self._add(links, is_link=True, found_on=handout if counts else None)
        if late is not None and late.handout.new_links:
            self._count_late(late)

    def _add(self, requests: Iterable[Any], *, is_link: bool = False, found_on: Handout | None = None) -> None:
        courier = self.session.courier
        now = time.monotonic()
        if courier.generation != self._known_generation or now >= self._known_until:
            self._known.clear()
            self._known_generation, self._known_until = courier.generation, now + _KNOWN_S
        pages = []
        for request in requests:
            try:
                page = self._new_page(request, is_link or IS_LINK in request.meta, found_on)
            except (TypeError, OverflowError, ValueError) as error:
                if self._unstorable is None:
                    raise ConfigurationError(f"{request.url} cannot be stored: {error}") from error
                self._unstorable(request.meta.get(SOURCE), error)
                continue
            if page is not None:
                pages.append(page)
        if pages:
            courier.add(pages)
            if not self._attached:
                self._settle()

    def _new_page(self, request: Any, is_link: bool, found_on: Handout | None = None) -> NewPage | None:
        kind = request.meta.get(KIND)
        if kind is None:
            kind = ACTIVE if to_bytes(request.method) == b"GET" else ONCE
        importance = request.meta.get(IMPORTANCE, request.meta.get(b"importance", request.meta.get("importance")))
        identity = identity_of(request)
        lastmod = self._lastmod(request) if kind == ACTIVE else None
        # A sitemap's word is news also where it is the old one: the page has not changed since.
        if kind != TRANSIENT and lastmod is None:
            known = self._known.get(identity)
            if known is not None and (importance is None or known == importance):
                return None
        self._note_host(request.url)
        if is_link and self._is_trapped(request):
            self._remember(identity, kind, importance)
            return None
        new = new_page(
            self.settings,
            identity,
            request.url,
            record_of(request),
            kind=kind,
            importance=importance,
            priority=float((request.meta.get(b"scrapy_request") or {}).get("priority", 0)),
            lastmod=lastmod,
            announcement=request.meta.get(ANNOUNCEMENT),
            is_link=is_link,
            found_on=found_on,
        )
        self._remember(identity, kind, importance)  # last, as what cannot be stored is not known
        return new

    def _remember(self, identity: bytes, kind: int, importance: float | None) -> None:
        if kind == TRANSIENT:
            return
        if len(self._known) >= _KNOWN_PAGES:
            self._known.clear()
        self._known[identity] = importance if importance is not None else 0.0

    def _is_trapped(self, request: Any) -> bool:
        most = self.settings.max_depth
        if most is not None and depth_of(request) > most:
            self.session.courier.trap("depth", request.url)
        elif is_trap(request.url, self.settings.url_limits):
            self.session.courier.trap("url", request.url)
        else:
            return False
        return True

    def _lastmod(self, request: Any) -> tuple[float, float] | None:
        value = request.meta.get(LASTMOD, request.meta.get(b"lastmod", request.meta.get("lastmod")))
        if value is None:
            return None
        try:
            return parse_lastmod(value)
        except ValueError as error:
            if not self._warned_lastmod:
                self._warned_lastmod = True
                logger.warning(
                    "meta['lastmod'] = %r of %s: %s; it is ignored (further ones are ignored without a word)", value, request.url, error
                )
            return None

    # Requests go out.

    def get_next_requests(self, max_next_requests: int, **kwargs: Any) -> list[Any]:
        """Return up to ``max_next_requests`` requests that are due.

        Parameters
        ----------
        max_next_requests : int
            0 means as many as are ready, 64 at most.
        key_type : str, optional
            ``domain`` (the only one that hosts can be told apart by).
        overused_keys : list of str, optional
            Host names whose requests are not wanted now.
        """
        return self._take(max_next_requests, **kwargs)

    def _take(self, wanted: int, *, overused_keys: Iterable[str] = (), key_type: str = "domain", **_: Any) -> list[Any]:
        courier = self.session.courier
        wanted = wanted or 64
        if not self._attached:
            slots = {key: SlotRoom(self._hosts.get(key, [key]), 0) for key in overused_keys}
            before = courier.idle_exchanges
            self._event.clear()
            courier.look_again()  # at once, whatever the last wait was
            courier.ask(wanted, slots, 0)
            deadline = time.monotonic() + _EXCHANGE_S
            while not courier.ready and courier.idle_exchanges == before and courier.failure is None and time.monotonic() < deadline:
                self._event.wait(0.5)
                self._event.clear()
            courier.ask(0, {}, 0)
        if courier.failure is not None:
            raise courier.failure
        requests: list[Any] = []
        while courier.ready and len(requests) < wanted:
            handout = courier.ready.popleft()
            requests.append(asking_request(handout, None if self._attached else self._conditions(handout)))
            self._note_host(handout.record["url"])
        return requests

    def hosts_of(self, hostname: str) -> list[str]:
        """Return the hosts (with ports) of a host name that were seen; what Scrapy's downloader takes for one slot."""
        return self._hosts.get(hostname, [])

    def _note_host(self, url: str) -> None:
        hostname, host = names_of(url)
        hosts = self._hosts.setdefault(hostname, [])
        if host not in hosts:
            hosts.append(host)

    # Outcomes come back.

    def page_crawled(self, response: Any) -> None:
        handout = response.meta.pop(HANDOUT, None)
        observation = response.meta.pop(OBSERVATION, None)
        if handout is None:
            return
        if observation is None:
            observation = self._judged(handout, self._plain_visit(handout, response))
        self._end(observation)
        # Users of Frontera pass on the links of a page after it: which of them are new counts for the page.
        self._last = None if self._attached or observation.moved else (response.meta, observation)

    def request_error(self, page: Any, error: Any) -> None:
        handout = page.meta.pop(HANDOUT, None)
        observation = page.meta.pop(OBSERVATION, None)
        if handout is None:
            return
        # One of a good response is of a page that a middleware of the user's has taken out since.
        if observation is None or observation.outcome == "ok":
            observation = self._judged(handout, failed_visit(str(error), time.monotonic()))
        self._end(observation)

    def finished(self) -> bool:
        """Tell whether CLOSE_AFTER is reached; a crawl that keeps pages fresh never finishes by itself."""
        if self._attached or self.settings.close_after is None:
            return False
        return self.session.is_complete()

    def _conditions(self, handout: Handout) -> Any:
        tag = self.fingerprinting.way(handout.record["url"]).tag
        return conditions_of(handout, tag, self.session.courier.context(handout))

    def _judged(self, handout: Handout, visit: Visit) -> Observation:
        return judge(handout, visit, self.session.courier.context(handout))

    def _plain_visit(self, handout: Handout, response: Any) -> Visit:
        if not response.body and CONTENT_HASH not in response.meta and 200 <= int(response.status_code) < 300 and not self._warned:
            self._warned = True
            logger.warning(
                "responses carry neither a body nor a content hash, so no change is ever seen: put the fingerprint of the content "
                "into meta[b'content_hash'] where it is fetched"
            )
        return plain_visit(handout, response, self.fingerprinting, reads_canonical=self.settings.canonical_links)

    def _count_late(self, observation: Observation) -> None:
        """Put new links that came after their page into what is stored of it, unless it was handed out again meanwhile."""
        handout = observation.handout
        found = FoundLinks(handout.new_links, handout.new_importance)
        learned = after_links(observation, found, self.session.courier.published(handout.partition), self.settings)
        revision = (handout.page, learned.row.b, learned.row, learned.memory)
        with contextlib.suppress(StateUnavailableError):  # only the count is lost
            self.session.namespace.run(revise_calls(handout.partition, [revision], f"discovered={found.pages}"))

    def _end(self, observation: Observation) -> None:
        move = self._move_of(observation) if observation.moved else None
        if move is None:
            self.session.courier.observe(observation)
        else:
            self.session.courier.move(move)
            self.moves += 1
        if not self._attached:
            self._settle()

    def _move_of(self, observation: Observation) -> Move | None:
        """Return the move of a page to where it was found; None if it is the same page there."""
        handout = observation.handout
        try:
            target = self._identify(request_of({**handout.record, "url": observation.moved}))
        except ValueError as error:
            logger.warning("%s stays where it is: %s", handout.record["url"], error)
            return None
        if target[:PAGE_BYTES] == handout.page:
            return None
        return move_of(self.settings, observation, target, observation.moved)

    def _settle(self) -> None:
        self.session.courier.flush(_EXCHANGE_S)
        failure = self.session.courier.failure
        if failure is not None:
            raise failure
