"""Leases that are held no more: what was not sent yet is not sent."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from leased import handed_out
from scrapy import Request

from optimal_frontier.integrations.frontera.requests import HANDOUT, request_of
from optimal_frontier.integrations.scrapy.lease import LEASE, Lease
from optimal_frontier.integrations.scrapy.scheduler import OptimalScheduler


class Manager:
    """Notes what Frontera's manager is told."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, str, bool]] = []

    def request_error(self, request: Any, error: str) -> None:
        self.errors.append((request.url, error, HANDOUT in request.meta))


@pytest.fixture
def scheduler() -> OptimalScheduler:
    """One that is open, of which only the parts are there that end leases."""
    stats = SimpleNamespace(inc_value=lambda *_: None)
    scheduler = OptimalScheduler(SimpleNamespace(stats=stats, settings=SimpleNamespace(getint=lambda _: 20)))
    scheduler._session = SimpleNamespace(courier=SimpleNamespace(lost=deque(), ready=deque()))
    scheduler._manager, scheduler.backend = Manager(), SimpleNamespace(moves=0)
    return scheduler


def lease_of(scheduler: OptimalScheduler, url: str) -> Lease:
    handout = handed_out(url)
    frontier_request, request = request_of(handout.record), Request(url)
    frontier_request.meta[HANDOUT] = handout
    lease = Lease(handout, frontier_request, request)
    request.meta[LEASE] = lease
    scheduler._leases.add(lease)
    return lease


def test_what_was_not_taken_yet_is_dropped(scheduler: OptimalScheduler) -> None:
    """Another handout of the same page stays, as do the others."""
    courier = scheduler._session.courier
    lost, other, again = handed_out("http://a/"), handed_out("http://b/"), handed_out("http://a/")
    courier.ready.extend([lost, other, again])
    courier.lost.append(lost)
    scheduler._drop_lost()
    assert [id(handout) for handout in courier.ready] == [id(other), id(again)]
    assert not courier.lost


def test_a_copy_that_waits_is_dropped_and_ends_no_lease(scheduler: OptimalScheduler) -> None:
    """Frontera's manager is told, without what would end the lease of somebody else."""
    waiting, sent = lease_of(scheduler, "http://a/"), lease_of(scheduler, "http://b/")
    sent.reached = sent.handed = True
    scheduler._pending.append(waiting.request)
    scheduler._session.courier.lost.extend([waiting.handout, sent.handout])
    scheduler._drop_lost()
    assert not scheduler._pending
    assert scheduler._manager.errors == [("http://a/", "released", False)]
    assert scheduler._leases == {sent}
    assert sent.is_lost
