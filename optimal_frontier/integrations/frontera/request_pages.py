"""Frontera requests -> pages to be stored."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from w3lib.util import to_bytes

from optimal_frontier.detection import parse_lastmod
from optimal_frontier.frontier.admitting.addresses import refusal_of, shown
from optimal_frontier.frontier.admitting.hosts import SeenHosts, host_of
from optimal_frontier.frontier.admitting.known_pages import KnownPages
from optimal_frontier.frontier.admitting.pages import moved_record, new_page, stated_importance
from optimal_frontier.frontier.admitting.start_pages import StartPages
from optimal_frontier.frontier.admitting.stored_requests import fault_of_record
from optimal_frontier.frontier.admitting.traps import REASONS, is_trap
from optimal_frontier.integrations.frontera.requests import (
    ANNOUNCEMENT,
    FINGERPRINT,
    IS_LINK,
    IS_WANTED,
    KIND,
    at_depth,
    depth_of,
    forget_stated,
    importance_of,
    lastmod_of,
    record_of,
    said_by,
)
from optimal_frontier.integrations.frontera.url_identity import DOMAIN, URL_FINGERPRINT, UrlIdentity
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.aliases import split_alias
from optimal_frontier.state.messages import Handout, Move, NewPage, page_of
from optimal_frontier.state.records import REQUEST
from optimal_frontier.state.rows import ACTIVE, ONCE, TRANSIENT

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class RequestPages:
    """Makes pages of requests, and leaves out what is known, refused or a trap.

    Parameters
    ----------
    settings : FrontierSettings
        Parsed settings.
    urls : UrlIdentity
        Identities in plain Frontera.
    hosts : SeenHosts
        Told of every host.
    trap : callable
        Gets the reason and the URL of a link that is not followed.

    Attributes
    ----------
    known : KnownPages
        Pages that are stored, as far as this process knows.
    identify : callable
        Frontera request -> its identity, 20 bytes.
    """

    def __init__(self, settings: FrontierSettings, urls: UrlIdentity, hosts: SeenHosts, trap: Callable[[str, str], None]) -> None:
        self._settings = settings
        self._urls = urls
        self._hosts = hosts
        self._trap = trap
        self._is_scrapys = False
        #: What was said once of values in meta that are none.
        self._warned: set[str] = set()
        self._starts = StartPages()
        self.known = KnownPages()
        self.identify: Callable[[Any], bytes] = urls.of

    def attach(self, identify: Callable[[Any], bytes]) -> None:
        """Take requests from Scrapy, by identities of its own."""
        self._is_scrapys = True
        self.identify = identify

    def identity_of(self, request: Any) -> bytes:
        """Return the identity of a Frontera request: Scrapy's fingerprint where it was one of Scrapy's, else Frontera's."""
        known = request.meta.get(FINGERPRINT)
        return self.identify(request) if known is None else bytes(known)

    def _kind_of(self, request: Any) -> int:
        kind = request.meta.get(KIND)
        if kind is not None:
            # Wanted once in every run, where others are fetched once.
            is_once = IS_WANTED in request.meta and not self._settings.rules.of(request.url).revisit
            return TRANSIENT if is_once else int(kind)
        if self._is_scrapys:
            return ACTIVE if to_bytes(request.method) == b"GET" else TRANSIENT
        # To Frontera a page is a URL, whatever it is asked for with.
        return ONCE if request.meta.get(b"revisit", request.meta.get("revisit")) is False else ACTIVE

    def _spared(self, request: Any) -> tuple[bytes, ...]:
        """Return the names in the meta of a request that need not be stored: Frontera's middlewares, or its function, make them again."""
        if self._is_scrapys:
            return (URL_FINGERPRINT, DOMAIN)
        is_functions = request.meta.get(URL_FINGERPRINT) == self._urls.fingerprint(request.url)
        return (URL_FINGERPRINT,) if is_functions else ()

    def new_page(self, request: Any, parent: bytes, found_on: Handout | None = None) -> NewPage | None:
        """Return the page of a request, found on the page ``parent`` if there is any; None: nothing of it is news, or it is a trap.

        Raises
        ------
        TypeError, OverflowError, ValueError
            Something in it cannot be stored.
        """
        refused = refusal_of(request.url, self._settings.schemes)
        if refused:
            self._trap(refused, request.url)
            raise ValueError(REASONS[refused] % "it")
        kind, identity = self._kind_of(request), self.identity_of(request)
        importance = self._stated(request, "importance", importance_of(request), stated_importance)
        is_link, is_wanted = bool(parent) or IS_LINK in request.meta, IS_WANTED in request.meta
        lastmod = self._stated(request, "lastmod", lastmod_of(request), parse_lastmod)
        if kind != ACTIVE:
            lastmod = None
        said = said_by(request, importance) if kind != TRANSIENT else 0
        page, depth = page_of(identity), depth_of(request.meta)
        least = self.known.depth(page, depth)
        # A sitemap's word is news also where it is the old one: the page has not changed since.
        is_news = kind == TRANSIENT or lastmod is not None or is_wanted or self.known.is_nearer(page, depth)
        if not is_news and self.known.is_said(identity, parent, said):
            return None
        self._hosts.note(request.url)
        if is_link and self._is_trapped(request.url, depth):
            if kind != TRANSIENT:
                self.known.note(identity, parent, said)
            return None
        start = self._starts.against({"meta": request.meta}, page) if is_link and kind != TRANSIENT else None
        record = moved_record(start, request.url) if start else record_of(request, without=self._spared(request))
        if kind != TRANSIENT and least < depth_of(record.get("meta") or {}):
            record = at_depth(record, least)
        # What no crawler would take out of the store again must not go in: it would be put aside there, and never fetched.
        fault = fault_of_record(record, host_of(request.url), self._settings.schemes)
        if fault:
            raise ValueError(fault)
        new = new_page(
            self._settings,
            identity,
            request.url,
            record,
            kind=kind,
            importance=importance,
            priority=float((request.meta.get(REQUEST) or {}).get("priority", 0)),
            lastmod=lastmod,
            announcement=request.meta.get(ANNOUNCEMENT),
            is_link=is_link,
            found_on=found_on,
        )
        if kind != TRANSIENT:
            self.known.note(identity, parent, said)  # last, as what cannot be stored is not known
            self.known.note_depth(page, depth)
            if not is_link:
                self._starts.note(page, record)
        return replace(new, is_wanted=True) if is_wanted and kind == ACTIVE else new

    def record_of(self, handout: Handout) -> dict[Any, Any]:
        """Return the record by which a page is fetched: that by which it was asked for, also where it had another name then."""
        names = tuple(split_alias(name)[1] for name in handout.memory.aliases)
        is_carried = [self._starts.carry(name, handout.page, handout.record["url"]) for name in names]
        record = (any(is_carried) and self._starts.against(handout.record, handout.page)) or handout.record
        depth = depth_of(record.get("meta") or {})
        least = min(self.known.depth(name, depth) for name in (handout.page, *names))
        self.known.note_depth(handout.page, least)
        return record if least == depth else at_depth(record, least)

    def note_move(self, handout: Handout, move: Move) -> None:
        """Let a page that is found at another URL be there what it was, before what is found on it is taken in: it may link to itself."""
        target, depth = move.target.page, depth_of(handout.record.get("meta") or {})
        self.known.note_depth(target, self.known.depth(handout.page, depth))
        self._starts.carry(handout.page, target, move.observation.moved)

    def page_of(self, request: Any) -> NewPage:
        """Return the page of a request that is no link, whether it is known or not.

        Raises
        ------
        TypeError, OverflowError, ValueError
            Something in it cannot be stored.
        """
        self.known.drop(self.identity_of(request))
        page = self.new_page(request, b"")
        assert page is not None  # it is not known, and no link
        return page

    def _is_trapped(self, url: str, depth: int) -> bool:
        most = self._settings.max_depth
        if most is not None and depth > most:
            self._trap("depth", url)
        elif is_trap(url, self._settings.url_limits):
            self._trap("url", url)
        else:
            return False
        return True

    def _stated(self, request: Any, name: str, value: Any, read: Callable[[Any], _T]) -> _T | None:
        """Return what is read of a value that a request states in its meta; None if it states none. One that cannot be read goes."""
        try:
            return None if value is None else read(value)
        except ValueError as error:
            forget_stated(request, name)
            if name not in self._warned:
                self._warned.add(name)
                said = "meta[%r] = %r of %s: %s; it is ignored (further ones are ignored without a word)"
                logger.warning(said, name, value, shown(request.url), error)
            return None
