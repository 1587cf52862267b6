"""The Redis keys of URL_KEYS: lists, sets and sorted sets of entries that other programs put there, read first and removed later.

Nothing is popped: an entry goes when the pages made of it are stored, so a process that ends in between loses none. One process at a time
takes entries, by a lock that expires; two that do so at once, as the lock ran out, store the same pages twice, which changes nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import count_calls

#: Types of keys that hold entries.
TYPES: Final = ("list", "set", "zset")
#: Seconds after which the lock of a process that says nothing any more is another's.
LOCK_S: Final = 10.0
#: Entries that are kept aside, and most bytes of one.
MOST_REFUSED: Final = 1000
_MOST_BYTES: Final = 65_536


class Entry(NamedTuple):
    """An entry as it is kept, and its score (0 but in a sorted set)."""

    raw: bytes
    score: float = 0.0


class UrlKeys:
    """Entries of some keys, which may lie on any nodes of a cluster.

    Parameters
    ----------
    namespace : Namespace
        Opened; it keeps the lock, and what is put aside.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._owner = secrets.token_hex(8)

    def type_of(self, key: str) -> str:
        """Return the type of a key; ``none`` where nothing is."""
        (kind,) = self._namespace.commands([["TYPE", key]], at=key)
        return str(kind.decode())

    def take_lock(self) -> bool:
        """Take or renew the lock; False if another process holds it."""
        lock = self._namespace.key("drainer")
        ours = ["SET", lock, self._owner, "PX", int(LOCK_S * 1000)]
        taken, holder = self._namespace.commands([[*ours, "NX"], ["GET", lock]])
        if taken is None and holder == self._owner.encode():
            self._namespace.command(*ours)
        return bool(holder == self._owner.encode())

    def release_lock(self) -> None:
        """Let another process have it."""
        lock = self._namespace.key("drainer")
        if self._namespace.command("GET", lock) == self._owner.encode():
            self._namespace.command("DEL", lock)

    def read(self, key: str, kind: str, n: int) -> list[Entry]:
        """Return up to ``n`` entries: from the left of a list, of the highest scores, or any of a set. They stay where they are."""
        command: dict[str, list[Any]] = {
            "list": ["LRANGE", key, 0, n - 1],
            "set": ["SRANDMEMBER", key, n],
            "zset": ["ZREVRANGE", key, 0, n - 1, "WITHSCORES"],
        }
        (found,) = self._namespace.commands([command[kind]], at=key)
        if kind != "zset":
            return [Entry(raw) for raw in found]
        pairs = found if found and isinstance(found[0], tuple) else zip(found[::2], found[1::2], strict=True)
        return [Entry(raw, float(score)) for raw, score in pairs]

    def remove(self, key: str, kind: str, entries: Sequence[Entry]) -> None:
        """Remove entries that were read; what was pushed since stays."""
        raws = [entry.raw for entry in entries]
        rows: list[list[Any]] = [["LREM", key, 1, raw] for raw in raws]  # near the left end, where each is found at once
        if kind != "list":
            rows = [["SREM" if kind == "set" else "ZREM", key, *raws]]
        self._namespace.commands(rows, at=key)

    def put_aside(self, key: str, refused: Sequence[tuple[Entry, str]]) -> None:
        """Keep entries that are no pages, with the reason, for a person to look at."""
        aside = self._namespace.key("refused_urls")
        texts = [entry.raw[:_MOST_BYTES].decode("utf-8", "backslashreplace") for entry, _ in refused]
        said = [json.dumps({"key": key, "entry": text, "reason": reason}) for text, (_, reason) in zip(texts, refused, strict=True)]
        if said:
            self._namespace.commands([["LPUSH", aside, *said], ["LTRIM", aside, 0, MOST_REFUSED - 1]])

    def count(self, taken: int, refused: int) -> None:
        """Count entries that became pages, and those that did not."""
        self._namespace.run(count_calls(0, {"pushed": taken, "pushed_refused": refused}))
