"""What is read of a source: its entries, each URL once, as many as a limit allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from optimal_frontier.detection.source_streams import SourceStream
from optimal_frontier.settings import SourceLimits


class Entry(NamedTuple):
    """One entry of a source.

    Attributes
    ----------
    url : str
        Absolute.
    lastmod : str
        When it last changed, for ``meta["lastmod"]``: ISO 8601; empty where nothing is said that can be read.
    modified : tuple of float or None
        The same in seconds since the epoch, and its resolution (s).
    priority : float or None
        Of a sitemap's entry, from 0 to 1.
    """

    url: str
    lastmod: str = ""
    modified: tuple[float, float] | None = None
    priority: float | None = None


class Collected:
    """The entries of a document, each URL once, as many as a limit allows; those that the source does not speak for are counted only.

    Parameters
    ----------
    stream : SourceStream
        Told of each entry, and stopped at the limit.
    limits : SourceLimits
    refusal : callable, optional
        URL -> why the source's word does not count for it; empty: it does.
    """

    def __init__(self, stream: SourceStream, limits: SourceLimits, refusal: Callable[[str], str] | None = None) -> None:
        self.entries: dict[str, Entry] = {}
        #: Entries that were left out, by reason, and the first URL of each.
        self.dropped: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self._stream, self._limits, self._refusal = stream, limits, refusal
        self._most = limits.entries
        self._last = ""
        self._seen = 0

    def names_sources(self) -> None:
        """Say that the entries are sources themselves."""
        self._most = min(self._limits.sources, self._limits.entries)

    def add(self, entry: Entry) -> bool:
        """Take an entry; False where no more are wanted."""
        self._last = ""
        self._stream.note_entry()
        self._seen += 1
        if self._seen > self._most:
            self._stream.stop("entries")
            return False
        reason = self._refusal(entry.url) if self._refusal is not None else ""
        if reason:
            self.dropped[reason] += 1
            self.examples.setdefault(reason, entry.url)
            return True
        self._last = "" if entry.url in self.entries else entry.url
        self.entries[entry.url] = entry
        return True

    def drop_last(self) -> None:
        """Take back the last entry."""
        self.entries.pop(self._last, None)
