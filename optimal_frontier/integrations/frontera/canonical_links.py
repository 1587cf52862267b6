"""The canonical form that a page names (RFC 6596), for CANONICAL_LINKS; whether it counts is for `judging.canonical` to say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.utils.response import get_base_url
from w3lib.html import strip_html5_whitespace

from optimal_frontier.detection.content import PARSED_BYTES

#: One entry of a Link header: its target, and its parameters.
_LINK: Final = re.compile(r'<([^<>]*)>((?:[^,<>"]|"[^"]*")*)')
_IS_CANONICAL: Final = re.compile(r'(?:^|;)\s*rel\s*=\s*(?:"(?:[^"]*\s)?canonical(?:\s[^"]*)?"|canonical\s*(?:;|$))', re.IGNORECASE)
_IN_HEAD: Final = '/html/head//link[contains(concat(" ", translate(normalize-space(@rel), "ACILNO", "acilno"), " "), " canonical ")]/@href'
#: Bytes within which the head ends.
_HEAD: Final = 500_000
#: Ways of writing one URL that a page can be thought to name it in; who has more names different ones.
_MOST_NAMED: Final = 8


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


def other_page(response: Any, is_itself: Callable[[str], bool]) -> str:
    """Return the URL that a response names as its canonical form; empty if it names none, or the page itself, as `is_itself` tells."""
    url = canonical_url(response)
    return "" if url is None or is_itself(url) else url
