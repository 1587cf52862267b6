"""Soft 404s and block pages: one content that takes the place of many pages of a host is not theirs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from optimal_frontier.state.messages import Handout

#: From so many pages on, each of which had a content of its own before, a content that they change to is flagged.
SHARED_BY: Final = 3
#: Of each host the last contents that pages changed to, and hosts, that are remembered.
_MOST_CONTENTS: Final = 64
_MOST_HOSTS: Final = 2_000


def name_of(host: str, content: bytes) -> bytes:
    """Return the name under which a flagged content is stored: host and fingerprint, readable."""
    return f"{host} {content.hex()}".encode()


@dataclass(slots=True)
class _Change:
    """A content that pages changed to: when the first was seen to (s), and what each page had before."""

    since: float
    pages: dict[bytes, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class _Host:
    """Contents that pages of a host changed to, and the pages that had a content before any changed to it."""

    changes: OrderedDict[bytes, _Change] = field(default_factory=OrderedDict)
    #: Last noted, last. Most have one page.
    owners: dict[bytes, tuple[bytes, ...]] = field(default_factory=dict)

    def note_owner(self, content: bytes, page: bytes, since: float) -> None:
        """Note that a page had a content at a time (s), if nobody had changed to it by then."""
        change, pages = self.changes.get(content), self.owners.pop(content, ())
        if page not in pages and len(pages) < _MOST_CONTENTS and (change is None or since < change.since):
            pages = (*pages, page)
        self.owners[content] = pages
        if len(self.owners) > _MOST_CONTENTS:
            del self.owners[next(iter(self.owners))]


class BlockPages:
    """Judges contents by what other pages of the host changed to. One for each crawler process; what it flags is shared by all.

    Only changes count: pages with the same content from their first visits on are what they are. So are pages that show a few contents by
    turns (a number in stock, sold out): a content is flagged only if more pages changed to it than are known to have had it before.
    """

    def __init__(self) -> None:
        #: What is stored: True of a content that is flagged, False of one that was for so long that it passes for the pages' own.
        self.stored: Mapping[bytes, bool] = {}
        self._own: set[bytes] = set()
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

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
        known = self._hosts.setdefault(host, _Host())
        self._hosts.move_to_end(host)
        if len(self._hosts) > _MOST_HOSTS:
            self._hosts.popitem(last=False)
        has_before = row.visits > 0 and row.tag == tag
        if has_before:
            known.note_owner(row.content, handout.page, row.b / 1e6)
        else:
            known.note_owner(content, handout.page, handout.at)
        if not has_before or row.content == content:
            return False, False
        change = known.changes.setdefault(content, _Change(handout.at))
        known.changes.move_to_end(content)
        if len(known.changes) > _MOST_CONTENTS:
            known.changes.popitem(last=False)
        if len(change.pages) < _MOST_CONTENTS:
            change.pages[handout.page] = row.content
        # Pages that all said the same before (in stock, sold out) may well say the same again, and so may many say what others do.
        if len(set(change.pages.values())) < max(SHARED_BY, len(known.owners.get(content, ())) + 1):
            return False, False
        self._own.add(name_of(host, content))
        del known.changes[content]
        return True, True
