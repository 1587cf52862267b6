"""The store: one partition of the state in Redis, through its atomic scripts.

Every method is one round trip, except `columns`. Errors of Redis are translated here and in `connection`, nowhere else.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from redis.exceptions import NoScriptError, ResponseError

from optimal_frontier.errors import SchemaMismatchError, StateError
from optimal_frontier.settings import Timetable
from optimal_frontier.state import columns
from optimal_frontier.state.connection import HASH_TAG, Connection, translated
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.records import (
    Announcement,
    Handout,
    Move,
    NewPage,
    Observation,
    Published,
    Republished,
    Surprises,
    UpdateTimes,
    Watched,
    decode_record,
    parse_counts,
)
from optimal_frontier.state.scripts import source

#: Version of everything that ``docs/redis.md`` describes. Another one is refused.
SCHEMA: Final = "3"

#: Singleton keys and their types, checked when a namespace is opened.
KEY_TYPES: Final = {
    "meta": "hash",
    "ids": "hash",
    "aliases": "hash",
    "records": "hash",
    "stated": "string",
    "free": "list",
    "hosts": "hash",
    "hosts:names": "hash",
    "hosts:pages": "hash",
    "hosts:due": "zset",
    "hosts:first": "zset",
    "hosts:firsthead": "hash",
    "hosts:blocked": "zset",
    "hosts:opened": "hash",
    "patterns": "hash",
    "patterns:hosts": "hash",
    "patterns:pages": "hash",
    "trust": "hash",
    "lastmod": "hash",
    "announcers": "hash",
    "announced": "hash",
    "memory": "hash",
    "failed": "hash",
    "flagged": "zset",
    "health": "hash",
    "timed": "hash",
    "timed:due": "zset",
    "timetables": "hash",
    "timetables:texts": "hash",
    "leases": "hash",
    "leases:expiry": "zset",
    "owners": "zset",
    "bucket": "hash",
    "price": "hash",
    "stats": "hash",
    "lateness": "list",
    "changes": "stream",
    "plans": "stream",
    "published": "hash",
    "planner": "string",
}

#: Pages per add_pages call and leases per observe call, so that no script blocks the server for long.
_BATCH: Final = 200

# For one record struct is much quicker than numpy; the layouts are those of `columns`.
_PAGE: Final = struct.Struct("<4d4I")
_SEEN: Final = struct.Struct("<6d7I")
_PLAN: Final = struct.Struct("<3d")
_PRIOR: Final = struct.Struct("<3d")

#: One script call: its name and arguments.
Call = tuple[str, Sequence[Any]]


class Store:
    """One partition of a namespace.

    Parameters
    ----------
    connection : Connection
        Where the server is.
    namespace : str
        Prefix of all keys.
    """

    def __init__(self, connection: Connection, namespace: str) -> None:
        self.connection = connection
        self.namespace = namespace
        # The braces are a hash tag: all keys of a partition live on one node of a Redis Cluster.
        self.prefix = f"{namespace}:{HASH_TAG}:"
        self._digests: dict[str, str] = {}

    def key(self, name: str) -> str:
        """Return the full name of the key ``name``."""
        return self.prefix + name

    def open(self, *, spider: str | None = None, create: bool = True) -> None:
        """Check the schema and the types of our keys; claim the namespace for ``spider``.

        Raises
        ------
        SchemaMismatchError
            The namespace belongs to another spider, was written by another schema, or another program's key is in the way.
        StateUnavailableError
            Redis cannot be reached.
        """
        with translated(self.connection.spec):
            pipe = self.connection.client.pipeline(transaction=False)
            for name in KEY_TYPES:
                pipe.type(self.key(name))
            found = [kind.decode() for kind in pipe.execute()]
        for (name, expected), actual in zip(KEY_TYPES.items(), found, strict=True):
            if actual not in (expected, "none"):
                raise SchemaMismatchError(
                    f"the key {self.key(name)} holds a {actual}, where optimal_frontier keeps a {expected}; nothing was changed. "
                    f"Choose another OPTIMAL_FRONTIER_NAMESPACE than {self.namespace!r}, or remove that key"
                )
        with translated(self.connection.spec):
            client = self.connection.client
            if create and found[0] == "none":
                client.hsetnx(self.key("meta"), "schema", SCHEMA)
                seconds, micros = client.time()  # the server's, as all times that are stored
                client.hsetnx(self.key("meta"), "opened", f"{seconds}.{micros:06d}")
            schema = client.hget(self.key("meta"), "schema")
        if schema is None and not create and found[0] == "none":
            return
        if schema is None or schema.decode() != SCHEMA:
            shown = "no schema version" if schema is None else f"schema {schema.decode()!r}"
            raise SchemaMismatchError(
                f"namespace {self.namespace!r} holds {shown}; this version of optimal_frontier reads schema {SCHEMA!r}. Nothing was "
                "changed. Choose another OPTIMAL_FRONTIER_NAMESPACE, or the version that wrote it"
            )
        if spider is None:
            return
        with translated(self.connection.spec):
            client.hsetnx(self.key("meta"), "spider", spider)
            owner = client.hget(self.key("meta"), "spider").decode()
        if owner != spider:
            raise SchemaMismatchError(
                f"namespace {self.namespace!r} belongs to the spider {owner!r}, this one is {spider!r}; "
                "give it an OPTIMAL_FRONTIER_NAMESPACE of its own"
            )

    def run(self, calls: Sequence[Call]) -> list[Any]:
        """Run scripts in order, in one round trip, and return their results.

        A server that was restarted has forgotten the scripts; then they are loaded again and the refused calls repeated.
        """
        with translated(self.connection.spec):
            client = self.connection.client
            if not self._digests:
                self._load(client, {name for name, _ in calls})
            results: list[Any] = [None] * len(calls)
            todo = list(range(len(calls)))
            for attempt in range(2):
                self._load(client, {calls[i][0] for i in todo} - self._digests.keys())
                pipe = client.pipeline(transaction=False)
                for i in todo:
                    name, arguments = calls[i]
                    pipe.execute_command("EVALSHA", self._digests[name], 1, self.prefix, *arguments)
                for i, result in zip(todo, pipe.execute(raise_on_error=False), strict=True):
                    results[i] = result
                todo = [i for i in todo if isinstance(results[i], NoScriptError)]
                if not todo:
                    break
                if attempt == 0:
                    self._digests.clear()
            for result in results:
                if isinstance(result, ResponseError):
                    raise result
        return results

    def _load(self, client: Any, names: Iterable[str]) -> None:
        for name in sorted(names):
            digest = client.script_load(source(name))
            self._digests[name] = digest if isinstance(digest, str) else digest.decode()

    # What one exchange of the dispatcher is made of.

    @staticmethod
    def add_calls(pages: Sequence[NewPage]) -> list[Call]:
        """Return the calls that add ``pages``; each yields 1 (new), 0 (known), -1 or -2 (its host or its pattern is full) per page."""
        return [
            ("add_pages", [value for page in pages[at : at + _BATCH] for value in page.arguments()]) for at in range(0, len(pages), _BATCH)
        ]

    @staticmethod
    def lastmod_calls(pages: Sequence[NewPage]) -> list[Call]:
        """Return the calls that note what sitemaps say of ``pages``, which were added before; each yields how many were noted.

        What a source of the crawl announces is also acted on; that call yields how many pages were put forward.
        """
        told: dict[Announcement | None, list[Any]] = {}
        for page in pages:
            if page.lastmod is not None:
                told.setdefault(page.announcement, []).extend((page.fingerprint, *map(repr, page.lastmod)))
        calls: list[Call] = []
        for announcement, values in told.items():
            for at in range(0, len(values), 3 * _BATCH):
                some = values[at : at + 3 * _BATCH]
                if announcement is None:
                    calls.append(("note_lastmod", some))
                else:
                    calls.append(("announce", [announcement.announcer, repr(announcement.unread), *some]))
        return calls

    @staticmethod
    def move_calls(moves: Sequence[Move]) -> list[Call]:
        """Return the calls that give pages another identity; each yields 1 (moved), 2 (the target was a page already) or 0 (nothing moved).

        To be run after the observation of the fetch that showed where the page is, so that nothing of it is lost.
        """
        return [("move_page", move.arguments()) for move in moves]

    @staticmethod
    def observe_calls(observations: Sequence[Observation], horizon_s: float, policy: str = "periodic") -> list[Call]:
        """Return the calls that end leases; each yields 1 (counted) or 0 (the lease was no longer valid) per observation.

        Parameters
        ----------
        observations : sequence of Observation
        horizon_s : float
            Deadlines further away than this many seconds are left to the planner.
        policy : str
            ``periodic`` (evenly spaced visits) or ``poisson`` (memoryless).
        """
        now = time.monotonic()
        return [
            ("observe", [repr(horizon_s), policy, *(value for o in observations[at : at + _BATCH] for value in o.arguments(now))])
            for at in range(0, len(observations), _BATCH)
        ]

    @staticmethod
    def parse_dispatch(reply: list[Any]) -> tuple[float, bytes, Published, list[Handout]]:
        """Return seconds to wait (-1: nothing to wait for), the epoch, the published plan and the requests of a dispatch reply."""
        received = time.monotonic()
        fields = dict(zip(reply[3][::2], reply[3][1::2], strict=True))
        published = Published(
            float(fields.get(b"multiplier", 0)),
            float(fields.get(b"prior_time", 0)),
            float(fields.get(b"revisit_budget", 0)),
            float(fields.get(b"time", 0)),
        )
        handouts = []
        for row in reply[4:]:
            slot, token, lateness, elapsed, page_raw, seen_raw, plan_raw, content_raw, record, words, *others = row
            prior_raw, watch_raw, times, bursts_raw, memory, was_announced = others
            importance, min_rate, max_rate, _, _, _, kind, _ = _PAGE.unpack(page_raw)
            _, _, shape, posterior_time, _, _, visits, _, _, bits, failures, _, attempts = _SEEN.unpack(seen_raw)
            rate, base_time, _ = _PLAN.unpack(plan_raw)
            prior_shape, prior_time, _ = _PRIOR.unpack(prior_raw)
            handouts.append(
                Handout(
                    int(slot),
                    token,
                    None if lateness == b"-" else max(0.0, float(lateness)),
                    float(elapsed),
                    importance,
                    min_rate,
                    max_rate,
                    kind,
                    shape,
                    posterior_time,
                    visits,
                    attempts,
                    rate,
                    base_time > 0,
                    int.from_bytes(content_raw[:4], "little"),
                    content_raw[4:],
                    decode_record(record),
                    received,
                    parse_counts(words[0]),
                    parse_counts(words[1]),
                    (float(words[3]), float(words[4]), float(words[5])) if len(words) > 3 else None,
                    prior_shape,
                    prior_time,
                    Watched.unpack(watch_raw),
                    _republished(times) if times else None,
                    Surprises.unpack(bursts_raw),
                    Memory.unpack(memory),
                    failures,
                    parse_counts(words[2]),
                    bool(was_announced),
                    bits,
                )
            )
        return float(reply[1]), reply[2], published, handouts

    # What the planner and readers need.

    def columns(self, *names: str) -> tuple[np.ndarray, ...]:
        """Read whole column groups (``page``, ``seen``, ``plan``, ``content``) of all slots.

        Returns
        -------
        tuple of ndarray, each shape (slots,)
            Records laid out as in `state.columns`. They are not one snapshot: pages go on changing while chunks are read.
        """
        with translated(self.connection.spec):
            client = self.connection.client
            slots = int(client.hget(self.key("meta"), "slots") or 0)
            chunks = -(-slots // columns.CHUNK)
            result = []
            for name in names:
                raw: list[bytes | None] = []
                # 64 chunks are at most 20 MB a reply.
                for at in range(0, chunks, 64):
                    raw += client.mget([self.key(f"{name}:{c}") for c in range(at, min(chunks, at + 64))])
                result.append(columns.join_chunks(columns.LAYOUTS[name], raw, slots))
        return tuple(result)

    def priors(self) -> np.ndarray:
        """Read the priors of all patterns (`columns.PRIOR`), number 0, which stands for no pattern, included."""
        count = 1 + int(self.command("HLEN", self.key("patterns")))
        chunks = self.commands([["GET", self.key(f"prior:{c}")] for c in range(-(-count // columns.CHUNK))])
        return columns.join_chunks(columns.PRIOR, chunks, count)

    def records_at(self, name: str, slots: Sequence[int]) -> np.ndarray:
        """Read the records of a few slots from the column group ``name``; shape (len(slots),)."""
        layout = columns.LAYOUTS[name]
        rows = []
        for slot in slots:
            start = slot % columns.CHUNK * layout.itemsize
            rows.append(["GETRANGE", self.key(f"{name}:{slot // columns.CHUNK}"), start, start + layout.itemsize - 1])
        raw = b"".join(part.ljust(layout.itemsize, b"\0") for part in self.commands(rows))
        return np.frombuffer(raw, layout).copy()

    def now(self) -> float:
        """Return the partition's time, seconds since the epoch; it never runs backwards."""
        with translated(self.connection.spec):
            client = self.connection.client
            seconds, micros = client.time()
            last = float(client.hget(self.key("meta"), "clock") or 0)
        return max(float(seconds) + float(micros) / 1e6, last)

    def hash(self, name: str) -> dict[str, str]:
        """Return a hash of text fields, decoded."""
        with translated(self.connection.spec):
            return {k.decode(): v.decode("utf-8", "replace") for k, v in self.connection.client.hgetall(self.key(name)).items()}

    def command(self, *arguments: Any) -> Any:
        """Run one Redis command with errors translated. Keys in it must be full names."""
        with translated(self.connection.spec):
            return self.connection.client.execute_command(*arguments)

    def commands(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """Run Redis commands in one round trip, in order, with errors translated."""
        if not rows:
            return []
        with translated(self.connection.spec):
            pipe = self.connection.client.pipeline(transaction=False)
            for row in rows:
                pipe.execute_command(*row)
            results = pipe.execute(raise_on_error=False)
            for result in results:
                if isinstance(result, ResponseError):
                    raise result
        return list(results)

    def counts(self) -> dict[str, int]:
        """Return the counters."""
        try:
            return {name: int(value) for name, value in self.hash("stats").items()}
        except ValueError as error:
            raise StateError(f"{self.key('stats')} holds something that is not a counter: {error}") from error


def _republished(times: list[bytes]) -> Republished:
    text, raw, since, until = times
    return Republished(Timetable.of_text(text.decode()), UpdateTimes.unpack(raw), float(since), float(until))
