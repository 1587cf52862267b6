"""Who says that a page is fetched once: its request, for good, or RULES, for as long as they do. And how often that is tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from optimal_frontier.frontier.judging.backoff import wait_after_failures
from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.frontier.judging.waits import shortest_wait
from optimal_frontier.scheduling.numbers import fixed
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import KEEP, Handout, Observation
from optimal_frontier.state.rows import DONE, HELD, ONCE, TRANSIENT

#: What stays as it is, most likely: such a failure is the last word.
_LASTING: Final = frozenset(map(CAUSES.index, ("client", "gone", "refused", "robots", "redirects")))
#: Tries of anything else, over a day or longer.
_TRIES: Final = 17


def asks_for_one_visit(record: Mapping[Any, Any]) -> bool:
    """Tell whether a request is to be fetched once by its own word: it is no GET, or its meta has ``revisit`` False.

    In plain Frontera that stands in the meta itself, where Scrapy's meta has a place of its own in there.

    Examples
    --------
    >>> asks_for_one_visit({"url": "http://a.example/"}), asks_for_one_visit({"url": "http://a.example/", "method": "POST"})
    (False, True)
    >>> asks_for_one_visit({"url": "http://a.example/", "meta": {b"scrapy_meta": {"revisit": False}}})
    True
    >>> asks_for_one_visit({"url": "http://a.example/", "meta": {b"revisit": False}})
    True
    """
    if record.get("method", "GET") not in ("GET", b"GET"):
        return True
    meta = record.get("meta")
    if not isinstance(meta, Mapping):
        return False
    of_scrapy = meta.get(b"scrapy_meta")
    # Without Scrapy it stands in Frontera's own meta.
    return meta.get(b"revisit", meta.get("revisit")) is False or (
        isinstance(of_scrapy, Mapping) and of_scrapy.get("revisit", True) is False
    )


def is_page(handout: Handout, settings: FrontierSettings) -> bool:
    """Tell whether a visit is one to a page that is revisited, at least from now on: then its content counts."""
    if handout.row.state == ONCE:
        return is_page_again(handout.record, settings)
    return handout.row.state not in (TRANSIENT, DONE)


def is_page_again(record: Mapping[Any, Any], settings: FrontierSettings) -> bool:
    """Tell whether what was to be fetched once is a page that is revisited: a rule said so that is gone."""
    return not asks_for_one_visit(record) and settings.rules.of(str(record["url"])).revisit


def is_tried_again(failed: Observation) -> bool:
    """Tell whether a request that is fetched once, and has failed, is tried again: what it is to bring would be lost for good."""
    return failed.row.cause not in _LASTING and failed.row.failures < _TRIES


def tried_again(failed: Observation) -> Observation:
    """Return the observation of a request that has failed and is tried again, each time after twice as long."""
    row = failed.row._replace(state=ONCE, flags=failed.handout.row.flags & ~HELD)
    wait = wait_after_failures(failed.handout.page, row, shortest_wait(row), None)
    return replace(failed, op=KEEP, row=row._replace(**fixed(wait)._asdict()))
