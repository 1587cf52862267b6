"""Soft 404s and block pages: one content that takes the place of many pages of a host is not theirs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
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


class BlockPages:
    """Judges contents by what other pages of the host changed to. One for each crawler process; what it flags is shared by all.

    Only changes count: pages with the same content from their first visits on are what they are.
    """

    def __init__(self) -> None:
        #: What is stored: True of a content that is flagged, False of one that was for so long that it passes for the pages' own.
        self.stored: Mapping[bytes, bool] = {}
        self._own: set[bytes] = set()
        self._hosts: OrderedDict[str, OrderedDict[bytes, dict[bytes, bytes]]] = OrderedDict()

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
        has_before = row.visits > 0 and row.tag == tag
        if not has_before or row.content == content or name_of(host, content) in self.stored:
            return False, False
        contents = self._hosts.setdefault(host, OrderedDict())
        self._hosts.move_to_end(host)
        if len(self._hosts) > _MOST_HOSTS:
            self._hosts.popitem(last=False)
        pages = contents.setdefault(content, {})
        contents.move_to_end(content)
        if len(contents) > _MOST_CONTENTS:
            contents.popitem(last=False)
        if len(pages) < _MOST_CONTENTS:
            pages[handout.page] = row.content
        # Pages that all said the same before (in stock, sold out) may well say the same again.
        if len(set(pages.values())) < SHARED_BY:
            return False, False
        self._own.add(name_of(host, content))
        del contents[content]
        return True, True
