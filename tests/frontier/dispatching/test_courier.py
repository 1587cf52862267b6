"""The courier rides out outages, gives back what it holds, and wakes in time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import pytest
from clocked_store import new_page

from optimal_frontier.errors import SchemaMismatchError, StateUnavailableError
from optimal_frontier.frontier import courier as module
from optimal_frontier.frontier.courier import Courier
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange, Outcome, SlotRoom
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.records import Handout, Observation, Published

PATIENCE_S = 10.0


def eventually(condition: Callable[[], object]) -> None:
    """Wait until ``condition`` holds, and no longer than any working courier needs."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.002)


def handout(slot: int, token: bytes = b"1@1") -> Handout:
    return Handout(slot, token, None, -1.0, 1.0, 0.0, 1.0, 1, 0.0, 0.0, 0, 0, 0.0, False, 0, b"", {}, time.monotonic())


class FakeDispatcher:
    """Answers exchanges by a script of functions; afterwards there is nothing to do and nothing to wait for."""

    def __init__(self) -> None:
        self.published = Published()
        self.store = self
        self.connection = self
        self.exchanges: list[tuple[float, Exchange]] = []
        self.answers: list[Callable[[Exchange], Outcome]] = []
        self.left = 0
        self.reconnects = 0

    def exchange(self, work: Exchange) -> Outcome:
        kept = Exchange(list(work.pages), list(work.observations), work.draws, work.live, work.want, work.slots, work.per_host)
        self.exchanges.append((time.monotonic(), kept))
        if self.answers and (work.want or work.pages or work.observations):
            return self.answers.pop(0)(work)
        return Outcome(wait=-1.0 if work.want else None)

    def leave(self) -> None:
        self.left += 1

    def reconnect(self) -> None:
        self.reconnects += 1


@pytest.fixture
def fake():
    return FakeDispatcher()


@pytest.fixture
def courier(fake):
    made = Courier(fake, lambda: None)
    made.start()
    yield made
    assert made.stop(PATIENCE_S)


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch):
    monkeypatch.setattr(module, "_RETRY_FIRST_S", 0.01)
    monkeypatch.setattr(module, "_RETRY_LONGEST_S", 0.05)


def fail(_: Exchange) -> Outcome:
    raise StateUnavailableError("Redis at nowhere is away")


def test_what_is_added_during_a_round_trip_goes_with_the_next(courier, fake):
    """Nothing is sent twice while all goes well."""
    inside, go_on = threading.Event(), threading.Event()

    def slow(_: Exchange) -> Outcome:
        inside.set()
        go_on.wait(PATIENCE_S)
        return Outcome()

    fake.answers = [slow]
    courier.add([new_page("a/1")])
    assert inside.wait(PATIENCE_S)
    pages = [new_page(f"a/{i}") for i in range(2, 5)]
    for page in pages:
        courier.add([page])
    assert not courier.flush(0.01)
    go_on.set()
    assert courier.flush(PATIENCE_S)
    sent = [exchange.pages for _, exchange in fake.exchanges if exchange.pages]
    assert sent == [[new_page("a/1")], pages]


def test_an_outage_loses_nothing(courier, fake, caplog):
    """Pages, observations and draws given before and during it arrive once it is over, in order; each failure is logged as one line."""
    fake.answers = [fail, fail, fail]
    with caplog.at_level(logging.WARNING):
        courier.add([new_page("a/1")])
        courier.observe(Observation(7, b"t", "ok", 0.0))
        eventually(lambda: fake.reconnects)
        courier.add([new_page("a/2")])
        courier.draw(3)
        assert courier.flush(PATIENCE_S)
    last = fake.exchanges[-1][1]
    assert [page.fingerprint for page in last.pages] == [new_page("a/1").fingerprint, new_page("a/2").fingerprint]
    assert [observation.token for observation in last.observations] == [b"t"]
    assert sum(exchange.draws for _, exchange in fake.exchanges[-1:]) == 3
    assert courier.failure is None
    assert len([record for record in caplog.records if "nothing is lost" in record.getMessage()]) == 3
    assert courier.generation == 3


def test_after_an_outage_the_last_two_seconds_are_sent_again(courier, fake):
    """A server that died may have lost up to one second of its log."""
    courier.add([new_page("a/early")])
    courier.observe(Observation(1, b"early", "ok", 0.0))
    assert courier.flush(PATIENCE_S)
    fake.answers = [fail]
    courier.add([new_page("a/late")])
    assert courier.flush(PATIENCE_S)
    last = fake.exchanges[-1][1]
    assert last.pages == [new_page("a/early"), new_page("a/late")]
    assert [observation.token for observation in last.observations] == [b"early"]
    courier.add([new_page("a/after")])
    assert courier.flush(PATIENCE_S)
    assert fake.exchanges[-1][1].pages == [new_page("a/after")]


def test_what_was_acknowledged_long_ago_is_not_sent_again(courier, fake, monkeypatch):
    monkeypatch.setattr(module, "REPLAY_S", -1.0)
    courier.add([new_page("a/1")])
    assert courier.flush(PATIENCE_S)
    fake.answers = [fail]
    courier.add([new_page("a/2")])
    assert courier.flush(PATIENCE_S)
    assert fake.exchanges[-1][1].pages == [new_page("a/2")]


def test_the_first_thing_said_after_an_outage_is_that_the_owner_lives(courier, fake):
    """Not up to five seconds later: other processes wait only 15 s."""
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([handout(3)], 100.0), fail]
    courier.ask(1, {}, 0)
    eventually(lambda: courier.ready)
    courier.add([new_page("a/1")])
    assert courier.flush(PATIENCE_S)
    assert fake.exchanges[-1][1].live == [(3, b"1@1")]


def test_a_refusal_ends_the_thread_and_says_why(fake):
    """Another schema is no outage: trying again would not help."""
    woken = threading.Event()
    courier = Courier(fake, woken.set)

    def refuse(_: Exchange) -> Outcome:
        raise SchemaMismatchError("not ours")

    fake.answers = [refuse]
    courier.start()
    courier.add([new_page("a/1")])
    assert courier.flush(PATIENCE_S)
    assert isinstance(courier.failure, SchemaMismatchError)
    assert woken.wait(PATIENCE_S)
    assert courier.stop(PATIENCE_S)


def test_stopping_sends_what_is_left_and_gives_back_leases(fake):
    courier = Courier(fake, lambda: None)
    courier.start()
    fake.answers = [lambda _: Outcome([handout(3), handout(4)], 0.0)]
    courier.ask(2, {}, 0)
    eventually(lambda: len(courier.ready) == 2)
    assert courier.live == 2
    courier.observe(Observation(3, b"1@1", "ok", 0.0))
    assert courier.live == 1
    courier.add([new_page("a/1")])
    assert courier.stop(PATIENCE_S)
    assert fake.left == 1
    assert [page for _, exchange in fake.exchanges for page in exchange.pages] == [new_page("a/1")]
    assert [o.token for _, exchange in fake.exchanges for o in exchange.observations] == [b"1@1"]


def test_stopping_during_an_outage_ends_in_time(fake):
    fake.answers = [fail] * 1000
    courier = Courier(fake, lambda: None)
    courier.start()
    courier.add([new_page("a/1")])
    eventually(lambda: fake.reconnects > 1)
    assert courier.stop(PATIENCE_S)
    assert fake.left == 0


def test_stopping_before_starting_does_nothing(fake):
    assert Courier(fake, lambda: None).stop()


def test_it_asks_again_when_a_deadline_comes(courier, fake):
    """And not before: an idle crawler makes no round trips."""
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([], 0.3), lambda _: Outcome([handout(5)], -1.0)]
    courier.ask(4, {}, 0)
    eventually(lambda: courier.ready)
    asked = [at for at, exchange in fake.exchanges if exchange.want]
    assert len(asked) == 2
    assert 0.29 <= asked[1] - asked[0] < 1.5
    assert fake.exchanges[-1][1].want == 4


def test_asking_again_for_the_same_does_not_hurry_a_deadline(courier, fake):
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([], 60.0)]
    courier.ask(4, {}, 0)
    eventually(lambda: courier.idle_exchanges)
    for _ in range(20):
        courier.ask(4, {}, 0)
        courier.ask(0, {}, 0)
        courier.ask(5, {}, 0)
    time.sleep(0.05)
    assert sum(exchange.want > 0 for _, exchange in fake.exchanges) == 1


@pytest.mark.parametrize(
    ("per_host", "before", "after"),
    [(0, {"s": SlotRoom(["a"], 0)}, {}), (0, {"s": SlotRoom(["a"], 0)}, {"s": SlotRoom(["a"], 1)}), (1, {}, {"s": SlotRoom(["a"], 1)})],
    ids=["slot-gone", "room-grew", "limit-met-in-the-reply"],
)
def test_a_slot_that_opens_is_used_at_once(courier, fake, per_host, before, after):
    """What hides behind a full slot is not in the wait, so its opening ends the wait."""
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([handout(1)], 60.0), lambda _: Outcome([handout(2)], 60.0)]
    courier.ask(4, before, per_host)
    eventually(lambda: len(courier.ready) == 1)
    courier.ask(3, after, per_host)
    eventually(lambda: len(courier.ready) == 2)


def test_room_in_the_downloader_is_used_at_once(courier, fake):
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([handout(1)], 60.0), lambda _: Outcome([handout(2)], 60.0)]
    courier.ask(1, {}, 0)
    eventually(lambda: len(courier.ready) == 1)
    courier.ask(1, {}, 0)
    eventually(lambda: len(courier.ready) == 2)


def test_an_observation_sent_while_nothing_was_wanted_ends_the_wait(courier, fake):
    """Its page may be due sooner than the last wait said."""
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([], 60.0), lambda _: Outcome(), lambda _: Outcome([handout(1)], 60.0)]
    courier.ask(4, {}, 0)
    eventually(lambda: courier.idle_exchanges)
    courier.ask(0, {}, 0)
    courier.observe(Observation(1, b"1@0", "ok", 0.0))
    assert courier.flush(PATIENCE_S)
    courier.ask(4, {}, 0)
    eventually(lambda: courier.ready)


def test_the_end_of_an_old_lease_leaves_the_new_one_alive(courier, fake):
    """A page that was handed out anew goes on being renewed when the old answer comes at last."""
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([handout(3, b"2@2")], 60.0)]
    courier.ask(1, {}, 0)
    eventually(lambda: courier.ready)
    courier.observe(Observation(3, b"1@1", "ok", 0.0))
    assert courier.live == 1
    courier.observe(Observation(3, b"2@2", "ok", 0.0))
    assert courier.live == 0


def test_many_threads_lose_nothing(courier, fake):
    """Every page arrives exactly once, outages included."""

    def add(thread: int) -> None:
        for i in range(50):
            courier.add([new_page(f"{thread}/{i}")])
            if i % 20 == 0:
                fake.answers.append(fail)

    threads = [threading.Thread(target=add, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert courier.flush(PATIENCE_S)
    arrived = {page.fingerprint for _, exchange in fake.exchanges for page in exchange.pages}
    assert len(arrived) == 400


def test_replayed_work_is_counted_once(store):
    """On a real store: what is sent again after an outage changes nothing."""
    settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_CRAWL_RATE": 1000})
    failing = threading.Event()

    class Flaky(type(store)):  # type: ignore[misc]
        def run(self, calls):
            results = super().run(calls)
            if failing.is_set():
                failing.clear()
                raise StateUnavailableError("the reply was lost")
            return results

    store.__class__ = Flaky
    courier = Courier(Dispatcher(store, settings), lambda: None)
    courier.start()
    courier.add([new_page("a/1"), new_page("b/1")])
    assert courier.flush(PATIENCE_S)
    courier.ask(1, {}, 0)
    eventually(lambda: courier.ready)
    failing.set()
    taken = courier.ready.popleft()
    courier.observe(Observation(taken.slot, taken.token, "ok", time.monotonic(), bit=1, shape=1.0, time=1.0))
    courier.add([new_page("c/1")])
    assert courier.flush(PATIENCE_S)
    assert courier.stop(PATIENCE_S)
    counts = store.counts()
    assert (counts["pages"], counts["observations"], counts["changes"], counts["fetched"]) == (3, 1, 1, 1)
    assert store.command("HLEN", store.key("leases")) == 0
    assert store.seen(taken.slot)["visits"] == 1
