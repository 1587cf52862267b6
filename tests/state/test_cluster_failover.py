"""A namespace on a cluster whose masters die, with replicas that take their places, and whose slots move while it is used."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from cluster_servers import ClusterServers, cluster_servers, port_of, wait_for
from timed_namespace import new_page

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.state.connection import connect
from optimal_frontier.state.messages import KEEP, Handout, Observation
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import Ask, Belief, add_calls, dispatch_call, observe_calls, parse_dispatch, renew_call
from optimal_frontier.state.redis_url import parse_redis_url

PARTITIONS = 16
PATIENCE_S = 30.0


@pytest.fixture(scope="module", params=["redis", "valkey"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterServers]:
    """A cluster of three masters with a replica each."""
    with cluster_servers(request.param, tmp_path_factory.mktemp("cluster"), replicas=1) as servers:
        yield servers


@pytest.fixture
def space(servers: ClusterServers) -> Iterator[Namespace]:
    """A new namespace of 16 partitions, of three pages each; all nodes live."""
    servers.restore()
    with connect(parse_redis_url(servers.url(*servers.clients), Path())) as connection:
        namespace = Namespace(connection, f"test-{uuid.uuid4().hex[:12]}")
        namespace.open(spider="test", partitions=PARTITIONS)
        namespace.run([call for k in range(PARTITIONS) for call in add_calls(k, [new_page(f"h{k}/{i}") for i in range(3)])])
        yield namespace


def take(space: Namespace, n: int = 5, partitions: range | list[int] = range(PARTITIONS)) -> list[Handout]:
    belief = Belief(run=space.run_id)
    replies = space.run([dispatch_call(k, Ask(n, belief=belief)) for k in partitions])
    return [one for k, reply in zip(partitions, replies, strict=True) for one in parse_dispatch(k, reply).handouts]


def end(space: Namespace, handed: list[Handout]) -> list[int]:
    """Tell that pages were visited, one call each; return of each whether it counted."""
    calls = []
    for handout in handed:
        row = handout.row._replace(b=handout.at * 1e6, a=0.0, s=0.0, e=0.0, l=0.0, visits=handout.row.visits + 1)
        calls += observe_calls(handout.partition, [Observation(handout, KEEP, row, counters={"visits": 1})], [handout.token])
    return [reply[0] for reply in space.run(calls)]


def until_it_answers(space: Namespace) -> float:
    """Call all partitions until they answer, as crawlers do; return how long that took."""
    began = time.monotonic()
    while True:
        with contextlib.suppress(StateUnavailableError):
            space.connection.reconnect()
            space.run([dispatch_call(k, Ask(0)) for k in range(PARTITIONS)])
            return time.monotonic() - began
        assert time.monotonic() < began + PATIENCE_S
        time.sleep(0.1)


def of_node(servers: ClusterServers, space: Namespace, client: redis.Redis) -> list[int]:
    return [k for k in range(PARTITIONS) if servers.master_of(space.prefix(k)) is client]


@pytest.mark.parametrize("killed", [0, 5])
def test_a_replica_that_takes_over_has_pages_and_leases(servers: ClusterServers, space: Namespace, killed: int) -> None:
    """Whether the node had the first partition, which all others depend on, or another one."""
    handed = take(space)
    assert len(handed) == 3 * PARTITIONS
    node = servers.master_of(space.prefix(killed))
    for master in servers.masters:
        wait_for(lambda master=master: master.wait(1, 1000))  # type: ignore[misc]
    servers.kill(node)
    with pytest.raises(StateUnavailableError, match=f", node 127.0.0.1:{port_of(node)} "):
        take(space)
    until_it_answers(space)
    assert end(space, handed) == [1] * len(handed)
    assert end(space, handed) == [0] * len(handed)
    assert space.is_there()
    counts = space.counts()
    assert (counts["pages"], counts["visits"], counts["dispatched"], counts["ended"]) == (48, 48, 48, 48)
    assert len(take(space)) == 48


def test_a_master_that_goes_silent_is_left_after_the_timeout_of_the_url(servers: ClusterServers, space: Namespace) -> None:
    with connect(parse_redis_url(f"{servers.url(*servers.clients)}?socket_timeout=0.5", Path())) as connection:
        other = Namespace(connection, space.name)
        other.open(spider="test")
        handed = take(other)
        for master in servers.masters:
            wait_for(lambda master=master: master.wait(1, 1000))  # type: ignore[misc]
        servers.silence(servers.master_of(space.prefix(0)))
        with pytest.raises(StateUnavailableError, match="did not answer in time"):
            take(other)
        assert until_it_answers(other) < PATIENCE_S / 2
        assert end(other, handed) == [1] * 48


def test_what_a_replica_has_not_seen_is_refused_and_done_once_more(servers: ClusterServers, space: Namespace) -> None:
    """A lease and a visit that were lost with a master: nobody holds the pages, and each of them counts once."""
    node = servers.master_of(space.prefix(7))
    mine = of_node(servers, space, node)
    before = take(space, 1, mine)
    servers.cut_off_replicas(node)
    after = take(space, 1, mine)
    assert end(space, before) == [1] * len(mine)
    servers.kill(node)
    until_it_answers(space)
    renewals = space.run([renew_call(one.partition, [(one.page, one.token, one.token + 2e6)]) for one in after])
    assert renewals == [[0]] * len(mine)
    assert end(space, after) == [0] * len(mine)
    assert end(space, before) == [1] * len(mine)
    again = take(space, 5, mine)
    assert {one.page for one in after} <= {one.page for one in again}
    assert end(space, again) == [1] * len(again)
    assert {space.counts(k)["visits"] for k in mine} == {4}


def test_a_replica_that_is_down_is_no_reason_to_refuse_anybody(servers: ClusterServers, space: Namespace) -> None:
    replica = next(client for client in servers.clients if client not in servers.masters)
    servers.kill(replica)
    with connect(parse_redis_url(servers.url(*servers.clients), Path())) as connection:
        other = Namespace(connection, space.name)
        other.open(spider="test")
        assert len(take(other)) == 48
        connection.reconnect()
        assert other.counts()["dispatched"] == 48


def test_slots_move_under_calls(servers: ClusterServers, space: Namespace) -> None:
    """All that is asked meanwhile is answered, or told as an outage that is over soon; nothing counts twice or is lost."""
    source, target, count = servers.nearest_move(map(space.prefix, range(PARTITIONS)))
    mine = of_node(servers, space, source)
    target.script_flush()
    refused, visits = 0, 0
    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(servers.move_slots, source, target, count)
        while not moving.done():
            for k in range(PARTITIONS):
                try:
                    visits += sum(end(space, take(space, 5, [k])))
                except StateUnavailableError:
                    refused += 1
        moving.result()
    assert visits > 48
    moved = [k for k in mine if servers.master_of(space.prefix(k)) is target]
    assert moved
    # A call whose reply told of a move was not done; a lease whose visit could not be told runs on.
    counts = space.counts()
    assert counts["visits"] == visits
    assert 0 <= counts["dispatched"] - counts["ended"] <= 3 * refused
    assert counts["pages"] == 48
    assert all(space.connection.client_of(space.prefix(k)).info("server")["tcp_port"] for k in moved)
