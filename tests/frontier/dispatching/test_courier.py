"""The courier rides out outages, gives back what it holds, and wakes in time."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from copy import deepcopy

import pytest
from clocked_namespace import ClockedNamespace, fingerprint, page_of, settings_of

from optimal_frontier.errors import SchemaMismatchError, StateForbiddenError, StateUnavailableError
from optimal_frontier.frontier.admitting.pages import move_of
from optimal_frontier.frontier.dispatching import acknowledged, outages
from optimal_frontier.frontier.dispatching import courier as module
from optimal_frontier.frontier.dispatching.courier import Courier
from optimal_frontier.frontier.dispatching.exchange import Dispatcher, Exchange, Lease, Outcome, SlotRoom, Start
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.state.messages import KEEP, Announcement, Handout, Observation
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import Row

PATIENCE_S = 10.0


def eventually(condition: Callable[[], object]) -> None:
    """Wait until ``condition`` holds, and no longer than any working courier needs."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.002)


def handout(n: int, token: float = 1.0) -> Handout:
    return Handout(0, bytes(11) + bytes((n,)), token, 0.0, time.monotonic(), None, 0.0, Row(), 0.0, {"url": f"http://a/{n}"}, "a")


def ended(n: int, token: float = 1.0) -> Observation:
    return Observation(handout(n, token), KEEP, Row())


def tokens(exchange: Exchange) -> list[float]:
    return [lease.present for _, lease in exchange.ended]


class FakeDispatcher:
    """Answers exchanges by a script of functions; afterwards there is nothing to do and nothing to wait for."""

    lease_s, pause_s, is_cluster, display = 15.0, 0.0, False, "redis://host"

    def __init__(self) -> None:
        self.namespace = self
        self.connection = self.spec = self
        self.exchanges: list[tuple[float, Exchange]] = []
        self.answers: list[Callable[[Exchange], Outcome]] = []
        self.left: list[list[Lease]] = []
        self.reconnects = 0
        self.first_visits = self.arrived = 0
        self.settings = settings_of()
        self.recent = Recent()

    @property
    def last(self) -> Exchange:
        """The last exchange that carried work: after an outage an empty one follows soon, which tells that leases are alive."""
        return next(work for _, work in reversed(self.exchanges) if work.is_any)

    def published(self, partition: int) -> Published:
        return Published()

    def exchange(self, work: Exchange) -> Outcome:
        self.exchanges.append((time.monotonic(), deepcopy(work)))
        if self.answers and (work.want or work.pages or work.ended or work.moves or work.turns):
            return self.answers.pop(0)(work)
        return Outcome(wait=math.inf if work.want else None)

    def leave(self, leases: list[Lease], unused: list[Start]) -> None:
        self.left.append(leases)

    def reconnect(self) -> None:
        self.reconnects += 1

    def pending(self) -> int:
        return self.first_visits

    def arrivals(self) -> int:
        return self.arrived


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
    courier.add([page_of("a/1")])
    assert inside.wait(PATIENCE_S)
    pages = [page_of(f"a/{i}") for i in range(2, 5)]
    for page in pages:
        courier.add([page])
    assert not courier.flush(0.01)
    go_on.set()
    assert courier.flush(PATIENCE_S)
    sent = [exchange.pages for _, exchange in fake.exchanges if exchange.pages]
    assert sent == [[page_of("a/1")], pages]


def test_what_a_cluster_heals_in_a_moment_is_one_line(courier, fake, caplog):
    """The first failure is told; others are from the time on when tries are as far apart as they become."""
    fake.is_cluster = True
    fake.answers = [fail, fail, fail]
    with caplog.at_level(logging.WARNING):
        courier.add([page_of("a/1")])
        assert courier.flush(PATIENCE_S)
    assert len(caplog.records) == 1


def test_an_outage_that_lasts_is_told_now_and_then(courier, fake, caplog, monkeypatch):
    """Each failure for a while, later ones as seldom as that, unless what is wrong is something else."""

    def fail_otherwise(_: Exchange) -> Outcome:
        raise StateUnavailableError("Redis at nowhere is out of memory")

    monkeypatch.setattr(outages, "_TOLD_S", 0.3)
    fake.answers = [fail] * 39 + [fail_otherwise]
    with caplog.at_level(logging.WARNING):
        courier.add([page_of("a/1")])
        assert courier.flush(PATIENCE_S)
    told = [record.getMessage() for record in caplog.records if "nothing is lost" in record.getMessage()]
    assert 2 < len(told) < 28
    assert "out of memory" in told[-1]


def test_an_outage_loses_nothing(courier, fake, caplog):
    """Pages, observations and draws given before and during it arrive once it is over, in order; each failure and the end are a line."""
    fake.answers = [fail, fail, fail]
    with caplog.at_level(logging.INFO):
        courier.add([page_of("a/1")])
        courier.observe(ended(7, 5.0))
        eventually(lambda: fake.reconnects)
        courier.add([page_of("a/2")])
        courier.draw(3)
        assert courier.flush(PATIENCE_S)
    last = fake.last
    assert [page.page for page in last.pages] == [page_of("a/1").page, page_of("a/2").page]
    assert tokens(last) == [5.0]
    assert last.draws.total() == 3
    assert courier.failure is None
    assert len([record for record in caplog.records if "nothing is lost" in record.getMessage()]) == 3
    assert len([record for record in caplog.records if "redis://host answers again, after 0." in record.getMessage()]) == 1
    assert courier.generation == 3


def test_after_an_outage_the_last_two_seconds_are_sent_again(courier, fake, monkeypatch):
    """A server that died may have lost up to one second of its log."""
    monkeypatch.setattr(acknowledged, "REPLAY_S", 10 * PATIENCE_S)  # all of this test, on any machine
    courier.add([page_of("a/early")])
    courier.observe(ended(1, 5.0))
    assert courier.flush(PATIENCE_S)
    fake.answers = [fail]
    courier.add([page_of("a/late")])
    assert courier.flush(PATIENCE_S)
    last = fake.last
    assert last.pages == [page_of("a/early"), page_of("a/late")]
    assert tokens(last) == [5.0]
    courier.add([page_of("a/after")])
    assert courier.flush(PATIENCE_S)
    assert fake.last.pages == [page_of("a/after")]


def test_what_was_acknowledged_long_ago_is_not_sent_again(courier, fake, monkeypatch):
    monkeypatch.setattr(acknowledged, "REPLAY_S", -1.0)
    courier.add([page_of("a/1")])
    assert courier.flush(PATIENCE_S)
    fake.answers = [fail]
    courier.add([page_of("a/2")])
    assert courier.flush(PATIENCE_S)
    assert fake.last.pages == [page_of("a/2")]


def test_the_first_thing_said_after_an_outage_is_that_leases_are_alive(courier, fake):
    """Not up to five seconds later: leases last 15 s. Their tokens are those of the renewal that nobody has heard of."""
    courier._heartbeat_s = 1000.0
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([handout(3)], 100.0), fail]
    courier.ask(1, {}, 0)
    eventually(lambda: courier.ready)
    courier.add([page_of("a/1")])
    assert courier.flush(PATIENCE_S)
    told = [exchange for _, exchange in fake.exchanges if exchange.pages][-1]
    assert [lease.handout.page for lease in told.renewals] == [handout(3).page]
    # A renewal that was tried before the outage is worth no more than it was then: another one follows at once.
    after = max(at for at, (_, exchange) in enumerate(fake.exchanges) if exchange is told)
    eventually(lambda: [exchange for _, exchange in fake.exchanges[after + 1 :] if exchange.renewals])


def test_leases_are_renewed_while_they_live_and_lost_ones_are_told(fake, monkeypatch):
    """Every five seconds, or a third of a shorter lease."""
    monkeypatch.setattr(fake, "lease_s", 0.03)
    courier = Courier(fake, lambda: None)
    courier.start()
    fake.answers = [lambda _: Outcome([handout(3), handout(4)], 100.0)]
    courier.ask(2, {}, 0)
    eventually(lambda: len(courier.ready) == 2)
    eventually(lambda: sum(len(exchange.renewals) == 2 for _, exchange in fake.exchanges) > 2)
    lost = courier._leases.of(handout(4))
    plain, fake.exchange = fake.exchange, lambda work: Outcome(lost=[lost]) if work.renewals else plain(work)
    eventually(lambda: courier.lost)
    fake.exchange = plain
    assert courier.lost.popleft().page == handout(4).page
    assert courier.live == 1
    assert courier.stop(PATIENCE_S)


def test_a_move_keeps_its_lease_until_it_is_made(courier, fake, monkeypatch):
    """One that has to wait is tried again."""
    monkeypatch.setattr(module, "_LATER_S", 0.01)
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([handout(3)], 100.0), lambda work: Outcome(later=list(work.moves)), lambda _: Outcome()]
    courier.ask(1, {}, 0)
    eventually(lambda: courier.ready)
    courier.ask(0, {}, 0)
    courier.move(move_of(settings_of(), ended(3), fingerprint("b/3"), "http://b/3"))
    eventually(lambda: not fake.answers)
    eventually(lambda: courier.live == 0)
    moves = [exchange.moves for _, exchange in fake.exchanges if exchange.moves]
    assert [len(some) for some in moves] == [1, 1]
    assert moves[1][0].tries == 1


def test_what_is_announced_of_a_page_under_way_is_said_again(courier, fake, monkeypatch):
    monkeypatch.setattr(module, "_LATER_S", 0.01)
    said = page_of("a/1", lastmod=(1.0, 60.0), announcement=Announcement("a feed", 5.0))
    fake.answers = [lambda _: Outcome(told_again=[said]), lambda _: Outcome()]
    courier.add([said])
    eventually(lambda: not fake.answers)
    assert [exchange.pages for _, exchange in fake.exchanges if exchange.pages] == [[said], [said]]


def test_it_is_said_of_which_silent_hosts_something_is_under_way(courier, fake):
    """Whatever their slots say: plain Frontera has none."""
    fake.answers = [lambda _: Outcome(handouts=[handout(1)], wait=0.0)]
    courier.ask(2, {}, 0)
    eventually(lambda: courier.live == 1)
    courier.add([page_of("a/2")])
    eventually(lambda: fake.exchanges[-1][1].pages)
    assert not fake.last.under_way
    for _ in range(3):
        fake.recent.silent_hosts.after("a", "TimeoutError", 0.0, 0.0)
    courier.add([page_of("a/3")])
    eventually(lambda: fake.last.under_way == {"a"})
    courier.observe(ended(1))
    eventually(lambda: fake.last.ended)
    assert not fake.last.under_way


def test_flags_go_with_their_observation(courier, fake):
    observation = ended(1)
    observation.flag = b"h 00"
    courier.observe(observation)
    assert courier.flush(PATIENCE_S)
    assert [exchange.flags for _, exchange in fake.exchanges if exchange.flags] == [[b"h 00"]]


def test_forgotten_pages_and_outages_make_a_new_generation(courier, fake):
    """What was known to be stored may not be any more."""
    fake.answers = [lambda _: Outcome(has_forgotten=True)]
    courier.add([page_of("a/1")])
    eventually(lambda: courier.generation == 1)


def test_a_refusal_ends_the_thread_and_says_why(fake):
    """Another schema is no outage: trying again would not help."""
    woken = threading.Event()
    courier = Courier(fake, woken.set)

    def refuse(_: Exchange) -> Outcome:
        raise SchemaMismatchError("not ours")

    fake.answers = [refuse]
    courier.start()
    courier.add([page_of("a/1")])
    assert courier.flush(PATIENCE_S)
    assert isinstance(courier.failure, SchemaMismatchError)
    assert woken.wait(PATIENCE_S)
    assert courier.stop(PATIENCE_S)


@pytest.mark.parametrize("had_rights", [True, False])
def test_a_right_that_is_taken_away_is_waited_for(courier, fake, had_rights):
    """Of a crawl that counted visits. One that never had it is refused."""
    if had_rights:
        courier.observe(ended(7, 5.0))
        assert courier.flush(PATIENCE_S)

    def refuse(_: Exchange) -> Outcome:
        raise StateForbiddenError("the user lacks a permission")

    fake.answers = [refuse, refuse]
    courier.observe(ended(8, 6.0))
    assert courier.flush(PATIENCE_S)
    assert (courier.failure is None) == had_rights
    assert tokens(fake.last)[-1] == 6.0


def test_an_error_outside_of_a_round_trip_ends_the_thread_and_says_why(courier, fake, caplog):
    """Whoever waits for it would wait for ever."""

    def broken() -> None:
        raise ValueError("nothing can be made of it")

    courier.add([page_of("a/1")], broken)
    eventually(lambda: courier.failure is not None)
    assert "nothing can be made of it" in str(courier.failure)
    assert [record.levelname for record in caplog.records] == ["CRITICAL"]
    assert courier.stop()


def test_stopping_sends_what_is_left_and_gives_back_leases(fake):
    courier = Courier(fake, lambda: None)
    courier.start()
    fake.answers = [lambda _: Outcome([handout(3), handout(4)], 0.0)]
    courier.ask(2, {}, 0)
    eventually(lambda: len(courier.ready) == 2)
    assert courier.live == 2
    courier.observe(ended(3))
    assert courier.live == 1
    courier.add([page_of("a/1")])
    assert courier.stop(PATIENCE_S)
    assert [[lease.handout.page for lease in leases] for leases in fake.left] == [[handout(4).page]]
    assert [page for _, exchange in fake.exchanges for page in exchange.pages] == [page_of("a/1")]
    assert [observation.handout.page for _, exchange in fake.exchanges for observation, _ in exchange.ended] == [handout(3).page]


def test_a_move_that_is_put_off_while_it_stops_is_made_at_the_last(fake):
    courier = Courier(fake, lambda: None)
    courier.start()

    def stopped_meanwhile(work: Exchange) -> Outcome:
        threading.Thread(target=courier.stop, args=(PATIENCE_S,)).start()
        time.sleep(0.05)
        return Outcome(later=list(work.moves))

    fake.answers = [lambda _: Outcome([handout(3)], 100.0), stopped_meanwhile]
    courier.ask(1, {}, 0)
    eventually(lambda: courier.ready)
    courier.ask(0, {}, 0)
    courier.move(move_of(settings_of(), ended(3), fingerprint("b/3"), "http://b/3"))
    eventually(lambda: fake.left)
    assert [exchange.is_last for _, exchange in fake.exchanges if exchange.moves] == [False, True]
    assert fake.left == [[]]


def test_stopping_during_an_outage_ends_in_time(fake):
    fake.answers = [fail] * 1000
    courier = Courier(fake, lambda: None)
    courier.start()
    courier.add([page_of("a/1")])
    eventually(lambda: fake.reconnects > 1)
    assert courier.stop(PATIENCE_S)
    assert fake.left == []


def test_stopping_before_starting_does_nothing(fake):
    assert Courier(fake, lambda: None).stop()


def test_it_asks_again_when_a_deadline_comes(courier, fake):
    """And not before: an idle crawler makes no round trips."""
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([], 0.3), lambda _: Outcome([handout(5)], math.inf)]
    courier.ask(4, {}, 0)
    eventually(lambda: courier.ready)
    (first, _), (second, again) = [(at, exchange) for at, exchange in fake.exchanges if exchange.want]
    assert 0.29 <= second - first < 1.5
    assert again.want == 4


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
    fake.answers = [lambda _: Outcome([handout(1)], 60.0, True), lambda _: Outcome([handout(2)], 60.0)]
    courier.ask(4, before, per_host)
    eventually(lambda: len(courier.ready) == 1)
    courier.ask(3, after, per_host)
    eventually(lambda: len(courier.ready) == 2)


def test_a_slot_that_opens_during_a_round_trip_is_used_at_once(courier, fake, monkeypatch):
    """The reply that is on its way says nothing of it: its wait is not waited for."""
    monkeypatch.setattr(module, "_LONGEST_WAIT_S", 60.0)
    eventually(lambda: fake.exchanges)
    inside, go_on = threading.Event(), threading.Event()

    def slow(_: Exchange) -> Outcome:
        inside.set()
        go_on.wait(PATIENCE_S)
        return Outcome([], 60.0, True)

    fake.answers = [slow, lambda _: Outcome([handout(1)], 60.0)]
    courier.ask(4, {"s": SlotRoom(["a"], 0)}, 0)
    assert inside.wait(PATIENCE_S)
    courier.ask(4, {}, 0)
    go_on.set()
    began = time.monotonic()
    eventually(lambda: courier.ready)
    assert time.monotonic() - began < module.HEARTBEAT_S / 2  # which asks, too


def test_room_in_the_downloader_is_used_at_once(courier, fake):
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([handout(1)], 60.0, True), lambda _: Outcome([handout(2)], 60.0)]
    courier.ask(1, {}, 0)
    eventually(lambda: len(courier.ready) == 1)
    courier.ask(1, {}, 0)
    eventually(lambda: len(courier.ready) == 2)


def test_while_all_that_is_asked_for_is_given_it_asks_in_advance_and_less_often(fake):
    courier = Courier(fake, lambda: None)
    numbers = iter(range(1_000_000))

    def give(work: Exchange) -> Outcome:
        return Outcome([handout(next(numbers) % 200) for _ in range(work.want)], wait=0.0, waits_for_room=True)

    fake.answers = [give] * 30
    courier.start()
    assert courier.ahead == 0

    def take() -> bool:
        courier.ready.clear()
        courier.ask(64, {}, 0)
        return courier.ahead > 0

    eventually(take)
    # Then there is nothing left that is due: deadlines are met again, not a downloader kept busy.
    eventually(lambda: not take())
    courier.stop()


def test_a_turn_that_nobody_waits_for_any_more_is_not_asked_for_again(courier, fake, monkeypatch):
    """Its host would keep its distance from a fetch that never was."""
    monkeypatch.setattr(module, "_TURN_AGAIN_S", 0.0)
    fake.answers = 3 * [lambda work: Outcome(turns=work.turns)]  # not yet
    turn = courier.take_turn("a")
    eventually(lambda: not fake.answers)
    eventually(lambda: [exchange for _, exchange in fake.exchanges if exchange.turns][2:])
    fake.answers = 3 * [lambda work: Outcome(turns=work.turns)]
    turn.is_wanted = False
    courier.add([page_of("a/1")])
    assert courier.flush(PATIENCE_S)
    courier.add([page_of("a/last")])
    assert courier.flush(PATIENCE_S)
    assert fake.last.turns == []
    assert courier.failure is None


def test_an_observation_sent_while_nothing_was_wanted_ends_the_wait(courier, fake):
    """Its page may be due sooner than the last wait said."""
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([], 60.0), lambda _: Outcome(), lambda _: Outcome([handout(1)], 60.0)]
    courier.ask(4, {}, 0)
    eventually(lambda: courier.idle_exchanges)
    courier.ask(0, {}, 0)
    courier.observe(ended(1))
    assert courier.flush(PATIENCE_S)
    courier.ask(4, {}, 0)
    eventually(lambda: courier.ready)


def test_the_end_of_an_old_lease_leaves_the_new_one_alive(courier, fake):
    """A page that was handed out anew goes on being renewed when the old answer comes at last."""
    eventually(lambda: fake.exchanges)
    fake.answers = [lambda _: Outcome([handout(3, 5.0)], 60.0)]
    courier.ask(1, {}, 0)
    eventually(lambda: courier.ready)
    courier.observe(ended(3, 3.0))
    assert courier.live == 1
    courier.observe(ended(3, 5.0))
    assert courier.live == 0


def test_many_threads_lose_nothing(courier, fake):
    """Every page arrives exactly once, outages included."""

    def add(thread: int) -> None:
        for i in range(50):
            courier.add([page_of(f"{thread}/{i}")])
            if i % 20 == 0:
                fake.answers.append(fail)

    threads = [threading.Thread(target=add, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert courier.flush(PATIENCE_S)
    arrived = {page.page for _, exchange in fake.exchanges for page in exchange.pages}
    assert len(arrived) == 400


class Lossy(ClockedNamespace):
    """Loses the reply of the next round trip that is to fail, of those with a script."""

    fails = False
    script = "observe"

    def run(self, calls):
        results = super().run(calls)
        if self.fails and any(call.script == self.script for call in calls):
            self.fails = False
            raise StateUnavailableError("the reply was lost")
        return results


def test_replayed_work_is_counted_once(store):
    """On a real server: what is sent again after an outage changes nothing."""
    store.__class__ = Lossy
    courier = Courier(Dispatcher(store, settings_of(CRAWL_RATE=1000)), lambda: None)
    courier.start()
    courier.add([page_of("a/1"), page_of("b/1")])
    assert courier.flush(PATIENCE_S)
    courier.ask(1, {}, 0)
    eventually(lambda: courier.ready)
    store.fails = True
    taken = courier.ready.popleft()
    courier.observe(store.seen(taken, changes=1, counters={"changes": 1}))
    courier.add([page_of("c/1")])
    assert courier.flush(PATIENCE_S)
    assert courier.stop(PATIENCE_S)
    counts = store.counts()
    assert (counts["pages"], counts["visits"], counts["changes"], counts["fetched"]) == (3, 1, 1, 1)
    assert counts["dispatched"] == counts["ended"]
    assert store.row(taken.record["url"].removeprefix("http://")).visits == 1


@pytest.mark.parametrize("script", ["adopt", "become_alias"])
def test_moves_that_are_sent_again_are_made_once(store, monkeypatch, script):
    """As their answers were lost; and once more, as the server may have lost what it had acknowledged. Two of them go to one place."""
    monkeypatch.setattr(acknowledged, "REPLAY_S", 1000.0)
    store.__class__ = Lossy
    courier = Courier(Dispatcher(store, settings_of()), lambda: None)
    courier.start()
    courier.add([page_of(f"a{n}/x") for n in range(6)])
    assert courier.flush(PATIENCE_S)
    courier.ask(6, {}, 0)
    eventually(lambda: len(courier.ready) == 6)
    courier.ask(0, {}, 0)
    monkeypatch.setattr(store, "script", script, raising=False)
    store.fails = True
    with courier._condition:  # they come together
        for n, taken in enumerate(sorted(courier.ready, key=lambda one: one.record["url"])):
            target = f"b/{max(n, 1)}"
            courier.move(move_of(settings_of(), store.seen(taken, wait=1e6), fingerprint(target), f"http://{target}"))
    assert courier.flush(PATIENCE_S)
    assert not store.fails
    monkeypatch.setattr(store, "script", "observe")
    store.fails = True
    courier.add([page_of("c/1")])
    courier.ask(1, {}, 0)
    eventually(lambda: len(courier.ready) == 7)
    courier.observe(store.seen(courier.ready[-1]))
    assert courier.flush(PATIENCE_S)
    assert not store.fails
    assert courier.stop(PATIENCE_S)
    counts = store.counts()
    assert (counts["pages"], counts.get("moved", 0) + counts["merged"], counts["visits"]) == (6, 6, 7)
    assert counts["dispatched"] == counts["ended"]
    assert all(store.row(f"a{n}/x") == store.row(f"b/{max(n, 1)}") for n in range(6))


def test_an_observation_that_the_server_lost_is_counted_once(store, monkeypatch):
    """It is sent again if the lease is still known, by its token from before; if that is gone, too, the page is due and visited again."""
    monkeypatch.setattr(acknowledged, "REPLAY_S", 1000.0)
    courier = Courier(Dispatcher(store, settings_of()), lambda: None)
    courier.start()
    courier.add([page_of("a/1"), page_of("b/1")])
    assert courier.flush(PATIENCE_S)
    courier.ask(2, {}, 0)
    eventually(lambda: len(courier.ready) == 2)
    courier.ask(0, {}, 0)
    known, forgotten = courier.ready
    before = {one.page: store.command("HGET", store.key("pages"), one.page) for one in (known, forgotten)}
    for handout in (known, forgotten):
        courier.observe(store.seen(handout, wait=1e6))
    assert courier.flush(PATIENCE_S)
    assert store.counts()["visits"] == 2
    # The server comes back without its last second: as it was before the observations, and for one page before the dispatch.
    store.commands([["HSET", store.key("pages"), page, value] for page, value in before.items()])
    store.command("ZADD", store.key("q"), known.token, known.page)
    store.command("ZREM", store.key("q"), forgotten.page)
    store.command("ZADD", store.key("f:1" if forgotten.row.host == 1 else "f:2"), -5, forgotten.page)
    store.command("ZADD", store.key("f"), -5, forgotten.row.host)
    store.command("HSET", store.key("stats"), "visits", 0)
    store.__class__ = Lossy
    store.fails = True
    courier.observe(store.seen(forgotten))
    assert courier.flush(PATIENCE_S)
    assert store.counts()["visits"] == 1
    courier.ask(2, {}, 0)
    eventually(lambda: len(courier.ready) == 3)
    assert courier.ready[-1].page == forgotten.page
    assert courier.stop(PATIENCE_S)


def test_a_real_crawl_over_partitions_visits_each_page_once(redis_socket, namespace):
    """Several couriers, leases renewed meanwhile; what is left at the end is given back."""
    from clocked_namespace import open_namespace

    spaces = [open_namespace(redis_socket, namespace, 3) for _ in range(2)]
    couriers = [Courier(Dispatcher(space, settings_of(LEASE_SECONDS=0.3)), lambda: None) for space in spaces]
    for courier in couriers:
        courier.start()
    couriers[0].add([page_of(f"h{n % 7}/{n}") for n in range(60)])
    assert couriers[0].flush(PATIENCE_S)
    seen: list[bytes] = []
    end = time.monotonic() + PATIENCE_S
    while len(seen) < 60:
        assert time.monotonic() < end
        for space, courier in zip(spaces, couriers, strict=True):
            courier.ask(8, {}, 0)
            while courier.ready:
                handout = courier.ready.popleft()
                seen.append(handout.page)
                courier.observe(space.seen(handout, wait=1e6))
        time.sleep(0.002)
    assert all(courier.flush(PATIENCE_S) for courier in couriers)
    assert all(courier.stop(PATIENCE_S) for courier in couriers)
    assert len(set(seen)) == 60
    counts = spaces[0].counts()
    assert (counts["visits"], counts["pending"], counts.get("observations_refused", 0)) == (60, 0, 0)
    for space in spaces:
        space.connection.close()


def test_a_lease_is_renewed_no_longer_than_the_caller_is_waited_for(store):
    """Where a caller cannot say that a request is still under way: then it is told, and the lease is left to run out."""
    courier = Courier(Dispatcher(store, settings_of(LEASE_SECONDS=0.3)), lambda: None, longest_s=0.5)
    courier.start()
    courier.add([page_of("a/1")])
    courier.ask(1, {}, 0)
    eventually(lambda: courier.ready)
    handout = courier.ready.popleft()
    began = time.monotonic()
    assert courier.live == 1
    eventually(lambda: courier.lost)
    assert time.monotonic() - began > 0.4  # longer than the lease
    assert courier.lost.popleft() is handout
    assert courier.live == 0
    assert courier.stop(PATIENCE_S)
    assert "leases_released" not in store.counts()  # it is the server's to end


def test_nothing_is_due_where_no_first_visit_waits(courier, fake):
    """An exchange that brought nothing is not enough: pages may wait for their host."""
    fake.first_visits = 3
    courier.ask(1, {}, 0)
    eventually(lambda: courier.idle_exchanges)
    time.sleep(0.1)
    assert not courier.nothing_left.is_idle
    fake.first_visits = 0
    eventually(lambda: courier.nothing_left.is_idle)
    courier.add([page_of("a/1")])
    assert not courier.nothing_left.is_idle


def test_a_crawl_stays_complete_when_known_pages_are_added_and_hides_it_until_that_is_clear(fake):
    complete, told = [True], threading.Event()

    def answered(new: int) -> Callable[[Exchange], Outcome]:
        def answer(_: Exchange) -> Outcome:
            assert told.wait(PATIENCE_S)
            return Outcome(new=new)

        return answer

    fake.answers += [answered(0), answered(1)]
    courier = Courier(fake, lambda: None, lambda: complete[0])
    left = courier.nothing_left
    courier.start()
    eventually(lambda: left.is_complete)
    courier.add([page_of("a/1")])
    assert left.looks_complete  # so that nothing is handed out
    assert not left.is_complete  # nor is it closed
    told.set()
    eventually(lambda: left.is_complete)
    left._next_look = math.inf  # what follows, no look says
    courier.add([page_of("a/2")])
    eventually(lambda: not left.looks_complete)
    assert courier.stop(PATIENCE_S)


def test_a_crawl_is_not_complete_after_an_exchange_without_a_reply(fake):
    """The server may have stored what is known to it when it is sent again."""
    courier = Courier(fake, lambda: None, lambda: True)
    left = courier.nothing_left
    courier.start()
    eventually(lambda: left.is_complete)
    left._next_look = math.inf
    fake.answers = [fail, lambda _: Outcome()]
    courier.add([page_of("a/1")])
    assert courier.flush(PATIENCE_S)
    assert not left.is_complete
    assert courier.stop(PATIENCE_S)
