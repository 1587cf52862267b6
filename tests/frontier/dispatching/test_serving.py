"""SERVE_PARTITIONS: requests come from some partitions only, pages go to all, and those that nobody serves are told."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from clocked_namespace import ClockedNamespace, open_namespace, page_of, settings_of

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.frontier.dispatching import exchange as module
from optimal_frontier.frontier.dispatching.exchange import Dispatcher, Exchange, Lease
from optimal_frontier.frontier.dispatching.forgetting import forget
from optimal_frontier.frontier.dispatching.server_watch import ServerWatch
from optimal_frontier.frontier.planning.host_groups import UNLIMITED, host_groups
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.downloader_limits import SILENT_S, DownloaderLimits, tell_limits, unserved
from optimal_frontier.state.namespace import Call

PARTITIONS = 4


@pytest.fixture
def many(redis_socket: str, namespace: str) -> Iterator[ClockedNamespace]:
    """A namespace of four partitions."""
    opened = open_namespace(redis_socket, namespace, PARTITIONS)
    yield opened
    opened.connection.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The local monotonic time of dispatchers, to be set."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def serving(*served: int | str) -> FrontierSettings:
    return settings_of(PARTITIONS=PARTITIONS, SERVE_PARTITIONS=list(served))


def names_of(store: ClockedNamespace, each: int = 2) -> list[str]:
    """Pages of one host in each partition, in their order."""
    found: dict[int, str] = {}
    for n in range(1000):
        found.setdefault(store.partition_of(f"h{n}"), f"h{n}")
    return [f"{found[k]}/{n}" for k in range(PARTITIONS) for n in range(each)]


def take_all(dispatcher: Dispatcher, clock: list[float]) -> list[int]:
    """Ask for ten times as much as there is; return of which partitions requests came."""
    taken = []
    for _ in range(10):
        taken += [handout.partition for handout in dispatcher.exchange(Exchange(want=8)).handouts]
        clock[0] += 0.3
    return sorted(taken)


def test_requests_come_from_served_partitions_and_pages_go_to_all(many: ClockedNamespace, clock: list[float]) -> None:
    """Two crawlers that serve different ones do the whole crawl, whoever found the pages."""
    one, other = Dispatcher(many, serving(0, 2)), Dispatcher(many, serving("3", 1))
    assert one.exchange(Exchange(pages=[page_of(name) for name in names_of(many)])).new == 8
    assert one.pending() == other.pending() == 4
    assert take_all(one, clock) == [0, 0, 2, 2]
    assert take_all(other, clock) == [1, 1, 3, 3]


def test_a_served_partition_is_waited_for_and_no_other(many: ClockedNamespace, clock: list[float]) -> None:
    dispatcher = Dispatcher(many, serving(1))
    dispatcher.exchange(Exchange(pages=[page_of(name) for name in names_of(many, 1)]))
    (handout,) = dispatcher.exchange(Exchange(want=8)).handouts
    assert handout.partition == 1
    dispatcher.exchange(Exchange(ended=[(many.seen(handout, wait=0.5), Lease.of(handout))]))
    assert dispatcher.exchange(Exchange(want=8)).wait == pytest.approx(0.5, abs=0.05)


def test_others_are_watched(many: ClockedNamespace, clock: list[float]) -> None:
    """What was known of their pages is forgotten when they are, or when their server was wiped."""
    watch = ServerWatch(many)
    dispatcher = Dispatcher(many, serving(0), watch)
    dispatcher.exchange(Exchange(pages=[page_of(name) for name in names_of(many)]))
    fences = many.run([Call(k, "take_planner_lock", ["planner", 10_000_000]) for k in range(PARTITIONS)])
    assert many.run([Call(2, "publish_plan", [fences[2], "0.01", "", b"", b"", b"", "log_price", "-2.5"])]) != [-1]
    clock[0] += 6.0
    dispatcher.exchange(Exchange(want=1))
    assert dispatcher.published(2).log_price == -2.5
    clock[0] += 6.0
    assert not dispatcher.exchange(Exchange(want=1)).has_forgotten
    page = page_of(names_of(many)[4])
    assert many.partition_of(page.host) == 2
    assert forget(many, [page.page]) == 1
    clock[0] += 6.0
    assert dispatcher.exchange(Exchange(want=1)).has_forgotten
    assert not watch.is_behind
    many.command("DEL", *many.command("KEYS", many.key("*", 2).replace("{", r"\{")), partition=2)
    clock[0] += 6.0
    assert dispatcher.exchange(Exchange(want=1)).is_other_server
    assert watch.behind == {2}


def test_a_namespace_without_these_partitions_is_refused(many: ClockedNamespace) -> None:
    """Also when another crawler has made it anew, with fewer."""
    dispatcher = Dispatcher(many, serving(3))
    many.partitions = 2
    with pytest.raises(ConfigurationError, match=r"SERVE_PARTITIONS names partition 3: expected 0 to 1, as there are 2"):
        dispatcher.forget()


def test_partitions_that_nobody_serves_are_told(many: ClockedNamespace) -> None:
    """Of the crawlers that live; nothing is said while none does, or one serves all."""
    assert unserved(many) == []
    one, other, third = Dispatcher(many, serving(0)), Dispatcher(many, serving("2-3")), Dispatcher(many, settings_of(PARTITIONS=4))
    one.exchange(Exchange(limits=DownloaderLimits(2.0)))
    assert unserved(many) == [1, 2, 3]
    other.exchange(Exchange(limits=DownloaderLimits(2.0)))
    assert unserved(many) == [1]
    third.exchange(Exchange(limits=DownloaderLimits(2.0)))
    assert unserved(many) == []
    many.advance(SILENT_S / 2)
    one.exchange(Exchange(limits=DownloaderLimits(2.0)))
    many.advance(SILENT_S / 2 + 1)
    assert unserved(many) == [1, 2, 3]
    many.advance(SILENT_S)
    assert unserved(many) == []


def test_a_crawler_adds_to_what_hosts_bear_that_it_serves() -> None:
    """Hosts 0 to 2 are of partitions 0, 1 and 5, which nobody serves."""
    told = [DownloaderLimits(1.0, served=(0,)), DownloaderLimits(2.0)]
    partitions = np.array([0, 1, 5])
    assert host_groups(settings_of(), told, {}, 3, partitions).capacity == pytest.approx([3.0, 2.0, 2.0])
    alone = host_groups(settings_of(), told[:1], {}, 3, partitions).capacity
    assert alone == pytest.approx([1.0, UNLIMITED, UNLIMITED])


def test_what_is_served_is_kept_with_the_limits(many: ClockedNamespace) -> None:
    told = DownloaderLimits(2.0, served=(0, 7))
    assert DownloaderLimits.unpack(told.pack(5.0)) == (5.0, told)
    tell_limits(many, b"one", told)
    assert unserved(many) == [1, 2, 3]
