"""Visits of plain Frontera: the requests that its caller holds, and what its responses tell the judge."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from scrapy.http import Headers
from w3lib.util import to_bytes

from optimal_frontier.frontier.judging.fingerprinting import Fingerprint, Fingerprinting
from optimal_frontier.frontier.judging.outcomes import error_of_response
from optimal_frontier.frontier.judging.validators import NO_VALIDATORS, Validators
from optimal_frontier.frontier.judging.visits import NOT_MODIFIED, Visit, hashed_content, hashed_visit, not_modified_visit, visit_of
from optimal_frontier.integrations.frontera.canonical_links import other_page
from optimal_frontier.integrations.frontera.content_hash import CONTENT_HASH
from optimal_frontier.integrations.frontera.requests import (
    ASKED,
    CONDITIONS,
    FAILED_AT,
    PAGE,
    REDIRECT_REASONS,
    REDIRECT_URLS,
    TAKEN,
    conditional_headers,
    request_of,
    scrapy_response,
)
from optimal_frontier.integrations.frontera.url_identity import URL_FINGERPRINT, UrlIdentity
from optimal_frontier.state.messages import Handout, page_of


class Lent(NamedTuple):
    """A request that plain Frontera's caller has.

    Attributes
    ----------
    handout : Handout
        The lease.
    asked : Validators or None
        The conditions that we put on the request; None: none.
    """

    handout: Handout
    asked: Validators | None = None


class LentRequests:
    """Requests whose result is still to come, by their page.

    The caller need not give back the object that it got: one with the same URL or fingerprint is the same page, as everywhere in Frontera.

    Parameters
    ----------
    identity : UrlIdentity
        What pages are known by.
    model : type
        Class of the requests: REQUEST_MODEL.
    """

    def __init__(self, identity: UrlIdentity, model: type[Any]) -> None:
        self._identity, self._model = identity, model
        self._lent: dict[bytes, Lent] = {}

    def lend(self, handout: Handout, conditions: Validators | None) -> Any:
        """Return the request of a handout; it asks with ``conditions``, unless it states conditions of its own."""
        record = handout.record
        given = record.get("headers")
        asked = None if any(to_bytes(name).title() in CONDITIONS for name in given or ()) else conditions
        request = request_of({**record, "headers": conditional_headers(given, asked or ())}, self._model)
        request.meta[PAGE] = handout.page
        if asked is not None:
            request.meta[ASKED] = True
        if URL_FINGERPRINT not in request.meta:
            request.meta[URL_FINGERPRINT] = self._identity.fingerprint(request.url)
        self._lent[handout.page] = Lent(handout, asked)
        return request

    def take_back(self, request: Any) -> Lent | None:
        """Return what was lent as ``request``, which is over; None if that is nothing, or its lease ended before."""
        return next((self._lent.pop(page) for page in self._names_of(request) if page in self._lent), None)

    def handout_of(self, request: Any) -> Handout | None:
        """Return the handout of what was lent as ``request``; None if that is nothing, or its lease ended before."""
        return next((self._lent[page].handout for page in self._names_of(request) if page in self._lent), None)

    def forget(self, handout: Handout) -> None:
        """Forget a request whose lease is held no more."""
        if handout.page in self._lent and self._lent[handout.page].handout is handout:
            del self._lent[handout.page]

    def _names_of(self, request: Any) -> Iterable[bytes]:
        named = request.meta.get(PAGE)
        if isinstance(named, bytes):
            yield named
            return
        try:
            # The URL before the fingerprint: Frontera's middleware has made that of the URL that answered.
            yield page_of(self._identity.of_url(request.url))
            yield page_of(self._identity.of(request))
        except Exception:  # of a function of the user's: it is no page of ours
            pass


def plain_visit(
    lent: Lent, response: Any, fingerprinting: Fingerprinting, identity: UrlIdentity, *, is_page: bool, reads_canonical: bool
) -> Visit:
    """Return the visit of a Frontera response; what was put into its meta for this fetch is taken out.

    Parameters
    ----------
    lent : Lent
        The lease that it ends, and what it was asked with.
    response : frontera Response
        Of its body and headers what there is; a hash in ``meta[b"content_hash"]`` stands for the content, whoever made it.
    fingerprinting : Fingerprinting
        What counts as content.
    identity : UrlIdentity
        What pages are known by.
    is_page : bool
        Whether its content counts.
    reads_canonical : bool
        Whether to look for the canonical link (CANONICAL_LINKS).
    """
    handout, asked = lent
    now, status, url = time.monotonic(), int(response.status_code), str(handout.record["url"])
    headers, meta = Headers(response.headers or {}), response.meta
    content_hash, taken = meta.pop(CONTENT_HASH, None), meta.pop(TAKEN, None)
    if status == NOT_MODIFIED:
        return (
            hashed_visit(status, headers, None, now, time.time()) if asked is None else not_modified_visit(headers, asked, now, time.time())
        )
    if not is_page:
        return Visit(now, error_of_response(status), status)
    is_ours = taken is not None and (taken.digest or b"") == content_hash
    found: Fingerprint | None = taken if is_ours else None
    if not is_ours and content_hash is not None:
        found = hashed_content(content_hash, url, fingerprinting)
    # The canonical solver may have put the first URL in the place of the one that answered.
    is_elsewhere = response.url != url or bool(meta.get(REDIRECT_URLS))
    if not response.body:
        visit = hashed_visit(status, headers, found, now, time.time())
    else:
        read = scrapy_response(response)
        visit = visit_of(read, url, fingerprinting, now, time.time(), found, handout.row.content)
        if found is not None and not is_ours:
            visit.sections = None  # what differs in the user's own hash is not for our sections to say
        if reads_canonical and not visit.error and not is_elsewhere:
            visit.canonical = other_page(read, lambda named: page_of(identity.of_url(named)) == handout.page)
    visit.asked = asked
    if is_elsewhere:
        visit.validators = NO_VALIDATORS  # they are those of another address
    if response.url != url:
        visit.found, visit.hops = response.url, _hops(handout, meta)
    return visit


def failed_at(page: Any, lent: Lent) -> str:
    """Return the URL of a failed fetch; empty: the one of its page."""
    found = page.meta.pop(FAILED_AT, "")
    if found or page.url != lent.handout.record["url"]:
        return str(found or page.url)
    # Frontera's canonical solver puts the first URL in the place of the last, and that at the end of these.
    return str((page.meta.get(REDIRECT_URLS) or [""])[-1])


def _hops(handout: Handout, meta: dict[Any, Any]) -> Any:
    reasons = meta.get(REDIRECT_REASONS)
    if reasons:
        return reasons
    # What the request's own meta had of an earlier redirect is no news.
    stored = ((handout.record.get("meta") or {}).get(b"scrapy_meta") or {}).get("redirect_reasons") or ()
    return ((meta.get(b"scrapy_meta") or {}).get("redirect_reasons") or ())[len(stored) :]
