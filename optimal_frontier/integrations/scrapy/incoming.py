"""Requests that come in: what each is to the frontier, and on which page it was found."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from scrapy import Request

from optimal_frontier.frontier.admitting.allowed_links import AllowedLinks
from optimal_frontier.frontier.judging.outcomes import REFUSED
from optimal_frontier.integrations.frontera.requests import IS_LINK, IS_WANTED, KIND, SOURCE, said_by
from optimal_frontier.integrations.scrapy.converters import OptimalRequestConverter, forget_runtime
from optimal_frontier.integrations.scrapy.lease import GATE, LEASE, LOCAL, Lease
from optimal_frontier.integrations.scrapy.local_requests import Local, LocalRequests
from optimal_frontier.state.rows import ACTIVE, ONCE, TRANSIENT

logger = logging.getLogger(__name__)

#: Seconds that a crawl which is complete stays open for pages that are wanted now, after the last one of them: others may have them.
AWAITED_S: Final = 30.0
#: Requests that middlewares may make anew in place of one, for one visit: nothing else holds those back that do so for ever.
MOST_ANEW: Final = 20
#: Further start requests for URLs that are remembered; beyond that one may be fetched twice a run.
_MOST_OTHERS: Final = 200_000


def kind_of(request: Any, *, start: bool = False) -> int:
    """Return what a request is to the frontier: a page, a fetch that is made once, or one that is made whatever is known."""
    is_once = request.meta.get("revisit", True) is False
    if request.method != "GET" or (request.dont_filter and (is_once or not start)):
        return TRANSIENT
    return ONCE if is_once else ACTIVE


class FoundOn(NamedTuple):
    """Where a request was found.

    Attributes
    ----------
    url : str
        Of the page.
    lease : Lease or None
        Of that page.
    waiting : Lease or None
        Of the page that is done when what is fetched from memory is done: that one, or the one that the page itself was found on.
    is_gated : bool
        The page is.
    pages : set of bytes
        Identities of the pages that were found on it at this fetch.
    """

    url: str
    lease: Lease | None
    waiting: Lease | None
    is_gated: bool
    pages: set[bytes]

    @classmethod
    def of(cls, request: Any, pages: set[bytes]) -> FoundOn:
        """Return what is to be known of the page of a request; the request itself may go."""
        lease: Lease | None = request.meta.get(LEASE)
        above: Local | None = request.meta.get(LOCAL)
        if above is None:
            return cls(request.url, lease, lease, False, pages)
        return cls(request.url, lease, above.parent, above.is_gated, pages)


class IncomingRequests:
    """Collects the engine's requests until the next look, and passes them on to Frontera's manager.

    Parameters
    ----------
    crawler : Crawler
        Its fingerprinter and stats.
    manager : FrontierManager
    converter : OptimalRequestConverter
    local : LocalRequests
        Takes what is of this process, and what cannot be stored.
    is_cached : bool
        Scrapy's cache answers whatever it has, also what logs in.
    """

    def __init__(self, crawler: Any, manager: Any, converter: OptimalRequestConverter, local: LocalRequests, is_cached: bool) -> None:
        self._fingerprint, self._stats = crawler.request_fingerprinter.fingerprint, crawler.stats
        self._manager, self._requests, self._local = manager, converter, local
        self._allowed = AllowedLinks(manager.backend.settings)
        self._close_after = manager.backend.settings.close_after
        self._added = frozenset({"dont_cache"} if is_cached else ())
        self._found: dict[Lease | None, list[Any]] = {}
        self._parents: WeakKeyDictionary[Any, FoundOn] = WeakKeyDictionary()
        self._pages: WeakKeyDictionary[Any, set[bytes]] = WeakKeyDictionary()
        self._warned: set[str] = set()
        #: Identities of start requests with dont_filter, in this run.
        self._wanted: set[bytes] = set()
        #: What the first of each says, since `start()` was asked, and what further ones have said in this run.
        self._firsts: dict[bytes, int] = {}
        self._others: set[tuple[bytes, int]] = set()
        #: Those of them that were not handed out yet, and how long the crawl stays open for them.
        self._awaited: set[bytes] = set()
        self._awaited_until = 0.0

    def note_parent(self, request: Any, parent: Any, response: Any = None) -> None:
        """Remember the request on whose page ``request`` was found, and its response: a spider may yield one request again and again."""
        self._parents[request] = FoundOn.of(parent, self._pages.setdefault(parent if response is None else response, set()))

    def note_copy(self, request: Any, lease: Lease) -> None:
        """Remember of a request with a copy of a page's meta where it was found; the page may be done long since."""
        if lease.request is not None:
            self.note_parent(request, lease.request)
        else:
            self._parents[request] = FoundOn(lease.handout.record["url"], None, None, False, set())

    def __bool__(self) -> bool:
        """Whether any wait to be passed on."""
        return bool(self._found)

    def note_handed_out(self, request: Any) -> None:
        """Note that a request came back from the frontier."""
        if self._awaited:
            self._awaited.discard(self._fingerprint(request))
            self._awaited_until = time.monotonic() + AWAITED_S

    @property
    def awaits_any(self) -> bool:
        """Whether pages that are wanted now have still to be handed out, and it is likely that they will be."""
        return bool(self._awaited) and time.monotonic() < self._awaited_until

    def add(self, request: Any) -> bool:
        """Take a request; False if it is not fetched, as it was before.

        Raises
        ------
        UnstorableRequestError
            It can only be fetched from memory: see `keep_in_memory`.
        """
        start = self._is_start(request)
        parent = self._parents.get(request)
        if self._is_refused(request, "" if parent is None else parent.url):
            return False
        kind = kind_of(request, start=start)
        if self._is_gated(request, parent) or request.method != "GET" or (kind == TRANSIENT and self._is_beyond(parent)):
            return self._add_local(request, again=request.dont_filter and not start)
        if parent is not None and kind != TRANSIENT:
            # Spiders yield the links that they know first, then all links, and count on Scrapy's filter to drop the second request.
            identity = self._fingerprint(request)
            if identity in parent.pages:
                return False
            parent.pages.add(identity)
        frontier_request = self._requests.to_frontier(request, kind)
        if start and request.dont_filter and not self._want(frontier_request, self._fingerprint(request)):
            return False
        lease = parent.lease if parent is not None else None
        frontier_request.meta[SOURCE] = request
        if parent is not None:
            frontier_request.meta[IS_LINK] = True
        self._found.setdefault(lease, []).append(frontier_request)
        return True

    def _want(self, frontier_request: Any, identity: bytes) -> bool:
        """Take a start request with dont_filter; False if it is not fetched, as it was in this run.

        The first one of an identity is wanted now. One that says the same is a page like others: the server may have lost it. One that
        says something else (that goes through another proxy, or belongs to another cookiejar) is fetched once beside it.
        """
        meta, said = frontier_request.meta, 0
        with contextlib.suppress(TypeError, OverflowError, ValueError):  # what cannot be stored says nothing
            said = said_by(frontier_request, None)
        first = self._firsts.setdefault(identity, said)
        if identity not in self._wanted:
            self._wanted.add(identity)
            self._awaited.add(identity)
            self._awaited_until = time.monotonic() + AWAITED_S
            meta[IS_WANTED] = True
            return True
        if said == first:
            return bool(meta[KIND] != TRANSIENT)
        meta[KIND] = TRANSIENT
        is_new = (identity, said) not in self._others
        if len(self._others) >= _MOST_OTHERS:
            self._others.clear()
        self._others.add((identity, said))
        return is_new

    def note_start_again(self) -> None:
        """Note that ``start()`` is asked anew: the first request of each identity is that of the page, whatever it says by now.

        Further ones come again: they may have been lost.
        """
        self._firsts.clear()
        self._others.clear()

    def _is_refused(self, request: Any, found_on: str) -> bool:
        reason = self._allowed.refusal(request.url, found_on)
        if reason:
            self._manager.backend.session.courier.trap(reason, request.url)
        return bool(reason)

    def strays(self, request: Any) -> bool:
        """Tell whether a request is a redirect to where no link may lead; what was redirected is refused then."""
        local: Local | None = request.meta.get(LOCAL)
        lease: Lease | None = request.meta.get(LEASE) if local is None else None
        before = local.request if local is not None and not local.is_answered else None
        if lease is not None and not lease.is_judged:
            before = lease.request
        # What a middleware of the user's asks for instead (a renderer on localhost) is the word of no page.
        if before is None or before.url not in request.meta.get("redirect_urls", ()) or before.url == request.url:
            return False
        if not self._is_refused(request, before.url):
            return False
        if lease is not None:
            lease.error = REFUSED
        return True

    def note_instead(self, request: Any, instead: Any) -> None:
        """Take a request that a middleware made anew, to be fetched in place of ``request``, for a copy of it, as a retry is.

        ``Request(url)`` has the meta of nothing: what is fetched under a lease would end without an answer, and be one more page. A request
        for another address is one of its own; so is one more than `MOST_ANEW`. One for a request that is not the frontier's is not, either.
        """
        if request.meta.get("frontier_bypass"):
            instead.meta.setdefault("frontier_bypass", True)
            return
        local: Local | None = request.meta.get(LOCAL)
        lease: Lease | None = request.meta.get(LEASE)
        companion = lease if local is None else local
        if companion is None or companion.request is not request or companion in (instead.meta.get(LEASE), instead.meta.get(LOCAL)):
            return
        known = {self._fingerprint(request)}
        if local is not None and not local.is_answered:
            known.add(local.identity)
        elif local is None and lease is not None and not lease.is_judged:
            known.add(self._fingerprint(Request(lease.handout.record["url"])))
        else:
            return
        if companion.anew < MOST_ANEW and self._fingerprint(instead) in known:
            companion.anew += 1
            forget_runtime(instead.meta)  # of an earlier visit, where a middleware has kept what it made
            instead.meta.update(dict.fromkeys(companion.added - instead.meta.keys(), True))
            instead.meta[LEASE if local is None else LOCAL] = companion

    def _is_gated(self, request: Any, parent: FoundOn | None) -> bool:
        """Tell whether a request is gated: what is found by one that is inherits the gate."""
        if parent is not None and parent.is_gated:
            request.meta.setdefault(GATE, True)
        return bool(request.meta.get(GATE))

    def _is_beyond(self, parent: FoundOn | None) -> bool:
        """Tell whether a page has the visits that the end of the crawl waits for.

        What is fetched at each of its visits is not waited for then: where that takes longer than the page is away there would be no end.
        From memory it holds the page, so that one is under way at a time.
        """
        lease = parent.waiting if parent is not None else None
        return self._close_after is not None and lease is not None and lease.handout.row.attempts >= self._close_after

    def _add_local(self, request: Any, *, again: bool) -> bool:
        added = self._added - request.meta.keys()
        request.meta.update(dict.fromkeys(added, True))
        local = Local(request, self._waiting(request), bool(request.meta.get(GATE)), added=added)
        if not self._local.add(local, self._fingerprint(request), again=again):
            return False
        self._stats.inc_value("optimal_frontier/enqueued")
        return True

    def _waiting(self, request: Any) -> Lease | None:
        """Return the lease of the page that is done when a request is that this process alone knows: else that were lost with it."""
        parent = self._parents.get(request)
        waiting = parent.waiting if parent is not None else None
        return waiting if waiting is not None and waiting.frontier_request is not None else None  # it has ended

    def pass_on(self) -> None:
        """Pass on what was enqueued since the last look, the links of a page together."""
        if not self._found:
            return
        found, self._found = self._found, {}
        for lease, requests in found.items():
            if lease is not None and lease.frontier_request is not None:
                self._manager.links_extracted(lease.frontier_request, requests)
            else:
                self._manager.add_seeds(requests)
            self._stats.inc_value("optimal_frontier/enqueued", len(requests))

    def _is_start(self, request: Any) -> bool:
        # A link made with meta=response.meta has a copy of the mark.
        return bool(request.meta.get("is_start_request")) and request not in self._parents

    def keep_in_memory(self, request: Any, error: Exception) -> bool:
        """Take a request that cannot be stored, for the reason ``error``; False if it was taken before."""
        again = request.dont_filter and not self._is_start(request)
        if not self._local.add(Local(request, self._waiting(request)), self._fingerprint(request), again=again):
            return False
        said = "%s cannot be stored (%s); it is fetched once, from memory, and the page that it was found on is done when it is"
        self.warn_once("unstorable", said, request, error)
        self._stats.inc_value("optimal_frontier/unstorable")
        return True

    def warn_once(self, topic: str, message: str, *arguments: Any) -> None:
        """Log a warning, the first one of its topic."""
        if topic not in self._warned:
            self._warned.add(topic)
            logger.warning(message + " (further ones are counted, not logged)", *arguments)
