"""A session: one crawler's life in the frontier, from connecting to giving back its leases."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from optimal_frontier.frontier.courier import Courier
from optimal_frontier.frontier.dispatcher import Dispatcher, rate_bounds
from optimal_frontier.frontier.identity import SCRAPYS, claim_identity
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.frontier.planner_thread import PlannerThread
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.columns import ACTIVE, ONCE
from optimal_frontier.state.connection import connect, parse_redis_url
from optimal_frontier.state.records import decode_record
from optimal_frontier.state.store import Store

logger = logging.getLogger(__name__)

#: Pages per script call when changed rules are applied to what is stored.
_BATCH = 500


class Session:
    """Connects, claims the namespace, and runs courier and planner until closed.

    Parameters
    ----------
    settings : FrontierSettings
        Parsed settings.
    project_dir : Path
        Where ``.scrapy`` is; used by the embedded server.
    spider : str
        The name that the namespace belongs to.
    wake : callable
        Called from another thread when there is something new to look at.
    identity : str
        By what pages are known: see `claim_identity`.

    Raises
    ------
    ConfigurationError, StateUnavailableError, SchemaMismatchError
        See `connect` and `Store.open`.
    """

    def __init__(
        self, settings: FrontierSettings, project_dir: Path, spider: str, wake: Callable[[], None], identity: str = SCRAPYS
    ) -> None:
        self.settings = settings
        self.connection = connect(parse_redis_url(settings.redis_url, project_dir))
        try:
            self.store = Store(self.connection, settings.namespace)
            self.store.open(spider=spider)
            claim_identity(self.store, identity)
            apply_bounds(self.store, settings)
            self.dispatcher = Dispatcher(self.store, settings)
        except BaseException:
            self.connection.close()
            raise
        self.courier = Courier(self.dispatcher, wake, self.is_complete if settings.close_after is not None else None)
        self.planner = PlannerThread(Planner(self.store, settings), self.courier.look_again)
        self.courier.start()
        self.planner.start()

    def close(self) -> bool:
        """Send what is left, give back every lease, disconnect; return whether that was done in time."""
        self.planner.stop()
        done = self.courier.stop()
        self.connection.close()
        return done

    def is_complete(self) -> bool:
        """Tell whether CLOSE_AFTER is reached: every page first visited, every page with a planned rate fetched that often."""
        wanted = self.settings.close_after
        if wanted is None:
            return False
        pending, published = self.store.commands(
            [
                ["HGET", self.store.key("stats"), "pending"],
                ["HMGET", self.store.key("published"), "pages", "time"],
            ]
        )
        if int(pending or 0) > 0:
            return False
        if wanted == 1:
            return True
        page, seen, plan = self.store.columns("page", "seen", "plan")
        active = page["state"] == ACTIVE
        if published[0] is None or bool((active & (seen["visits"] > 0) & (plan["base_time"] == 0)).any()):
            return False  # a page that no plan has seen yet may still get a rate
        return not bool((active & (plan["rate"] > 0) & (seen["attempts"] < wanted)).any())


def stated_importance(meta: dict[Any, Any]) -> float | None:
    """Return the importance that a stored Frontera request's meta states, or None."""
    for place in (meta.get(b"scrapy_meta") or {}, meta):
        for name in ("importance", b"importance"):
            if name in place:
                return float(place[name])
    return None


def bounds_digest(settings: FrontierSettings) -> str:
    """Return what ``P.meta bounds`` holds for pages whose bounds were made from ``settings``."""
    return json.dumps([settings.min_interval, settings.max_interval, settings.rules.digest()])


def apply_bounds(store: Store, settings: FrontierSettings) -> int:
    """Bring the stored bounds in line with RULES, MIN_INTERVAL and MAX_INTERVAL, if these changed since they were stored.

    Returns
    -------
    int
        Number of pages that were looked at; 0 if nothing had changed.
    """
    digest = bounds_digest(settings)
    stored = store.hash("meta").get("bounds")
    if stored == digest:
        return 0
    looked_at = 0
    if stored is not None:
        (page,) = store.columns("page")
        active = [int(slot) for slot in (page["state"] == ACTIVE).nonzero()[0]]
        for at in range(0, len(active), _BATCH):
            slots = active[at : at + _BATCH]
            arguments: list[Any] = []
            for slot, raw in zip(slots, store.command("HMGET", store.key("records"), *slots), strict=True):
                if raw is None:
                    continue
                record = decode_record(raw)
                rule = settings.rules.of(record["url"])
                min_rate, max_rate, gap = rate_bounds(rule, settings)
                # Stores that were filled before there was a bit for it know what was stated by the record alone.
                importance = 0.0 if stated_importance(record.get("meta", {})) is not None else rule.importance or 0.0
                generation = int(page["generation"][slot])
                kind = ACTIVE if rule.revisit else ONCE
                times = rule.update_times.text if rule.update_times is not None else ""
                arguments += [slot, generation, repr(importance), repr(min_rate), repr(max_rate), repr(gap), kind, times]
                looked_at += 1
            store.run([("set_bounds", arguments)])
        logger.info("RULES or interval bounds changed: %d pages brought in line", looked_at)
    store.command("HSET", store.key("meta"), "bounds", digest)
    return looked_at
