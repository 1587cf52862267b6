"""Columns of many pages, as plans hold them: about 105 bytes a page, in arrays that grow at their end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation import posterior_median
from optimal_frontier.estimation.like_pages import LikePatterns
from optimal_frontier.estimation.quantile import many_medians
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.rows import LAYOUT

#: Fields of the head that plans use.
USED: Final = (
    "host",
    "state",
    "flags",
    "b",
    "a",
    "s",
    "e",
    "l",
    "importance",
    "min_interval",
    "max_interval",
    "shape",
    "time",
    "visits",
    "failed",
    "failures",
    "pattern",
    "directory",
)
#: A page in the table: those, its identity, the median of its own posterior (1/s; nan: not found yet), the log price at which its place in
#: the queue was found, whether the present cycle has shown it (2) or the one before (1), and whether the last read has; by how many seconds
#: the clock of its neighbourhood is ahead since its last visit, and how much of that is in its numbers.
PAGE: Final = np.dtype(
    [(name, LAYOUT[name]) for name in USED]
    + [("id", f"V{PAGE_BYTES}"), ("median", "f8"), ("placed", "f4"), ("seen", "u1"), ("fresh", "?"), ("shift", "f4"), ("written", "f4")]
)
_NAMES: Final = PAGE.names or ()
#: A table that is full gets so many times the room.
_GROWTH: Final = 1.5
#: Medians of so many pages at once are interpolated.
_MANY: Final = 10_000


class Pages(Mapping[str, NDArray[Any]]):
    """Columns of pages by their names in `PAGE`, each an array of its own: plans look at few of them, of all pages."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self.columns = dict(columns)
        self._room = dict(columns)
        #: Another number once pages stand elsewhere than they stood; those that join come at the end.
        self.order = 0

    @classmethod
    def none(cls) -> Pages:
        """Return no pages."""
        return cls({name: np.zeros(0, PAGE[name]) for name in _NAMES})

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def count(self) -> int:
        """How many pages there are."""
        return len(next(iter(self.columns.values())))

    def take(self, at: NDArray[Any]) -> NDArray[Any]:
        """Return some of them as records of `PAGE`."""
        some = np.zeros(int(np.count_nonzero(at)) if at.dtype == bool else len(at), PAGE)
        for name, values in self.columns.items():
            some[name] = values[at]
        return some

    def some(self, at: NDArray[Any] | slice, names: Iterable[str] = _NAMES) -> Pages:
        """Return some columns of some pages; views of them for a slice."""
        return Pages({name: self.columns[name][at] for name in names})

    def keep(self, wanted: NDArray[np.bool_]) -> None:
        """Let go of all others."""
        self.order += 1
        for name in list(self.columns):
            self.columns[name] = self._room[name] = self.columns[name][wanted]

    def reserve(self, room: int) -> None:
        """Make room for so many pages. What is not used of it yet is no memory of the machine's."""
        count = self.count
        for name, old in self._room.items():
            if room > len(old):
                grown = np.empty(room, old.dtype)
                grown[:count] = old[:count]
                # One column after the other, so that of one only there are two at a time.
                self._room[name], self.columns[name] = grown, grown[:count]

    def append(self, more: int, **values: Any) -> None:
        """Add pages at the end; columns that are not named are 0."""
        count = self.count
        if any(count + more > len(room) for room in self._room.values()):
            self.reserve(max(count + more, int(_GROWTH * count)))
        for name, room in self._room.items():
            room[count : count + more] = values.get(name, np.zeros((), room.dtype))
            self.columns[name] = room[: count + more]


def find_medians(pages: Pages, at: NDArray[np.int64], alike: LikePatterns) -> None:
    """Find the medians of the posteriors of some pages that are not known yet: each is found once, and stays in the table."""
    unknown = at[np.isnan(pages["median"][at]) & (pages["shape"][at] > 0) & (pages["time"][at] > 0)]
    if len(unknown):
        medians = many_medians if len(unknown) >= _MANY else posterior_median
        own = (pages[name][unknown].astype(np.float64) for name in ("shape", "time"))
        pages["median"][unknown] = medians(*alike.believed(pages["pattern"][unknown], *own))
