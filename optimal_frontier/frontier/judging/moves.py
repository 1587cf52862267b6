"""Where a page has moved to: permanent redirects, but not those that many pages of a site have in common."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final
from urllib.parse import SplitResult, urlsplit

#: Statuses that say "from now on"; 302, 303, 307 and <meta http-equiv="refresh"> do not.
PERMANENT: Final = frozenset({301, 308})
#: From so many different paths on that lead to one target, it is where the site sends whom it has nothing else for.
SHARED_BY: Final = 3
#: Targets that are remembered.
_MOST_TARGETS: Final = 20_000
#: Paths of front pages: these may well lead to / now, and be there.
_FRONT: Final = re.compile(r"/?(?:(?:(?:index|home|default|main)(?:\.\w+)?|[a-z]{2}(?:[-_][a-z]{2})?)/?)?", re.IGNORECASE)
_LOGIN: Final = re.compile(r"(?:^|/)(?:log[-_]?(?:in|on|out)|sign[-_]?(?:in|up)|auth|oauth2?|sso)(?:[/.]|$)", re.IGNORECASE)


def is_sent_home(asked: str, found: str) -> bool:
    """Tell whether a page that is no front page was sent to the home page of its host: that is what some sites answer instead of a 404.

    Parameters
    ----------
    asked, found : str
        URL of the page, and of what came; empty: its own.

    Examples
    --------
    >>> is_sent_home("http://h/advert/7", "http://h/"), is_sent_home("http://h/", "https://h/"), is_sent_home("http://h/a", "http://h/b")
    (True, False, False)
    >>> is_sent_home("http://h/index.html", "http://h/"), is_sent_home("http://h/blog", "http://blog.h/"), is_sent_home("http://h/a", "")
    (False, False, False)
    """
    before, after = urlsplit(asked), urlsplit(found)
    is_there = (before.hostname or "").removeprefix("www.") == (after.hostname or "").removeprefix("www.")
    return bool(found) and is_there and _is_home(after) and not _FRONT.fullmatch(before.path)


def _is_home(url: SplitResult) -> bool:
    return url.path in ("", "/") and not url.query


class Moves:
    """Tells moves from redirects to a login or home page. One for each crawler process."""

    def __init__(self) -> None:
        self._paths: OrderedDict[str, set[str]] = OrderedDict()

    def target(self, asked: str, found: str, reasons: Sequence[object]) -> tuple[str, bool]:
        """Return where a page is from now on, given that it ended well.

        Parameters
        ----------
        asked, found : str
            The URL of the page, and the one that answered.
        reasons : sequence
            Why each hop was made: a status, or anything else.

        Returns
        -------
        url : str
            ``found``, or empty where the page stays.
        held : bool
            It would have moved, but for what the target is.

        Notes
        -----
        A page stays if any hop was temporary; if the target is a home page (which the page is not) or a login page; and, from the
        third on, if pages of other paths were sent to the same target. The two before that have moved: they are one page with the target.

        Examples
        --------
        >>> moves = Moves()
        >>> moves.target("http://example.org/a", "https://example.org/a", [301])
        ('https://example.org/a', False)
        >>> moves.target("http://example.org/b", "http://example.org/", [301])
        ('', True)
        """
        if not reasons or asked == found or not all(reason in PERMANENT for reason in reasons):
            return "", False
        before, after = urlsplit(asked), urlsplit(found)
        is_home = _is_home(after) and before.path not in ("", "/")
        if is_home or (_LOGIN.search(after.path) and not _LOGIN.search(before.path)) or self._is_shared(found, before.path):
            return "", True
        return found, False

    def _is_shared(self, found: str, path: str) -> bool:
        paths = self._paths.setdefault(found, set())
        self._paths.move_to_end(found)
        if len(self._paths) > _MOST_TARGETS:
            self._paths.popitem(last=False)
        if len(paths) < SHARED_BY:
            paths.add(path)
        return len(paths) >= SHARED_BY
