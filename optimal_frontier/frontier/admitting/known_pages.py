"""Which pages are stored already, and with what: links that say nothing new cost no round trip."""

from __future__ import annotations

from typing import Final

#: Pages that are remembered.
MOST_PAGES: Final = 200_000
#: Seconds after which they are told to the store again: one of them may have been retired, and is linked still.
LASTS_S: Final = 3600.0


class KnownPages:
    """Remembers what was told to the store of each page, for an hour at most.

    A page may be linked from several pages, each with a record of its own (another callback, other meta). The record that was yielded last
    is stored. Each of those pages that goes on saying what it said before says nothing new: so they do not overwrite one another at each
    visit, and a page that says something else than before is heard.

    A page is as deep as the shortest way to it that this process has seen: a front page that all pages link to stays a front page.
    """

    def __init__(self) -> None:
        self._said: dict[bytes, int] = {}
        #: By page and parent: what a parent said when that was not what was stored.
        self._by_parent: dict[tuple[bytes, bytes], int] = {}
        #: Of the first pages; kept when all else is told anew, as the next one to tell may be the deepest.
        self._depths: dict[bytes, int] = {}
        self._generation = 0
        self._until = 0.0

    def refresh(self, generation: int, now: float) -> None:
        """Forget everything when ``generation`` is another one, or the hour is over (``now``: local monotonic time, s)."""
        if generation != self._generation or now >= self._until:
            self._forget()
            self._generation, self._until = generation, now + LASTS_S

    def is_said(self, page: bytes, parent: bytes, said: int) -> bool:
        """Tell whether ``said`` (a hash) is no news of a page: it is what is stored, or what this parent said last.

        Examples
        --------
        >>> known = KnownPages()
        >>> for parent, said in ((b"a", 1), (b"b", 2), (b"a", 1)):
        ...     known.note(b"page", parent, said)
        >>> known.is_said(b"page", b"b", 2), known.is_said(b"page", b"a", 1), known.is_said(b"page", b"b", 3)
        (True, True, False)
        """
        key = page, parent
        if self._said.get(page) == said:
            if key in self._by_parent:
                self._by_parent[key] = said
            return True
        return self._by_parent.get(key) == said

    def note(self, page: bytes, parent: bytes, said: int) -> None:
        """Remember what was told to the store."""
        if len(self._said) >= MOST_PAGES or len(self._by_parent) >= MOST_PAGES:
            self._forget()
        if self._said.get(page, said) != said:
            self._by_parent[page, parent] = said
        self._said[page] = said

    def depth(self, page: bytes, found: int) -> int:
        """Return how many links a page is away from a start request, where ``found`` is by the way that it was found now.

        Examples
        --------
        >>> known = KnownPages()
        >>> known.note_depth(b"page", 0)
        >>> known.depth(b"page", 2), known.depth(b"another", 2)
        (0, 2)
        """
        return min(found, self._depths.get(page, found))

    def is_nearer(self, page: bytes, found: int) -> bool:
        """Tell whether ``found`` is news of a page: all ways that are known are longer."""
        return found < self._depths.get(page, found)

    def note_depth(self, page: bytes, found: int) -> None:
        """Remember a way to a page."""
        if page in self._depths or len(self._depths) < MOST_PAGES:
            self._depths[page] = self.depth(page, found)

    def drop(self, page: bytes) -> None:
        """Forget what was told of one page, and by requests without a parent."""
        self._said.pop(page, None)
        self._by_parent.pop((page, b""), None)

    def _forget(self) -> None:
        self._said.clear()
        self._by_parent.clear()
