"""Links that are not followed. Traps: URLs of a shape that no sane site has, made by links that beget longer links for ever.

Calendars, sessions in the path and the like look sane one by one: caps by host and by URL pattern bound those (`add_pages`).
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from optimal_frontier.frontier.admitting.addresses import shown
from optimal_frontier.settings import PREFIX, UrlLimits

logger = logging.getLogger(__name__)

#: Why a link is not followed, and what is said of the first one.
REASONS: Final = {
    "depth": f"%s is further from a start request than {PREFIX}MAX_DEPTH allows",
    "url": f"%s has the shape of a trap ({PREFIX}URL_LIMITS)",
    "host": f"the host %s has as many pages as {PREFIX}HOST_MAX_PAGES allows",
    "scheme": f"%s has no scheme of a page ({PREFIX}SCHEMES)",
    "credentials": "%s has a user name or a password in it: http_user and http_pass of the spider are for that",
    "unreadable": "%s cannot be read as a URL",
    "private": f"%s is on a private host, and was found on a host of another kind ({PREFIX}PRIVATE_LINKS)",
    "foreign": f"%s is named by a source that does not speak for its host ({PREFIX}SOURCE_HOSTS)",
    "source": f"%s has more in it than {PREFIX}SOURCE_LIMITS allows",
    "pattern": f"there are as many pages like %s as {PREFIX}PATTERN_MAX_PAGES allows",
}
#: Segments that are taken for one block.
_LONGEST_BLOCK: Final = 16


def is_trap(url: str, limits: UrlLimits) -> bool:
    """Tell whether a URL has a shape that ``limits`` exclude.

    Parameters
    ----------
    url : str
        With scheme and host.
    limits : UrlLimits
        URL_LIMITS; None in it is no limit.

    Notes
    -----
    O(length), some 3 us for a URL without repeated segments. A segment of one character, or of digits only, that
    is repeated by itself (map tiles, ``/0/0/0``) is no sign; nor are numbers in a row.

    Examples
    --------
    >>> limits = UrlLimits()
    >>> [is_trap("http://a.example" + path, limits) for path in ("/a/b/a/b/a/b", "/a/b/a/b/c", "/shop/shop/shop/", "/0/0/0/0.png")]
    [True, False, True, False]
    >>> is_trap("http://a.example/?x=1&x=1&x=1", limits), is_trap("http://a.example/?x=1&x=2&x=3", limits)
    (True, False)
    """
    if limits.length is not None and len(url) > limits.length:
        return True
    begin = url.find("/", url.find("://") + 3)
    if begin < 0:
        return False
    path, _, query = url[begin:].partition("#")[0].partition("?")
    if query and _is_odd_query(query.split("&"), limits):
        return True
    segments = [segment for segment in path.split("/") if segment]
    if limits.segments is not None and len(segments) > limits.segments:
        return True
    return limits.repeats is not None and len(set(segments)) < len(segments) and _is_repeated(segments, limits.repeats)


def _is_odd_query(parts: list[str], limits: UrlLimits) -> bool:
    if limits.parameters is not None and len(parts) > limits.parameters:
        return True
    # Each of them once is the rule.
    if limits.repeats is None or len(set(parts)) == len(parts):
        return False
    return any(part and times >= limits.repeats for part, times in Counter(parts).items())


def _is_repeated(segments: list[str], repeats: int) -> bool:
    """Tell whether some segments, one or more, come ``repeats`` times in a row."""
    for period in range(1, min(len(segments) // repeats, _LONGEST_BLOCK) + 1):
        alike = 0
        for at in range(period, len(segments)):
            alike = alike + 1 if segments[at] == segments[at - period] else 0
            if alike == (repeats - 1) * period and _is_telling(segments[at - period + 1 : at + 1]):
                return True
    return False


def _is_telling(block: list[str]) -> bool:
    return any(not segment.isdigit() and (len(block) > 1 or len(segment) > 1) for segment in block)


class TrapLog:
    """Counts the links that were not followed, by reason, and says so once for each reason.

    ``host`` and ``pattern`` are noted by the courier's thread, all others by the caller's.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(REASONS, 0)

    def note(self, reason: str, subject: str, links: int = 1) -> None:
        """Count some; ``subject`` is the URL, the host, or host and pattern."""
        if self.counts[reason] == 0:
            logger.warning(
                REASONS[reason] + "; such links are not followed (counted as trapped_%s, not logged again)", shown(subject), reason
            )
        self.counts[reason] += links
