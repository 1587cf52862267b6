"""Kinds of damage that somebody who can write to Redis may do to a crawl, each to a page of its own or to a value that all share."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import msgpack
from crawls import State

from optimal_frontier.state.records import encode_record, pack_record
from optimal_frontier.state.rows import HEAD_BYTES, Row, pack_tail
from optimal_frontier.state.visit_log import VISIT

#: State, page and stored value -> what is written in its place, or None where the damage writes it itself.
Damage = Callable[[State, bytes, bytes], bytes | None]


def head(**fields: Any) -> Damage:
    """A row with other fields."""
    return lambda _, __, value: Row.unpack(value)._replace(**fields).pack() + value[HEAD_BYTES:]


def record(**parts: Any) -> Damage:
    """A row with another record."""

    def write(_: State, __: bytes, value: bytes) -> bytes:
        stored = {"url": "http://127.0.0.1:1/", **parts}
        return value[:HEAD_BYTES] + pack_tail(0.0, b"\x10" + encode_record(stored))

    return write


def raw(tail: bytes) -> Damage:
    """A row with these bytes as its record."""
    return lambda _, __, value: value[:HEAD_BYTES] + pack_tail(0.0, tail)


def memory(value: bytes) -> Damage:
    """These bytes as the memory of a page."""

    def write(state: State, page: bytes, _: bytes) -> None:
        state.namespace.command("HSET", state.key("memory"), page, value)

    return write


def of_meta(**meta: Any) -> Damage:
    """A record whose URL is the page's own, and whose Scrapy meta is this."""

    def write(state: State, _: bytes, value: bytes) -> bytes:
        host = state.namespace.command("HGET", state.key("hosts:names"), Row.unpack(value).host).decode()
        return value[:HEAD_BYTES] + pack_tail(0.0, pack_record({"url": f"http://{host}/static/9", "meta": meta_of(meta)}, host))

    return write


def meta_of(meta: dict[str, Any]) -> dict[bytes, Any]:
    return {name.encode(): value for name, value in meta.items()}


#: Damage to single pages; those of the second part keep the page, which goes on without what was damaged.
PAGES: Mapping[str, Damage] = {
    "a row that is empty": lambda *_: b"",
    "a row that is too short": lambda _, __, value: value[:50],
    "a row of noise": lambda *_: b"\xff" * 300,
    "an unknown state": head(state=77),
    "an importance that is no number": head(importance=math.nan),
    "an importance that is infinite": head(importance=math.inf),
    "an importance below 0": head(importance=-1.0),
    "a visit at no time": head(b=math.nan),
    "numbers that are no deadline": head(s=math.nan, e=math.nan),
    "a posterior that is no number": head(shape=math.nan, time=math.nan),
    "a record that is no record": raw(b"\x10\xc1\xc1"),
    "a record that is a list": raw(b"\x10" + encode_record([1, 2])),
    "a record that is nested deeply": raw(b"\x10" + b"\x91" * 3000 + b"\xc0"),
    "a local file": record(url="file:///etc/passwd"),
    "another host": record(url="http://elsewhere.invalid/"),
    "a password": record(url="http://user:secret@127.0.0.1/"),
    "a method that is none": of_meta(scrapy_meta={"depth": "deep"}),
    "a meta that is a text": of_meta(scrapy_meta="text"),
    "cb_kwargs that are none": of_meta(scrapy_request={"cb_kwargs": {5: 5}}),
    "an encoding that is none": of_meta(scrapy_request={"encoding": "no-such"}),
    "a class that is a number": of_meta(scrapy_request={"class": 5}),
    "a class that is none": of_meta(scrapy_request={"class": "close"}),
    "a state that is none": of_meta(scrapy_request={"class": "__main__.Rendered", "state": {5: 5}}),
    "redirects that are none": of_meta(scrapy_meta={"redirect_times": "x", "redirect_ttl": "y"}),
}
#: Its callback is refused, or its class is not loaded: it is held.
HELD: Mapping[str, Damage] = {
    name: of_meta(scrapy_callback=name.encode()) for name in ("close", "from_crawler", "start", "closed", "secret")
} | {"a class that is no request's": of_meta(scrapy_request={"class": "subprocess.Popen", "state": {"args": "true"}})}
#: Damage that the page survives.
MEMORIES: Mapping[str, Damage] = {
    "a memory that is none": memory(b"\xc1"),
    "a memory of wrong types": memory(msgpack.packb({"etag": 5, "size": "large", "aliases": 3})),
    "a memory that is nested deeply": memory(b"\x81\xa4etag" + b"\x91" * 2000 + b"\xc0"),
    "noise that is none": memory(msgpack.packb({"noise": b"\x93\x01\x02\x03"})),
}
#: Damage to values that all pages share: commands; keys are marked by a leading ``@``.
SHARED: Mapping[str, list[Any]] = {
    "the state of the partition": ["SET", "@d", b"short"],
    "its price": ["SET", "@d", struct.pack("<7d", 0.0, 1.0, math.nan, math.nan, math.nan, 0.0, 0.0)],
    "a counter": ["HSET", "@stats", "dispatched", "many"],
    "another counter": ["HSET", "@stats", "pending", "x"],
    "the plan": ["HSET", "@plan", "number", "nan", "share", "inf", "time", "noon", "log_price", "x", "budget", "-5"],
    "priors": ["SET", "@priors", b"\xff" * 17],
    "prices": ["SET", "@prices", b"\xff" * 8],
    "youth": ["SET", "@youth", b"\xff" * 112],
    "youth that is cut": ["SET", "@youth", b"\x01" * 17],
    "a number of a host": ["HSET", "@hosts", "damaged.example", "x"],
    "a host in the queue of hosts": ["ZADD", "@f", "-1", "no host"],
    "a member of the queue": ["ZADD", "@q", "2", "no page"],
    "words of a host": ["HSET", "@hosts:words", "1", b"\xc1\xc1"],
    "what downloaders admit": ["HSET", "@slots", "crawler", b"\xc1"],
    "announcers": ["HSET", "@announcers", "127.0.0.1 sitemap", "x y"],
    "clocks": ["HSET", "@clocks", "last", "x", b"\xff" * 7, "x", b"\x01" * 8, b"\xff" * 272, struct.pack("<Q", 1), b"\xff" * 216],
    "visits of clocks": ["XADD", "@visited", "*", "v", b"\xff" * VISIT.itemsize],
    "visits of clocks that are too short": ["XADD", "@visited", "*", "v", b"visits"],
    "clocks of another type": ["SET", "@clocks", "text"],
    "visits of another type": ["SET", "@visited", "text"],
    "a key of another type": ["SET", "@opens", "text"],
}
