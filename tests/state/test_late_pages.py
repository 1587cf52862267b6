"""Pages that looks place anew while they wait for their host: they keep its turns."""

from __future__ import annotations

import struct

import pytest
from timed_namespace import START, TimedNamespace, page_of

from optimal_frontier.state.namespace import Call

PAGES, OTHERS, PAUSE_S, BATCH = 100, 300, 2.0, 64


@pytest.mark.parametrize("look_s", [3.0, 10.0])
def test_a_host_whose_late_pages_are_placed_anew_all_the_time_is_fetched_from_at_its_pace(space: TimedNamespace, look_s: float) -> None:
    """Found: each look put them back to the head, and each dispatch behind the last turn, further and further off."""
    names = [f"h/{i}" for i in range(PAGES)]
    space.visit(*names, wait=100.0, slope=50.0)
    for i in range(OTHERS):
        space.visit(f"o{i}/1", wait=95.0 + 5 * i, e=95.0 + 5 * i)
    fence = int(space.run([Call(0, "take_planner_lock", ["p", 10_000])])[0])
    space.set_time(START + 90)
    since = {name: space.row(page_of(name)).b for name in names}
    fetched: dict[str, float] = {}
    for step in range(480):
        at = step / 2.0
        if at < 100.0 and at % look_s == 0.0:
            left = [name for name in names if name not in fetched][:BATCH]
            waits = [space.now() - since[name] / 1e6 - 6.25 * (1.5 - names.index(name) / PAGES) for name in left]
            rows = [
                page_of(name) + struct.pack("<dffff", since[name], wait, 6.25, 1.0, 1e9) for name, wait in zip(left, waits, strict=True)
            ]
            space.run([Call(0, "write_plan", [str(fence), b"".join(rows)])])
        for handout in space.dispatch(8, host_delay=PAUSE_S):
            fetched[handout.record["url"].removeprefix("http://")] = at
            space.observe(handout, 1e6, 0.0, e=1e6)
        space.advance(0.5)
    visits = [at for name, at in fetched.items() if name in since]
    assert len(visits) == PAGES
    assert max(visits) < PAUSE_S * PAGES * 1.1
