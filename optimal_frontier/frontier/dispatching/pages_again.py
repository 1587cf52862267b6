"""Pages that are under way, as new ones: for a server that has lost them."""

from __future__ import annotations

from collections.abc import Iterable

from optimal_frontier.state.messages import Handout, NewPage
from optimal_frontier.state.records import pack_record
from optimal_frontier.state.rows import Row


def pages_again(handouts: Iterable[Handout]) -> list[NewPage]:
    """Return the pages of handouts, each once, as if they had just been found: what was learned of them went with the server."""
    return list({handout.page: _page_of(handout) for handout in handouts}.values())


def _page_of(handout: Handout) -> NewPage:
    row = handout.row
    fresh = Row(
        state=row.state,
        importance=row.importance,
        min_interval=row.min_interval,
        max_interval=row.max_interval,
        pattern=row.pattern,
    )
    return NewPage(handout.page, handout.host, fresh, handout.stated, pack_record(handout.record, handout.host))
