"""The dispatcher on a real namespace: one partition a poll, budgets and shares, renewals, plans, rooms of slots, lost leases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from clocked_namespace import ClockedNamespace, fingerprint, force, open_namespace, page_of, settings_of

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.admitting.revival import REVIVED_AFTER_S
from optimal_frontier.frontier.dispatching import ask_terms
from optimal_frontier.frontier.dispatching import exchange as module
from optimal_frontier.frontier.dispatching.exchange import Dispatcher, Exchange, Lease, SlotRoom
from optimal_frontier.frontier.dispatching.forgetting import forget
from optimal_frontier.frontier.dispatching.revising import bring_back
from optimal_frontier.state.aliases import pack_alias
from optimal_frontier.state.messages import KEEP, RELEASE
from optimal_frontier.state.namespace import Call
from optimal_frontier.state.partition import HEAVY_BATCH
from optimal_frontier.state.published import PRICES, PRIORS
from optimal_frontier.state.rows import ACTIVE, UNCONDITIONAL

PARTITIONS = 4


@pytest.fixture
def many(redis_socket: str, namespace: str) -> Iterator[ClockedNamespace]:
    """A namespace of several partitions."""
    opened = open_namespace(redis_socket, namespace, PARTITIONS)
    yield opened
    opened.connection.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The local monotonic time of the dispatcher, to be set."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def hosts_of(store: ClockedNamespace) -> list[str]:
    """A host of each partition, in their order."""
    found: dict[int, str] = {}
    for n in range(1000):
        found.setdefault(store.partition_of(f"h{n}"), f"h{n}")
    return [found[k] for k in range(store.partitions)]


def publish(store: ClockedNamespace, partition: int = 0, **fields: Any) -> None:
    fence = store.run([Call(partition, "take_planner_lock", ["planner", 10_000_000])])[0]
    flat = [str(value) for pair in fields.items() for value in pair]
    store.run([Call(partition, "publish_plan", [fence, 0.01, "", b"", b"", b"", *flat])])


def calls_of(store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Every script call from now on."""
    made: list[Call] = []
    run = store.run

    def noting(calls: Any) -> Any:
        made.extend(calls)
        return run(calls)

    monkeypatch.setattr(store, "run", noting)
    return made


def test_a_poll_asks_one_partition_in_turn_for_all_that_is_wanted(many, monkeypatch, clock):
    dispatcher, made = Dispatcher(many, settings_of()), calls_of(many, monkeypatch)
    dispatcher.exchange(Exchange(pages=[page_of(f"{host}/{n}") for host in hosts_of(many) for n in range(2)]))
    del made[:]
    seen = []
    for _ in range(PARTITIONS):
        outcome = dispatcher.exchange(Exchange(want=8))
        assert len(outcome.handouts) == 2
        seen.append(outcome.handouts[0].partition)
    assert sorted(seen) == list(range(PARTITIONS))
    assert [later - before for before, later in pairwise(seen)].count(1) >= PARTITIONS - 2
    assert [call.script for call in made].count("dispatch") == PARTITIONS
    del made[:]
    outcome = dispatcher.exchange(Exchange(want=8))
    assert (outcome.handouts, [call for call in made if call.script == "dispatch"]) == ([], [])
    assert outcome.wait == module.LOOK_S  # leases run out later than that


def test_partitions_of_small_budgets_are_asked_together(many, monkeypatch, clock):
    """Each for what its bucket can hold, until that is what is wanted; and again when it has the next one."""
    dispatcher, made = Dispatcher(many, settings_of(CRAWL_RATE=20.0)), calls_of(many, monkeypatch)
    dispatcher.exchange(Exchange(pages=[page_of(f"{host}/{n}") for host in hosts_of(many) for n in range(5)]))
    del made[:]
    outcome = dispatcher.exchange(Exchange(want=3))
    first = [handout.partition for handout in outcome.handouts]
    assert len(set(first)) == 3
    assert dispatcher.exchange(Exchange(want=3)).handouts[0].partition not in first
    assert [call.script for call in made].count("dispatch") == PARTITIONS
    assert dispatcher.exchange(Exchange(want=3)).wait == pytest.approx(0.2)
    assert [call.script for call in made].count("dispatch") == PARTITIONS
    clock[0] += 0.21
    dispatcher.exchange(Exchange(want=3))
    assert [call.script for call in made].count("dispatch") == PARTITIONS + 3


def test_processes_start_elsewhere(many, monkeypatch):
    starts = iter(range(PARTITIONS))
    monkeypatch.setattr(module.secrets, "randbelow", lambda _: next(starts))
    many.add(*(page_of(f"{host}/1") for host in hosts_of(many)))
    asked = [Dispatcher(many, settings_of()).exchange(Exchange(want=8)).handouts[0].partition for _ in range(PARTITIONS)]
    assert asked == list(range(PARTITIONS))


def test_a_partition_that_has_news_is_asked_at_once(many, clock):
    """New pages, and observations: its wait is not over, but no more the truth."""
    dispatcher, hosts = Dispatcher(many, settings_of()), hosts_of(many)
    for _ in range(PARTITIONS):
        outcome = dispatcher.exchange(Exchange(want=1))
    assert outcome.wait > 0
    dispatcher.exchange(Exchange(pages=[page_of(f"{hosts[2]}/1")]))
    outcome = dispatcher.exchange(Exchange(want=1))
    (handout,) = outcome.handouts
    assert handout.partition == 2
    dispatcher.exchange(Exchange(ended=[(many.seen(handout, wait=0.0), Lease.of(handout))]))
    assert dispatcher.exchange(Exchange(want=1)).handouts


def test_observations_go_to_their_partitions_in_one_pipeline(many, monkeypatch, clock):
    dispatcher = Dispatcher(many, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of(f"{host}/1") for host in hosts_of(many)]))
    handouts = [dispatcher.exchange(Exchange(want=8)).handouts[0] for _ in range(PARTITIONS)]
    trips = []
    run = many.run
    monkeypatch.setattr(many, "run", lambda calls: trips.append(len(calls)) or run(calls))
    dispatcher.exchange(Exchange(ended=[(many.seen(handout), Lease.of(handout)) for handout in handouts]))
    assert trips == [PARTITIONS]
    assert (many.counts()["visits"], many.counts()["ended"]) == (PARTITIONS, PARTITIONS)


def test_more_than_a_batch_is_asked_for_in_one_pipeline(store, monkeypatch):
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of(f"h/{n}") for n in range(150)]))
    assert len(dispatcher.exchange(Exchange(want=140)).handouts) == 140
    made = calls_of(store, monkeypatch)
    assert len(dispatcher.exchange(Exchange(want=140, looks_again=True, per_host=200)).handouts) == 10
    assert [call.script for call in made].count("dispatch") == 1  # a second one would not know what the first gave a host


@pytest.mark.parametrize(
    ("rate", "fields", "expected"),
    [(40, {}, 10.0), (40, {"share": 0.5}, 20.0), (40, {"share": 0.0}, 40e-9), ("auto", {"share": 0.5}, 0.0)],
)
def test_the_budget_of_a_partition_is_its_share(many, rate, fields, expected):
    """Before the first plan each has the same; none has no limit because its share is 0."""
    dispatcher = Dispatcher(many, settings_of(CRAWL_RATE=rate))
    if fields:
        publish(many, 1, **fields)
    for _ in range(PARTITIONS):
        dispatcher.exchange(Exchange(want=1))
    assert dispatcher.terms.budget(1) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("settings", "pending", "share"),
    [
        ({"CRAWL_RATE": 1, "RESOLVE_INTERVAL": 10}, 30, 1.2),
        ({"CRAWL_RATE": 1, "RESOLVE_INTERVAL": 10}, 31, 0.2),
        ({"CRAWL_RATE": 1, "RESOLVE_INTERVAL": 10, "DISCOVERY_SHARE": 0.5}, 31, 0.5),
        ({"CRAWL_RATE": 1, "RESOLVE_INTERVAL": 10, "CLOSE_AFTER": 1}, 31, 1.5),
        ({"CRAWL_RATE": "auto"}, 31, 1.2),
    ],
)
def test_first_visits_come_first_while_they_could_be_finished_soon(store, settings, pending, share):
    """1 is that they do; the rest is their share beside pinned pages."""
    store.command("HSET", store.key("stats"), "pending", pending)
    dispatcher = Dispatcher(store, settings_of(**settings))
    assert dispatcher.terms.ask(Exchange(want=1), 0).share == share


def test_what_is_known_of_first_visits_is_read_now_and_then(store, clock):
    dispatcher = Dispatcher(store, settings_of(CRAWL_RATE=1, RESOLVE_INTERVAL=10))
    assert dispatcher.terms.ask(Exchange(want=1), 0).share == 1.2
    store.command("HSET", store.key("stats"), "pending", 1000)
    assert dispatcher.terms.ask(Exchange(want=1), 0).share == 1.2
    clock[0] += ask_terms.PENDING_S
    assert dispatcher.terms.ask(Exchange(want=1), 0).share == 0.2


def test_the_speed_of_an_auto_crawl_is_that_of_its_plan(store, clock):
    publish(store, budget=2.0)
    store.command("HSET", store.key("stats"), "pending", 1000)
    dispatcher = Dispatcher(store, settings_of(CRAWL_RATE="auto", RESOLVE_INTERVAL=10))
    assert dispatcher.terms.ask(Exchange(want=1), 0).share == 1.2
    dispatcher.exchange(Exchange(want=1))
    assert dispatcher.terms.ask(Exchange(want=1), 0).share == 0.2


def test_hosts_that_bear_less_than_the_budget_make_a_first_pass_long(store):
    """A thousand pages wait on hosts that bear two fetches a second, whatever the budget says."""
    publish(store, budget=100.0, first_visit_rate=2.0)
    store.command("HSET", store.key("stats"), "pending", 1000)
    dispatcher = Dispatcher(store, settings_of(CRAWL_RATE=100, RESOLVE_INTERVAL=10))
    dispatcher.exchange(Exchange(want=1))
    assert dispatcher.terms.ask(Exchange(want=1), 0).share == 0.2


@pytest.mark.parametrize(("said", "lease"), [(60, 15.0), (4, 4.0)])
def test_leases_are_short(store, said, lease):
    dispatcher = Dispatcher(store, settings_of(LEASE_SECONDS=said))
    dispatcher.exchange(Exchange(pages=[page_of("h/1")]))
    (handout,) = dispatcher.exchange(Exchange(want=1)).handouts
    assert handout.token / 1e6 - handout.at == pytest.approx(lease, abs=1e-3)


def test_a_renewed_lease_holds_as_long_as_a_new_one_and_is_ended_by_its_new_token(store, clock):
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of("h/1")]))
    (handout,) = dispatcher.exchange(Exchange(want=1)).handouts
    lease = Lease(handout, handout.token, clock[0])
    for _ in range(3):
        clock[0] += 5.0
        store.advance(5.0)
        assert dispatcher.exchange(Exchange(renewals=[lease])).lost == []
    assert lease.token / 1e6 - store.now() == pytest.approx(15.0, abs=0.01)
    assert store.score("h/1") == lease.token
    assert store.end(handout) == 0
    dispatcher.exchange(Exchange(ended=[(store.seen(handout), lease)]))
    assert store.counts()["visits"] == 1


def test_a_lease_whose_renewal_an_outage_has_held_up_catches_up(store, clock, monkeypatch):
    """The renewal that was tried first may have been made, so it goes out as it was; the next one makes up for the outage."""
    dispatcher, run = Dispatcher(store, settings_of()), store.run
    dispatcher.exchange(Exchange(pages=[page_of("h/1")]))
    (handout,) = dispatcher.exchange(Exchange(want=1)).handouts
    lease = Lease(handout, handout.token, clock[0])

    def away(_: Any) -> Any:
        raise StateUnavailableError("Redis at nowhere is away")

    clock[0] += 5.0
    monkeypatch.setattr(store, "run", away)
    with pytest.raises(StateUnavailableError):
        dispatcher.exchange(Exchange(renewals=[lease]))
    monkeypatch.setattr(store, "run", run)
    clock[0] += 20.0
    store.advance(25.0)
    for _ in range(2):
        assert dispatcher.exchange(Exchange(renewals=[lease])).lost == []
    assert lease.token / 1e6 - store.now() == pytest.approx(15.0, abs=0.01)
    assert store.score("h/1") == lease.token


def test_an_observation_in_the_pipeline_of_its_renewal_names_the_new_token(store, clock):
    """Also when the reply to the renewal was lost before: then nobody knows whether it holds."""
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of("h/1")]))
    (handout,) = dispatcher.exchange(Exchange(want=1)).handouts
    lease = Lease(handout, handout.token, clock[0])
    clock[0] += 5.0
    work = Exchange(renewals=[lease], ended=[(store.seen(handout), lease)])
    dispatcher.exchange(work)
    assert store.counts()["visits"] == 1


def test_a_lease_that_is_no_longer_held_is_told(store, clock):
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of("h/1")]))
    (handout,) = dispatcher.exchange(Exchange(want=1)).handouts
    lease = Lease.of(handout)
    store.advance(16.0)
    assert store.dispatch(1)[0].page == handout.page
    clock[0] += 5.0
    assert dispatcher.exchange(Exchange(renewals=[lease])).lost == [lease]
    dispatcher.exchange(Exchange(ended=[(store.seen(handout), lease)]))
    assert store.counts()["observations_refused"] == 1


def test_renewals_that_the_server_forgot_are_made_again_before_their_observations(store, clock):
    """A server that lost its last second knows the token before the renewal."""
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of("h/1")]))
    (handout,) = dispatcher.exchange(Exchange(want=1)).handouts
    lease = Lease(handout, handout.token, clock[0])
    clock[0] += 5.0
    dispatcher.exchange(Exchange(renewals=[lease]))
    store.command("ZADD", store.key("q"), repr(handout.token), handout.page)
    again = [(handout.page, handout.token, lease.token, 0)]
    dispatcher.exchange(Exchange(again=again, ended=[(store.seen(handout), lease)]))
    assert store.counts()["visits"] == 1


def test_leaving_gives_leases_back_at_once(store):
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of(f"h/{n}") for n in range(3)]))
    handouts = dispatcher.exchange(Exchange(want=3)).handouts
    dispatcher.leave([Lease.of(handout) for handout in handouts])
    counts = store.counts()
    assert (counts["dispatched"], counts["ended"], counts["leases_released"], counts["pending"]) == (3, 3, 3, 3)
    assert len(store.dispatch(5)) == 3


def test_a_plan_is_read_when_its_number_grows(store):
    """And judges of its partition go by it."""
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of("h/1")]))
    (handout,) = dispatcher.exchange(Exchange(want=1)).handouts
    assert dispatcher.context(handout).published.number == 0
    store.command("SET", store.key("priors"), b"")
    publish(store, log_price=-2.0, prior_time=50.0, share=1.0)
    store.command("SET", store.key("priors"), np.array([(7, 2.0, 30.0, 9)], PRIORS).tobytes())
    store.command("SET", store.key("prices"), np.array([(3, 0.5)], PRICES).tobytes())
    dispatcher.exchange(Exchange(want=1, looks_again=True))
    context = dispatcher.context(handout)
    assert (context.published.number, context.published.log_price) == (1, -2.0)
    assert (context.published.prior_of(7), context.published.host_prices) == ((2.0, 30.0), {3: 0.5})
    assert context.recent is dispatcher.recent
    publish(store, log_price=-3.0)
    dispatcher.exchange(Exchange(want=1))
    dispatcher.exchange(Exchange(want=1, looks_again=True))
    assert dispatcher.context(handout).published.number == 2


def test_hosts_of_full_slots_are_passed_over(store):
    """As far as their numbers are known: from the first request to them on."""
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of(f"{host}/{n}") for host in ("a", "b") for n in range(3)]))
    first = dispatcher.exchange(Exchange(want=6, per_host=1))
    assert {handout.host for handout in first.handouts} == {"a", "b"}
    assert first.waits_for_room
    outcome = dispatcher.exchange(Exchange(want=6, slots={"a": SlotRoom(["a"], 0)}, has_room=True))
    assert [handout.host for handout in outcome.handouts] == ["b", "b"]
    assert outcome.waits_for_room
    outcome = dispatcher.exchange(Exchange(want=6, has_room=True))
    assert {handout.host for handout in outcome.handouts} == {"a"}


def test_silent_hosts_take_one_request_at_a_time(store):
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of(f"{host}/{n}") for host in ("a", "b") for n in range(4)]))
    for _ in range(3):
        dispatcher.recent.silent_hosts.after("a", "TimeoutError", 0.0, 0.0)
    assert sorted(handout.host for handout in dispatcher.exchange(Exchange(want=8, per_host=2)).handouts) == ["a", "b", "b"]
    slots = {host: SlotRoom([host], 7) for host in ("a", "b")}
    found = dispatcher.exchange(Exchange(want=8, slots=slots, has_room=True, under_way={"a"})).handouts
    assert [handout.host for handout in found] == ["b", "b"]
    shared = {"proxy": SlotRoom(["a", "b"], 7)}  # which another host may fill for ever
    assert [handout.host for handout in dispatcher.exchange(Exchange(want=8, slots=shared, has_room=True)).handouts] == ["a"]
    dispatcher.recent.silent_hosts.after("a", "", 0.0, 0.0)
    assert [handout.host for handout in dispatcher.exchange(Exchange(want=8, slots=slots, has_room=True)).handouts] == ["a", "a"]


def test_what_one_call_could_not_hand_out_is_asked_for_at_once(store, clock):
    """Without a pause, though each call fills hosts that the next one has to know of."""
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of(f"h{n}/{n}") for n in range(2 * HEAVY_BATCH)]))
    for _ in range(2):
        outcome = dispatcher.exchange(Exchange(want=2 * HEAVY_BATCH, per_host=8))
        assert (len(outcome.handouts), outcome.wait, outcome.is_full) == (HEAVY_BATCH, 0.0, True)
    assert dispatcher.exchange(Exchange(want=1, per_host=8)).handouts == []


def test_forgotten_pages_are_noticed(store):
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[page_of("h/1"), page_of("h/2")]))
    assert not dispatcher.exchange(Exchange(want=1)).has_forgotten
    forget(store, [fingerprint("h/1")])
    assert dispatcher.exchange(Exchange(want=1, looks_again=True)).has_forgotten
    assert not dispatcher.exchange(Exchange(want=1, looks_again=True)).has_forgotten


def test_flagged_contents_reach_every_process(many, clock):
    one, other = (Dispatcher(many, settings_of()) for _ in range(2))
    host = hosts_of(many)[3]
    name = f"{host} {'61' * 16}".encode()
    one.exchange(Exchange(flags=[name]))
    assert one.recent.blocks.is_flagged(host, b"a" * 16)
    for _ in range(PARTITIONS):
        other.exchange(Exchange(want=1))
    assert other.recent.blocks.is_flagged(host, b"a" * 16)


def test_holds_and_draws_go_to_the_partition_of_the_host(many):
    hosts = hosts_of(many)
    many.add(page_of(f"{hosts[1]}/1"), page_of(f"{hosts[2]}/1"))
    dispatcher = Dispatcher(many, settings_of(CRAWL_RATE=4))
    work = Exchange(holds=[(hosts[1], 50.0)])
    work.draws[hosts[2]] += 3
    dispatcher.exchange(work)
    assert many.counts(1)["host_holds"] == 1
    assert many.counts(2)["extra_fetches"] == 3
    assert many.dispatch(1, 1, budget=1.0) == []
    many.advance(51.0)
    assert len(many.dispatch(1, 1, budget=1.0)) == 1


# Pages that are in no queue.


def test_a_link_brings_a_retired_page_back(store):
    dispatcher = Dispatcher(store, settings_of())
    store.visit("h/1")
    store.advance(2000.0)
    store.retire("h/1")
    store.advance(0.9 * REVIVED_AFTER_S)
    assert dispatcher.exchange(Exchange(pages=[page_of("h/1")])).new == 0
    assert store.score("h/1") is None
    store.advance(0.2 * REVIVED_AFTER_S)
    assert dispatcher.exchange(Exchange(pages=[page_of("h/1")])).new == 1  # there is more to do: a crawl is not complete
    assert (store.counts()["retired"], store.counts()["revived"]) == (0, 1)
    (handout,) = dispatcher.exchange(Exchange(want=1)).handouts
    assert (handout.row.state, handout.row.gone) == (ACTIVE, 2)
    assert handout.lateness < 1.0


def test_pages_that_were_retired_before_their_host_was_held_come_back(store):
    dispatcher = Dispatcher(store, settings_of())
    store.visit("h/1", "h/2", "h/3")
    store.advance(2000.0)
    store.retire("h/1")
    store.advance(86_000.0)
    store.retire("h/2")
    store.advance(1000.0)
    handouts = store.dispatch(1)
    seen = store.seen(handouts[0], KEEP, brings_back=True, visits=1, failed=1, failures=9, gone=2)
    dispatcher.exchange(Exchange(ended=[(seen, Lease.of(handouts[0]))]))
    assert (store.row("h/1").state, store.row("h/2").state) == (4, ACTIVE)
    assert (store.row("h/2").failures, store.counts()["retired"], store.counts()["gone_held"]) == (9, 1, 1)
    assert 256.0 <= store.row("h/2").a <= 512.0
    assert not store.command("EXISTS", store.key("retired:1"))
    assert bring_back(store, 0, 1) == 0


def test_a_page_that_is_wanted_now_comes_before_all_others(many):
    hosts = hosts_of(many)
    names = [f"{host}/{n}" for host in hosts for n in range(3)]
    many.visit(*names)
    many.visit(f"{hosts[1]}/new", failures=3, gone=1, cause=4, unseen=3.0)
    assert force(many, [fingerprint(f"{hosts[1]}/2"), fingerprint(f"{hosts[1]}/new"), fingerprint("unknown")]) == [1, 1, 0]
    handouts = many.dispatch(2, 1)
    assert {handout.page for handout in handouts} == {fingerprint(f"{hosts[1]}/{name}")[:12] for name in ("2", "new")}
    for handout in handouts:
        assert handout.row.flags & UNCONDITIONAL
        assert (handout.row.failures, handout.row.gone, handout.row.cause) == (0, 0, 0)
    assert force(many, [fingerprint(f"{hosts[1]}/2")]) == [2]


def test_start_pages_take_a_few_round_trips_however_many_they_are(store, monkeypatch):
    known, new = [f"h/{n}" for n in range(100)], [f"h/new{n}" for n in range(100)]
    store.visit(*known)
    store.command("HSET", store.key("aliases", 0), fingerprint("h/moved")[:12], pack_alias(0, fingerprint("h/0")[:12]) + b"url")
    dispatcher = Dispatcher(store, settings_of())
    trips = []
    for name in ("run", "commands"):  # the latter is what `command` goes by
        made = getattr(store, name)
        monkeypatch.setattr(store, name, lambda *calls, made=made, **where: trips.append(calls) or made(*calls, **where))
    for names, most in [(new, 1), (known[1:], 6), (["h/moved"], 8)]:
        del trips[:]
        dispatcher.exchange(Exchange(pages=[replace(page_of(name), is_wanted=True) for name in names]))
        assert len(trips) <= most
    assert all(store.row(name).flags & UNCONDITIONAL for name in known)


@pytest.mark.parametrize("is_own", [True, False])
def test_a_page_that_is_wanted_while_it_is_under_way_is_visited_again_after_that(store, clock, is_own):
    """It was handed out before, by its deadline: the answer may go without a body, and to no callback."""
    store.visit("h/1")
    store.advance(2000.0)
    (handout,) = store.dispatch(1)
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[replace(page_of("h/1"), is_wanted=True)]))
    clock[0] += module.LOOK_S
    dispatcher.exchange(Exchange())
    assert not store.row("h/1").flags & UNCONDITIONAL
    if is_own:
        seen = store.seen(handout, KEEP, wait=1000.0)
        dispatcher.exchange(Exchange(ended=[(seen, Lease.of(handout))]))
    else:  # of another crawler: this one looks once a second
        assert store.end(handout, wait=1000.0)
        dispatcher.exchange(Exchange())
        assert not store.row("h/1").flags & UNCONDITIONAL
        clock[0] += module.LOOK_S
        dispatcher.exchange(Exchange())
    (again,) = store.dispatch(1)
    assert (again.page, again.row.flags & UNCONDITIONAL) == (handout.page, UNCONDITIONAL)


def test_a_page_that_is_handed_out_when_it_is_wanted_is_visited_once(store, clock):
    """It was due: a crawl that begins anew would fetch each of its start pages twice."""
    store.visit("h/1")
    store.advance(2000.0)
    dispatcher = Dispatcher(store, settings_of())
    (handout,) = dispatcher.exchange(Exchange(pages=[replace(page_of("h/1"), is_wanted=True)], want=1)).handouts
    assert handout.row.flags & UNCONDITIONAL
    dispatcher.exchange(Exchange(ended=[(store.seen(handout, KEEP, wait=1000.0), Lease.of(handout))]))
    clock[0] += 2 * module.LOOK_S
    dispatcher.exchange(Exchange())
    assert store.dispatch(1) == []


def test_a_page_under_way_is_looked_at_while_others_are_wanted_all_the_time(store, clock):
    """As start requests are that come a few at a time."""
    store.visit("h/1")
    store.advance(2000.0)
    (handout,) = store.dispatch(1)
    dispatcher = Dispatcher(store, settings_of())
    dispatcher.exchange(Exchange(pages=[replace(page_of("h/1"), is_wanted=True)]))
    assert store.end(handout, wait=1000.0)
    store.visit("h/2")
    for _ in range(2):
        clock[0] += 0.6 * module.LOOK_S
        dispatcher.exchange(Exchange(pages=[replace(page_of("h/2"), is_wanted=True)]))
    assert store.row("h/1").flags & UNCONDITIONAL


def test_a_retired_page_comes_back_when_it_is_wanted(store):
    store.visit("h/1")
    store.advance(2000.0)
    store.retire("h/1")
    assert force(store, [fingerprint("h/1")]) == [1]
    assert (store.row("h/1").state, store.counts()["retired"]) == (ACTIVE, 0)
    store.add(page_of("h/waits"), page_of("h/once", kind=2))
    assert force(store, [fingerprint("h/waits"), fingerprint("h/once")]) == [2, 2]


def test_forgetting_is_counted_and_takes_leases_along(many):
    many.add(*(page_of(f"{host}/1") for host in hosts_of(many)))
    (handout,) = many.dispatch(1, 2)
    assert forget(many, [fingerprint(f"{host}/1") for host in hosts_of(many)] + [fingerprint("x")]) == PARTITIONS
    assert many.end(handout, RELEASE) == 0
    counts = many.counts()
    assert (counts["pages"], counts["pending"], counts["ended"]) == (0, 0, 1)


def test_what_other_processes_add_and_force_is_seen_within_a_second(many, clock):
    """In every partition, however far away the next deadline of this one is."""
    dispatcher, host = Dispatcher(many, settings_of(MIN_INTERVAL=600)), hosts_of(many)[1]
    dispatcher.exchange(Exchange(pages=[page_of(f"{host}/0")]))
    (handout,) = (handout for _ in range(PARTITIONS) for handout in dispatcher.exchange(Exchange(want=8)).handouts)
    assert many.end(handout, wait=1000.0)
    for _ in range(PARTITIONS):
        outcome = dispatcher.exchange(Exchange(want=8))
    assert (outcome.handouts, outcome.wait) == ([], module.LOOK_S)
    many.add(page_of(f"{host}/1"))
    assert force(many, [fingerprint(f"{host}/0")]) == [1]
    assert dispatcher.exchange(Exchange(want=8)).handouts == []
    clock[0] += module.LOOK_S
    found = [handout.record["url"] for _ in range(PARTITIONS) for handout in dispatcher.exchange(Exchange(want=8)).handouts]
    assert sorted(found) == [f"http://{host}/0", f"http://{host}/1"]
