"""Pages that name another one as their canonical form (RFC 6596): whether that is for them to say."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.admitting.traps import is_trap
from optimal_frontier.frontier.admitting.url_folding import UrlFolding
from optimal_frontier.settings import UrlLimits

_INDEX: Final = UrlFolding((), ("index",))


def refusal_of(asked: str, target: str, limits: UrlLimits) -> str:
    """Return the counter of why a page is no alias of the one that it names; empty where it is.

    Parameters
    ----------
    asked, target : str
        Its URL, and the one that it names: of another page.
    limits : UrlLimits
        A target that is a trap is none.

    Notes
    -----
    Another host is not for a page to speak of. Nor is the front page by pages that are not the front page: that is the commonest mistake of
    templates. What takes a history of pages to see is refused where the move is made.

    Examples
    --------
    >>> limits = UrlLimits()
    >>> [refusal_of("http://h/a?x", url, limits) for url in ("http://h/a", "http://h/", "http://other/a")]
    ['', 'canonical_refused', 'canonical_offhost']
    """
    if host_of(target) != host_of(asked):
        return "canonical_offhost"
    if is_trap(target, limits) or (_is_front(target) and not _is_front(asked)):
        return "canonical_refused"
    return ""


def _is_front(url: str) -> bool:
    return urlsplit(_INDEX.apply(url)).path in ("", "/")
