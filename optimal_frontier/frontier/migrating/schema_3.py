"""What a namespace of schema 3, that of the first edition, has learned, as the lines of an export.

It has columns: strings of packed records, `_CHUNK` places each; a page's place is its slot. Taken over are pages with their requests,
estimates, intervals, fingerprints, validators, former names and next visits, and what is known of hosts and sources. Plans, prices, priors
and what was learned of update times begin anew. Of requests that were fetched once, schema 3 kept no URL: they are not known any more.
What nobody can read is left out, and costs nothing else.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from optimal_frontier.errors import StateError
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.admitting.pages import directory_number, pattern_number, stored_importance
from optimal_frontier.frontier.admitting.revival import due_at
from optimal_frontier.frontier.judging.fingerprinting import stored_tag
from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.state.export_lines import FORMAT, KIND, Line, page_line, to_text
from optimal_frontier.state.host_words import NOTHING_SAID, HostWords
from optimal_frontier.state.layouts import PartitionState
from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory
from optimal_frontier.state.messages import page_of
from optimal_frontier.state.namespace import SCHEMA, Namespace
from optimal_frontier.state.partition import rank_of
from optimal_frontier.state.records import decode_record, pack_record
from optimal_frontier.state.rows import ACTIVE, DONE, FAR_S, ONCE, RANK_AT, RETIRED, TRANSIENT, Row, pack_tail
from optimal_frontier.state.scanning import scan_hash, scan_zsets

_CHUNK: Final = 4096
#: Column groups: widths in bytes, and what is read of them.
_GROUPS: Final = {
    "page": np.dtype(
        [(name, "<f8") for name in ("importance", "min_rate", "max_rate", "gap")]
        + [(name, "<u4") for name in ("host", "generation", "state", "pattern")]
    ),
    "seen": np.dtype(
        [(name, "<f8") for name in ("last_attempt", "last_seen", "shape", "time", "carry", "settled")]
        + [(name, "<u4") for name in ("visits", "observations", "changes", "bits", "failures", "gone", "attempts")]
    ),
    "content": np.dtype([("tag", "<u4"), ("fingerprint", "V16")]),
    "watch": np.dtype([("shape", "<f4"), ("time", "<f4"), ("evidence", "<f4"), ("relearned", "<u4")]),
    "plan": np.dtype([("rate", "<f8"), ("base_time", "<f8"), ("base_credit", "<f8")]),
    "bursts": np.dtype([("surprise", "<f4"), ("score", "<f4"), ("variance", "<f4"), ("spread", "<f4")]),
}
_STATES: Final = {1: ACTIVE, 2: ONCE, 3: TRANSIENT, 4: RETIRED, 5: DONE}
#: Rates of the columns beyond that are none.
_NO_RATE: Final = 1e299
#: Under an ``auto`` budget pages that wait for an update time stand so much later in the queue, seconds.
_LATER: Final = 1e13
_T = TypeVar("_T")
_U = TypeVar("_U")
#: A crawler that was heard of so recently is running, seconds.
_ALIVE_S: Final = 15.0
_RANK: Final = struct.Struct("<d")
_BITS32: Final = 0xFFFFFFFF
_MEMORY: Final = frozenset({"etag", "last_modified", "size", "misses", "unchecked", "unseen", "check", "lies", "entries", "noise"})


def export_schema_3(namespace: Namespace) -> Iterator[Line]:
    """Yield the lines of an export.

    Raises
    ------
    StateError
        A crawl is running.
    """
    key, meta = namespace.key, namespace.hash("meta")
    seconds, micros = namespace.command("TIME")
    now = max([int(seconds) + int(micros) / 1e6, *filter(math.isfinite, _readable([meta.get("clock", 0)], float))])
    newest = namespace.command("ZRANGE", key("owners"), -1, -1, "WITHSCORES")
    heard = newest[0][1] if newest and isinstance(newest[0], list | tuple) else newest[1] if newest else 0.0
    if now - float(heard) < _ALIVE_S:
        raise StateError(f"a crawl of namespace {namespace.name!r} is running: stop it, wait for {_ALIVE_S:.0f} s, and migrate then")
    records = namespace.command("HLEN", key("records"))
    kept = {name: meta[name] for name in ("spider", "identity", "opened") if name in meta}
    yield {"optimal_frontier": KIND, "format": FORMAT, "schema": SCHEMA, "partitions": 1, "pages": records, "time": now, "meta": kept}
    stats = _readable(namespace.hash("stats").items(), lambda pair: (pair[0], int(pair[1])))
    counted = {name: by for name, by in stats if name not in ("pages", "pending", "fetched", "retired")}
    # Requests in flight then are due now: their leases are over.
    counted["ended"] = counted.get("dispatched", 0) - counted.get("leases_expired", 0)
    counted["arrivals"] = next(_readable([meta.get("arrivals", 0)], int), 0)
    yield {"partition": 0, "stats": counted, "plan": {}, "d": list(PartitionState(at=now * 1e6))}
    names = dict(_readable(scan_hash(namespace, "hosts:names", 0), lambda pair: (int(pair[0]), pair[1].decode())))
    aliases: dict[bytes, list[bytes]] = {}
    for name, raw in scan_hash(namespace, "aliases", 0):
        alias, page = page_of(name), page_of(raw[:20])
        aliases.setdefault(page, []).append(alias)
        url = raw[20:].decode("utf-8", "surrogateescape")
        yield {"alias": alias.hex(), "partition": 0, "url": url, "of": page.hex(), "at": 0}
    yield from _hosts(namespace, names)
    for _, name, at in scan_zsets(namespace, ["flagged"], 0):
        yield {"flagged": name.decode("utf-8", "backslashreplace"), "at": at}
    former = {name for some in aliases.values() for name in some}
    found = dict(_readable(scan_hash(namespace, "ids", 0), lambda pair: (page_of(pair[0]), int(pair[1]))))
    slot_of = {slot: page for page, slot in found.items() if page not in former}
    pages, left_out = 0, namespace.command("HLEN", key("ids")) - len(found)
    del found  # of millions of pages
    queues = scan_zsets(namespace, [f"due:{number}" for number in names], 0)
    due = dict(_readable(queues, lambda one: (int(one[1]), one[2] - _LATER if one[2] >= _LATER else one[2])))
    known = _Known(slot_of, due, aliases, now)
    for chunk in sorted({slot // _CHUNK for slot in slot_of}):
        for line in _pages(namespace, chunk, known):
            if line is None:
                left_out += 1
                continue
            pages += 1
            yield line
    yield {"end": pages, "left_out": left_out}


class _Known(NamedTuple):
    """What is known of pages beside their columns: names by slot, when those in queues are due, former names; and the time."""

    slot_of: dict[int, bytes]
    due: dict[int, float]
    aliases: dict[bytes, list[bytes]]
    now: float


def _readable(found: Iterable[_T], read: Callable[[_T], _U]) -> Iterator[_U]:
    """Yield what is read of each, but of those that nobody can read."""
    for one in found:
        with contextlib.suppress(ValueError, OverflowError):
            yield read(one)


def _hosts(namespace: Namespace, names: dict[int, str]) -> Iterator[Line]:
    def told_of(name: str) -> dict[str, tuple[float, ...]]:
        return dict(_readable(scan_hash(namespace, name, 0), lambda pair: (pair[0].decode(), tuple(map(float, pair[1].split())))))

    trust, health = told_of("trust"), told_of("health")
    for number, name in names.items():
        told: Any = {kind: trust[f"{number}:{kind}"] for kind in ("header", "sitemap", "validators") if f"{number}:{kind}" in trust}
        good, missing = (*health.get(str(number), ()), 0.0, 0.0)[:2]
        words = HostWords(**told, good=good, missing=missing)
        if words != NOTHING_SAID:
            yield {"host": name, "words": to_text(words.pack())}


def _pages(namespace: Namespace, chunk: int, known: _Known) -> Iterator[Line | None]:
    """Yield the lines of the pages of a chunk; None for each that cannot be read."""
    key, first = namespace.key, chunk * _CHUNK
    raw = namespace.commands([["GET", key(f"{group}:{chunk}")] for group in _GROUPS] + [["GET", key("stated")]])
    columns = {
        group: np.frombuffer((value or b"")[: _CHUNK * layout.itemsize].ljust(_CHUNK * layout.itemsize, b"\0"), layout)
        for (group, layout), value in zip(_GROUPS.items(), raw, strict=False)
    }
    stated_bits = raw[-1] or b""
    slots = [slot for slot in range(first, first + _CHUNK) if slot in known.slot_of]
    records, memories, failed = namespace.commands([["HMGET", key(name), *slots] for name in ("records", "memory", "failed")])
    for slot, record, memory, cause in zip(slots, records, memories, failed, strict=True):
        one = {group: column[slot - first] for group, column in columns.items()}
        if record is None and _STATES.get(int(one["page"]["state"])) == DONE:
            continue
        is_stated = slot // 8 < len(stated_bits) and stated_bits[slot // 8] >> (7 - slot % 8) & 1
        try:
            yield _page(slot, one, (record, memory, cause or b""), known, is_stated=bool(is_stated))
        except Exception:  # its record or columns may be damaged in any way: it is counted, and the others are taken over
            yield None


def _page(slot: int, one: Any, stored: tuple[bytes, bytes | None, bytes], known: _Known, *, is_stated: bool) -> Line:
    record, memory, cause = decode_record(stored[0]), *stored[1:]
    page, host = known.slot_of[slot], host_of(record["url"])
    row = _row(one, record["url"], host, cause.decode("utf-8", "replace"))
    due = known.now
    if row.b:
        due = min(known.due.get(slot, _planned(one, known.now)), row.b / 1e6 + row.max_interval)
        row = due_at(row, due)
    head = row.pack()
    if row.b == 0 and row.state < RETIRED:
        request = record.get("meta", {}).get(b"scrapy_request") or {}
        rank = rank_of(float(request.get("priority", 0)), row.importance) + slot
        head = head[:RANK_AT] + _RANK.pack(rank) + head[RANK_AT + _RANK.size :]
    value = head + pack_tail(row.importance if is_stated else 0.0, pack_record(record, host))
    at = float(round(max(due, 0.0) * 5e5) * 2)
    return page_line(page, value, host, _memory(memory, known.aliases.get(page, [])).pack(), at)


def _planned(one: Any, now: float) -> float:
    """Return when a page is due that stood in no queue, as it is not so soon: by its rate in the last plan; now if it has none."""
    plan, seen = one["plan"], one["seen"]
    begun = float(plan["base_time"]), float(plan["base_credit"])
    since, credit = max(begun, (float(seen["settled"]), float(seen["carry"])))
    due = since + (1.0 - credit) / float(plan["rate"]) if plan["rate"] > 0 else now
    soonest = float(seen["last_attempt"]) + float(one["page"]["gap"])
    return max(due, soonest) if math.isfinite(due) else now


def _row(one: Any, url: str, host: str, cause: str) -> Row:
    page, seen = one["page"], one["seen"]
    longest, shortest = (1.0 / float(page[name]) if 0 < page[name] < _NO_RATE else 0.0 for name in ("min_rate", "max_rate"))
    visits, failures = int(seen["visits"]), int(seen["failures"])
    last_seen, last = float(seen["last_seen"]), float(seen["last_attempt"])
    b = last_seen if visits and not failures else last
    return Row(
        state=_STATES[int(page["state"])],
        b=float(round(b * 1e6)),
        importance=stored_importance(float(page["importance"])),
        min_interval=min(shortest, FAR_S),
        max_interval=min(longest or FAR_S, FAR_S),
        shape=float(seen["shape"]),
        time=float(seen["time"]),
        unseen=max(b - last_seen, 0.0) if visits else 0.0,
        visits=visits,
        observations=int(seen["observations"]),
        changes=int(seen["changes"]),
        bits=int(seen["bits"]) & _BITS32,
        failed=min(max(int(seen["attempts"]) - visits, 0), 65_535),
        failures=min(failures, 255),
        gone=min(int(seen["gone"]), 255),
        cause=CAUSES.index(cause) if cause in CAUSES else 0,
        relearned=min(int(one["watch"]["relearned"]), 255),
        watch_shape=float(one["watch"]["shape"]),
        watch_time=float(one["watch"]["time"]),
        evidence=float(one["watch"]["evidence"]),
        surprise=float(one["bursts"]["surprise"]),
        score=float(one["bursts"]["score"]),
        variance=float(one["bursts"]["variance"]),
        spread=float(one["bursts"]["spread"]),
        pattern=pattern_number(host, url),
        directory=directory_number(url),
        tag=stored_tag(int(one["content"]["tag"])) if one["content"]["tag"] else 0,
        content=one["content"]["fingerprint"].tobytes(),
    )


def _memory(raw: bytes | None, aliases: list[bytes]) -> Memory:
    try:
        known = Memory.unpack(raw)
    except ValueError:
        known = NOTHING_REMEMBERED
    return Memory(**{name: getattr(known, name) for name in _MEMORY}, aliases=tuple(bytes(4) + name for name in aliases))
