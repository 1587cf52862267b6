"""Observations: what is stored of a visit, and where its page goes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timed_namespace import TimedNamespace, new_page, page_of

from optimal_frontier.errors import StateError
from optimal_frontier.scheduling.numbers import Numbers, deadline
from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory
from optimal_frontier.state.messages import DROP, RELEASE, REST, Change
from optimal_frontier.state.rows import DONE, RETIRED, TRANSIENT


def test_the_whole_head_is_stored_and_the_tail_stays(space: TimedNamespace) -> None:
    space.add(new_page("h/1", stated=3.0))
    handout = space.dispatch()[0]
    seen = space.observation(handout, 5.0, 0.5, shape=2.0, time=9.0, content=b"c" * 16, bits=5)
    assert space.send(seen) == [1]
    assert space.row(page_of("h/1")) == seen.row._replace(host=1)
    space.advance(10.0)
    again = space.dispatch()[0]
    assert (again.record, again.stated, again.host) == ({"url": "http://h/1"}, 3.0, "h")
    assert again.elapsed == pytest.approx(10.0)


def test_a_page_is_queued_where_its_numbers_say(space: TimedNamespace) -> None:
    space.set_price(-2.0)
    space.add(*(new_page(f"h/{i}") for i in range(4)))
    cases = [Numbers(20.0, 4.0, 0.0, 1e9), Numbers(1.0, 4.0, 3.0, 1e9), Numbers(20.0, 4.0, 0.0, 5.0), Numbers(float("inf"), 0.0, 0.0, 77.0)]
    for handout, numbers in zip(space.dispatch(4), cases, strict=True):
        space.send(space.observation(handout, *numbers[:2], e=numbers.e, longest=numbers.l))
    assert [space.due_in(f"h/{i}") for i in range(4)] == [pytest.approx(deadline(0.0, numbers, -2.0), abs=1e-5) for numbers in cases]


def test_a_damaged_counter_ends_the_call_before_it_writes_more(space: TimedNamespace) -> None:
    """So the visit counts once the counter is mended, as the lease is still there, and its change is told once."""
    space.add(new_page("h/1"))
    (handout,) = space.dispatch()
    space.add(new_page("h/1", stated=4.0))  # yielded again meanwhile
    seen, before = space.observation(handout, 5.0, shape=2.0, time=9.0), space.row(page_of("h/1"))
    seen = replace(seen, change=Change("http://h/1", b"\x01" * 16, b"\x02" * 16))
    space.command("HSET", space.key("stats"), "ended", "many")
    with pytest.raises(StateError, match="integer"):
        space.send(seen)
    assert space.row(page_of("h/1")) == before
    space.command("HDEL", space.key("stats"), "ended")
    assert space.send(seen) == [1]
    assert space.row(page_of("h/1")).shape == 2.0
    assert space.command("XLEN", space.key("changes")) == 1
    space.advance(10.0)
    assert space.dispatch()[0].stated == 4.0


@pytest.mark.parametrize("key", ["pages", "amended"])
def test_a_damaged_key_ends_the_call_before_it_counts(space: TimedNamespace, key: str) -> None:
    """So the visit counts once, when the key is mended."""
    space.add(new_page("h/1"))
    (handout,) = space.dispatch()
    seen, counted = replace(space.observation(handout, 5.0), counters={"good": 1}), space.counts()
    if key == "pages":
        space.command("RENAME", space.key("pages"), space.key("kept"))
    space.command("SET", space.key(key), "mine")
    with pytest.raises(StateError, match="another type"):
        space.send(seen)
    assert space.counts() == counted
    space.command("DEL", space.key(key))
    if key == "pages":
        space.command("RENAME", space.key("kept"), space.key("pages"))
    assert space.send(seen) == [1]
    assert space.counts()["good"] == 1


def test_a_place_on_the_queue_is_even(space: TimedNamespace) -> None:
    space.visit(*(f"h/{i}" for i in range(30)), wait=1.0 / 3.0)
    assert all((space.score(page_of(f"h/{i}")) or 1) % 2 == 0 for i in range(30))


def test_release_leaves_the_row_and_is_due_at_once(space: TimedNamespace) -> None:
    space.visit("h/1", wait=5.0)
    space.advance(6.0)
    before = space.row(page_of("h/1"))
    handout = space.dispatch()[0]
    assert space.observe(handout, 500.0, op=RELEASE) == 1
    assert space.row(page_of("h/1")) == before
    assert space.names() == ["h/1"]


def test_drop_forgets_a_request(space: TimedNamespace) -> None:
    space.add(new_page("h/1", state=TRANSIENT))
    assert space.counts() == {"pending": 1, "arrivals": 1}
    assert space.observe(space.dispatch()[0], op=DROP) == 1
    assert space.score(page_of("h/1")) is None
    assert space.command("HLEN", space.key("pages")) == 0
    assert space.command("EXISTS", space.key("kept")) == 0


@pytest.mark.parametrize("state", [RETIRED, DONE])
def test_rest_takes_the_page_from_the_queue(space: TimedNamespace, state: int) -> None:
    space.visit("h/1", wait=1.0)
    space.advance(2.0)
    assert space.observe(space.dispatch()[0], op=REST, state=state) == 1
    assert space.score(page_of("h/1")) is None
    assert space.row(page_of("h/1")).state == state
    retired = space.command("LRANGE", space.key("retired:1"), 0, -1)
    assert retired == ([page_of("h/1")] if state == RETIRED else [])


def test_a_host_remembers_its_last_32_retired_pages(space: TimedNamespace) -> None:
    names = [f"h/{i}" for i in range(40)]
    space.visit(*names, wait=0.0)
    space.advance(1.0)
    handed = space.dispatch(40)
    assert space.send(*(space.observation(handout, op=REST, state=RETIRED) for handout in handed)) == [1] * 40
    assert space.command("LRANGE", space.key("retired:1"), 0, -1) == [handout.page for handout in handed[:7:-1]]


def test_memory_is_replaced_left_and_forgotten(space: TimedNamespace) -> None:
    memory = Memory(etag=b'"1"', size=7)
    space.add(new_page("h/1"))
    for left, expected in ((memory, memory), (None, memory), (NOTHING_REMEMBERED, NOTHING_REMEMBERED)):
        handout = space.dispatch()[0]
        assert space.send(replace(space.observation(handout, 0.0), memory=left)) == [1]
        space.advance(1.0)
        again = space.dispatch()[0]
        assert again.memory == expected
        space.observe(again, op=RELEASE)
    assert space.command("EXISTS", space.key("memory")) == 0


def test_words_of_a_host_come_with_every_page_of_it(space: TimedNamespace) -> None:
    words = HostWords(header=(1.0, 2.0, 3.0, 4.0), good=5.0, missing=0.5)
    space.add(new_page("h/1"), new_page("h/2"), new_page("other/1"))
    handout = space.dispatch()[0]
    space.send(replace(space.observation(handout), words=words))
    assert [(one.host, one.words == words) for one in space.dispatch(2)] == [("h", True), ("other", False)]
    space.advance(11.0)
    space.send(replace(space.observation(space.dispatch()[0]), words=HostWords()))
    assert space.command("EXISTS", space.key("hosts:words")) == 0


def test_counters_and_lateness_count_only_with_a_valid_lease(space: TimedNamespace) -> None:
    space.add(new_page("h/1"), new_page("h/2"))
    one, other = space.dispatch(2)
    seen = [replace(space.observation(handout), counters={"visits": 1, "pending": -1}) for handout in (one, other)]
    other.token += 2.0
    assert space.send(*seen) == [1, 0]
    counts = space.counts()
    assert (counts["visits"], counts["pending"], counts["ended"], counts["observations_refused"]) == (1, 1, 1, 1)


def test_latenesses_of_the_last_thousand_calls_are_kept(space: TimedNamespace) -> None:
    space.visit("h/1", "h/2", wait=0.0)
    for at in range(1010):
        space.advance(1.0)
        handed = space.dispatch(2)
        space.send(*(replace(space.observation(handout, 0.0), lateness=float(at)) for handout in handed))
    kept = space.command("LRANGE", space.key("lateness"), 0, -1)
    assert len(kept) == 1000
    assert [float(value) for value in kept[0].split()] == [1009.0, 1009.0]


def test_a_change_is_in_the_feed(space: TimedNamespace) -> None:
    space.add(new_page("h/1"))
    change = Change("http://h/1?ü", b"\x01" * 16, b"\x02" * 16)
    space.send(replace(space.observation(space.dispatch()[0]), change=change))
    ((_, flat),) = space.command("XRANGE", space.key("changes"), "-", "+")
    fields = dict(zip(flat[::2], flat[1::2], strict=True)) if isinstance(flat, list) else flat
    assert fields == {
        b"page": page_of("h/1"),
        b"time": f"{space.now():.6f}".encode(),
        b"url": "http://h/1?ü".encode(),
        b"previous": b"01" * 16,
        b"fingerprint": b"02" * 16,
    }


@given(
    b=st.floats(1e9, 2.2e9),
    a=st.floats(-1e7, 1e7, width=32),
    s=st.floats(0.0, 1e7, width=32),
    log_price=st.floats(-40.0, 40.0),
    bounds=st.tuples(st.floats(0.0, 1e6, width=32), st.floats(0.0, 1e8, width=32)),
)
def test_the_deadline_of_the_scripts_is_that_of_scheduling(
    formula_space: TimedNamespace, b: float, a: float, s: float, log_price: float, bounds: tuple[float, float]
) -> None:
    e, longest = sorted(bounds)
    space = formula_space
    space.set_price(log_price)
    handout = space.dispatch()[0]
    assert space.send(space.observation(handout, a, s, e=e, longest=longest, b=round(b * 1e6))) == [1]
    score = space.score(page_of("h/1"))
    assert score is not None
    assert score % 2 == 0
    assert score / 1e6 == pytest.approx(deadline(round(b * 1e6) / 1e6, Numbers(a, s, e, longest), log_price), abs=1e-5, rel=1e-12)
    space.command("ZADD", space.key("q"), 2, page_of("h/1"))
    row = space.row(page_of("h/1"))._replace(b=2.0, a=0.0, s=0.0, e=0.0, l=0.0)
    space.command("HSET", space.key("pages"), page_of("h/1"), row.pack() + bytes(4) + b"\x01/1")
