"""Queries for readers: what a person or a monitor asks, in a few round trips, without changing anything.

What is read is given as it is stored; judging it (change rates, deadlines) is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from optimal_frontier.errors import StateError
from optimal_frontier.settings import Timetable
from optimal_frontier.state import columns
from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory
from optimal_frontier.state.records import (
    NO_CHECKS,
    NOT_SURPRISED,
    NOT_WATCHED,
    Counts,
    Surprises,
    UpdateTimes,
    Watched,
    decode_record,
    parse_counts,
)
from optimal_frontier.state.store import Store
from optimal_frontier.state.troubles import PageTroubles, read_held_hosts, read_page_troubles

#: Commands per pipeline and elements per scan.
BATCH: Final = 1000
#: An owner without a sign of life for this long counts as gone, seconds; as in ``lua/_prelude.lua``.
OWNER_SILENCE_S: Final = 15.0

Raw = dict[str, Any]


@dataclass(frozen=True)
class StatusReading:
    """The state of a namespace at a glance.

    Attributes
    ----------
    now : float
        The partition's time, seconds since the epoch.
    meta, published, price : dict of str
        The hashes of these names; ``published`` is empty before the first plan, ``price`` unless pages are dispatched by it.
    counts : dict of int
        The counters.
    in_flight, due, hosts, crawlers : int
        Leases; pages whose deadline has passed and that are not leased; hosts; owners that were heard of in the last 15 s.
    lateness : ndarray
        Of the last 1,000 revisits, seconds.
    held_hosts : list of str
        That answer 404 or 410 for most of their pages.
    flagged_contents : int
        Contents that were found to be no page's own.
    """

    now: float
    meta: dict[str, str]
    published: dict[str, str]
    price: dict[str, str]
    counts: dict[str, int]
    in_flight: int
    due: int
    hosts: int
    crawlers: int
    lateness: np.ndarray
    held_hosts: list[str]
    flagged_contents: int


@dataclass(frozen=True)
class PageReading:
    """All that is stored of one page, at one moment.

    Attributes
    ----------
    page, seen, plan : dict
        Its fields of these column groups, see `state.columns`.
    content_tag : int
        Tag of the settings that made the fingerprint; 0 if there is none.
    content : bytes
        The fingerprint, 16 bytes.
    record : dict
        What a fetch needs; empty for a request that was fetched once and is done.
    lease : dict of str or None
        ``token``, ``owner``, ``at``, ``due``, ``first``.
    queued : float or None
        Deadline under which it is queued, seconds since the epoch.
    host : str
        Name of its host.
    host_opens : float or None
        When its host, blocked now, opens, seconds since the epoch.
    published : dict of str
        The last plan.
    committed : dict
        See `state.columns`.
    prior : dict
        Of its pattern, see `state.columns`; shape 0 before the first plan.
    shares_pattern : bool
        Its pattern is the one of all pages of its host that have none of their own, as the host has too many.
    header_trust, sitemap_trust : tuple of float
        What checks of its host's Last-Modified and sitemaps found, see `NO_CHECKS`.
    watch : Watched
        What stands by in case that its habits change.
    index : dict
        See `state.columns`.
    price : dict of str
        The live price; empty unless pages are dispatched by it.
    times : tuple or None
        Of a page with update times: its timetable, what was learned of it, and which times are bought (column group *bought*).
    surprises : Surprises
        What the test of its bits for bursts keeps.
    validator_trust : tuple of float
        What is known of its host's 304s.
    memory : Memory
        What its last responses left for the next fetch.
    troubles : PageTroubles
        What is wrong with it, and its other names.
    is_put_forward : bool
        A source has announced a change of it, and its visit is still owed.
    announcers : dict of str
        Of the sources of its host, by kind: what their announcements were worth, as stored.
    """

    now: float
    slot: int
    page: Raw
    seen: Raw
    plan: Raw
    content_tag: int
    content: bytes
    record: Raw
    lease: dict[str, str] | None
    queued: float | None
    host: str
    host_opens: float | None
    published: dict[str, str]
    committed: Raw
    prior: Raw
    shares_pattern: bool
    header_trust: Counts = NO_CHECKS
    sitemap_trust: Counts = NO_CHECKS
    index: Raw = field(default_factory=dict)
    watch: Watched = NOT_WATCHED
    price: dict[str, str] = field(default_factory=dict)
    times: tuple[Timetable, UpdateTimes, float] | None = None
    surprises: Surprises = NOT_SURPRISED
    validator_trust: Counts = NO_CHECKS
    memory: Memory = NOTHING_REMEMBERED
    troubles: PageTroubles = field(default_factory=PageTroubles)
    is_put_forward: bool = False
    announcers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableReading:
    """The columns of all slots, and what goes with them.

    Attributes
    ----------
    page, seen, plan, index : ndarray, shape (slots,)
        See `state.columns`; not one snapshot.
    leased : ndarray of bool, shape (slots,)
        Whether a request for it is under way.
    hosts : dict
        Host number -> name.
    priors : ndarray, shape (patterns,)
        See `state.columns`.
    price : dict of str
        The live price; empty unless pages are dispatched by it.
    """

    now: float
    page: np.ndarray
    seen: np.ndarray
    plan: np.ndarray
    leased: np.ndarray
    hosts: dict[int, str]
    published: dict[str, str]
    priors: np.ndarray
    index: np.ndarray
    price: dict[str, str]


def is_empty(store: Store) -> bool:
    """Tell whether nothing was ever stored in the namespace."""
    return not store.command("EXISTS", store.key("meta"))


def read_status(store: Store) -> StatusReading:
    """Read the state at a glance. O(hosts)."""
    now, counts = store.now(), store.counts()
    in_flight, crawlers, lateness, hosts = store.commands(
        [
            ["HLEN", store.key("leases")],
            ["ZCOUNT", store.key("owners"), f"{now - OWNER_SILENCE_S:.6f}", "+inf"],
            ["LRANGE", store.key("lateness"), 0, -1],
            ["HKEYS", store.key("hosts:names")],
        ]
    )
    due = 0
    for part in batches(hosts):
        due += sum(store.commands([["ZCOUNT", store.key(f"due:{host.decode()}"), "-inf", f"{now:.6f}"] for host in part]))
    return StatusReading(
        now,
        store.hash("meta"),
        store.hash("published"),
        store.hash("price"),
        counts,
        in_flight,
        due,
        len(hosts),
        crawlers,
        np.array([float(value) for value in lateness]),
        read_held_hosts(store),
        int(store.command("ZCARD", store.key("flagged"))),
    )


def read_page(store: Store, fingerprint: bytes) -> PageReading | None:
    """Read one page by its identity; None if it is not known. O(1)."""
    reply = store.run([("read_page", [fingerprint])])[0]
    if not reply:
        return None
    now, slot, page, seen, plan, content, record, lease, queued, host, host_opens, published, *trust = reply
    of_page = _fields(page, columns.PAGE)
    fields = ("token", "owner", "at", "due", "first")
    return PageReading(
        float(now),
        int(slot),
        of_page,
        _fields(seen, columns.SEEN),
        _fields(plan, columns.PLAN),
        int.from_bytes(content[:4], "little"),
        bytes(content[4:]),
        _decoded(record) if record else {},
        dict(zip(fields, lease.decode("utf-8", "replace").split(" "), strict=False)) if lease else None,
        float(queued) if queued is not None else None,
        host.decode("utf-8", "replace") if host else "",
        float(host_opens) if host_opens is not None else None,
        {k.decode(): v.decode() for k, v in zip(published[::2], published[1::2], strict=True)},
        # Not of the same moment, but of the same slot and generation.
        _fields(store.records_at("committed", [int(slot)]).tobytes(), columns.COMMITTED),
        _fields(store.records_at("prior", [of_page["pattern"]]).tobytes(), columns.PRIOR),
        of_page["pattern"] == int(store.command("HGET", store.key("patterns"), f"{of_page['host']} ") or -1),
        parse_counts(trust[0]),
        parse_counts(trust[1]),
        index=_fields(store.records_at("index", [int(slot)]).tobytes(), columns.INDEX),
        price=store.hash("price"),
        watch=Watched(*_fields(store.records_at("watch", [int(slot)]).tobytes(), columns.WATCH).values()),
        times=_times(store, int(slot)),
        surprises=Surprises(*_fields(store.records_at("bursts", [int(slot)]).tobytes(), columns.BURSTS).values()),
        validator_trust=parse_counts(trust[2]),
        memory=Memory.unpack(trust[3]),
        is_put_forward=bool(store.command("HEXISTS", store.key("announced"), slot)),
        troubles=read_page_troubles(store, fingerprint, int(slot), of_page["host"]),
        announcers=_announcers(store, host.decode("utf-8", "replace") if host else ""),
    )


def _announcers(store: Store, host: str) -> dict[str, str]:
    kinds = ("index", "sitemap", "feed")
    kept = store.command("HMGET", store.key("announcers"), *(f"{host} {kind}" for kind in kinds))
    return {kind: text.decode() for kind, text in zip(kinds, kept, strict=True) if text is not None}


def _times(store: Store, slot: int) -> tuple[Timetable, UpdateTimes, float] | None:
    raw = store.command("HGET", store.key("timed"), slot)
    learned = UpdateTimes.unpack(raw) if raw else None
    text = store.command("HGET", store.key("timetables:texts"), learned.number) if learned is not None else None
    if learned is None or text is None:
        return None
    return Timetable.of_text(text.decode()), learned, float(store.records_at("bought", [slot])["times"][0])


def read_table(store: Store) -> TableReading:
    """Read the columns of all slots. About 168 bytes a page."""
    leased_slots, names = store.commands([["HKEYS", store.key("leases")], ["HGETALL", store.key("hosts:names")]])
    page, seen, plan, index = store.columns("page", "seen", "plan", "index")
    leased = np.zeros(len(page), bool)
    at = np.array([int(slot) for slot in leased_slots], np.int64)
    leased[at[at < len(leased)]] = True
    hosts = {int(number): name.decode("utf-8", "replace") for number, name in names.items()}
    return TableReading(store.now(), page, seen, plan, leased, hosts, store.hash("published"), store.priors(), index, store.hash("price"))


def read_urls(store: Store, slots: Sequence[int]) -> list[str | None]:
    """Return the URLs of slots, None where the record is gone."""
    urls: list[str | None] = []
    for part in batches(slots):
        raw = store.command("HMGET", store.key("records"), *part)
        urls += [str(_decoded(value).get("url", "")) if value is not None else None for value in raw]
    return urls


def read_memories(store: Store, slots: Sequence[int]) -> list[Memory]:
    """Return what the last responses of slots left for the next fetch."""
    return [Memory.unpack(raw) for part in batches(slots) for raw in store.command("HMGET", store.key("memory"), *part)]


def read_queued(store: Store, slots: np.ndarray, hosts: np.ndarray) -> np.ndarray:
    """Return the deadlines under which slots are queued, each at the host of the same place; nan where it is not queued."""
    scores: list[float] = []
    for at in range(0, len(slots), BATCH):
        pairs = zip(slots[at : at + BATCH].tolist(), hosts[at : at + BATCH].tolist(), strict=True)
        replies = store.commands([["ZSCORE", store.key(f"due:{host}"), slot] for slot, host in pairs])
        scores += [np.nan if score is None else float(score) for score in replies]
    return np.array(scores, np.float64)


def batches(values: Sequence[Any], size: int = BATCH) -> Iterator[Sequence[Any]]:
    """Cut a sequence into pieces."""
    for at in range(0, len(values), size):
        yield values[at : at + size]


def scan_hash(store: Store, name: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields of a hash; one may come twice while the hash changes."""
    cursor = 0
    while True:
        cursor, found = store.command("HSCAN", store.key(name), cursor, "COUNT", BATCH)
        yield from found.items()
        if not cursor:
            return


def scan_sets(store: Store, command: str, names: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """Yield ``(place in names, element)`` of many sets (``SSCAN``) or sorted sets (``ZSCAN``: pairs of member and score)."""
    todo: list[tuple[int, int]] = [(at, 0) for at in range(len(names))]
    while todo:
        part, todo = todo[:BATCH], todo[BATCH:]
        replies = store.commands([[command, store.key(names[at]), cursor, "COUNT", BATCH] for at, cursor in part])
        for (at, _), (cursor, found) in zip(part, replies, strict=True):
            for element in found:
                yield at, element
            if cursor:
                todo.append((at, cursor))


def _fields(raw: bytes, layout: np.dtype) -> Raw:
    return dict(zip(layout.names or (), np.frombuffer(raw, layout)[0].item(), strict=True))


def _decoded(raw: bytes) -> Raw:
    try:
        record = decode_record(raw)
    except Exception as error:  # msgpack has a tree of its own
        raise StateError(f"a stored record cannot be read ({error}); see what `optimal-frontier check` says") from error
    if not isinstance(record, dict):
        raise StateError("a stored record is no map; see what `optimal-frontier check` says")
    return record
