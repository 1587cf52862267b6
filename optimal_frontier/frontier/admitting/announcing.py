"""What sources say of the last change of known pages: it is noted, and pages that have changed since they were seen are put forward.

A page that is put forward is due as soon as its least interval is over (and its backoff, if it failed); a retired one comes back. Its next
visit shows whether the announcer was right (`estimation.announcers`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from optimal_frontier.estimation.announcers import PROBE_EVERY, Announcer
from optimal_frontier.frontier.admitting.revival import brought_back, due_at
from optimal_frontier.frontier.judging.backoff import backoff_s
from optimal_frontier.state.memory import Announced, Lastmod, Memory
from optimal_frontier.state.messages import NewPage
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import revise_calls
from optimal_frontier.state.rows import ACTIVE, ANNOUNCED, HELD, RETIRED, Row

#: Seconds by which the site's clock may differ from ours.
CLOCKS_S: Final = 2.0
#: A time whose resolution is longer may mean any moment in it, seconds.
ROUGH_S: Final = 60.0


class Heard(NamedTuple):
    """What a source's word means for a page.

    Attributes
    ----------
    memory : Memory
        Of the page, with the word; as it was where the word is none.
    announced : Announced or None
        The mark of the page if it is put forward; None: the word is no news.
    """

    memory: Memory
    announced: Announced | None


def hear(row: Row, memory: Memory, new: NewPage, now: float) -> Heard:
    """Judge what a source says of a page; pure.

    Parameters
    ----------
    row : Row
        Of the page, as stored.
    memory : Memory
        The same.
    new : NewPage
        With ``lastmod``, and with ``announcement`` where the source is one that announces.
    now : float
        Server's time, seconds since the epoch.
    """
    assert new.lastmod is not None
    modified, resolution = new.lastmod
    if modified > now + resolution:
        return Heard(memory, None)
    before, told = memory.lastmod, Lastmod(modified, resolution, now)
    if new.announcement is None:
        return Heard(replace(memory, lastmod=told), None)
    # The word is no fair sample of ages: one that has not moved was not passed on, and a page that is found because it is new is young.
    # So it is noted as too rough to be used as one, but for the words of a source that is read for the first time.
    is_sample = row.attempts == 0 and new.announcement.unread < 0
    if row.attempts or is_sample:
        memory = replace(memory, lastmod=told if is_sample else told._replace(resolution=math.inf))
    seen_by = modified + (resolution / 2 if resolution > ROUGH_S else CLOCKS_S)
    last_seen, unread = row.b / 1e6 - row.unseen, new.announcement.unread
    # A word that is new since the source was read before speaks of a change since then, whatever the site's clock says.
    is_unseen = seen_by > last_seen or (before is not None and unread >= 0 and last_seen < now - unread)
    is_page = row.state == RETIRED or (row.state == ACTIVE and row.visits > 0 and not row.flags & HELD)
    if not (is_page and is_unseen and (before is None or modified > before.modified)):
        return Heard(memory, None)
    is_unsure = resolution <= ROUGH_S and modified <= last_seen
    return Heard(memory, Announced(now, seen_by, is_unsure, new.announcement.announcer))


def put_forward(row: Row, page: bytes, now: float) -> Row:
    """Return the row of a page that is due as soon as its least interval and its backoff are over: since then, so it goes before others."""
    if row.state == RETIRED:
        return brought_back(row, now if row.visits == 0 else max(now, row.b / 1e6 + row.min_interval), ANNOUNCED)
    wait = max(row.min_interval, backoff_s(page, row.failures) if row.failures else 0.0)
    return due_at(row, row.b / 1e6 + wait, ANNOUNCED)


def has_say(announcer: Announcer) -> tuple[bool, Announcer, str]:
    """Tell whether an announcer may put one more page forward; return that, the announcer after it, and the counter of why it may not."""
    if not announcer.is_silenced:
        return announcer.waiting < announcer.window, announcer, "announcements_held"
    passed_over = announcer.passed_over + 1
    if passed_over < PROBE_EVERY or announcer.waiting > 0:
        return False, replace(announcer, passed_over=passed_over), "announcements_distrusted"
    return True, replace(announcer, passed_over=0), ""


def take_in(namespace: Namespace, pages: Sequence[NewPage]) -> list[NewPage]:
    """Take in what sources say of pages that were added, or known.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    pages : sequence of NewPage
        With ``lastmod``.

    Returns
    -------
    list of NewPage
        Pages that are being fetched and would be put forward: it is to be said again when that is over.
    """
    groups: dict[int, list[NewPage]] = {}
    for new in pages:
        groups.setdefault(namespace.partition_of(new.host), []).append(new)
    announcers = _Announcers(namespace)
    again: list[NewPage] = []
    for partition, told in groups.items():
        again += _take_in(namespace, partition, told, announcers)
    announcers.store()
    return again


def settle(namespace: Namespace, announcer: str, verdict: int) -> None:
    """Note what the visit of a page that was put forward has shown: 1 (right), 0 (wrong), -1 (nothing)."""
    announcers = _Announcers(namespace)
    before = announcers[announcer]
    if verdict >= 0:
        announcers[announcer] = before.after(bool(verdict))
    else:
        announcers[announcer] = replace(before, waiting=max(0, before.waiting - 1))
    announcers.store()


def drop_announcement(namespace: Namespace, announcer: str) -> None:
    """Note that a page that was put forward is not visited any more."""
    settle(namespace, announcer, -1)


class _Announcers:
    """What was found out about announcers, read once and stored once; counters go along."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._known: dict[str, Announcer] = {}
        self._changed: set[str] = set()
        self.counters: Counter[str] = Counter()

    def _partition(self, name: str) -> int:
        return self._namespace.partition_of(name.partition(" ")[0])

    def __getitem__(self, name: str) -> Announcer:
        if name not in self._known:
            partition = self._partition(name)
            raw = self._namespace.command("HGET", self._namespace.key("announcers", partition), name, partition=partition)
            self._known[name] = Announcer.parse(raw.decode()) if raw else Announcer()
        return self._known[name]

    def __setitem__(self, name: str, announcer: Announcer) -> None:
        self._known[name] = announcer
        self._changed.add(name)

    def store(self) -> None:
        for name in self._changed:
            partition = self._partition(name)
            self._namespace.command("HSET", self._namespace.key("announcers", partition), name, self._known[name].text, partition=partition)
        if self.counters:
            self._namespace.run([Call(0, "count", [value for counted in self.counters.items() for value in counted])])


def _take_in(namespace: Namespace, partition: int, pages: Sequence[NewPage], announcers: _Announcers) -> list[NewPage]:
    key, ids = namespace.key, [new.page for new in pages]
    values, memories, scores = namespace.commands(
        [
            ["HMGET", key("pages", partition), *ids],
            ["HMGET", key("memory", partition), *ids],
            ["ZMSCORE", key("q", partition), *ids],
        ],
        partition=partition,
    )
    now = namespace.now(partition)
    again: list[NewPage] = []
    noted: list[Any] = []
    for new, value, raw, score in zip(pages, values, memories, scores, strict=True):
        if value is None:
            continue
        row, memory = Row.unpack(value), Memory.unpack(raw)
        heard = hear(row, memory, new, now)
        mark = heard.announced
        if mark is not None:
            # The page is said again after its lease, with the word that is stored now.
            if score is not None and float(score) % 2 == 1:
                again.append(new)
                continue
            if _is_put_forward(namespace, partition, new, row, heard, announcers):
                continue
        if heard.memory != memory:
            noted += (new.page, heard.memory.pack())
    if noted:
        namespace.command("HSET", key("memory", partition), *noted, partition=partition)
    return again


def _is_put_forward(namespace: Namespace, partition: int, new: NewPage, row: Row, heard: Heard, announcers: _Announcers) -> bool:
    mark = heard.announced
    assert mark is not None
    name = mark.announcer
    announcers.counters["announced"] += 1
    if heard.memory.announced is not None:
        return False  # its visit is owed already
    may, after, why = has_say(announcers[name])
    announcers[name] = after
    if not may:
        announcers.counters[why] += 1
        return False
    memory = replace(heard.memory, announced=mark)
    revision = (new.page, row.b, put_forward(row, new.page, mark.at), memory)
    ((done,),) = namespace.run(revise_calls(partition, [revision]))
    if done == 1:
        announcers[name] = replace(after, waiting=after.waiting + 1)
        announcers.counters["put_forward"] += 1
    return bool(done == 1)
