"""Pages that name another one as their canonical form (RFC 6596): CANONICAL_LINKS makes them aliases of that."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.utils.response import get_base_url
from w3lib.html import strip_html5_whitespace

from optimal_frontier.detection.content import PARSED_BYTES
from optimal_frontier.frontier.dispatcher import host_of
from optimal_frontier.frontier.traps import is_trap
from optimal_frontier.frontier.url_folding import UrlFolding
from optimal_frontier.integrations.scrapy.lease import Lease
from optimal_frontier.settings import UrlLimits

#: One entry of a Link header: its target, and its parameters.
_LINK: Final = re.compile(r'<([^<>]*)>((?:[^,<>"]|"[^"]*")*)')
_IS_CANONICAL: Final = re.compile(r'(?:^|;)\s*rel\s*=\s*(?:"(?:[^"]*\s)?canonical(?:\s[^"]*)?"|canonical\s*(?:;|$))', re.IGNORECASE)
_IN_HEAD: Final = '/html/head//link[contains(concat(" ", translate(normalize-space(@rel), "ACILNO", "acilno"), " "), " canonical ")]/@href'
#: Bytes within which the head ends.
_HEAD: Final = 500_000
#: Ways of writing one URL that a page can be thought to name it in; who has more names different ones.
_MOST_NAMED: Final = 8
_INDEX: Final = UrlFolding((), ("index",))


def canonical_url(response: Any) -> str | None:
    """Return the URL that a response names as its canonical form, absolute, or None.

    Read are Link headers and, of HTML, link elements in the head. Who names two different ones has named none.

    Parameters
    ----------
    response : scrapy Response
        Of HTML the parsed document is used, which callbacks use too; of more than 4 MiB only the head is parsed.
    """
    named = []
    for header in response.headers.getlist("Link"):
        links = _LINK.findall(header.decode("latin-1"))
        named += [target for target, parameters in links if _IS_CANONICAL.search(parameters)]
    base = response.url
    # To look for the word costs far less than to parse.
    if isinstance(response, HtmlResponse) and b"canonical" in response.body[:_HEAD].lower():
        page = response if len(response.body) <= PARSED_BYTES else response.replace(body=response.body[:_HEAD])
        named += page.xpath(_IN_HEAD).getall()
        base = get_base_url(response)
    targets = set(named)
    found = {_absolute(base, target) for target in targets} if len(targets) <= _MOST_NAMED else set()
    return found.pop() if len(found) == 1 else None


def _absolute(base: str, target: str) -> str | None:
    target = strip_html5_whitespace(target)
    try:
        url = Request(urljoin(base, target)).url.partition("#")[0]
        parts = urlsplit(url)
        return url if target and parts.scheme in ("http", "https") and parts.hostname else None
    except ValueError:
        return None


def follow_canonical(lease: Lease, response: Any, fingerprint: Callable[[Request], bytes], limits: UrlLimits) -> None:
    """Note in ``lease`` which page its page is an alias of by its own word, or count why it is none.

    Parameters
    ----------
    lease : Lease
        Judged, of a good response.
    response : scrapy Response
        That response.
    fingerprint : callable
        Request -> identity.
    limits : UrlLimits
        A target that is a trap is none.

    Notes
    -----
    Another host (``canonical_offhost``) is not for a page to speak of. Nor is the front page by pages that are not the front page
    (``canonical_refused``): that is the commonest mistake of templates. `move_page` refuses what takes a history of pages to see.
    """
    asked = lease.frontier_request.url
    if lease.moved or lease.observation is None or response.url != asked:
        return  # the word of the page that it was sent to
    target = canonical_url(response)
    if target is None or fingerprint(Request(target)) == fingerprint(Request(asked)):
        return
    if host_of(target) != host_of(asked):
        counter = "canonical_offhost"
    elif is_trap(target, limits) or (_is_front(target) and not _is_front(asked)):
        counter = "canonical_refused"
    else:
        lease.canonical = target
        return
    counters = lease.observation.counters
    lease.observation = replace(lease.observation, counters={**counters, counter: counters.get(counter, 0) + 1})


def _is_front(url: str) -> bool:
    return urlsplit(_INDEX.apply(url)).path in ("", "/")
