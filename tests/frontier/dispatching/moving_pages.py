"""Pages that move, for tests."""

from __future__ import annotations

from typing import Any

from clocked_namespace import ClockedNamespace, fingerprint, settings_of

from optimal_frontier.frontier.admitting.pages import move_of
from optimal_frontier.frontier.dispatching.moving import carry_out
from optimal_frontier.frontier.dispatching.work import Lease, Moving
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import RELEASE, Handout, Move
from optimal_frontier.state.rows import Row

KNOWN: dict[str, Any] = {"content": b"t" * 16, "shape": 1.5, "time": 7.0, "memory": Memory(etag=b"e")}


def lease_of(pages: ClockedNamespace, name: str) -> Handout:
    """Hand out one page, which is due in 1,000 s at most."""
    pages.advance(2000.0)
    found = None
    for handout in pages.dispatch(1000, pages.partition_of(name.partition("/")[0])):
        if handout.page == fingerprint(name)[:12]:
            found = handout
        else:
            pages.end(handout, RELEASE)
    assert found is not None, f"{name} was not handed out"
    return found


def move(pages: ClockedNamespace, name: str, target: str, at_last: bool = False, **values: Any) -> bool:
    """Fetch a page, which has moved."""
    given = {**KNOWN, **values}
    settings = settings_of(**given.pop("settings", {}))
    handout = lease_of(pages, name)
    seen = pages.seen(handout, **given)
    return carried(pages, move_of(settings, seen, fingerprint(target), f"http://{target}"), at_last=at_last)


def carried(pages: ClockedNamespace, moved: Move, token: float = 0.0, at_last: bool = False) -> bool:
    """Carry out one move; return whether that was done."""
    handout = moved.observation.handout
    moving = Moving(moved, Lease(handout, token or handout.token, handout.received))
    done, put_off = carry_out(pages, [moving], is_last=at_last)
    assert [*done, *put_off] == [moving]
    return bool(done)


def counts(pages: ClockedNamespace, *names: str) -> tuple[int, ...]:
    told = pages.counts()
    return tuple(told.get(name, 0) for name in names)


def hash_of(pages: ClockedNamespace, name: str, k: int) -> dict[bytes, bytes]:
    raw = pages.command("HGETALL", pages.key(name, k), partition=k)
    return raw if isinstance(raw, dict) else dict(zip(raw[::2], raw[1::2], strict=True))


def assert_sound(pages: ClockedNamespace) -> None:
    """Each page is in one queue; counters are what is stored; other names lead to pages."""
    stored = queued = leased = waiting = 0
    for k in range(pages.partitions):
        rows = hash_of(pages, "pages", k)
        stored += len(rows)
        waiting += sum(Row.unpack(value).attempts == 0 for value in rows.values())
        scores = pages.command("ZRANGE", pages.key("q", k), 0, -1, "WITHSCORES", partition=k)
        assert {bytes(page) for page in scores[::2]} <= set(rows)
        queued += len(scores) // 2
        leased += sum(float(score) % 2 == 1 for score in scores[1::2])
        for name in pages.hash("hosts:names", k):
            queued += pages.command("ZCARD", pages.key(f"f:{name}", k), partition=k)
    told = pages.counts()
    assert queued == stored == told["pages"]
    assert told.get("dispatched", 0) - told.get("ended", 0) - told.get("leases_expired", 0) == leased
    kept = [int(by) for k in range(pages.partitions) for name, by in pages.hash("kept", k).items() if name.startswith("h")]
    assert sum(kept) == stored
    assert told.get("pending", 0) == waiting
