"""What visits leave beside the rows of their pages: entries of the change feed, latenesses, words of hosts, pages that were retired last.

But for the changes these are plain commands that go with the observations. They are statistics and hints: those of a visit whose lease was
no longer valid are stored all the same, and after an outage some may be stored twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from optimal_frontier.state.messages import REST, Change, Observation
from optimal_frontier.state.namespace import Call
from optimal_frontier.state.rows import RETIRED

#: Pages of a host that were retired last, and calls whose latenesses are kept.
KEPT_RETIRED: Final = 32
KEPT_LATENESSES: Final = 1000


def change_fields(page: bytes, b: float, change: Change) -> list[Any]:
    """Return an entry of the change feed, fields and values in turn; ``b`` is when the visit was, microseconds since the epoch."""
    url = change.url.encode("utf-8", "surrogatepass")
    shown = ["previous", change.previous.hex(), "fingerprint", change.fingerprint.hex()]
    return ["page", page, "time", f"{b / 1e6:.6f}", "url", url, *shown]


def note_calls(partition: int, observations: Sequence[Observation]) -> list[Call]:
    """Return the commands that store what some visits leave beside the rows of their pages, without the changes."""
    retired: dict[int, list[bytes]] = {}
    words: dict[int, bytes] = {}
    for seen in observations:
        row = seen.row
        if seen.op == REST and row.state == RETIRED and row.visits:
            retired.setdefault(row.host, []).append(seen.handout.page)
        if seen.words is not None:
            words[row.host] = seen.words.pack()
    rows: list[tuple[str, list[Any]]] = []
    for host, pages in retired.items():
        rows += [("LPUSH", [f"retired:{host}", *pages]), ("LTRIM", [f"retired:{host}", 0, KEPT_RETIRED - 1])]
    late = " ".join(f"{seen.lateness:.6f}" for seen in observations if seen.lateness is not None)
    if late:
        rows += [("LPUSH", ["lateness", late]), ("LTRIM", ["lateness", 0, KEPT_LATENESSES - 1])]
    told = [value for host, packed in words.items() if packed for value in (host, packed)]
    if told:
        rows.append(("HSET", ["hosts:words", *told]))
    silent = [host for host, packed in words.items() if not packed]
    if silent:
        rows.append(("HDEL", ["hosts:words", *silent]))
    return [Call(partition, command, arguments) for command, arguments in rows]
