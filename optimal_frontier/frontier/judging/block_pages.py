"""Soft 404s and block pages: one content that takes the place of many pages of a host is not theirs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from optimal_frontier.state.messages import Handout

#: From so many pages on, each of which had a content of its own before, a content that they change to is flagged.
SHARED_BY: Final = 3
#: Of each host the last contents that pages changed to, and hosts, that are remembered.
_MOST_CONTENTS: Final = 64
_MOST_HOSTS: Final = 2_000

_T = TypeVar("_T")


def name_of(host: str, content: bytes) -> bytes:
    """Return the name under which a flagged content is stored: host and fingerprint, readable."""
    return f"{host} {content.hex()}".encode()


@dataclass(slots=True)
class _Change:
    """A content that pages changed to: when the first was seen to (s), and what each page had before."""

    since: float
    pages: dict[bytes, bytes] = field(default_factory=dict)


class _Owners(dict[bytes, tuple[bytes, ...]]):
    """Of each content that pages of a host had, last noted last, those that had it before any changed to it. Most have one page."""

    def note(self, content: bytes, page: bytes, is_first: bool) -> None:
        """Note that a page had a content; ``is_first``: before any changed to it."""
        pages = self.pop(content, ())
        if is_first and page not in pages and len(pages) < _MOST_CONTENTS:
            pages = (*pages, page)
        self[content] = pages
        if len(self) > _MOST_CONTENTS:
            # What several pages have is what counts: of large hosts most contents are those of one page.
            del self[next((each for each, pages in self.items() if len(pages) < 2 and each != content), next(iter(self)))]


class BlockPages:
    """Judges contents by what other pages of the host changed to. One for each crawler process; what it flags is shared by all.

    Only changes count: pages with the same content from their first visits on are what they are. So are pages that show a few contents by
    turns (a number in stock, sold out): a content is flagged only if more pages changed to it than are known to have had it before.
    """

    def __init__(self) -> None:
        #: What is stored: True of a content that is flagged, False of one that was for so long that it passes for the pages' own.
        self.stored: Mapping[bytes, bool] = {}
        self._own: set[bytes] = set()
        #: By host. Each has its own 2,000: hosts on which nothing changes, as most are, take no place from those where pages change.
        self._changes: OrderedDict[str, OrderedDict[bytes, _Change]] = OrderedDict()
        self._owners: OrderedDict[str, _Owners] = OrderedDict()

    def learn(self, stored: Mapping[bytes, bool]) -> None:
        """Take over what is stored. What this process has found is in it by now, and ends with it."""
        self.stored = stored
        self._own.difference_update(stored)

    def is_flagged(self, host: str, content: bytes) -> bool:
        """Tell whether a content is known to be no page's own."""
        if not self.stored and not self._own:
            return False
        name = name_of(host, content)
        return self.stored.get(name, name in self._own)

    def judge(self, handout: Handout, content: bytes, tag: int) -> tuple[bool, bool]:
        """Judge what a page answers with status 200.

        Parameters
        ----------
        handout : Handout
            The page, and what it had before.
        content : bytes
            Its fingerprint now.
        tag : int
            Tag of the fingerprint settings.

        Returns
        -------
        is_flagged, is_news : bool
            It is not the page's own; and that was found out just now.
        """
        host, row = handout.host, handout.row
        if self.is_flagged(host, content):
            return True, False
        if name_of(host, content) in self.stored:
            return False, False
        has_before = row.visits > 0 and row.tag == tag
        owned, since = (row.content, row.b / 1e6) if has_before else (content, handout.at)
        known = self._changes.get(host)
        change = known.get(owned) if known is not None else None
        owners = _of_host(self._owners, host, _Owners)
        owners.note(owned, handout.page, change is None or since < change.since)
        if not has_before or row.content == content:
            return False, False
        changes: OrderedDict[bytes, _Change] = _of_host(self._changes, host, OrderedDict)
        change = changes.setdefault(content, _Change(handout.at))
        changes.move_to_end(content)
        if len(changes) > _MOST_CONTENTS:
            changes.popitem(last=False)
        if len(change.pages) < _MOST_CONTENTS:
            change.pages[handout.page] = row.content
        # Pages that all said the same before (in stock, sold out) may well say the same again, and so may many say what others do.
        if len(set(change.pages.values())) < max(SHARED_BY, len(owners.get(content, ())) + 1):
            return False, False
        self._own.add(name_of(host, content))
        del changes[content]
        return True, True


def _of_host(hosts: OrderedDict[str, _T], host: str, make: Callable[[], _T]) -> _T:
    """Return what is remembered of a host, which is the last to be forgotten now."""
    known = hosts.setdefault(host, make())
    hosts.move_to_end(host)
    if len(hosts) > _MOST_HOSTS:
        hosts.popitem(last=False)
    return known
