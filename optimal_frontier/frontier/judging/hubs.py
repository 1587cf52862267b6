"""Hubs: pages on which there is news. What a visit teaches of how much there will be, and what that is worth.

News is a link to a page that is new, or the word of a source on a page that is stale by it: until it is read, that page stays stale.

A link counts for the page that it was found on if the store did not know it yet. Links of a first visit are those of all the time before
it, so they say nothing of a rate. How many links of a visit are new is known only once they were stored, which is after it was judged:
`after_links` puts the count into its observation.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from optimal_frontier.estimation.yields import Yield, first_yield, learn_yield
from optimal_frontier.frontier.judging.waits import Terms, numbers_of
from optimal_frontier.scheduling.numbers import at_latest
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory, Yielded
from optimal_frontier.state.messages import KEEP, Handout, Observation
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import ACTIVE, CHECKED, HUB, SIGNALLED, TIMED


class FoundLinks(NamedTuple):
    """News of a visit: links to pages that were new, and words that moved the deadline of a page.

    Attributes
    ----------
    pages : int
        How many were new.
    importance : float
        Sum over the pages of both kinds.
    told : float
        How many were told of. Each counts with the chance that the word is true, here and in the sum.
    """

    pages: int = 0
    importance: float = 0.0
    told: float = 0.0

    @classmethod
    def of(cls, handout: Handout) -> FoundLinks:
        """Return what was counted for a visit so far."""
        return cls(handout.new_links, handout.new_importance + handout.told_importance, handout.told)

    @property
    def news(self) -> float:
        """How many in all."""
        return self.pages + self.told


def yield_of(memory: Memory) -> Yield | None:
    """Return what is believed of the new pages that a page yields; None of a page that is no hub."""
    if memory.yielded is None or not 0.0 < memory.yielded.seconds < math.inf:
        return None
    return Yield(*memory.yielded[:3])


def worth_of(memory: Memory, settings: FrontierSettings) -> float:
    """Return the importance of the new pages that a page yields a second; 0 of a page that is no hub, and where DISCOVERY_VALUE is off."""
    known = yield_of(memory) if settings.discovery_value else None
    return 0.0 if known is None else known.worth


def learns_from_links(observation: Observation) -> bool:
    """Tell whether a visit says how many new pages there are: a good one of a page that was seen before, and goes by no update times."""
    before = observation.handout.row
    is_seen = observation.outcome == "ok" and observation.op == KEEP and before.state == ACTIVE and before.visits > 0
    return is_seen and not before.flags & TIMED and not observation.row.flags & TIMED


def after_links(observation: Observation, found: FoundLinks, published: Published, settings: FrontierSettings) -> Observation:
    """Return the observation of a visit whose links were stored.

    Parameters
    ----------
    observation : Observation
        As judged.
    found : FoundLinks
        What news there was.
    published : Published
        The last plan of the page's partition.
    settings : FrontierSettings
        DISCOVERY_VALUE, OBJECTIVE, POLICY.
    """
    row, before = observation.row, observation.handout.row
    if not (settings.discovery_value and (found.news or row.flags & HUB) and learns_from_links(observation)):
        return observation
    memory = observation.memory or observation.handout.memory
    at = row.b / 1e6
    known = yield_of(memory)
    if known is not None and memory.yielded is not None:
        if (row.unseen > 0.0 or row.failures) and not found.news:
            return observation  # it showed nothing of the page, or its callback raised: its time goes on
        learned = learn_yield(known, found.news, found.importance, at - memory.yielded.at)
    elif found.news and observation.handout.memory.lost is None:
        learned = first_yield(found.news, found.importance, at - before.b / 1e6 + before.unseen, before.visits)
    else:
        return observation  # after a callback that raised, they are of all the time before it
    row = row._replace(flags=row.flags | HUB)
    if not row.is_pinned:
        # A pinned page keeps its interval.
        # One that is looked at again soon is so at the latest then.
        plain = row._replace(flags=row.flags & ~CHECKED)
        numbers = numbers_of(
            plain, observation.handout.page, Terms(observation.handout.log_price, published, settings), yielded=learned.worth
        )
        a, s, e, longest = at_latest(numbers, row.l) if row.flags & CHECKED else numbers
        row = row._replace(a=a, s=s, e=e, l=longest, flags=row.flags & ~SIGNALLED)
    counters = dict(observation.counters)
    if found.pages:
        counters["discovered"] = counters.get("discovered", 0) + found.pages
    return replace(observation, row=row, memory=memory._replace(yielded=Yielded(*learned, at)), counters=counters)
