"""Pages that are remembered as stored, so that links to them cost no round trip."""

from __future__ import annotations

import time
from typing import Final

#: Seconds after which they are told to the store again: one of them may have been retired, and is linked still.
_KNOWN_S: Final = 3600.0


class KnownPages:
    """Identities of stored pages, and the importance that each was stored with.

    Parameters
    ----------
    most : int
        Pages after which all are forgotten.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._importances: dict[bytes, float] = {}
        self._generation = 0
        self._until = 0.0

    def keep(self, generation: int) -> None:
        """Forget all where ``generation`` has grown, as pages may have gone from the store, or where it is long ago that all were."""
        now = time.monotonic()
        if generation != self._generation or now >= self._until:
            self._importances.clear()
            self._generation, self._until = generation, now + _KNOWN_S

    def has(self, identity: bytes, importance: float | None) -> bool:
        """Tell whether a page is stored, with this importance if one is stated."""
        known = self._importances.get(identity)
        return known is not None and (importance is None or known == importance)

    def note(self, identity: bytes, importance: float | None) -> None:
        """Remember a page."""
        if len(self._importances) >= self._most:
            self._importances.clear()
        self._importances[identity] = importance if importance is not None else 0.0

    def drop(self, identity: bytes) -> None:
        """Forget one page."""
        self._importances.pop(identity, None)
