"""The sorted set ``flagged``: contents that are no page's own (block pages, soft 404s), changes of templates, and noise that pages share.

All crawlers are told of them. It is read and written by plain commands. Their times are those that the caller takes for the server's: a few
seconds are nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from optimal_frontier.state.namespace import Call
from optimal_frontier.state.partition import BATCH

#: A content is flagged for so long, and remembered for so long, seconds; the last so many of a partition are.
FLAGGED_S: Final = 7 * 86_400
REMEMBERED_S: Final = 30 * 86_400
MOST_FLAGGED: Final = 2000

_KEY: Final = "flagged"


def flag_calls(
    partition: int,
    now: float,
    names: Sequence[bytes],
    *,
    flagged_s: float = FLAGGED_S,
    remembered_s: float = REMEMBERED_S,
    most: int = MOST_FLAGGED,
) -> list[Call]:
    """Return the calls that note names at the time ``now`` (s), and read which there are; one that is known keeps its time.

    The last two replies are lists of names: those that are flagged, and those that were for so long that they pass for the pages' own.
    """
    since = f"{now - flagged_s:.3f}"
    rows: list[tuple[str, list[Any]]] = []
    for at in range(0, len(names), BATCH):
        rows.append(("ZADD", ["NX", *(value for name in names[at : at + BATCH] for value in (f"{now:.3f}", name))]))
    rows += [("ZREMRANGEBYSCORE", ["-inf", f"{now - remembered_s:.3f}"]), ("ZREMRANGEBYRANK", [0, -most - 1])]
    rows += [("ZRANGEBYSCORE", [f"({since}", "+inf"]), ("ZRANGEBYSCORE", ["-inf", since])]
    return [Call(partition, command, [_KEY, *arguments]) for command, arguments in rows]
