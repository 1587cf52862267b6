"""URL_KEYS: entries go when their pages are stored, never before; one process takes them at a time."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from clocked_namespace import page_of, settings_of

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.dispatching.session import Session
from optimal_frontier.frontier.dispatching.url_taking import BATCH, Converted, UrlTaking
from optimal_frontier.state.url_keys import UrlKeys


class Drained:
    """A session, and drains of one key of it that are looked with by hand."""

    def __init__(self, redis_socket: str, namespace: str, client: Any) -> None:
        settings = settings_of(REDIS_URL=f"unix://{redis_socket}", NAMESPACE=namespace, CRAWL_RATE=1)
        self.session = Session(settings, Path(), "tester", lambda: None)
        self.client, self.key = client, f"{namespace}-urls"
        self.stored: list[str] = []

    def drain(self, store: UrlKeys | None = None) -> UrlTaking:
        return UrlTaking([self.key], store or UrlKeys(self.session.namespace), self.session.courier, self.convert, lambda call: call())

    def convert(self, entries: Any) -> Converted:
        converted = Converted()
        for at, entry in enumerate(entries):
            if entry.raw.startswith(b"bad"):
                converted.refused[at] = "it is bad"
            else:
                converted.pages.append(page_of(entry.raw.decode(), priority=entry.score))
                self.stored.append(entry.raw.decode())
        return converted

    @property
    def pages(self) -> int:
        return self.session.namespace.counts().get("pages", 0)


@pytest.fixture
def drained(redis_socket, namespace, redis_client):
    opened = Drained(redis_socket, namespace, redis_client)
    yield opened
    opened.session.close()
    redis_client.delete(opened.key)


def test_a_list_goes_from_the_left_in_batches(drained):
    names = [f"a.org/{i}" for i in range(BATCH + 50)]
    drained.client.rpush(drained.key, *names, names[0])
    drain = drained.drain()
    assert (drain.look(), drain.is_empty) == (BATCH, False)
    assert drained.stored == names[:BATCH]
    assert drained.client.lrange(drained.key, 0, 0) == [names[BATCH].encode()]
    assert [drain.look(), drain.look(), drain.is_empty, drained.pages] == [51, 0, True, len(names)]


def test_a_sorted_set_goes_by_score_and_a_set_anyhow(drained):
    drained.client.zadd(drained.key, {f"a.org/{i}": i for i in range(BATCH + 1)})
    drain = drained.drain()
    assert drain.look() == BATCH
    assert drained.stored == [f"a.org/{i}" for i in range(BATCH, 0, -1)]
    assert [drain.look(), drained.client.exists(drained.key)] == [1, 0]
    drained.client.sadd(drained.key, *(f"b.org/{i}" for i in range(BATCH + 1)))
    assert [drain.look(), drain.look(), drain.look(), drained.pages] == [BATCH, 1, 0, 2 * BATCH + 2]


def test_what_is_pushed_meanwhile_stays(drained, monkeypatch):
    """To either end, also the same once more."""
    drained.client.rpush(drained.key, "a.org/1", "a.org/2")
    convert = drained.convert

    def push_meanwhile(entries: Any) -> Converted:
        drained.client.lpush(drained.key, "a.org/0", "a.org/1")
        drained.client.rpush(drained.key, "a.org/3")
        return convert(entries)

    monkeypatch.setattr(drained, "convert", push_meanwhile)
    drained.drain().look()
    assert drained.client.lrange(drained.key, 0, -1) == [b"a.org/0", b"a.org/1", b"a.org/3"]


@pytest.mark.parametrize("kind", ["list", "set", "zset"])
def test_what_another_process_has_taken_meanwhile_is_no_error(drained, kind):
    assert drained.drain()._take(drained.key, kind) == 0


def test_nothing_goes_before_it_is_stored(drained, monkeypatch):
    """An outage between conversion and storing, and one before the removal."""
    drained.client.rpush(drained.key, "a.org/1")
    store = UrlKeys(drained.session.namespace)
    drain = drained.drain(store)

    def fail(*_: Any) -> None:
        raise StateUnavailableError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(store, "remove", fail)
        with pytest.raises(StateUnavailableError):
            drain.look()
        assert (drained.client.llen(drained.key), drained.pages) == (1, 1)
    with monkeypatch.context() as patch:
        patch.setattr(drained.session.courier, "add", lambda pages, stored: threading.Timer(0.3, drain.stop).start())
        assert drain.look() == 0
        assert drained.client.llen(drained.key) == 1
    assert drained.drain(store).look() == 1
    assert (drained.client.llen(drained.key), drained.pages) == (0, 1)


def test_one_process_takes_at_a_time_and_another_goes_on(drained):
    drained.client.rpush(drained.key, *(f"a.org/{i}" for i in range(2 * BATCH)))
    store = UrlKeys(drained.session.namespace)
    first, second = drained.drain(store), drained.drain()
    assert [first.look(), second.look(), second.is_empty] == [BATCH, 0, False]
    assert drained.client.pttl(drained.session.namespace.key("drainer")) > 5000
    store.release_lock()
    assert [second.look(), first.look(), second.look()] == [BATCH, 0, 0]


def test_a_process_that_lost_the_lock_removes_nothing(drained, monkeypatch):
    """Who took over does."""
    drained.client.rpush(drained.key, "a.org/1", "a.org/2")
    key, convert = drained.session.namespace.key("drainer"), drained.convert

    def lose(entries: Any) -> Converted:
        drained.client.set(key, "another")
        return convert(entries)

    with monkeypatch.context() as patch:
        patch.setattr(drained, "convert", lose)
        drained.drain().look()
    assert (drained.client.llen(drained.key), drained.pages) == (2, 2)
    drained.client.delete(key)
    assert [drained.drain().look(), drained.client.llen(drained.key), drained.pages] == [2, 0, 2]


def test_what_is_no_page_is_put_aside_with_one_warning(drained, caplog):
    drained.client.rpush(drained.key, *(f"bad {i}" for i in range(5)), "a.org/1")
    with caplog.at_level(logging.WARNING):
        assert drained.drain().look() == 6
    (warning,) = (record.getMessage() for record in caplog.records)
    assert f"the entry 'bad 0' of '{drained.key}' was put aside: it is bad" in warning
    counts = drained.session.namespace.counts()
    assert (counts["pushed"], counts["pushed_refused"], counts["pages"]) == (1, 5, 1)
    assert drained.client.llen(drained.session.namespace.key("refused_urls")) == 5


def test_a_password_is_neither_logged_nor_kept(drained, caplog):
    drained.client.rpush(drained.key, 'bad {"url": "http:\\/\\/user:secret@a.org/"}', "bad http//user:secret@a.org/")
    with caplog.at_level(logging.DEBUG):
        assert drained.drain().look() == 2
    aside = drained.client.lrange(drained.session.namespace.key("refused_urls"), 0, -1)
    assert len(aside) == 2
    assert "secret" not in f"{aside}{caplog.text}"


def test_a_key_of_another_type_is_left_alone(drained, caplog):
    """With one warning; it is taken from when it is a list."""
    drained.client.set(drained.key, "mine")
    drain = drained.drain()
    with caplog.at_level(logging.WARNING):
        assert [drain.look(), drain.look(), drain.is_empty] == [0, 0, True]
    (warning,) = (record.getMessage() for record in caplog.records)
    assert "holds a string, no list, set or zset" in warning
    drained.client.delete(drained.key)
    drained.client.rpush(drained.key, "a.org/1")
    assert [drain.look(), drained.pages] == [1, 1]
