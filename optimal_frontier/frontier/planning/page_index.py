"""Where pages stand in a table, by their identities: a hash table of positions, in which many pages are looked up at once.

Pages are added at the end of a table, so that the columns of a large one are never moved to make room.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.frontier.planning.page_columns import Pages

#: Stands for a slot without a page.
_NOBODY: Final = np.uint32(2**32 - 1)
#: Slots are doubled when a larger share of them is taken.
_FULL: Final = 0.7
_FEWEST_BITS: Final = 10
#: Pages that are put into new slots at once.
_BLOCK: Final = 65_536
_KEY_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
#: Slots that are looked at together, at most; and at first, of so few pages that the steps cost more than the slots.
_WIDEST: Final = 32
_FEW: Final = 2048
_FEW_WIDE: Final = 4
#: Of pages that are looked up in their order in the table every so-many-eth is searched for.
_STRIDE: Final = 16
#: An identity, as two numbers.
_WORDS: Final = np.dtype([("first", "<u8"), ("rest", "<u4")])

Keys = NDArray[np.uint64]
Indices = NDArray[np.int64]


def keys_of(ids: NDArray[Any]) -> Keys:
    """Return one number for each page; two pages have the same one with a chance of 5e-20."""
    words = np.ascontiguousarray(ids).view(_WORDS)
    with np.errstate(over="ignore"):
        return np.asarray((words["first"] * _KEY_FACTOR) ^ (words["rest"].astype(np.uint64) << np.uint64(13)) ^ words["rest"])


class PageIndex:
    """Positions of the pages of a table, by linear probing; n pages take 4 n / 0.7 to 8 n / 0.7 bytes."""

    def __init__(self) -> None:
        self._bits = _FEWEST_BITS
        self._slots = np.full(1 << self._bits, _NOBODY, np.uint32)
        self._count = 0

    def find(self, ids: NDArray[Any], keys: Keys, pages: Pages) -> Indices:
        """Return where pages stand in the table; -1: nowhere.

        Parameters
        ----------
        ids : ndarray (m,) of V12
            Their identities.
        keys : ndarray (m,)
            `keys_of` them.
        pages : Pages
            The table.
        """
        found = np.full(len(keys), -1, np.int64)
        asked, stored = np.ascontiguousarray(ids), pages["id"]
        slot, left, width = self._home(keys), np.arange(len(keys) if pages.count else 0), _FEW_WIDE if len(keys) <= _FEW else 1
        while len(left):
            # Most pages stand in their first slot; of the few others more and more slots are looked at together.
            at = self._slots[(slot[:, None] + np.arange(width)) & (len(self._slots) - 1)]
            taken = at != _NOBODY
            there, mine = stored[np.where(taken, at, 0)].view(_WORDS), asked[left, None].view(_WORDS)
            same = taken & (there["first"] == mine["first"]) & (there["rest"] == mine["rest"])
            which, where = np.nonzero(same)
            found[left[which]] = at[which, where]
            goes_on = taken.all(axis=1) & ~same.any(axis=1)
            left, slot, width = left[goes_on], slot[goes_on] + width, min(2 * width, _WIDEST)
        return found

    def find_in_order(self, ids: NDArray[Any], keys: Keys, pages: Pages) -> Indices:
        """Return the same as `find`, sooner where most of these pages stand behind each other in the table, as they do here."""
        if not pages.count or len(ids) <= _STRIDE:
            return self.find(ids, keys, pages)
        known = self.find(np.ascontiguousarray(ids[::_STRIDE]), keys[::_STRIDE], pages)
        # Those behind one that is nowhere are compared with any page.
        at: Indices = np.clip((known[:, None] + np.arange(_STRIDE)).ravel()[: len(ids)], 0, pages.count - 1)
        there, mine = pages["id"][at].view(_WORDS), np.ascontiguousarray(ids).view(_WORDS)
        others = np.flatnonzero((there["first"] != mine["first"]) | (there["rest"] != mine["rest"]))
        at[others] = self.find(ids[others], keys[others], pages)
        return at

    def add(self, keys: Keys, pages: Pages) -> None:
        """Take in the last pages of the table, which have these keys; each is new, and there once."""
        first = pages.count - len(keys)
        if self._count + len(keys) > _FULL * len(self._slots):
            self.rebuild(pages)
            return
        self._put(keys, np.arange(first, pages.count, dtype=np.uint32))

    def rebuild(self, pages: Pages) -> None:
        """Make the index of a whole table anew."""
        self._count = 0
        while pages.count > _FULL * (1 << self._bits):
            self._bits += 1
        self._slots = np.full(1 << self._bits, _NOBODY, np.uint32)
        for start in range(0, pages.count, _BLOCK):
            ids = pages["id"][start : start + _BLOCK]
            self._put(keys_of(ids), np.arange(start, start + len(ids), dtype=np.uint32))

    def _home(self, keys: Keys) -> Indices:
        with np.errstate(over="ignore"):
            return np.asarray((keys * _KEY_FACTOR) >> np.uint64(64 - self._bits), np.int64)

    def _put(self, keys: Keys, positions: NDArray[np.uint32]) -> None:
        self._count += len(keys)
        slot = self._home(keys)
        while len(positions):
            free = self._slots[slot] == _NOBODY
            self._slots[slot[free]] = positions[free]
            # Of several that want one slot the last one has got it.
            left = self._slots[slot] != positions
            positions, slot = positions[left], (slot[left] + 1) & (len(self._slots) - 1)
