"""The Frontera backend: one face of the dispatcher. It never waits for Redis where the caller cannot (inside Scrapy)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Self

from frontera.core.components import Backend
from scrapy.http import Headers

from optimal_frontier.errors import ConfigurationError, StateUnavailableError
from optimal_frontier.frontier.admitting.addresses import shown
from optimal_frontier.frontier.admitting.hosts import SeenHosts, host_of
from optimal_frontier.frontier.admitting.pages import move_of
from optimal_frontier.frontier.dispatching.exchange import SlotRoom
from optimal_frontier.frontier.dispatching.found_links import add_late_links
from optimal_frontier.frontier.dispatching.session import Session
from optimal_frontier.frontier.judging.fetched_once import is_page
from optimal_frontier.frontier.judging.fingerprinting import Fingerprinting
from optimal_frontier.frontier.judging.judge import conditions_of
from optimal_frontier.frontier.judging.outcomes import DROPPED
from optimal_frontier.frontier.judging.retry_after import hold_s
from optimal_frontier.frontier.judging.safely import aside, judged_safely
from optimal_frontier.frontier.judging.visits import Visit, failed_visit
from optimal_frontier.integrations.frontera.components import FrontierMetadata, FrontierQueue, FrontierStates
from optimal_frontier.integrations.frontera.configuration import check_limits, given, settings_of, whole_number_of
from optimal_frontier.integrations.frontera.content_hash import CONTENT_HASH
from optimal_frontier.integrations.frontera.guarded_manager import guard
from optimal_frontier.integrations.frontera.plain_visits import Lent, LentRequests, failed_at, plain_visit
from optimal_frontier.integrations.frontera.request_pages import RequestPages
from optimal_frontier.integrations.frontera.requests import HANDOUT, OBSERVATION, SOURCE, forget_conditions, request_of
from optimal_frontier.integrations.frontera.url_identity import URL_FINGERPRINT, UrlIdentity
from optimal_frontier.settings import NO_SPIDER, PREFIX, FrontierSettings
from optimal_frontier.state.downloader_limits import TELL_S, DownloaderLimits
from optimal_frontier.state.messages import RELEASE, Handout, Move, Observation, page_of

logger = logging.getLogger(__name__)

#: Fingerprints of states that are remembered, unless STATE_CACHE_SIZE says how many.
_KNOWN_PAGES: Final = 200_000
#: Frontera's default of URL_FINGERPRINT_FUNCTION.
DEFAULT_FUNCTION: Final = "frontera.utils.fingerprint.sha1"
#: Seeds that are kept for a server that loses everything.
_KEPT_SEEDS: Final = 10_000
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
    unstored : int
        Requests that were left out, as they cannot be stored.
    """

    component_name = "Optimal Frontier Backend"

    def __init__(self, settings: FrontierSettings, project_dir: Path, manager: Any) -> None:
        self.settings = settings
        self.project_dir = project_dir
        self._session: Session | None = None
        self._attached = False
        self._unstorable: Callable[[Any, Exception], Any] | None = None
        self._urls = UrlIdentity(given(manager.settings, "URL_FINGERPRINT_FUNCTION") or DEFAULT_FUNCTION)
        self._lent = LentRequests(self._urls, manager.request_model)
        self.moves = self.unstored = 0
        #: The visit whose links may still come, without Scrapy: the meta of its request, and its observation.
        self._last: tuple[dict[Any, Any], Observation] | None = None
        self._event = threading.Event()
        #: By their URLs: spiders on a bus, and programs that start again, give the same ones many times.
        self._seeds: dict[str, Any] = {}
        #: Grows when the server has lost what it knew, as far as seeds were sent again.
        self._beginnings = 0
        self._next_told = 0.0
        self.fingerprinting = Fingerprinting(settings)
        self._hosts = SeenHosts()
        self._pages = RequestPages(settings, self._urls, self._hosts, lambda *of: self.session.courier.trap(*of))
        self.page_of = self._pages.page_of
        self._warned = self._warned_result = False
        self._queue = FrontierQueue(lambda: self.session, self._take, self._add)
        self._metadata = FrontierMetadata()
        cached = whole_number_of(manager.settings, "STATE_CACHE_SIZE")
        self._states = FrontierStates(
            lambda: self.session, self._pages.identity_of, self._urls.of_fingerprint, _KNOWN_PAGES if cached is None else cached
        )

    @classmethod
    def from_manager(cls, manager: Any) -> Self:
        backend = cls(settings_of(manager.settings), Path.cwd(), manager)
        check_limits(manager)
        guard(manager, backend.refuse, backend.give_up)
        return backend

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
        self._pages.attach(identify)

    def frontier_start(self) -> None:
        if self._session is None:
            if self.settings.url_keys:
                raise ConfigurationError(f"{PREFIX}URL_KEYS: expected none without Scrapy; add_seeds takes URLs while it runs")
            self._session = Session(
                self.settings, self.project_dir, NO_SPIDER, self._event.set, self._urls.noted, longest_s=self.settings.result_timeout
            )

    def frontier_stop(self) -> None:
        if self.unstored:
            logger.warning("%d requests could not be stored and were left out", self.unstored)
        if self._session is not None and not self._attached:
            self._session.close()
            self._session = None

    # Pages come in.

    def add_seeds(self, seeds: Iterable[Any]) -> None:
        seeds = list(seeds)
        if not self._attached:
            for seed in seeds:
                if len(self._seeds) < _KEPT_SEEDS:
                    self._seeds[seed.url] = seed
        self._add(seeds)

    def links_extracted(self, request: Any, links: Iterable[Any]) -> None:
        forget_conditions(request)  # links may have its headers
        handout: Handout | None = request.meta.get(HANDOUT) if self._attached else self._lent.handout_of(request)
        late = self._last[1] if self._last is not None and self._last[0] is request.meta else None
        if late is not None:
            handout = late.handout
        before = 0 if handout is None else handout.new_links
        # Links of a first visit are of all the time before it.
        counts = self.settings.discovery_value and handout is not None and handout.row.visits > 0
        parent = handout.page if handout is not None else self._pages.identity_of(request)
        self._add(links, parent, handout if counts else None)
        if late is not None and late.handout.new_links > before:
            published, more = self.session.courier.published(late.handout.partition), late.handout.new_links - before
            add_late_links(self.session.namespace, late, more, published, self.settings)

    def _add(self, requests: Iterable[Any], parent: bytes = b"", found_on: Handout | None = None) -> None:
        courier = self.session.courier
        self._pages.known.refresh(courier.generation, time.monotonic())
        pages = []
        for request in requests:
            try:
                forget_conditions(request)
                page = self._pages.new_page(request, parent, found_on)
            except Exception as error:  # whatever is in it: the others are stored
                self.refuse(request, error)
                continue
            if page is not None:
                pages.append(page)
        if pages:
            courier.add(pages)
            if not self._attached:
                self._settle()

    def refuse(self, request: Any, error: Exception) -> None:
        """Leave out a request that cannot be stored: from Scrapy it is fetched once, from memory; in plain Frontera it is counted."""
        source = request.meta.get(SOURCE)
        if self._unstorable is not None and source is not None:
            self._unstorable(source, error)
            return
        self.unstored += 1
        if self.unstored == 1:
            message = "%r cannot be stored, and is left out: %s (further ones are counted, not logged)"
            logger.warning(message, shown(request.url), error or repr(error))

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
            self._drop_lost()
            if time.monotonic() >= self._next_told:
                self._next_told = time.monotonic() + TELL_S
                courier.tell_limits(DownloaderLimits())  # nothing but which partitions it serves
            if courier.beginnings != self._beginnings:
                self._beginnings = courier.beginnings
                self._add(self._seeds.values())
            slots = {key: SlotRoom(self._hosts.of(key) or [key], 0) for key in overused_keys}
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
            request = self._request_of(handout)
            if request is not None:
                requests.append(request)
        return requests

    def _request_of(self, handout: Handout) -> Any:
        """Return the request of a handout; None where what is stored cannot be one, which ends its lease."""
        try:
            self._hosts.note(handout.record["url"])
            handout.record = self._pages.record_of(handout)
            if not self._attached:
                if (turn := self.session.courier.use_turn(handout.host)) is not None:
                    self.session.courier.note_start(handout.host, turn)  # nobody tells when it is fetched
                return self._lent.lend(handout, self._conditions(handout))
            request = request_of(handout.record)
        except Exception as error:  # whoever wrote it to Redis
            self._end(aside(handout, f"no request can be made of its record: {error!r}"))
            return None
        request.meta[HANDOUT] = handout
        return request

    def _drop_lost(self) -> None:
        """Forget requests whose lease is held no more: a result of theirs counts no more."""
        courier = self.session.courier
        while courier.lost:
            handout = courier.lost.popleft()
            self._lent.forget(handout)
            for _ in range(len(courier.ready)):  # only this thread takes from it
                waiting = courier.ready.popleft()
                if waiting is not handout:
                    courier.ready.append(waiting)

    def give_back(self) -> None:
        """End the leases of what was handed out and not taken yet: another crawler may have it."""
        courier = self.session.courier
        while courier.ready:
            handout = courier.ready.popleft()
            courier.observe(Observation(handout, RELEASE, handout.row, counters={"leases_released": 1}))

    def hosts_of(self, hostname: str) -> list[str]:
        """Return the hosts (with ports) of a host name that were seen; what Scrapy's downloader takes for one slot."""
        return self._hosts.of(hostname)

    # Outcomes come back.

    def page_crawled(self, response: Any) -> None:
        lent = self._take_back(response.request)
        observation = response.meta.pop(OBSERVATION, None)
        if lent is None:
            return
        if observation is None:
            observation = self._judged_safely(lent.handout, lambda: self._plain_visit(lent, response))
        self._end(observation)
        # Users of Frontera pass on the links of a page after it: which of them are new counts for the page.
        self._last = None if self._attached or observation.moved else (response.meta, observation)

    def request_error(self, page: Any, error: Any) -> None:
        lent = self._take_back(page)
        observation = page.meta.pop(OBSERVATION, None)
        if lent is None:
            return
        # One of a good response is of a page that a middleware of the user's has taken out since.
        if observation is None or observation.outcome == "ok":
            observation = self._judged_safely(lent.handout, lambda: failed_visit(str(error), time.monotonic(), failed_at(page, lent)))
        self._end(observation)

    def give_up(self, request: Any) -> None:
        """End the lease of a request of plain Frontera that came back and is not dealt with: a middleware raised, or took it out."""
        if self._attached or self._session is None or not hasattr(request, "meta"):
            return
        lent = self._lent.take_back(request)
        if lent is not None:
            self._end(self._judged_safely(lent.handout, lambda: failed_visit(DROPPED, time.monotonic())))

    def _take_back(self, request: Any) -> Lent | None:
        if not self._attached:
            return self._lent.take_back(request)
        handout = request.meta.pop(HANDOUT, None)
        return None if handout is None else Lent(handout)

    def finished(self) -> bool:
        """Tell whether CLOSE_AFTER is reached; a crawl that keeps pages fresh never finishes by itself."""
        if self._attached or self.settings.close_after is None:
            return False
        try:
            return self.session.is_complete()
        except StateUnavailableError:
            return False  # the courier waits the outage out, and says so

    def _conditions(self, handout: Handout) -> Any:
        tag = self.fingerprinting.way(handout.record["url"]).tag
        return conditions_of(handout, tag, self.session.courier.context(handout))

    def _judged(self, handout: Handout, visit: Visit) -> Observation:
        return judged_safely(handout, visit, self.session.courier.context(handout))

    def _judged_safely(self, handout: Handout, visit: Callable[[], Visit]) -> Observation:
        """Return the observation of a visit; of one that cannot be made or judged, that of a failure. A lease always ends."""
        try:
            return self._judged(handout, visit())
        except Exception:
            if not self._warned_result:
                self._warned_result = True
                logger.exception(
                    "the result of %s could not be judged, and counts as a failure (logged once)", shown(handout.record["url"])
                )
        return self._judged(handout, failed_visit(DROPPED, time.monotonic()))

    def _plain_visit(self, lent: Lent, response: Any) -> Visit:
        if not response.body and CONTENT_HASH not in response.meta and 200 <= int(response.status_code) < 300 and not self._warned:
            self._warned = True
            logger.warning(
                "responses carry neither a body nor a content hash, so no change is ever seen: put the fingerprint of the content "
                "into meta[b'content_hash'] where it is fetched"
            )
        headers = Headers(response.headers or {})
        hold = hold_s(int(response.status_code), headers.get(b"Retry-After"), headers.get(b"Date"))
        if hold is not None:
            self.session.courier.hold(host_of(response.url), hold)
        counts, canonical = is_page(lent.handout, self.settings), self.settings.canonical_links
        return plain_visit(lent, response, self.fingerprinting, self._urls, is_page=counts, reads_canonical=canonical)

    def _end(self, observation: Observation) -> None:
        move = self._move_of(observation) if observation.moved else None
        if move is None:
            self.session.courier.observe(observation)
        else:
            self.session.courier.move(move)
            self.moves += 1
        if not self._attached:
            self._settle()

    def note_move(self, observation: Observation) -> None:
        """Take note of a visit that shows its page at another URL, before what is found there comes in."""
        move = self._move_of(observation)
        if move is not None:
            self._pages.note_move(observation.handout, move)

    def _move_of(self, observation: Observation) -> Move | None:
        """Return the move of a page to where it was found; None if it is the same page there."""
        handout = observation.handout
        request = request_of({**handout.record, "url": observation.moved})
        if URL_FINGERPRINT in request.meta:
            return None  # whoever made that fingerprint is not here to make another one
        try:
            target = self._pages.identify(request)
            if page_of(target) == handout.page:
                return None
            return move_of(self.settings, observation, target, observation.moved)
        except Exception as error:  # of the user's fingerprinter, or a URL that is none
            logger.warning("%s stays where it is: %s", shown(handout.record["url"]), error)
            return None

    def _settle(self) -> None:
        self.session.courier.flush(_EXCHANGE_S)
        failure = self.session.courier.failure
        if failure is not None:
            raise failure
