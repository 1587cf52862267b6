"""Visits of plain Frontera: the conditions on its requests, and what its responses tell the judge."""

from __future__ import annotations

import time
from typing import Any, Final

from scrapy.http import Headers

from optimal_frontier.frontier.judging.fingerprinting import Fingerprint, Fingerprinting
from optimal_frontier.frontier.judging.outcomes import error_of_response
from optimal_frontier.frontier.judging.validators import NO_VALIDATORS, Validators
from optimal_frontier.frontier.judging.visits import NOT_MODIFIED, Visit, hashed_content, hashed_visit, not_modified_visit, visit_of
from optimal_frontier.integrations.canonical_links import canonical_url
from optimal_frontier.integrations.frontera.content_hash import CONTENT_HASH
from optimal_frontier.integrations.frontera.requests import (
    ASKED,
    CONDITIONS,
    HANDOUT,
    TAKEN,
    identity_of,
    request_of,
    scrapy_response,
)
from optimal_frontier.state.messages import PAGE_BYTES, Handout
from optimal_frontier.state.rows import ACTIVE

#: In the meta of a response: why each redirect was made (301, 302 ...), oldest first, by whoever fetched it.
REDIRECT_REASONS: Final = b"redirect_reasons"


def asking_request(handout: Handout, conditions: Validators | None) -> Any:
    """Return the Frontera request of a handout; it asks with ``conditions``, unless it states conditions of its own."""
    record = handout.record
    asked = None
    if conditions is not None:
        headers = Headers(record.get("headers") or {})
        if not any(name in headers for name in CONDITIONS):
            asked = conditions
            ours = {name: [value] for name, value in zip(CONDITIONS, conditions, strict=False) if value}
            record = {**record, "headers": {**(record.get("headers") or {}), **ours}}
    request = request_of(record)
    request.meta[HANDOUT] = handout
    if asked is not None:
        request.meta[ASKED] = asked
    return request


def plain_visit(handout: Handout, response: Any, fingerprinting: Fingerprinting, *, reads_canonical: bool) -> Visit:
    """Return the visit of a Frontera response; what was put into its meta for this fetch is taken out.

    Parameters
    ----------
    handout : Handout
        The lease that it ends.
    response : frontera Response
        Of its body and headers what there is; a hash in ``meta[b"content_hash"]`` stands for the content, whoever made it.
    fingerprinting : Fingerprinting
        What counts as content.
    reads_canonical : bool
        Whether to look for the canonical link (CANONICAL_LINKS).
    """
    now, status, url = time.monotonic(), int(response.status_code), str(handout.record["url"])
    headers, meta = Headers(response.headers or {}), response.meta
    asked, content_hash, taken = meta.pop(ASKED, None), meta.pop(CONTENT_HASH, None), meta.pop(TAKEN, None)
    if status == NOT_MODIFIED:
        return (
            hashed_visit(status, headers, None, now, time.time()) if asked is None else not_modified_visit(headers, asked, now, time.time())
        )
    if handout.row.state != ACTIVE:
        return Visit(now, error_of_response(status), status)
    is_ours = taken is not None and (taken.digest or b"") == content_hash
    found: Fingerprint | None = taken if is_ours else None
    if not is_ours and content_hash is not None:
        found = hashed_content(content_hash, url, fingerprinting)
    if not response.body:
        visit = hashed_visit(status, headers, found, now, time.time())
    else:
        read = scrapy_response(response)
        visit = visit_of(read, url, fingerprinting, now, time.time(), found)
        if found is not None and not is_ours:
            visit.sections = None  # what differs in the user's own hash is not for our sections to say
        if reads_canonical and not visit.error and response.url == url:
            visit.canonical = _other_page(canonical_url(read), handout)
    visit.asked = asked
    if response.url != url:
        visit.found, visit.validators = response.url, NO_VALIDATORS
        visit.hops = meta.get(REDIRECT_REASONS) or (meta.get(b"scrapy_meta") or {}).get("redirect_reasons") or ()
    return visit


def _other_page(url: str | None, handout: Handout) -> str:
    """Return the URL that a page names as its canonical form; empty if that is the page itself, or there is none."""
    if url is None:
        return ""
    found = identity_of(request_of({**handout.record, "url": url}))
    return "" if found[:PAGE_BYTES] == handout.page else url
