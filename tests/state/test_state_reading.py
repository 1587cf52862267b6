"""Readers: what they say is what is stored, and reading changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_store import START, ClockedStore, fingerprint, new_page

from optimal_frontier.errors import StateError
from optimal_frontier.state import reading
from optimal_frontier.state.columns import ACTIVE
from optimal_frontier.state.connection import connect, parse_redis_url
from optimal_frontier.state.snapshot import read_snapshot


def dump(store: ClockedStore) -> dict[bytes, bytes]:
    """Everything that is stored, as it is stored."""
    client = store.connection.client
    return {key: client.dump(key) for key in client.scan_iter(f"{store.prefix}*", count=1000)}


@pytest.fixture
def filled(store: ClockedStore) -> ClockedStore:
    store.add(*(new_page(f"h{at % 3}/{at}", importance=at + 1.0) for at in range(9)))
    for handout in store.dispatch(6)[0]:
        store.observe(handout, bit=-1, rate=0.1, lateness=0.5)
    store.dispatch(1, owner="late")
    return store


def test_reading_changes_nothing(filled):
    before = dump(filled)
    reading.read_status(filled)
    assert reading.read_page(filled, fingerprint("h0/0")) is not None
    reading.read_table(filled)
    reading.read_urls(filled, range(9))
    read_snapshot(filled)
    assert dump(filled) == before


def test_status(filled):
    status = reading.read_status(filled)
    assert (status.now, status.in_flight, status.hosts, status.crawlers) == (START, 1, 3, 2)
    assert status.counts["pages"] == 9
    assert status.counts["pending"] == 3
    assert status.lateness.tolist() == [0.5] * 6
    assert status.due == 0
    filled.advance(20.0)  # each is due after 10 s
    status = reading.read_status(filled)
    assert (status.due, status.crawlers) == (6, 0)


def test_a_page(filled):
    for name in ("h0/0", "h1/1", "h2/8"):
        page = reading.read_page(filled, fingerprint(name))
        slot = filled.slot(name)
        assert page.slot == slot
        assert page.host == name[:2]
        assert page.record == {"url": f"http://{name}"}
        for group in ("page", "seen", "plan"):
            stored = filled.records_at(group, [slot])[0]
            assert getattr(page, group) == dict(zip(stored.dtype.names, stored.item(), strict=True))
        queued = filled.command("ZSCORE", filled.key(f"due:{page.page['host']}"), slot)
        assert page.queued == (None if queued is None else float(queued))
    assert reading.read_page(filled, fingerprint("h0/none")) is None


def test_a_lease_and_a_blocked_host_are_seen(filled):
    (handout,), _ = filled.dispatch(1, owner="me", host_delay=30.0)
    url = handout.record["url"].removeprefix("http://")
    page = reading.read_page(filled, fingerprint(url))
    assert page.lease is not None
    assert (page.lease["owner"], page.lease["token"]) == ("me", handout.token.decode())
    assert page.host_opens == START + 30.0


def test_a_damaged_record_is_an_error_of_ours(filled):
    filled.command("HSET", filled.key("records"), filled.slot("h0/0"), b"\xc1")
    with pytest.raises(StateError, match="cannot be read"):
        reading.read_page(filled, fingerprint("h0/0"))
    with pytest.raises(StateError, match="cannot be read"):
        reading.read_urls(filled, [filled.slot("h0/0")])


def test_the_table(filled):
    table = reading.read_table(filled)
    assert len(table.page) == len(table.seen) == len(table.plan) == 9
    assert (table.page["state"] == ACTIVE).all()
    assert table.leased.sum() == 1
    assert sorted(table.hosts.values()) == ["h0", "h1", "h2"]


def test_urls_and_places_come_in_order_and_in_batches(filled, monkeypatch):
    slots = np.arange(9)
    hosts = reading.read_table(filled).page["host"]
    urls, places = reading.read_urls(filled, slots.tolist()), reading.read_queued(filled, slots, hosts)
    assert urls == [f"http://h{at % 3}/{at}" for at in range(9)]
    assert np.isnan(places).sum() == 3
    monkeypatch.setattr(reading, "BATCH", 2)
    assert reading.read_queued(filled, slots, hosts) == pytest.approx(places, nan_ok=True)
    assert reading.read_urls(filled, [99]) == [None]


def test_a_snapshot_of_many_is_complete(store):
    """More than one reply of every scan, and more hosts than a pipeline takes."""
    store.add(*(new_page(f"host{at % 1200}/{at}") for at in range(5000)))
    for handout in store.dispatch(1500)[0][:300]:
        store.observe(handout, rate=0.1)
    snapshot = read_snapshot(store)
    assert snapshot.slots == len(snapshot.ids) == len(snapshot.records) == 5000
    assert len(snapshot.hosts) == len(snapshot.heads) == 1200
    assert len(snapshot.leases) == len(snapshot.expiry) == len(snapshot.owned["me"]) == 1200
    assert len(snapshot.first[0]) == 3500
    assert len(snapshot.due[0]) == 300
    assert (snapshot.page["host"][snapshot.first[0]] == snapshot.first[1]).all()
    assert (snapshot.page["host"][snapshot.due[0]] == snapshot.due[1]).all()
    assert snapshot.events == 0


def test_an_empty_namespace_is_empty(redis_socket, namespace, tmp_path):
    with connect(parse_redis_url(f"unix://{redis_socket}", tmp_path)) as connection:
        store = ClockedStore(connection, namespace)
        assert reading.is_empty(store)
        store.open()
        assert not reading.is_empty(store)
        status = reading.read_status(store)
        assert (status.in_flight, status.due, status.hosts, status.published) == (0, 0, 0, {})
        assert len(reading.read_table(store).page) == 0
