"""The change feed, read: which pages changed, when, and from what to what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optimal_frontier.state.store import Store


@dataclass(frozen=True)
class Change:
    """One entry of the feed.

    Attributes
    ----------
    id : str
        Of the entry in the stream; entries after it are asked for with it.
    time : float
        When the response came, seconds since the epoch.
    slot : int
        Number of the page.
    url : str
        Empty in entries of versions that did not tell it.
    previous, fingerprint : str
        Of the content before and now, 32 hexadecimal digits each; empty likewise.
    """

    id: str
    time: float
    slot: int
    url: str
    previous: str
    fingerprint: str


def last_changes(store: Store, limit: int) -> list[Change]:
    """Return the last entries, up to ``limit``, oldest first."""
    return [_change(*row) for row in reversed(store.command("XREVRANGE", store.key("changes"), "+", "-", "COUNT", limit))] if limit else []


def changes_after(store: Store, entry_id: str, limit: int = 1000) -> list[Change]:
    """Return the entries that follow ``entry_id``, up to ``limit``, oldest first."""
    return [_change(*row) for row in store.command("XRANGE", store.key("changes"), f"({entry_id}", "+", "COUNT", limit)]


def last_id(store: Store) -> str:
    """Return what stands for the end of the feed as it is now."""
    last = store.command("XREVRANGE", store.key("changes"), "+", "-", "COUNT", 1)
    return last[0][0].decode() if last else "0-0"


def _change(entry_id: bytes, fields: Any) -> Change:
    said = {name.decode(): value for name, value in (fields if isinstance(fields, dict) else _pairs(fields)).items()}
    texts = [said.get(name, b"").decode("utf-8", "replace") for name in ("url", "previous", "fingerprint")]
    return Change(entry_id.decode(), float(said["time"]), int(said["slot"]), *texts)


def _pairs(flat: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
