"""Items that say whether their page is new, changed or unchanged: ITEM_FIELD."""

from __future__ import annotations

import logging
from typing import Any

from itemadapter import ItemAdapter

from optimal_frontier.frontier.judging.callback_errors import change_told, is_first_told
from optimal_frontier.integrations.scrapy.lease import LEASE, Lease
from optimal_frontier.state.rows import ACTIVE

logger = logging.getLogger(__name__)


def change_of(response: Any) -> str | None:
    """Return what a visit showed of its page.

    Returns
    -------
    str or None
        ``new`` on the first good visit, ``changed`` or ``unchanged`` on later ones (what a callback that raised was told, the next one is
        told again); None where there is no bit (see `Observation`), and for
        requests that are no pages.
    """
    lease: Lease | None = response.request.meta.get(LEASE) if response.request is not None else None
    if lease is None or lease.observation is None or lease.observation.outcome != "ok" or lease.handout.row.state != ACTIVE:
        return None
    if is_first_told(lease.handout):
        return "new"
    changed = change_told(lease.handout, lease.observation)
    return None if changed is None else "changed" if changed else "unchanged"


class ItemMarks:
    """Writes `change_of` into a field of items: of dicts always, of others (Item, dataclass, attrs, pydantic) where they have that field.

    Parameters
    ----------
    field : str
        Its name.
    stats : StatsCollector
        Counts the items that could not be marked.
    """

    def __init__(self, field: str, stats: Any) -> None:
        self.field = field
        self.stats = stats
        self._warned = False

    def mark(self, item: Any, response: Any) -> None:
        """Mark an item that a callback made of ``response``; what takes no mark is left as it is, with one warning."""
        if not ItemAdapter.is_item(item):
            return  # Scrapy says so
        try:
            ItemAdapter(item)[self.field] = change_of(response)
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            self.stats.inc_value("optimal_frontier/items_unmarked")
            if not self._warned:
                self._warned = True
                logger.warning(
                    "an item of type %s does not take the field %r (%s): give it one (further ones are counted, not logged)",
                    type(item).__qualname__,
                    self.field,
                    error,
                )
