"""Foreign state is refused with one clear message, and left as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from clocked_store import ClockedStore, fingerprint, new_page

from optimal_frontier.errors import SchemaMismatchError, StateError
from optimal_frontier.state.connection import connect, parse_redis_url
from optimal_frontier.state.store import KEY_TYPES, SCHEMA, Store


@pytest.fixture
def fresh(redis_socket, namespace):
    """A store that was not opened, on an empty namespace."""
    with connect(parse_redis_url(f"unix://{redis_socket}", Path())) as connection:
        yield Store(connection, namespace)


def dump(client, namespace: str) -> dict[bytes, bytes]:
    """All that is stored under the namespace."""
    return {key: client.dump(key) for key in client.scan_iter(f"{namespace}*", count=10_000)}


def test_a_namespace_belongs_to_the_spider_that_used_it_first(fresh, redis_client, namespace):
    fresh.open(spider="first")
    before = dump(redis_client, namespace)
    with pytest.raises(SchemaMismatchError) as caught:
        fresh.open(spider="second")
    message = str(caught.value)
    assert "'first'" in message
    assert "'second'" in message
    assert "OPTIMAL_FRONTIER_NAMESPACE" in message
    assert "\n" not in message
    assert dump(redis_client, namespace) == before
    fresh.open(spider="first")
    fresh.open()  # readers ask for no spider


@pytest.mark.parametrize("version", ["0", "99", "1.0", ""])
@pytest.mark.parametrize("spider", [None, "mine"])
def test_another_schema_is_refused_and_left_alone(fresh, redis_client, namespace, version, spider):
    """Even a namespace that no spider has claimed is not claimed."""
    redis_client.hset(fresh.key("meta"), mapping={"schema": version, "clock": "5"})
    before = dump(redis_client, namespace)
    with pytest.raises(SchemaMismatchError, match=f"schema {version!r}.*reads schema {SCHEMA!r}.*Nothing was changed"):
        fresh.open(spider=spider)
    assert dump(redis_client, namespace) == before


def test_another_programs_hash_in_our_place_is_refused_and_left_alone(fresh, redis_client, namespace):
    redis_client.hset(fresh.key("meta"), "theirs", "1")
    before = dump(redis_client, namespace)
    with pytest.raises(SchemaMismatchError, match="no schema version"):
        fresh.open(spider="mine")
    assert dump(redis_client, namespace) == before


@pytest.mark.parametrize("name", sorted(KEY_TYPES))
def test_another_type_under_one_of_our_keys_is_refused_and_left_alone(fresh, redis_client, namespace, name):
    """Every key that there is one of."""
    if KEY_TYPES[name] == "string":
        redis_client.rpush(fresh.key(name), "theirs")
    else:
        redis_client.set(fresh.key(name), "theirs")
    before = dump(redis_client, namespace)
    with pytest.raises(SchemaMismatchError, match=f"the key .*{name} holds a .* nothing was changed") as caught:
        fresh.open(spider="mine")
    assert fresh.key(name) in str(caught.value)
    assert dump(redis_client, namespace) == before


def test_a_wrong_type_that_appears_later_is_reported_as_such(store: ClockedStore):
    """Also under the keys of chunks and hosts, of which there are many."""
    store.command("RPUSH", store.key("page:0"), "theirs")
    with pytest.raises(SchemaMismatchError, match="another type"):
        store.add(new_page("a/1"))


def test_reading_an_empty_namespace_creates_nothing(fresh, redis_client, namespace):
    fresh.open(create=False)
    assert dump(redis_client, namespace) == {}
    assert [len(column) for column in fresh.columns("page", "seen", "plan", "content")] == [0, 0, 0, 0]
    assert fresh.counts() == {}


def test_a_counter_that_is_no_number_is_named(store: ClockedStore):
    store.command("HSET", store.key("stats"), "pages", "many")
    with pytest.raises(StateError, match="stats"):
        store.counts()


def test_scripts_are_loaded_again_after_the_server_forgot_them(store: ClockedStore):
    """As after a restart; nothing runs twice."""
    assert store.add(new_page("a/1")) == [1]
    store.command("SCRIPT", "FLUSH")
    assert store.add(new_page("a/1"), new_page("a/2")) == [0, 1]
    assert store.counts()["pages"] == 2


def test_all_keys_of_a_partition_carry_one_hash_tag(store: ClockedStore, redis_client, namespace):
    """So that they live on one node of a Redis Cluster; and nothing is stored outside of the namespace."""
    known = {key for key in redis_client.scan_iter("*", count=10_000) if not key.startswith(namespace.encode())}
    store.add(new_page("a/1"), new_page("b/1"))
    store.visit_all(bit=1, lateness=0.5)
    store.plan(0, 1.0)
    store.dispatch(1, budget=5.0, host_delay=1.0)
    keys = set(redis_client.scan_iter(f"{namespace}*", count=10_000))
    assert len(keys) > 15
    assert all(key.startswith(f"{namespace}:{{0}}:".encode()) for key in keys)
    now = {key for key in redis_client.scan_iter("*", count=10_000) if not key.startswith(namespace.encode())}
    assert now <= known


def test_a_slot_given_back_is_used_again_under_another_generation(store: ClockedStore):
    """What was planned for the page before does not touch the new one."""
    store.add(new_page("a/old"))
    store.visit_all()
    stale = store.records_at("page", [0])["generation"][0]
    assert store.run([("forget_page", [fingerprint("a/old")])]) == [1]
    assert store.run([("forget_page", [fingerprint("a/old")])]) == [0]
    store.add(new_page("a/new"))
    assert store.slot("a/new") == 0
    store.visit_all()
    fence = store.run([("take_planner_lock", ["planner", 1_000_000])])[0]
    store.plan(0, 1.0)  # with a rate, so that only the generation keeps it out
    pair = (0).to_bytes(4, "little") + int(stale).to_bytes(4, "little")
    assert store.run([("queue_due", [fence, "1e15", pair])]) == [0]
    assert store.records_at("page", [0])["generation"][0] == stale + 1
