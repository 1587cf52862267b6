"""The site's record of fetches: arrays of what was served when, read from the log that the site writes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class FetchRecord:
    """All fetches that the site answered, in the order of time.

    Attributes
    ----------
    time : ndarray of shape (m,)
        Seconds after the site's start.
    page : int ndarray of shape (m,)
        Page, or -1 for an address that is none.
    version : int ndarray of shape (m,)
        Version served; 0 if none was.
    status : int ndarray of shape (m,)
        HTTP status.
    size : int ndarray of shape (m,)
        Length of the page's body, sent or spared (304); 0 if there was no page. Empty where it was not recorded.
    """

    time: np.ndarray
    page: np.ndarray
    version: np.ndarray
    status: np.ndarray
    size: np.ndarray = field(default_factory=lambda: np.zeros(0, int))

    @classmethod
    def from_rows(cls, rows: list[list[float]]) -> FetchRecord:
        """Make a record from rows of time, page, version, status, size."""
        table = np.array([[*row, 0][:5] for row in rows], dtype=float).reshape(-1, 5)
        table = table[np.argsort(table[:, 0], kind="stable")]
        return cls(table[:, 0], *(table[:, column].astype(int) for column in range(1, 5)))


class LogFollower:
    """Reads the site's log while the site writes it.

    Parameters
    ----------
    path : Path
        The log.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rows: list[list[float]] = []

    def read_new(self) -> list[list[float]]:
        """Rows written since the last call: time, page, version, status, size."""
        with self._path.open("rb") as log:
            log.seek(self._offset)
            data = log.read()
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        new = [json.loads(line) for line in complete.splitlines()]
        self._rows += new
        return new

    def record(self) -> FetchRecord:
        """Everything read so far."""
        return FetchRecord.from_rows(self._rows)
