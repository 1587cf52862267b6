"""A server that lost something, or whose clock jumps, is noticed; the time of a crawl goes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from clocked_namespace import ClockedNamespace

from optimal_frontier.frontier.dispatching import server_watch
from optimal_frontier.frontier.dispatching.server_watch import ServerWatch
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import Belief, Dispatched

RUN = 7.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The crawler's own clock, which only the test moves."""
    hands = SimpleNamespace(at=100.0)
    monkeypatch.setattr(server_watch, "local_clock", lambda: hands.at)
    return hands


@pytest.fixture
def watch(store: ClockedNamespace, clock: SimpleNamespace) -> ServerWatch:
    store.run_id = RUN
    return ServerWatch(store)


def reply(now: float, *, own: float | None = None, run: float = RUN, dispatches: int = 0) -> Dispatched:
    """A reply of a server whose own clock says ``own``."""
    return Dispatched(now, 0.0, 0.0, 0, 0, now if own is None else own, run, dispatches, [], {}, [])


def test_nothing_is_believed_before_the_first_reply(watch: ServerWatch) -> None:
    assert watch.belief(0) == Belief(0.0, 0.0, -RUN)
    assert watch.bounded(0, 5e6) == 5e6


def test_time_goes_on_by_the_own_clock(watch: ServerWatch, clock: SimpleNamespace) -> None:
    watch.note(0, reply(1000.0), 99.5)
    clock.at += 10.0
    expected, within, _ = watch.belief(0)
    assert (expected, within) == (pytest.approx(1010e6), pytest.approx(3.5e6)), "what the call took may have been either way"
    assert watch.bounded(0, 1012e6) == 1012e6
    assert watch.bounded(0, 4610e6) == watch.bounded(0, 10e6) == pytest.approx(1010e6)
    assert watch.latest(0) == pytest.approx(1010.5)


def test_a_clock_that_stays_off_loses_nothing_by_slow_replies(watch: ServerWatch, clock: SimpleNamespace, caplog: Any) -> None:
    """The time is kept from when the clock was right; one line says so."""
    watch.note(0, reply(1000.0), 100.0)
    for _ in range(20):
        sent = clock.at
        clock.at += 0.5
        watch.note(0, reply(watch.belief(0).expected / 1e6 - 0.4, own=4600.0), sent)
    assert watch.belief(0).expected == pytest.approx(1010e6)
    assert [record.message for record in caplog.records] == [caplog.records[0].message]
    assert "ahead of the time of the crawl, which goes on as before" in caplog.records[0].message


def test_a_slow_reply_puts_no_time_back(watch: ServerWatch, clock: SimpleNamespace) -> None:
    """It was made up to half a second ago, the quick one was not. A clock that is put back is noticed by a quick one again."""
    watch.note(0, reply(1000.0), 100.0)
    clock.at += 0.5
    watch.note(0, reply(1000.1, dispatches=1), 100.0)
    assert watch.belief(0).expected == pytest.approx(1000.5e6)
    watch.note(0, reply(999.5, dispatches=2), 100.5)
    assert watch.belief(0).expected == pytest.approx(999.5e6)
    clock.at += 0.5
    watch.note(0, reply(1000.4, dispatches=3), 100.5)
    assert watch.belief(0).expected == pytest.approx(1000.4e6), "later than by the one before, so that one was late, too"


def test_what_a_call_took_is_no_jump(watch: ServerWatch, clock: SimpleNamespace, caplog: Any) -> None:
    """A call that was held up for 20 s on its way names a time that is 20 s old."""
    watch.note(0, reply(1000.0), 100.0)
    clock.at += 20.0
    watch.note(0, reply(1000.0, own=1020.0, dispatches=1), 100.0)
    assert watch.belief(0).expected == pytest.approx(1020e6)
    assert not caplog.records


@pytest.mark.parametrize(
    ("second", "is_behind", "is_doubted"),
    [
        (reply(1001.0, dispatches=9), False, False),
        (reply(1001.0, dispatches=4), True, False),
        (reply(1001.0, run=0.0), True, False),
        (reply(1001.0, run=8.0, dispatches=9), False, True),
    ],
    ids=["the same", "restored", "wiped", "another"],
)
def test_a_server_that_is_not_the_one_it_was(watch: ServerWatch, second: Dispatched, is_behind: bool, is_doubted: bool) -> None:
    watch.note(0, reply(1000.0, dispatches=5), 100.0)
    assert not watch.is_behind
    watch.note(0, second, 100.0)
    assert (watch.is_behind, watch.is_doubted) == (is_behind, is_doubted)
    watch.forget()
    assert not watch.is_behind
    assert not watch.is_doubted


def test_a_wiped_namespace_is_made_anew(redis_socket: str, namespace: str, store: ClockedNamespace) -> None:
    """Also where crawlers have put something there since: it is no other program's. A reader finds nothing, and is not refused."""
    before = Namespace(store.connection, namespace)
    before.open(spider="test", partitions=1)
    store.command("DEL", store.key("meta"))
    assert not before.is_there()
    store.command("HSET", store.key("meta"), "identity", "x")
    Namespace(store.connection, namespace).open(create=False)
    again = Namespace(store.connection, namespace)
    again.open(spider="test", partitions=1)
    assert again.is_there()
    assert again.run_id not in (0.0, before.run_id)
