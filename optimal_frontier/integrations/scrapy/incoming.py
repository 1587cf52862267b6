"""Requests that come in: what each is to the frontier, and on which page it was found."""

from __future__ import annotations

import logging
import time
from typing import Any, Final
from weakref import WeakKeyDictionary

from optimal_frontier.detection import parse_lastmod
from optimal_frontier.frontier.admitting.allowed_links import AllowedLinks
from optimal_frontier.integrations.frontera.requests import IS_LINK, IS_WANTED, SOURCE
from optimal_frontier.integrations.scrapy.converters import OptimalRequestConverter
from optimal_frontier.integrations.scrapy.lease import GATE, LEASE, LOCAL, Lease
from optimal_frontier.integrations.scrapy.local_requests import Local, LocalRequests
from optimal_frontier.state.rows import ACTIVE, ONCE, TRANSIENT

logger = logging.getLogger(__name__)

#: Seconds that a crawl which is complete stays open for pages that are wanted now, after the last one of them: others may have them.
AWAITED_S: Final = 30.0


def kind_of(request: Any, *, start: bool = False) -> int:
    """Return what a request is to the frontier: a page, a fetch that is made once, or one that is made whatever is known."""
    is_once = request.meta.get("revisit", True) is False
    if request.method != "GET" or (request.dont_filter and (is_once or not start)):
        return TRANSIENT
    return ONCE if is_once else ACTIVE


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
        self._added = frozenset({"dont_cache"} if is_cached else ())
        self._found: dict[Lease | None, list[Any]] = {}
        self._parents: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._warned: set[str] = set()
        #: Identities of start requests with dont_filter, in this run.
        self._wanted: set[bytes] = set()
        #: Those of them that were not handed out yet, and how long the crawl stays open for them.
        self._awaited: set[bytes] = set()
        self._awaited_until = 0.0

    def note_parent(self, request: Any, parent: Any) -> None:
        """Remember the request on whose page ``request`` was found."""
        self._parents[request] = parent

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
        parent = self._parents.pop(request, None)
        if self._is_refused(request, "" if parent is None else parent.url):
            return False
        above: Local | None = parent.meta.get(LOCAL) if parent is not None else None
        if self._is_gated(request, above) or request.method != "GET":
            return self._add_local(request, parent, again=request.dont_filter and not start)
        importance = request.meta.get("importance", 1.0)
        if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 < importance < float("inf"):
            self.warn_once("importance", "meta['importance'] = %r of %s: expected a number above 0; 1.0 is used", importance, request)
            request = request.replace(meta={k: v for k, v in request.meta.items() if k != "importance"})
        if "lastmod" in request.meta:
            try:
                parse_lastmod(request.meta["lastmod"])
            except ValueError as error:
                self.warn_once("lastmod", "meta['lastmod'] = %r of %s: %s; it is ignored", request.meta["lastmod"], request.url, error)
                request = request.replace(meta={k: v for k, v in request.meta.items() if k != "lastmod"})
        identity = self._fingerprint(request) if start and request.dont_filter else b""
        # Only once a run. A start request that comes again is a page like others: the server may have lost it.
        is_wanted = bool(identity) and identity not in self._wanted
        if identity and not is_wanted and kind_of(request, start=start) == TRANSIENT:
            return False
        if is_wanted:
            self._wanted.add(identity)
            self._awaited.add(identity)
            self._awaited_until = time.monotonic() + AWAITED_S
        frontier_request = self._requests.to_frontier(request, kind_of(request, start=start))
        if is_wanted:
            frontier_request.meta[IS_WANTED] = True
        lease = parent.meta.get(LEASE) if parent is not None else None
        frontier_request.meta[SOURCE] = request
        if parent is not None:
            frontier_request.meta[IS_LINK] = True
        self._found.setdefault(lease, []).append(frontier_request)
        return True

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
            lease.error = "IgnoreRequest"
        return True

    def _is_gated(self, request: Any, above: Local | None) -> bool:
        """Tell whether a request is gated: what is found by one that is inherits the gate."""
        if above is not None and above.is_gated:
            request.meta.setdefault(GATE, True)
        return bool(request.meta.get(GATE))

    def _add_local(self, request: Any, parent: Any, *, again: bool) -> bool:
        above: Local | None = parent.meta.get(LOCAL) if parent is not None else None
        holder: Lease | None = parent.meta.get(LEASE) if parent is not None else None
        if above is not None:
            holder = above.parent
        if holder is not None and holder.frontier_request is None:
            holder = None  # it has ended
        added = self._added - request.meta.keys()
        request.meta.update(dict.fromkeys(added, True))
        local = Local(request, holder, bool(request.meta.get(GATE)), added=added)
        if not self._local.add(local, self._fingerprint(request), again=again):
            return False
        self._stats.inc_value("optimal_frontier/enqueued")
        return True

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
        if not self._local.add(Local(request), self._fingerprint(request), again=again):
            return False
        self.warn_once(
            "unstorable", "%s cannot be stored (%s); it is fetched once, from memory, and lost if the process ends", request, error
        )
        self._stats.inc_value("optimal_frontier/unstorable")
        return True

    def warn_once(self, topic: str, message: str, *arguments: Any) -> None:
        """Log a warning, the first one of its topic."""
        if topic not in self._warned:
            self._warned.add(topic)
            logger.warning(message + " (further ones are counted, not logged)", *arguments)
