"""Which links of a visit are new, and which words move a page, is known when they were stored: until then its observation waits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.dispatching.work import Ended
from optimal_frontier.frontier.judging.hubs import FoundLinks, after_links
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import NewPage, Observation
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import revise_calls
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import HUB


def with_links(
    ended: Sequence[Ended], pages: Sequence[NewPage], published: Callable[[int], Published], settings: FrontierSettings
) -> tuple[list[Ended], list[Ended]]:
    """Return observations with what their links taught, and those that wait for the next exchange.

    Parameters
    ----------
    ended : sequence of (Observation, Lease)
        That are to be sent.
    pages : sequence of NewPage
        That go with the same exchange: which of them are new is in its replies.
    published : callable
        Partition -> its last plan.
    settings : FrontierSettings
        DISCOVERY_VALUE.
    """
    linking = {id(new.found_on) for new in pages if new.found_on is not None}
    known: list[Ended] = []
    held: list[Ended] = []
    for observation, lease in ended:
        handout = observation.handout
        if linking and id(handout) in linking:
            held.append((observation, lease))
            continue
        if handout.new_links or handout.told or observation.row.flags & HUB:
            found = FoundLinks.of(handout)
            observation = after_links(observation, found, published(handout.partition), settings)
        known.append((observation, lease))
    return known, held


def add_late_links(namespace: Namespace, observation: Observation, more: int, published: Published, settings: FrontierSettings) -> None:
    """Put ``more`` new links, which came after their page, into what is stored of it, unless it was handed out again meanwhile."""
    learned = after_links(observation, FoundLinks.of(observation.handout), published, settings)
    if learned is observation:
        return  # it says nothing of new pages
    revision = (observation.handout.page, learned.row.b, learned.row, learned.memory)
    with contextlib.suppress(StateUnavailableError):  # only the count is lost
        namespace.run(revise_calls(observation.handout.partition, [revision], f"discovered={more}"))
