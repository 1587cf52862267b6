"""A namespace whose partitions lie on all nodes of a real Redis Cluster, also while the cluster moves them."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from cluster_servers import ClusterServers, cluster_servers, free_port, port_of
from real_server import binary_of, real_server
from timed_namespace import new_page

from optimal_frontier.errors import StateError, StateUnavailableError
from optimal_frontier.state.connection import Connection, connect
from optimal_frontier.state.messages import KEEP, Observation
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import Ask, add_calls, dispatch_call, observe_calls, parse_dispatch
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.scan_ahead import Scan
from optimal_frontier.state.url_keys import UrlKeys

PARTITIONS = 16
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=["redis", "valkey"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterServers]:
    """A cluster of three nodes."""
    with cluster_servers(request.param, tmp_path_factory.mktemp("cluster")) as servers:
        yield servers


@pytest.fixture
def nodes(servers: ClusterServers) -> list[redis.Redis]:
    """Clients of the three nodes."""
    return servers.clients


@pytest.fixture
def crawl(nodes: list[redis.Redis]) -> Iterator[Namespace]:
    """A new namespace of 16 partitions."""
    with connection_to(nodes[0]) as connection:
        namespace = Namespace(connection, f"test-{uuid.uuid4().hex[:12]}")
        namespace.open(spider="test", partitions=PARTITIONS)
        yield namespace


def connection_to(client: redis.Redis) -> Connection:
    return connect(parse_redis_url(f"redis+cluster://127.0.0.1:{port_of(client)}", Path()))


def add_everywhere(crawl: Namespace) -> None:
    replies = crawl.run([call for k in range(PARTITIONS) for call in add_calls(k, [new_page(f"h{k}/{i}") for i in range(3)])])
    assert replies == [[1, 1, 1]] * PARTITIONS


def visit_everywhere(crawl: Namespace) -> list[str]:
    """Dispatch from all partitions in one call, and observe all of it; return the URLs."""
    replies = crawl.run([dispatch_call(k, Ask(5)) for k in range(PARTITIONS)])
    handed = [handout for k, reply in enumerate(replies) for handout in parse_dispatch(k, reply).handouts]
    calls = []
    for handout in handed:
        row = handout.row._replace(b=handout.at * 1e6, a=0.0, s=0.0, e=0.0, l=0.0, visits=handout.row.visits + 1)
        calls += observe_calls(handout.partition, [Observation(handout, KEEP, row, counters={"visits": 1})], [handout.token])
    assert crawl.run(calls) == [b"\x01"] * len(handed)
    return sorted(handout.record["url"] for handout in handed)


@contextlib.contextmanager
def migrating(nodes: list[redis.Redis], slot: int, source_port: int, target: redis.Redis) -> Iterator[None]:
    """Move a slot between two nodes; within the block it is under way."""
    source = next(client for client in nodes if port_of(client) == source_port)
    names = {port_of(client): client.execute_command("CLUSTER MYID").decode() for client in (source, target)}
    target.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source_port])
    source.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", names[port_of(target)])
    yield
    keys = source.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1000)
    source.execute_command("MIGRATE", "127.0.0.1", port_of(target), "", 0, 5000, "KEYS", *keys)
    for client in (target, source, *nodes):
        client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", names[port_of(target)])


URLS = sorted(f"http://h{k}/{i}" for k in range(PARTITIONS) for i in range(3))


def test_partitions_lie_on_all_nodes_and_each_does_all(nodes: list[redis.Redis], crawl: Namespace) -> None:
    add_everywhere(crawl)
    used = {port_of(crawl.connection.client_of(crawl.prefix(k))) for k in range(PARTITIONS)}
    assert used == {port_of(client) for client in nodes}
    assert visit_everywhere(crawl) == URLS
    assert visit_everywhere(crawl) == URLS
    counts = crawl.counts()
    assert (counts["pages"], counts["visits"], counts["dispatched"], counts["ended"]) == (48, 96, 96, 96)


@pytest.mark.parametrize("asked", [0, 1, 2])
def test_any_node_leads_to_all_partitions(nodes: list[redis.Redis], crawl: Namespace, asked: int) -> None:
    add_everywhere(crawl)
    with connection_to(nodes[asked]) as connection:
        other = Namespace(connection, crawl.name)
        other.open(spider="test")
        assert other.partitions == PARTITIONS
        assert other.counts()["pages"] == 48
        assert visit_everywhere(other) == URLS
        connection.reconnect()
        assert visit_everywhere(other) == URLS


def test_partitions_that_the_cluster_moves_are_followed(nodes: list[redis.Redis], crawl: Namespace) -> None:
    add_everywhere(crawl)
    moved = 3
    slot = int(nodes[0].cluster("KEYSLOT", crawl.prefix(moved)))
    source = crawl.connection.client_of(crawl.prefix(moved))
    target = next(client for client in nodes if port_of(client) != port_of(source))
    with migrating(nodes, slot, port_of(source), target):
        # Half way nothing is lost, and nothing done: a crawler comes back to it.
        with pytest.raises(StateUnavailableError, match="moving"):
            crawl.run([dispatch_call(moved, Ask(5))])
        others = [k for k in range(PARTITIONS) if k != moved]
        assert all(
            parse_dispatch(k, reply).handouts
            for k, reply in zip(others, crawl.run([dispatch_call(k, Ask(1)) for k in others]), strict=True)
        )
    assert len(parse_dispatch(moved, crawl.run([dispatch_call(moved, Ask(5))])[0]).handouts) == 3
    assert port_of(crawl.connection.client_of(crawl.prefix(moved))) == port_of(target)
    assert crawl.hash("stats", moved)["dispatched"] == "3"


@pytest.mark.parametrize("is_scan", [False, True], ids=["plain command", "scan"])
def test_what_is_no_script_follows_too(nodes: list[redis.Redis], crawl: Namespace, is_scan: bool) -> None:
    k = 6 if is_scan else 5
    crawl.command("HSET", crawl.key("stats", k), "x", 1, partition=k)
    slot = int(nodes[0].cluster("KEYSLOT", crawl.prefix(k)))
    source = crawl.connection.client_of(crawl.prefix(k))
    target = next(client for client in nodes if port_of(client) != port_of(source))
    with migrating(nodes, slot, port_of(source), target):
        pass
    if is_scan:
        assert list(crawl.scan(Scan(crawl.key("stats", k), 0, 100, 1e9), partition=k)) == [(0, [b"x", b"1"])]
    else:
        assert crawl.command("HGET", crawl.key("stats", k), "x", partition=k) == b"1"


def test_nodes_that_forgot_the_scripts_get_them_again(nodes: list[redis.Redis], crawl: Namespace) -> None:
    add_everywhere(crawl)
    for client in nodes:
        client.script_flush()
    assert visit_everywhere(crawl) == URLS


def test_a_server_that_is_no_cluster_is_called_so(tmp_path: Path) -> None:
    with (
        real_server(binary_of("redis"), tmp_path, {"port": free_port()}) as port,
        pytest.raises(StateError, match="is no cluster; redis:// is for a single server"),
    ):
        connect(parse_redis_url(f"redis+cluster://127.0.0.1:{port}", Path()))


def test_of_several_nodes_in_the_url_one_that_answers_is_enough(nodes: list[redis.Redis], crawl: Namespace) -> None:
    """In whatever order they stand, and again when the connection is made anew."""
    add_everywhere(crawl)
    down = f"127.0.0.1:{free_port()}"
    up = f"127.0.0.1:{port_of(nodes[1])}"
    for hosts in (f"{down},{up}", f"{up},{down}"):
        with connect(parse_redis_url(f"redis+cluster://{hosts}", Path())) as connection:
            other = Namespace(connection, crawl.name)
            other.open(spider="test")
            connection.reconnect()
            assert other.counts()["pages"] == 48


def test_a_cluster_that_does_not_answer_is_unavailable() -> None:
    """One line names all nodes of the URL, and no password."""
    nodes = ",".join(f"127.0.0.1:{free_port()}" for _ in range(3))
    with pytest.raises(StateUnavailableError) as caught:
        connect(parse_redis_url(f"redis+cluster://crawler:s3cr3t-Pa55@{nodes}", Path()))
    text = str(caught.value)
    assert text == f"cannot reach Redis at redis+cluster://{nodes} (OPTIMAL_FRONTIER_REDIS_URL): connection refused; is the server running?"


def test_a_wrong_password_of_a_cluster_is_called_so(nodes: list[redis.Redis]) -> None:
    """And no cluster that does not answer, or that is none."""
    with pytest.raises(StateUnavailableError, match="wrong password or user") as caught:
        connect(parse_redis_url(f"redis+cluster://nobody:s3cr3t-Pa55@127.0.0.1:{port_of(nodes[0])}", Path()))
    assert "s3cr3t" not in str(caught.value)


def test_a_user_who_may_not_read_the_map_lacks_a_permission(nodes: list[redis.Redis]) -> None:
    nodes[0].execute_command("ACL", "SETUSER", "blind", "on", ">s3cr3t-Pa55", "~*", "+@all", "-cluster")
    with pytest.raises(StateError, match="the user lacks a permission"):
        connect(parse_redis_url(f"redis+cluster://blind:s3cr3t-Pa55@127.0.0.1:{port_of(nodes[0])}", Path()))


def test_users_with_few_rights_need_the_map_of_slots_beside(nodes: list[redis.Redis], crawl: Namespace) -> None:
    """The crawler of deploy/users.acl, and what docs/deployment.md says is to be added."""
    (line,) = (line for line in (ROOT / "deploy" / "users.acl").read_text().splitlines() if line.startswith("user crawler "))
    words = line.replace("~shop:*", f"~{crawl.name}:*").replace("CHANGE-ME-1", "word").split()[2:]
    for node in nodes:
        node.execute_command("ACL", "SETUSER", "crawler", *words, "+cluster|slots", "+command")
        node.acl_log_reset()
    with connect(parse_redis_url(f"redis+cluster://crawler:word@127.0.0.1:{port_of(nodes[2])}", Path())) as connection:
        other = Namespace(connection, crawl.name)
        other.open(spider="test")
        add_everywhere(other)
        assert visit_everywhere(other) == URLS
        connection.reconnect()
        assert other.counts()["visits"] == 48
    refused = [entry["object"] for node in nodes for entry in node.acl_log() if not str(entry["object"]).startswith("client|")]
    assert refused == []


def test_keys_of_urls_may_lie_on_any_node(crawl: Namespace) -> None:
    """Also while the cluster's map is not known: entries of each type are read, removed and put aside."""
    store, kinds = UrlKeys(crawl), {"list": "RPUSH", "set": "SADD", "zset": "ZADD"}
    assert store.take_lock()
    assert not UrlKeys(crawl).take_lock()
    for i in range(6):
        for kind, command in kinds.items():
            key = f"{crawl.name}-{kind}-{i}"
            crawl.commands([[command, key, *([] if kind != "zset" else [i]), f"http://a.org/{i}"]], at=key)
            assert store.type_of(key) == kind
            (entry,) = store.read(key, kind, 10)
            assert entry == (f"http://a.org/{i}".encode(), i if kind == "zset" else 0)
            store.put_aside(key, [(entry, "no page")])
            store.remove(key, kind, [entry])
            assert store.type_of(key) == "none"
    assert crawl.command("LLEN", crawl.key("refused_urls")) == 18
    store.release_lock()
    assert UrlKeys(crawl).take_lock()
