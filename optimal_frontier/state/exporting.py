"""Everything that was learned in a namespace, as lines; read in replies of bounded size, also under a running crawl.

What is in flight is told as due. Some hundred pages at a time are read at one moment, with their memories and places in the queue.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from optimal_frontier.errors import StateError
from optimal_frontier.state.export_lines import FORMAT, KIND, Line, escaped, is_whole, page_line, to_number, to_text
from optimal_frontier.state.layouts import HostTurns, PartitionState, is_sound
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import SCHEMA, Namespace
from optimal_frontier.state.published import PRICES, sound_fields
from optimal_frontier.state.redis_failures import translated
from optimal_frontier.state.rows import host_bytes
from optimal_frontier.state.scanning import batches, read_host_names, scan_hash
from optimal_frontier.state.source_lessons import read_record

#: Pages that are read at one moment.
_AT_ONCE: Final = 500
_ALIAS: Final = struct.Struct(f"<I{PAGE_BYTES}s")
#: Fields of ``meta`` that belong to the place and not to what was learned.
_OF_THE_PLACE: Final = frozenset({"schema", "partitions"})


def count_pages(namespace: Namespace) -> int:
    """Return how many rows there are."""
    return sum(namespace.command("HLEN", namespace.key("pages", k), partition=k) for k in range(namespace.partitions))


def export_lines(namespace: Namespace) -> Iterator[Line]:
    """Yield the lines of an export, see `export_lines`."""
    meta = {name: value for name, value in namespace.hash("meta").items() if name not in _OF_THE_PLACE}
    yield {
        "optimal_frontier": KIND,
        "format": FORMAT,
        "schema": SCHEMA,
        "namespace": namespace.name,
        "partitions": namespace.partitions,
        "pages": count_pages(namespace),
        "time": max(namespace.now(k) for k in range(namespace.partitions)),
        "meta": meta,
    }
    partitions = range(namespace.partitions)
    for k in partitions:
        yield _partition(namespace, k)
    for k in partitions:
        yield from _aliases(namespace, k)
    for k in partitions:
        yield from _hosts(namespace, k)
        for name, packed in scan_hash(namespace, "sources", k):
            yield {"source": escaped(name), "learned": list(read_record(packed))}
        flagged = namespace.command("ZRANGE", namespace.key("flagged", k), 0, -1, "WITHSCORES", partition=k)
        for name, at in _pairs(flagged):
            if math.isfinite(float(at)):
                yield {"flagged": escaped(name), "at": float(at)}
    pages = left_out = 0
    for k in partitions:
        for line in _pages(namespace, k):
            if line is None:
                left_out += 1
            else:
                pages += 1
                yield line
    yield {"end": pages, "left_out": left_out}


def _partition(namespace: Namespace, k: int) -> Line:
    d, priors = namespace.commands([["GET", namespace.key(name, k)] for name in ("d", "priors")], partition=k)
    line: Line = {"partition": k, "stats": _sorted(namespace.counts(k)), "plan": _sorted(sound_fields(namespace.hash("plan", k)))}
    if is_sound(state := PartitionState.stored(d)):
        line["d"] = [to_number(value) for value in state]
    if priors:
        line["priors"] = to_text(priors)
    return line


def _aliases(namespace: Namespace, k: int) -> Iterator[Line]:
    seen: set[bytes] = set()
    for name, raw in scan_hash(namespace, "aliases", k):
        if name not in seen and len(raw) >= _ALIAS.size and len(name) == PAGE_BYTES:
            seen.add(name)
            at, page = _ALIAS.unpack_from(raw)
            yield {"alias": name.hex(), "partition": k, "url": escaped(raw[_ALIAS.size :]), "of": page.hex(), "at": at}


def _hosts(namespace: Namespace, k: int) -> Iterator[Line]:
    names = read_host_names(namespace, k)
    raw = namespace.command("GET", namespace.key("prices", k), partition=k) or b""
    prices = np.frombuffer(raw, PRICES) if len(raw) % PRICES.itemsize == 0 else np.zeros(0, PRICES)
    extra = dict(zip(prices["host"].tolist(), prices["extra"].tolist(), strict=True))
    for some in batches(sorted(names), _AT_ONCE):
        rows = [["HMGET", namespace.key("hosts:words", k), *some], ["HMGET", namespace.key("opens", k), *map(host_bytes, some)]]
        rows += [["LRANGE", namespace.key(f"retired:{number}", k), 0, -1] for number in some]
        words, opens, *retired = namespace.commands(rows, partition=k)
        for number, said, free, gone in zip(some, words, opens, retired, strict=True):
            line: Line = {"host": names[number]}
            if said:
                line["words"] = to_text(said)
            if is_sound(turns := HostTurns.stored(free)):
                line["opens"] = list(turns)
            if gone:
                line["retired"] = [page.hex() for page in gone]
            if number in extra:
                line["price"] = to_number(extra[number])
            if len(line) > 1:
                yield line


def _pages(namespace: Namespace, k: int) -> Iterator[Line | None]:
    """Yield the lines of pages; None for what cannot be read."""
    names, seen, some = read_host_names(namespace, k), set(), []
    for page, _ in scan_hash(namespace, "pages", k):
        if page not in seen:
            seen.add(page)
            some.append(page)
        if len(some) >= _AT_ONCE:
            yield from _at_once(namespace, k, names, some)
            some = []
    if some:
        yield from _at_once(namespace, k, names, some)


def _at_once(namespace: Namespace, k: int, names: dict[int, str], pages: list[bytes]) -> Iterator[Line | None]:
    key = namespace.key
    with translated(namespace.connection.spec), namespace.connection.client_of(namespace.prefix(k)).pipeline() as pipe:
        pipe.execute_command("HMGET", key("pages", k), *pages)
        pipe.execute_command("HMGET", key("memory", k), *pages)
        pipe.execute_command("ZMSCORE", key("q", k), *pages)
        values, memories, scores = pipe.execute()
    for page, value, memory, score in zip(pages, values, memories, scores, strict=True):
        if value is None:
            continue  # forgotten, or moved, since the scan
        number = int.from_bytes(value[:4], "little")
        if number not in names and is_whole(value):
            names |= read_host_names(namespace, k)
        if len(page) != PAGE_BYTES or not is_whole(value) or number not in names:
            yield None
        else:
            yield page_line(page, value, names[number], memory, None if score is None else float(score))


def _pairs(flat: Any) -> list[tuple[bytes, Any]]:
    """Return pairs of a reply that has them one by one (RESP2) or in twos (RESP3)."""
    if flat and isinstance(flat[0], list | tuple):
        return [(name, value) for name, value in flat]
    if len(flat) % 2:
        raise StateError("Redis gave half of a pair")
    return list(zip(flat[::2], flat[1::2], strict=True))


def _sorted(fields: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(fields.items()))
