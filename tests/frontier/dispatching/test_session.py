"""A session from connecting to giving back its leases."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from clocked_namespace import page_of, settings_of

from optimal_frontier.errors import ConfigurationError, SchemaMismatchError
from optimal_frontier.frontier.dispatching import session
from optimal_frontier.frontier.dispatching.session import Session
from optimal_frontier.state.connection import Connection


def test_a_session_of_another_spider_is_refused_before_anything_runs(redis_socket, redis_client, namespace):
    """And a closed session leaves neither lease nor lock."""
    settings = settings_of(REDIS_URL=f"unix://{redis_socket}", NAMESPACE=namespace, CRAWL_RATE=10)
    first = Session(settings, Path(), "first", lambda: None)
    with pytest.raises(SchemaMismatchError, match="'first'"):
        Session(settings, Path(), "second", lambda: None)
    first.courier.add([page_of("a.org/news/1")])
    assert first.courier.flush(10)
    first.courier.ask(5, {}, 0)
    assert first.close()
    key = first.namespace.key
    assert redis_client.hget(key("stats"), "pages") == b"1"
    assert not redis_client.exists(key("planner"))
    counts = {name.decode(): int(value) for name, value in redis_client.hgetall(key("stats")).items()}
    assert counts.get("dispatched", 0) == counts.get("ended", 0)


def test_another_number_of_partitions_is_refused(redis_socket, namespace):
    settings = {"REDIS_URL": f"unix://{redis_socket}", "NAMESPACE": namespace, "CRAWL_RATE": 10}
    assert Session(settings_of(**settings, PARTITIONS=3), Path(), "first", lambda: None).close()
    with pytest.raises(ConfigurationError, match="PARTITIONS"):
        Session(settings_of(**settings), Path(), "first", lambda: None)


def test_a_server_that_removes_keys_is_told_of(redis_socket, namespace, caplog, monkeypatch):
    monkeypatch.setattr(Connection, "eviction_policy", lambda self: "allkeys-lru")
    assert Session(settings_of(REDIS_URL=f"unix://{redis_socket}", NAMESPACE=namespace, CRAWL_RATE=10), Path(), "a", lambda: None).close()
    (told,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert f"Redis at unix://{redis_socket}" in told
    assert told.endswith("(maxmemory-policy allkeys-lru): set it to noeviction")


@pytest.mark.parametrize("is_new", [False, True])
def test_another_name_in_a_namespace_ends_a_crawler_only_if_it_is_a_new_one(redis_socket, redis_client, namespace, is_new, caplog):
    """What somebody has written over the name of the spider is put right; a namespace that another spider has begun since is its own."""
    settings = settings_of(REDIS_URL=f"unix://{redis_socket}", NAMESPACE=namespace, CRAWL_RATE=10)
    first = Session(settings, Path(), "first", lambda: None)
    meta = first.namespace.key("meta")
    redis_client.hset(meta, mapping={"spider": "other"} | ({"run": 12345} if is_new else {}))
    try:
        if is_new:
            with pytest.raises(SchemaMismatchError, match="belongs to the spider 'other'"):
                first.dispatcher.join()
        else:
            first.dispatcher.join()
    finally:
        first.close()
    assert redis_client.hget(meta, "spider") == (b"other" if is_new else b"first")
    told = [record.message for record in caplog.records if "meta spider was 'other'" in record.message]
    assert len(told) == (0 if is_new else 1)


def test_damage_done_while_a_crawler_joins_an_emptied_server_ends_nothing(redis_socket, redis_client, namespace, monkeypatch):
    settings = settings_of(REDIS_URL=f"unix://{redis_socket}", NAMESPACE=namespace, CRAWL_RATE=10)
    first = Session(settings, Path(), "first", lambda: None)
    key, mend, damaged = first.namespace.key, session.mend, iter(["sources", "priors"])

    def mend_and_be_damaged(*arguments, **values):
        told = mend(*arguments, **values)
        for name in damaged:
            redis_client.delete(key(name))
            redis_client.rpush(key(name), "mine")
            break
        return told

    monkeypatch.setattr(session, "mend", mend_and_be_damaged)
    first.courier.ask(5, {}, 0)
    while not redis_client.exists(key("d")):  # it has called, and can tell
        threading.Event().wait(0.02)
    redis_client.delete(key("meta"), key("d"))
    first.courier.look_again()
    for _ in range(200):
        if first.courier.beginnings or first.courier.failure is not None:
            break
        threading.Event().wait(0.05)
    assert first.courier.failure is None
    assert first.courier.beginnings == 1
    assert first.close()
    assert redis_client.hget(key("meta"), "spider") == b"first"
    assert redis_client.lrange(key("priors:damaged"), 0, -1) == [b"mine"]


def test_a_process_that_ends_without_closing_takes_the_end_of_its_server_for_no_outage(tmp_path):
    """As Scrapy does that is interrupted while it begins; nor does the courier start the server again."""
    program = """
import atexit, logging, pathlib, sys, time
from clocked_namespace import settings_of
from optimal_frontier.frontier.dispatching.session import Session
from optimal_frontier.state.connection import Connection
atexit.register(time.sleep, 0.5)  # the last to run: time for the courier to do what it must not
logging.basicConfig(level=logging.INFO)
Session(settings_of(REDIS_URL="embedded"), pathlib.Path(sys.argv[1]), "first", lambda: None)
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    told = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], env=environment, capture_output=True, text=True, check=True
    ).stderr
    assert told.count("Started the embedded server") == told.count("Stopped the embedded server") == 1
    assert "WARNING" not in told
