"""Pages that lack what their request needs, a callback or its class: they are held, and come back when it is there."""

from __future__ import annotations

from typing import Final

from optimal_frontier.frontier.admitting.revival import due_at
from optimal_frontier.scheduling.numbers import fixed
from optimal_frontier.state.messages import KEEP, Handout, Observation
from optimal_frontier.state.rows import ACTIVE, FAR_S, HELD, ONCE, Row

#: Outcome of the observation of a page that is held.
OUTCOME: Final = "held"


def hold(handout: Handout) -> Observation | None:
    """Return the observation of a page that is not fetched, as it lacks what it needs; None of a request that is forgotten anyway.

    The page keeps its state and what was learned of it; its numbers say never. It does not fail. One that waited for its first visit has
    used up its turn: it counts as attempted. The numbers are about a visit of their own, so that what was worked out before, by a plan or
    for a person, does not overwrite them.
    """
    row = handout.row
    if row.state not in (ACTIVE, ONCE):
        return None
    counters = {} if row.flags & HELD else {"held": 1}
    if row.attempts == 0:
        counters["pending"] = -1
    is_first = row.b == 0
    row = row._replace(b=float(round(handout.at * 1e6)) if is_first else row.b + 1.0, failed=row.failed + is_first)
    row = row._replace(flags=row.flags | HELD, **fixed(FAR_S)._asdict())
    return Observation(handout, KEEP, row, counters=counters, outcome=OUTCOME)


def returned(row: Row, now: float) -> Row:
    """Return the row of a held page that is handed out again, from ``now`` on (seconds since the epoch)."""
    return due_at(row._replace(flags=row.flags & ~HELD), now)
