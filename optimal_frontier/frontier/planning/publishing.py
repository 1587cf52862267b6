"""What a plan publishes: fields of the hash ``plan`` as text, and the share of the budget of each partition."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from optimal_frontier.estimation.sibling_priors import DEFAULT_SHAPE
from optimal_frontier.frontier.judging.waits import Terms
from optimal_frontier.frontier.planning.bounds import bounds_digest
from optimal_frontier.frontier.planning.crawl_pages import CrawlPages
from optimal_frontier.frontier.planning.solving import Solved
from optimal_frontier.scheduling.planning import LOAD
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.layouts import PartitionState, is_sound
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.published import TABLES, Published

logger = logging.getLogger(__name__)

#: What fields are called whose settings have other names.
_NAMED: Final = {"discovery": "DISCOVERY_VALUE", "bounds": "RULES, MIN_INTERVAL or MAX_INTERVAL"}
#: A partition gets at least this part of an equal share: new pages need a start.
_LEAST_SHARE: Final = 0.02


@dataclass(frozen=True)
class LivePrice:
    """What a partition dispatches by.

    Attributes
    ----------
    log_price : float
        Of a visit, now.
    is_unset : bool
        No plan has set it yet.
    published : Published
        By the last plan.
    calls : int
        Of crawlers for fetches, so far.
    """

    log_price: float
    is_unset: bool
    published: Published
    calls: int = 0

    @classmethod
    def read(cls, namespace: Namespace, partition: int) -> LivePrice:
        """Read it from a partition."""
        key = namespace.key
        kept, *packed = namespace.commands([["GET", key(name, partition)] for name in ("d", *TABLES)], partition=partition)
        published = Published.parse(namespace.hash("plan", partition), *packed)
        state = PartitionState.stored(kept) or PartitionState()
        return cls(state.log_price, "log_price" not in published.fields, published, int(state.dispatches) if is_sound(state) else 0)


class Ways:
    """The settings under which a planner plans, and whether somebody else plans under others.

    Parameters
    ----------
    settings : FrontierSettings
        Parsed settings.
    name : str
        Of the namespace.

    Attributes
    ----------
    fields : dict
        As they are published.
    """

    def __init__(self, settings: FrontierSettings, name: str) -> None:
        self.fields = {
            "policy": settings.policy,
            "objective": settings.objective,
            "exploration": settings.exploration,
            "discovery": str(int(settings.discovery_value)),
            "neighbourhoods": str(int(settings.has_clocks)),
            "bounds": bounds_digest(settings),
        }
        self._name = name
        self._has_warned = False

    def changed(self, plan: Mapping[str, str]) -> list[str]:
        """Return the fields in which the last plan has other settings."""
        return [name for name, value in self.fields.items() if plan.get(name, value) != value]

    def warn_of_others(self, plan: Mapping[str, str]) -> None:
        """Say once that the last plan has other settings; asked by a planner that has planned, as its own do not change."""
        changed = self.changed(plan)
        if changed and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the last plan was made under another %s: some crawler of namespace %r, or `optimal-frontier plan`, has other settings "
                "than this one. Deadlines follow whoever planned last, so give all of them the same settings",
                " and another ".join(_NAMED.get(name, name.upper()) for name in changed),
                self._name,
            )


@dataclass(frozen=True)
class Plan:
    """A plan that is about to be published: time (s since the epoch), how long it took, pages to write, what was solved, from what, by
    which settings, the terms of partitions, how many pages are given up."""

    time: float
    seconds: float
    queued: int
    solved: Solved
    crawl: CrawlPages
    previous: dict[str, str]
    ways: dict[str, str]
    terms: dict[int, Terms]
    given_up: int

    @property
    def estimated_freshness(self) -> float:
        """Share of time that copies are current, by importance; pages that were not fetched yet count 0."""
        return self.solved.freshness / self.crawl.importance if self.crawl.importance > 0 else 0.0


def shares_of(crawl: CrawlPages, solved: Solved, partitions: list[int]) -> dict[int, float]:
    """Return the share of the budget of each partition: its demand at the one price, and its first visits'."""
    if not partitions:
        return {}
    pending = sum(crawl.pending.get(k, 0) for k in partitions)
    rates = [solved.by_partition[k].rate for k in partitions]
    planned = sum(rates)
    first = max(crawl.budget.total - crawl.budget.revisits, 0.0) if pending else 0.0
    wanted = np.array(
        [rate + (first * crawl.pending.get(k, 0) / pending if pending else 0.0) for k, rate in zip(partitions, rates, strict=True)]
    )
    equal = 1.0 / len(partitions)
    shares = wanted / (planned + first) if planned + first > 0 else np.full(len(partitions), equal)
    shares = np.maximum(shares, _LEAST_SHARE * equal)
    return dict(zip(partitions, (shares / shares.sum()).tolist(), strict=True))


def plan_fields(plan: Plan, partition: int, share: float) -> dict[str, Any]:
    """Return what is published in a partition, by name.

    ``pages``, ``planned_rate``, ``budget``, ``revisit_budget`` and prices but ``log_price`` are those of the partition; all else is of the
    crawl.
    """
    crawl, solved = plan.crawl, plan.solved
    sums = solved.by_partition[partition]
    low, middle, high = np.percentile(crawl.median, [10, 50, 90]) if len(crawl.median) else (0.0, 0.0, 0.0)
    is_priced = crawl.planned_pages > 0
    round_s = crawl.priors.default_time / LOAD
    turns = plan.time + crawl.progress.rounds_left * round_s if is_priced else math.inf
    fields: dict[str, Any] = {
        "time": f"{plan.time:.6f}",
        "first_time": plan.previous.get("first_time", f"{plan.time:.6f}"),
        "seconds": f"{plan.seconds:.6f}",
        "pages": sums.pages,
        "fetched": crawl.counts.get("fetched", 0),
        "read": crawl.read_rows,
        "queued": plan.queued,
        "share": repr(share),
        "budget": repr(share * crawl.budget.total),
        "revisit_budget": repr(share * crawl.budget.revisits),
        "first_visit_rate": repr(crawl.first_visit_rate.get(partition, math.inf)),
        "planned_rate": repr(sums.rate),
        "unused": repr(solved.unused),
        "multiplier": repr(solved.multiplier),
        "prior_shape": repr(DEFAULT_SHAPE),
        "prior_time": repr(crawl.priors.default_time),
        "estimated_freshness": repr(plan.estimated_freshness),
        "feasible": int(solved.feasible),
        "stretch": repr(solved.stretch),
        "change_rate_p10": repr(float(low)),
        "change_rate_p50": repr(float(middle)),
        "change_rate_p90": repr(float(high)),
        "hosts_at_limit": int(np.count_nonzero(solved.extra > 0)),
        "extra_fetches": crawl.budget.extra,
        "measured_rate": repr(crawl.budget.measured),
        "measured_at": f"{plan.time:.6f}",
        "measured_fetches": crawl.budget.fetches,
        "measured_calls": crawl.budget.calls,
        "measured_partitions": len(crawl.partitions),
        "explores": int(crawl.progress.is_exploring),
        "exploration_held": solved.held,
        "hubs": sum(hubs.count for hubs in crawl.hubs.values()),
        "given_up": plan.given_up,
        "exploration_turns": repr(turns),
    }
    if is_priced:
        fields["log_price"] = repr(solved.log_price)
        fields["left_log_price"] = repr(plan.terms[partition].log_price)
        fields["lasting_log_price"] = repr(plan.terms[partition].published.lasting)
    return fields | plan.ways | crawl.progress.fields()
