"""How often Python looks for garbage while a crawl runs: seldom, as a page that has ended leaves none that only a collection finds."""

from __future__ import annotations

import gc
from typing import ClassVar, Final

#: How many objects may be new before Python looks through the youngest for garbage. Scrapy starts a hundred tasks for each response
#: (CONCURRENT_ITEMS), some thousand objects that are gone again at once. Python's own 700 (2,000 since 3.13) is less than that makes, so it
#: would look through all that is under way at every page, in vain: 13% of a crawl's time. With 5,000 it was 8%.
YOUNG: Final = 20_000
#: After so many bytes of responses it looks, too: what a spider leaves of a large one (of what it downloads beside its pages, response and
#: tree lead to each other) is few objects, and many bytes.
BODIES: Final = 8 * 2**20
#: One such look in so many goes also through what an earlier one has found in use. Of Python's own looks it is one in ten.
_ONCE_IN: Final = 4


class Collections:
    """Makes collections cheap and seldom while a crawl runs. What the program has set is left alone where it is more, or 0 (none)."""

    #: Crawls of this process that run, and the thresholds before the first of them.
    _running: ClassVar[int] = 0
    _before: ClassVar[tuple[int, int, int]] = (0, 0, 0)
    _set: ClassVar[tuple[int, int, int] | None] = None

    def __init__(self) -> None:
        self._has_begun = False
        self._bodies = self._looks = 0

    def begin(self) -> None:
        """Begin a crawl."""
        kind, self._has_begun = type(self), True
        if kind._running == 0:
            kind._before, kind._set = gc.get_threshold(), None
            if 0 < kind._before[0] < YOUNG:
                kind._set = YOUNG, *kind._before[1:]
                gc.set_threshold(*kind._set)
            # Full collections would go through every imported module again and again, a fifth of a crawl's time; none of it is garbage.
            gc.freeze()
        kind._running += 1

    def note_body(self, size: int) -> None:
        """Take note of a response with so many bytes."""
        self._bodies += size
        if self._bodies >= BODIES:
            self._bodies, self._looks = 0, self._looks + 1
            if gc.get_threshold() == self._set and gc.isenabled():
                gc.collect(0 if self._looks % _ONCE_IN else 1)

    def end(self) -> None:
        """End a crawl."""
        if not self._has_begun:
            return
        kind, self._has_begun = type(self), False
        kind._running -= 1
        if kind._running == 0:
            gc.unfreeze()
            if gc.get_threshold() == kind._set:  # else the program has set others meanwhile
                gc.set_threshold(*kind._before)
