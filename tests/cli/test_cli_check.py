"""``check``: a whole state passes, also under a crawl; every kind of damage is found."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from clocked_store import ClockedStore

from optimal_frontier.cli.identity import identity
from optimal_frontier.frontier.deadlines import deadlines_at_most
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.state import consistency
from optimal_frontier.state.columns import CHUNK, ONCE, PAGE, PLAN, SEEN, TRANSIENT
from optimal_frontier.state.connection import connect, parse_redis_url

from .stored_crawl import HOT, SETTINGS, UNSEEN, WARM


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(consistency, "PAUSE_S", 0.0)


def test_a_whole_state_passes(run, ask, crawl):
    result = run("check")
    assert (result.exit_code, result.stdout) == (0, "ok, 4 pages\n")
    assert ask("check") == {"ok": True, "pages": 4, "violations": [], "warnings": []}


def test_requests_of_every_kind_pass(ask, crawl):
    """Leased, fetched once, transient, failed, gone, retired, forgotten, blocked."""
    store = crawl.store
    for name in range(8):
        store.add(crawl.page(f"http://d{name}.example/", kind=(ONCE, TRANSIENT)[name % 2]))
        store.add(crawl.page(f"http://e{name}.example/"))
    assert ask("check")["ok"]
    handouts, _ = store.dispatch(12, host_delay=100.0)
    assert ask("check")["ok"]
    for at, handout in enumerate(handouts[:8]):
        store.observe(handout, ("ok", "failed", "gone", "released")[at % 4], horizon=20.0)
    assert ask("check")["ok"]
    for _ in range(3):
        store.advance(1000.0)
        for handout in store.dispatch(100)[0]:
            store.observe(handout, "gone", horizon=20.0)
        assert ask("check")["violations"] == []
    assert ask("status")["retired"] > 0


def poke(crawl, group, url, field, value):
    """Overwrite one field of one page."""
    layout = {"page": PAGE, "seen": SEEN, "plan": PLAN}[group]
    slot = crawl.slot_of(url)
    row = crawl.store.records_at(group, [slot])
    row[field] = value
    crawl.store.command("SETRANGE", crawl.store.key(f"{group}:{slot // CHUNK}"), slot % CHUNK * layout.itemsize, row.tobytes())


def command(crawl, name, key, *arguments):
    crawl.store.command(name, crawl.store.key(key), *arguments)


def lease(crawl):
    crawl.store.advance(1e5)
    return crawl.store.dispatch(1)[0][0].slot


DAMAGE = {
    "an identity points nowhere": (lambda c: command(c, "HSET", "ids", b"x" * 20, 99), "identities", "points to no slot"),
    "an identity is garbage": (lambda c: command(c, "HSET", "ids", b"x" * 20, "junk"), "identities", "points to no slot"),
    "two identities share a slot": (lambda c: command(c, "HSET", "ids", b"x" * 20, 0), "identities", "more than one identity"),
    "a page lost its identity": (lambda c: command(c, "DEL", "ids"), "identities", "without an identity"),
    "a page lost its record": (lambda c: command(c, "HDEL", "records", 0), "records", "record is missing"),
    "a record is garbage": (lambda c: command(c, "HSET", "records", 0, b"\xc1"), "records", "cannot be read"),
    "a slot in use is in the free list": (lambda c: command(c, "RPUSH", "free", 0), "free", "but in use"),
    "the free list names what is not there": (lambda c: command(c, "RPUSH", "free", 99), "free", "does not exist"),
    "a free slot is lost": (
        lambda c: (c.store.run([("forget_page", [identity(HOT)])]), command(c, "DEL", "free")),
        "free",
        "not in the free",
    ),
    "a state is unknown": (lambda c: poke(c, "page", HOT, "state", 77), "states", "unknown state"),
    "a lease never expires": (lambda c: (lease(c), command(c, "DEL", "leases:expiry")), "expiry", "never expires"),
    "an expiry has no lease": (lambda c: command(c, "ZADD", "leases:expiry", 1, 0), "expiry", "but no lease"),
    "an owner does not hold its lease": (lambda c: (lease(c), command(c, "DEL", "owner:me")), "leases", "set of its owner"),
    "an owner holds what is not leased": (
        lambda c: (command(c, "ZADD", "owners", 1, "me"), command(c, "SADD", "owner:me", 0)),
        "owners",
        "but not leased",
    ),
    "a lease is garbage": (lambda c: command(c, "HSET", "leases", 0, "junk"), "leases", "cannot be read"),
    "a leased page is queued": (lambda c: command(c, "ZADD", "due:1", 1e12, lease(c)), "due queue lease", "while leased"),
    "a page is in the queue of another host": (lambda c: command(c, "ZADD", "due:2", 3e9, 0), "due queue host", "of another host"),
    "a queue names what is not there": (lambda c: command(c, "ZADD", "due:1", 3e9, 99), "due queue", "does not exist"),
    "a queued page is not active": (lambda c: poke(c, "page", WARM, "state", 5), "due queue state", "not active"),
    "a head is wrong": (lambda c: command(c, "ZADD", "hosts:due", 1.0, 1), "deadline heads", "hosts:due says"),
    "a first-visit head is lost": (lambda c: command(c, "DEL", "hosts:first"), "first-visit heads", "does not hold the head"),
    "a new page is not queued": (lambda c: command(c, "DEL", "first:2"), "first visits", "not queued and not leased"),
    "a counter is wrong": (lambda c: command(c, "HINCRBY", "stats", "pages", 1), "counters", "counter says 5, the columns say 4"),
    "a value is not finite": (lambda c: poke(c, "plan", HOT, "rate", np.nan), "finite plan.rate", "not finite"),
    "an importance is 0": (lambda c: poke(c, "page", HOT, "importance", 0.0), "values: importance is not above 0", "importance"),
    "more changes than observations": (lambda c: poke(c, "seen", HOT, "changes", 9), "values: more changes than observations", "changes"),
    "a host has no name": (lambda c: poke(c, "page", UNSEEN, "host", 9), "hosts", "no name"),
    "a column is too short": (lambda c: command(c, "SET", "page:0", b"\0" * 48), "columns", "expected"),
    "a column is out of step": (lambda c: command(c, "APPEND", "plan:0", b"\0"), "columns", "in steps of 24"),
}


@pytest.mark.parametrize("damage", DAMAGE, ids=[name.replace(" ", "-") for name in DAMAGE])
def test_damage_is_found_and_named(ask, crawl, damage):
    inflict, invariant, message = DAMAGE[damage]
    inflict(crawl)
    answer = ask("check", code=1)
    assert answer["ok"] is False
    found = [finding for finding in answer["violations"] if finding["invariant"] == invariant]
    assert found, answer["violations"]
    assert any(message in finding["message"] for finding in found)


def test_people_get_a_line_each(run, crawl):
    command(crawl, "HDEL", "records", crawl.slot_of(HOT))
    result = run("check")
    assert result.exit_code == 1
    assert f"slot {crawl.slot_of(HOT)} holds a page whose record is missing" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 violations, 4 pages"


def test_a_page_that_fell_out_of_its_queue_is_a_warning(ask, crawl):
    """The next plan puts it back."""
    planned = {row["url"]: row["deadline"] for row in ask("pages")}
    near = min((url for url in planned if planned[url] is not None), key=planned.__getitem__)
    crawl.store.command("ZREM", crawl.store.key("due:1"), crawl.slot_of(near))
    crawl.store.command("ZREM", crawl.store.key("hosts:due"), 1)
    head = crawl.store.command("ZRANGE", crawl.store.key("due:1"), 0, 0, "WITHSCORES")
    if head:
        crawl.store.command("ZADD", crawl.store.key("hosts:due"), head[0][1] if isinstance(head[0], tuple) else head[1], 1)
    report = consistency.check_state(crawl.store, deadlines_at_most, 2e6)
    assert [finding.subject for finding in report.warnings if finding.subject == f"slot {crawl.slot_of(near)}"]
    Planner(crawl.store, SETTINGS).plan()


def test_a_running_crawl_passes(redis_socket, namespace, crawl, ask, monkeypatch):
    """Nothing is locked: what only seemed broken while it was read is not reported."""
    monkeypatch.setattr(consistency, "PAUSE_S", 0.05)
    crawl.store.add(*(crawl.page(f"http://h{at % 5}.example/{at}", kind=(1, 1, 1, TRANSIENT)[at % 4]) for at in range(400)))
    stop = threading.Event()

    def crawl_on() -> None:
        other = ClockedStore(connect(parse_redis_url(f"unix://{redis_socket}", Path())), namespace)
        at = 0
        while not stop.is_set():
            other.advance(0.01)
            handouts, _ = other.dispatch(20, owner=f"worker-{threading.get_ident()}")
            for handout in handouts:
                at += 1
                other.observe(handout, ("ok", "ok", "failed", "released")[at % 4], rate=5.0, horizon=20.0)
            other.add(crawl.page(f"http://n{at % 7}.example/{at}"))
        other.connection.close()

    thread = threading.Thread(target=crawl_on)
    thread.start()
    try:
        for _ in range(5):
            answer = ask("check")
            assert answer["violations"] == []
    finally:
        stop.set()
        thread.join()
