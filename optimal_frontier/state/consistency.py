"""The invariants of what is stored, and whether they hold."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from optimal_frontier.state.columns import ACTIVE, CHUNK, DONE, FREE, LAYOUTS, ONCE, RETIRED, STATE_NAMES, TRANSIENT
from optimal_frontier.state.snapshot import Snapshot, read_snapshot
from optimal_frontier.state.store import Store
from optimal_frontier.state.update_times import StoredTimes

#: Seconds before a second look: what a running crawl only seemed to break is whole by then.
PAUSE_S: Final = 0.3
#: Looks after the first.
LOOKS: Final = 2

#: Columns ``page``, ``seen``, ``plan`` and ``index``, the hash ``price``, and update times -> deadlines, seconds since the epoch, inf for
#: none.
Deadlines = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Mapping[str, str], StoredTimes], np.ndarray]


@dataclass(frozen=True)
class Finding:
    """Something that should not be: the invariant, what breaks it, and how."""

    invariant: str
    subject: str
    message: str


@dataclass(frozen=True)
class CheckReport:
    """What a check found. ``warnings`` are put right by the next plan; ``violations`` are not."""

    pages: int
    violations: list[Finding]
    warnings: list[Finding]


def check_state(store: Store, deadlines: Deadlines, horizon_s: float, *, sleep: Callable[[float], None] = time.sleep) -> CheckReport:
    """Check the stored state of a namespace, also under a running crawl.

    Parameters
    ----------
    store : Store
        Opened.
    deadlines : callable
        The latest deadlines that pages can have been queued by.
    horizon_s : float
        Seconds after a plan for which it queues pages.
    sleep : callable
        Waits between two looks.

    Returns
    -------
    CheckReport
        Only what was found at every look.
    """
    report = inspect(read_snapshot(store), deadlines, horizon_s)
    for _ in range(LOOKS):
        if not report.violations and not report.warnings:
            break
        sleep(PAUSE_S)
        again = inspect(read_snapshot(store), deadlines, horizon_s)
        report = CheckReport(again.pages, _both(again.violations, report.violations), _both(again.warnings, report.warnings))
    return report


def inspect(snapshot: Snapshot, deadlines: Deadlines, horizon_s: float) -> CheckReport:
    """Check one snapshot; see `check_state`."""
    violations = [
        *_check_columns(snapshot),
        *_check_identities(snapshot),
        *_check_values(snapshot),
        *_check_leases(snapshot),
        *_check_queues(snapshot),
        *_check_heads(snapshot),
        *_check_counters(snapshot),
        *_check_announced(snapshot),
    ]
    state = snapshot.page["state"]
    pages = int(((state == ACTIVE) | (state == RETIRED)).sum())
    return CheckReport(pages, violations, list(_check_horizon(snapshot, deadlines, horizon_s)))


def _both(now: list[Finding], before: list[Finding]) -> list[Finding]:
    known = {(finding.invariant, finding.subject) for finding in before}
    return [finding for finding in now if (finding.invariant, finding.subject) in known]


def _slots(invariant: str, slots: Iterable[int], message: str) -> Iterator[Finding]:
    for slot in slots:
        yield Finding(invariant, f"slot {slot}", message)


def _where(mask: np.ndarray) -> list[int]:
    found: list[int] = np.flatnonzero(mask).tolist()
    return found


def _members(s: Snapshot, slots: Iterable[int] | np.ndarray) -> np.ndarray:
    """Bool per slot: whether it is among ``slots``; what is no slot is left out."""
    mask = np.zeros(s.slots, bool)
    at = slots if isinstance(slots, np.ndarray) else np.fromiter(slots, np.int64)
    mask[at[(at >= 0) & (at < s.slots)]] = True
    return mask


def _check_columns(s: Snapshot) -> Iterator[Finding]:
    for name, sizes in s.lengths.items():
        width = LAYOUTS[name].itemsize
        for chunk, size in enumerate(sizes):
            # Only `page` is written for every slot; elsewhere what is missing counts as zeros.
            least = min(CHUNK, s.slots - chunk * CHUNK) * width if name == "page" else 0
            if size < least or size > CHUNK * width or size % width:
                yield Finding("columns", f"{name}:{chunk}", f"has {size} bytes, expected {least} to {CHUNK * width} in steps of {width}")


def _check_identities(s: Snapshot) -> Iterator[Finding]:
    state = s.page["state"]
    yield from _slots("states", _where(state >= len(STATE_NAMES)), "has an unknown state")
    for fingerprint, slot in s.ids.items():
        if not 0 <= slot < s.slots:
            yield Finding("identities", f"id {fingerprint.hex()}", f"points to no slot below {s.slots}")
    for alias, name in s.aliases.items():
        if name in s.aliases or name not in s.ids or s.ids.get(alias) != s.ids[name]:
            yield Finding("aliases", f"id {alias.hex()}", f"is no other name of {name.hex()}")
    at = np.array([slot for fingerprint, slot in s.ids.items() if fingerprint not in s.aliases], np.int64)
    owners = np.bincount(at[(at >= 0) & (at < s.slots)], minlength=s.slots)
    yield from _slots("identities", _where(owners > 1), "belongs to more than one identity")
    yield from _slots("identities", _where((owners > 0) & ((state == FREE) | (state == TRANSIENT))), "has an identity, but holds no page")
    kept = (state != FREE) & (state != TRANSIENT) & (state < len(STATE_NAMES))
    yield from _slots("identities", _where((owners == 0) & kept), "holds a page without an identity")
    recorded = _members(s, s.records)
    yield from _slots("records", _where((state != FREE) & (state != DONE) & ~recorded), "holds a page whose record is missing")
    yield from _slots("records", _where((state == FREE) & recorded), "is free, but has a record")
    yield from _slots("records", s.unreadable.tolist(), "has a record that cannot be read")
    yield from _slots("free", s.free[(s.free < 0) | (s.free >= s.slots)].tolist(), "is in the free list, but does not exist")
    yield from _slots("free", [slot for slot, n in Counter(s.free.tolist()).items() if n > 1], "is in the free list twice")
    free = _members(s, s.free)
    yield from _slots("free", _where(free & (state != FREE)), "is in the free list, but in use")
    yield from _slots("free", _where(~free & (state == FREE)), "is free, but not in the free list")


def _check_values(s: Snapshot) -> Iterator[Finding]:
    live = s.page["state"] != FREE
    for name, array in (("page", s.page), ("seen", s.seen), ("plan", s.plan), ("index", s.index)):
        for field in array.dtype.names or ():
            if array.dtype[field].kind == "f":
                yield from _slots(f"finite {name}.{field}", _where(live & ~np.isfinite(array[field])), f"{field} is not finite")
    with np.errstate(invalid="ignore"):
        rules = {
            "importance is not above 0": s.page["importance"] <= 0,
            "a bound on its rate is below 0": (s.page["min_rate"] < 0) | (s.page["max_rate"] < 0) | (s.page["gap"] < 0),
            "its rate is below 0": s.plan["rate"] < 0,
            "its weight, change rate or a bound of its plan is below 0": (s.index["weight"] < 0)
            | (s.index["change_rate"] < 0)
            | (s.index["least_rate"] < 0),
            "half of its posterior is missing": (s.seen["shape"] > 0) != (s.seen["time"] > 0),
            "more changes than observations": s.seen["changes"] > s.seen["observations"],
            "more observations than visits": s.seen["observations"] > s.seen["visits"],
            # One that waits for its first attempt may have been seen under another name.
            "more visits than attempts": (s.seen["visits"] > s.seen["attempts"]) & (s.seen["attempts"] > 0),
        }
    for message, broken in rules.items():
        yield from _slots(f"values: {message}", _where(live & broken), message)
    timed = _members(s, s.times.slots)
    yield from _slots("update times", _where(timed & ~live), "is free, but has update times")
    for slot, learned in zip(s.times.slots.tolist(), s.times.learned, strict=True):
        if len(learned.betas) not in (0, len(s.times.timetables[learned.number].times)):
            yield Finding("update times", f"slot {slot}", "has learned of other update times than those of its timetable")
    yield from _slots("hosts", _where(live & ~np.isin(s.page["host"], s.hosts)), "is of a host that has no name")


def _check_leases(s: Snapshot) -> Iterator[Finding]:
    slots = {lease.slot for lease in s.leases}
    for lease in s.leases:
        where = f"slot {lease.slot}"
        if not 0 <= lease.slot < s.slots or s.page["state"][lease.slot] == FREE:
            yield Finding("leases", where, "is leased, but holds nothing")
        if not lease.owner:
            yield Finding("leases", where, "has a lease that cannot be read")
        elif lease.slot not in s.owned.get(lease.owner, ()):
            yield Finding("leases", where, f"is leased, but not in the set of its owner {lease.owner}")
    yield from _slots("expiry", sorted(slots - s.expiry), "is leased, but its lease never expires")
    yield from _slots("expiry", sorted(s.expiry - slots), "has a time of expiry, but no lease")
    for owner, owned in s.owned.items():
        yield from _slots("owners", sorted(owned - slots), f"is in the set of owner {owner}, but not leased")


def _check_queues(s: Snapshot) -> Iterator[Finding]:
    state, attempts = s.page["state"], s.seen["attempts"]
    leased = _members(s, (lease.slot for lease in s.leases))
    queued = {}
    for kind, (slots, hosts) in (("due", s.due), ("first", s.first)):
        exists = (slots >= 0) & (slots < s.slots)
        yield from _slots(f"{kind} queue", slots[~exists].tolist(), f"is in a {kind} queue, but does not exist")
        slots, hosts = slots[exists], hosts[exists]
        queued[kind] = _members(s, slots)
        times = np.bincount(slots, minlength=s.slots)
        yield from _slots(f"{kind} queue twice", _where(times > 1), f"is more than once in the {kind} queues")
        wrong = slots[s.page["host"][slots] != hosts]
        yield from _slots(f"{kind} queue host", wrong.tolist(), f"is in the {kind} queue of another host")
        yield from _slots(f"{kind} queue lease", _where(leased & queued[kind]), f"is in a {kind} queue while leased")
    yield from _slots("due queue state", _where(queued["due"] & (state != ACTIVE)), "is in a due queue, but not active")
    waiting = ((state == ACTIVE) | (state == ONCE) | (state == TRANSIENT)) & (attempts == 0)
    yield from _slots("first queue state", _where(queued["first"] & ~waiting), "waits for a first visit, but is not new")
    yield from _slots("first visits", _where(waiting & ~queued["first"] & ~leased), "was never attempted, is not queued and not leased")
    retrying = (state == ACTIVE) & (attempts > 0) & (s.seen["visits"] == 0)
    yield from _slots("retries", _where(retrying & ~queued["due"] & ~leased), "never succeeded, is not queued and not leased")


def _check_heads(s: Snapshot) -> Iterator[Finding]:
    for head in s.heads:
        where = f"host {head.host}"
        due, first = (None, None) if head.blocked else (head.due, head.first)
        if due != head.due_said:
            yield Finding("deadline heads", where, f"its first deadline is {due}, hosts:due says {head.due_said}")
        if first != head.first_said or (head.first_said is not None and not head.first_listed):
            yield Finding("first-visit heads", where, "hosts:first does not hold the head of its first visits")


def _check_counters(s: Snapshot) -> Iterator[Finding]:
    state = s.page["state"]
    waiting = ((state == ACTIVE) | (state == ONCE) | (state == TRANSIENT)) & (s.seen["attempts"] == 0)
    recounts = {
        "pages": (state == ACTIVE) | (state == RETIRED),
        "pending": waiting,
        "fetched": (s.seen["visits"] > 0) & (state != FREE),
        "retired": state == RETIRED,
    }
    for name, counted in recounts.items():
        said, real = s.counts.get(name, 0), int(counted.sum())
        if abs(said - real) > s.events:
            yield Finding("counters", name, f"the counter says {said}, the columns say {real}")


def _check_announced(s: Snapshot) -> Iterator[Finding]:
    known = (s.page["state"] == ACTIVE) | (s.page["state"] == RETIRED)
    for slot in s.put_forward:
        if not 0 <= slot < s.slots or not known[slot]:
            yield Finding("announced", f"slot {slot}", "was put forward, but is no page")
    counted = Counter(s.put_forward.values())
    for name, said in s.waiting.items():
        if abs(said - counted[name]) > s.events:
            yield Finding("announced", f"announcer {name}", f"is said to have put {said} pages forward, there are {counted[name]}")


def _check_horizon(s: Snapshot, deadlines: Deadlines, horizon_s: float) -> Iterator[Finding]:
    if "time" not in s.published:
        return
    limit = float(s.published["time"]) + horizon_s
    by_price = "price" in s.price
    if by_price != (s.published.get("dispatch") == "index"):
        yield Finding("price", "price", f"{'there' if by_price else 'not there'}, which is not how the last plan is dispatched")
    planned = (s.page["state"] == ACTIVE) & (s.seen["visits"] > 0) & (s.seen["attempts"] > 0) & (s.plan["base_time"] > 0)
    there = _members(s, s.due[0]) | _members(s, (lease.slot for lease in s.leases))
    due = deadlines(s.page, s.seen, s.plan, s.index, s.price, s.times) <= limit
    yield from _slots("horizon", _where(planned & due & ~there), "falls due before the next plans, but is not queued")
