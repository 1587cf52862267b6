"""Pages that were asked for by no link: they stay what they were asked for as, whatever pages that link to them say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from optimal_frontier.frontier.admitting.pages import moved_record
from optimal_frontier.state.records import callbacks_of, decode_record, encode_record

#: Pages that are remembered.
MOST_STARTS: Final = 10_000


class StartPages:
    """The records by which pages were asked for in this run.

    A front page mostly links to itself, with the callback of pages like all others: as one of them it would show no links any more.
    """

    def __init__(self) -> None:
        # Encoded, as callbacks may change what is in a request.
        self._records: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        return len(self._records)

    def note(self, page: bytes, record: Mapping[Any, Any]) -> None:
        """Remember the record by which a page is asked for."""
        if page in self._records or len(self._records) < MOST_STARTS:
            self._records[page] = encode_record(record)

    def carry(self, before: bytes, page: bytes, url: str) -> bool:
        """Tell whether a page was asked for by the name ``before``, if that differs in nothing but scheme, host and a closing slash.

        Its new name keeps that. A page that is sent elsewhere becomes one with what is there, which may be a page of another kind.
        """
        start = self._of(before)
        if start is None or _path_of(start["url"]) != _path_of(url):
            return False
        if page not in self._records:
            self.note(page, moved_record(start, url))
        return True

    def against(self, record: Mapping[Any, Any], page: bytes) -> dict[Any, Any] | None:
        """Return the record by which a page was asked for, where ``record`` names another callback; else None."""
        start = self._of(page)
        return start if start is not None and callbacks_of(start)[0] != callbacks_of(record)[0] else None

    def _of(self, page: bytes) -> dict[Any, Any] | None:
        return decode_record(self._records[page]) if page in self._records else None


def _path_of(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.path.rstrip("/"), parts.query
