"""Handouts: what comes with them, what they cost, and what is done with what cannot be read."""

from __future__ import annotations

import math
from typing import Any

import pytest
from timed_namespace import TimedNamespace, new_page, page_of

from optimal_frontier.errors import ConfigurationError, SchemaMismatchError, StateError
from optimal_frontier.state.flagged import flag_calls
from optimal_frontier.state.host_words import NOTHING_SAID
from optimal_frontier.state.memory import NOTHING_REMEMBERED
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import BATCH, add_calls, count_calls, draw_call


def test_a_handout_has_all_that_a_judge_needs(space: TimedNamespace) -> None:
    space.visit("h/1", wait=5.0, slope=2.0)
    space.advance(6.0)
    (handout,) = space.dispatch()
    assert handout.row == space.row(page_of("h/1"))
    assert (handout.partition, handout.host, handout.record, handout.stated) == (0, "h", {"url": "http://h/1"}, 0.0)
    assert (handout.words, handout.memory) == (NOTHING_SAID, NOTHING_REMEMBERED)
    assert handout.at == pytest.approx(space.now())
    assert handout.elapsed == pytest.approx(6.0)
    assert handout.server_time(handout.received + 3.0) == pytest.approx(space.now() + 3.0)


def test_an_empty_partition_has_nothing_to_wait_for(space: TimedNamespace) -> None:
    told = space.ask(5)
    assert (told.handouts, told.wait) == ([], math.inf)


def test_the_wait_is_that_for_the_next_page(space: TimedNamespace) -> None:
    space.visit("h/1", wait=20.0, e=20.0)
    space.visit("h/2", wait=7.0, e=7.0)
    assert space.ask(5).wait == pytest.approx(7.0, abs=1e-5)


def test_no_call_hands_out_more_than_a_batch(space: TimedNamespace) -> None:
    space.add(*(new_page(f"h{i}/1") for i in range(2 * BATCH)))
    assert len(space.dispatch(1000)) == BATCH


@pytest.mark.parametrize("damage", [b"", b"short", b"\xff" * 300])
def test_a_row_that_cannot_be_read_is_told_and_stops_nobody(space: TimedNamespace, damage: bytes) -> None:
    space.add(new_page("h/1"), new_page("h/2"))
    space.command("HSET", space.key("pages"), page_of("h/1"), damage)
    told = space.ask(5)
    assert [handout.page for handout in told.handouts] == [page_of("h/2")]
    assert list(told.damaged) == [page_of("h/1")]


@pytest.mark.parametrize("name", ["dispatched", "leases_expired"])
def test_a_damaged_counter_ends_the_call_before_it_writes_a_lease(space: TimedNamespace, name: str) -> None:
    """Nobody would know of the lease, and its page would wait until it ends."""
    space.visit("h/1", wait=1.0)
    space.advance(2.0)
    (lost,) = space.dispatch(lease=10.0)
    space.advance(11.0)
    space.command("HSET", space.key("stats"), name, "many")
    before = space.command("ZSCORE", space.key("q"), lost.page)
    with pytest.raises(StateError, match="integer"):
        space.ask(5)
    assert space.command("ZSCORE", space.key("q"), lost.page) == before
    space.command("HDEL", space.key("stats"), name)
    assert [handout.page for handout in space.dispatch()] == [lost.page]


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 20])
def test_a_queued_row_that_is_no_row_leaves_the_queue_and_stops_nobody(space: TimedNamespace, damage: bytes) -> None:
    space.visit("h/1", "h/2", wait=1.0)
    space.command("HSET", space.key("pages"), page_of("h/1"), damage)
    space.hold("elsewhere", 1.0)
    space.advance(2.0)
    assert space.names(5) == ["h/2"]
    assert space.score(page_of("h/1")) is None
    assert space.command("HEXISTS", space.key("pages"), page_of("h/1")) == 1


def test_a_queued_page_whose_row_is_gone_leaves_the_queue(space: TimedNamespace) -> None:
    space.visit("h/1", "h/2", wait=1.0)
    space.command("HDEL", space.key("pages"), page_of("h/1"))
    space.advance(2.0)
    assert space.names(5) == ["h/2"]
    assert space.score(page_of("h/1")) is None


def test_partitions_do_not_see_each_other(two: TimedNamespace) -> None:
    two.add(new_page("a/1"), k=0)
    two.add(new_page("b/1"), k=1)
    assert two.names(5, k=1) == ["b/1"]
    assert two.names(5, k=0) == ["a/1"]
    assert two.counts()["dispatched"] == 2
    assert two.counts(0)["dispatched"] == 1


def test_calls_of_one_round_trip_run_in_order(two: TimedNamespace) -> None:
    assert two.run([*count_calls(0, {"x": 2}), *count_calls(1, {"x": 3}), *count_calls(0, {"x": 5})]) == [2, 3, 7]
    assert (two.counts(0)["x"], two.counts(1)["x"], two.counts()["x"]) == (7, 3, 10)


def test_commands_that_go_beside_a_call_run_and_have_no_reply(two: TimedNamespace) -> None:
    """Also where the server has forgotten the script, so that it is called again."""
    for times in (1, 2):
        two.connection.client.script_flush()
        told = two.run([draw_call(1, 0.0, 2), *count_calls(0, {"x": 3}), *count_calls(1, {"x": 5})])
        assert told[1:] == [3 * times, 5 * times]
        assert two.counts(1) == {"extra_fetches": 2 * times, "x": 5 * times}


def test_a_server_that_forgot_the_scripts_gets_them_again(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    space.connection.client.script_flush()
    assert space.names() == ["h/1"]


def test_namespaces_share_a_connection(space: TimedNamespace) -> None:
    other = Namespace(space.connection, space.name + "-other")
    other.open(spider="test")
    space.add(new_page("h/1"))
    assert other.run(add_calls(0, [new_page("h/1")])) == [[1]]


def test_a_namespace_keeps_its_schema_its_spider_and_its_partitions(space: TimedNamespace) -> None:
    again = Namespace(space.connection, space.name)
    again.open(spider="test", partitions=1)
    with pytest.raises(SchemaMismatchError, match="spider"):
        again.open(spider="another")
    with pytest.raises(ConfigurationError, match="PARTITIONS"):
        again.open(partitions=4)
    space.command("HSET", space.key("meta"), "schema", "3")
    with pytest.raises(SchemaMismatchError, match="schema '3'"):
        again.open()


def test_a_key_of_another_program_is_left_alone(space: TimedNamespace) -> None:
    space.command("SET", f"{space.name}-x:{{0}}:q", "mine")
    with pytest.raises(SchemaMismatchError, match="string"):
        Namespace(space.connection, space.name + "-x").open(spider="test")
    assert space.command("GET", f"{space.name}-x:{{0}}:q") == b"mine"
    assert space.command("EXISTS", f"{space.name}-x:{{0}}:meta") == 0


def test_reading_creates_nothing(space: TimedNamespace) -> None:
    other = Namespace(space.connection, space.name + "-none")
    other.open(create=False)
    assert space.command("EXISTS", other.key("meta")) == 0
    assert other.counts() == {}


def test_hosts_spread_over_partitions_and_stay_there(two: TimedNamespace) -> None:
    told = [two.partition_of(f"host-{i}") for i in range(200)]
    assert told == [two.partition_of(f"host-{i}") for i in range(200)]
    assert 60 < sum(told) < 140


@pytest.mark.parametrize("score", [2, 3, 2e15, 2e15 + 1, 2e15 + 1e6, 9e15])
def test_the_last_digit_of_a_score_tells_whether_it_is_a_lease(space: TimedNamespace, score: float) -> None:
    """Servers write whole numbers with all of their digits, also those that end in zeros."""
    space.visit("h/1", wait=1.0)
    space.advance(2.0)
    space.command("ZADD", space.key("q"), score, page_of("h/1"))
    assert space.names() == ["h/1"]
    assert space.counts().get("leases_expired", 0) == score % 2


def test_a_counter_that_is_none_is_an_error(space: TimedNamespace) -> None:
    space.command("HSET", space.key("stats"), "visits", "many")
    with pytest.raises(StateError, match="counter"):
        space.counts()


def flags(space: TimedNamespace, *names: bytes) -> list[Any]:
    """Note names, and return those that are flagged, and those that pass."""
    return space.run(flag_calls(0, space.now(), names, flagged_s=100.0, remembered_s=200.0, most=10))[-2:]


def test_contents_that_are_no_pages_own_are_told_to_all(space: TimedNamespace) -> None:
    assert flags(space) == [[], []]
    assert flags(space, b"h 01") == [[b"h 01"], []]
    assert flags(space) == [[b"h 01"], []]
    space.advance(150.0)
    assert flags(space, b"h 01") == [[], [b"h 01"]]
    space.advance(100.0)
    assert flags(space) == [[], []]
