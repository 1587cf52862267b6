"""The formulas and layouts in Lua equal their Python reference."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_store import ClockedStore
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from optimal_frontier.frontier.deadlines import FORCED
from optimal_frontier.scheduling import backoff, credit_at, deadline, least_wait, memoryless_wait
from optimal_frontier.scheduling.update_times import next_update, quiet_before, visit_deadline
from optimal_frontier.settings import Timetable
from optimal_frontier.state.columns import CHUNK, LAYOUTS, STATE_NAMES
from optimal_frontier.state.reading import OWNER_SILENCE_S
from optimal_frontier.state.scripts import source

TIMES = st.floats(0, 4e9)
CREDITS = st.floats(-1e4, 1e4)
RATES = st.one_of(st.just(0.0), st.floats(1e-12, 1e4))

FORMULAS = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)

_DEADLINE = """
local function get(i) return tonumber(ARGV[i]) end
local p = {gap = get(1), slot = get(12)}
local s = {last_attempt = get(2), carry = get(3), settled = get(4), visits = get(5), failures = get(6), gone = get(7)}
local q = {rate = get(8), base_time = get(9), base_credit = get(10)}
return {number(deadline(p, s, q)), number(credit(s, q, get(11))), number(backoff(s.failures, p.slot))}
"""


def probe(store: ClockedStore, body: str, *arguments: object) -> list[bytes]:
    """Run ``body`` behind the prelude of all scripts."""
    prelude = source("leave")[: -len((_folder() / "leave.lua").read_text())]
    return store.command("EVAL", prelude + body, 1, store.prefix, *arguments)


def _folder():
    from importlib.resources import files

    return files("optimal_frontier.state") / "lua"


@FORMULAS
@given(
    gap=st.floats(0, 1e6),
    last_attempt=TIMES,
    carry=CREDITS,
    settled=TIMES,
    failures=st.integers(0, 40),
    rate=RATES,
    base_time=TIMES,
    base_credit=CREDITS,
    now=TIMES,
    same_time=st.booleans(),
    slot=st.integers(0, 2**31),
)
def test_credit_deadline_and_backoff_equal_the_reference(
    store, gap, last_attempt, carry, settled, failures, rate, base_time, base_credit, now, same_time, slot
):
    """Also where plan and visit fell on the same instant: then the visit counts."""
    base_time = settled if same_time else base_time
    values = (gap, last_attempt, carry, settled, 1, failures, 0, rate, base_time, base_credit, now, slot)
    due, credit, wait = (float(value) for value in probe(store, _DEADLINE, *map(repr, values)))
    expected = float(deadline(carry, settled, rate, base_time, base_credit, last_attempt, gap, failures, slot))
    assert due == (expected if expected < np.inf else 1e300)
    assert credit == float(credit_at(now, carry, settled, rate, base_time, base_credit))
    assert wait == float(backoff(failures, slot))


@FORMULAS
@given(slot=st.integers(0, 2**31), generation=st.integers(0, 2**32 - 1), attempts=st.integers(1, 2**32 - 1))
def test_the_wait_of_a_memoryless_visit_equals_the_reference(store, slot, generation, attempts):
    """Up to the last digit of two libraries' logarithms."""
    body = "return number(memoryless_wait(tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])))"
    wait = float(probe(store, body, slot, generation, attempts))
    assert wait == pytest.approx(memoryless_wait(slot, generation, attempts), rel=1e-15)


@FORMULAS
@given(
    gap=st.floats(0, 1e6), last_attempt=TIMES, failures=st.integers(1, 40), gone=st.integers(0, 1), rate=RATES, slot=st.integers(0, 2**31)
)
def test_a_page_that_was_gone_or_never_came_is_tried_again_after_its_backoff(store, gap, last_attempt, failures, gone, rate, slot):
    """At the latest of gap, backoff, and, if it was gone, a tenth of its interval."""
    values = (gap, last_attempt, 0, last_attempt, gone, failures, gone, rate, 0, 0, 0, slot)
    due = float(probe(store, _DEADLINE, *map(repr, values))[0])
    assert due == last_attempt + float(least_wait(gap, failures, slot, gone, rate))


@FORMULAS
@given(carry=CREDITS, settled=TIMES, rate=st.floats(1e-9, 1e3), base_time=TIMES, base_credit=CREDITS)
def test_a_page_is_due_when_its_credit_reaches_one(store, carry, settled, rate, base_time, base_credit):
    """credit(deadline) = 1 wherever neither gap nor backoff nor an earlier visit holds the page back."""
    values = (0, 0, carry, settled, 1, 0, 0, rate, base_time, base_credit)
    due = float(probe(store, _DEADLINE, *map(repr, values), "0", "0")[0])
    assume(due > 0)
    credit = float(credit_at(due, carry, settled, rate, base_time, base_credit))
    assert credit == pytest.approx(1.0, abs=1e-6 * max(1.0, rate) + 1e-12 * abs(due) * rate)


def test_the_layouts_in_lua_are_the_dtypes(store):
    """Chunk size, widths, field order and types; and nothing is padded."""
    groups = "{'page','seen','plan','index','content','committed','prior','watch','bought','bursts'}"
    body = f"local r = {{tostring(CHUNK)}} for _, k in ipairs({groups}) do r[#r+1] = tostring(WIDTH[k]) end return r"
    assert [int(value) for value in probe(store, body)] == [CHUNK, *(layout.itemsize for layout in LAYOUTS.values())]
    for name, layout in LAYOUTS.items():
        row = np.zeros(1, layout)
        for i, field in enumerate(layout.names):
            row[field] = b"0123456789abcdef" if layout[field].kind == "V" else i + 1.0
        body = "local r = {struct.unpack(FORMAT[ARGV[1]], ARGV[2])} r[#r] = nil for i, v in ipairs(r) do r[i] = tostring(v) end return r"
        unpacked = probe(store, body, name, row.tobytes())
        expected = [row[field][0].tobytes() if layout[field].kind == "V" else b"%d" % row[field][0] for field in layout.names]
        assert unpacked == expected
        packed = "return #struct.pack(FORMAT[ARGV[1]], struct.unpack(FORMAT[ARGV[1]], ARGV[2]))"
        assert probe(store, packed, name, row.tobytes()) == layout.itemsize


def test_the_states_in_lua_are_those_in_python(store):
    body = "return {ACTIVE, ONCE, TRANSIENT, RETIRED, DONE}"
    assert probe(store, body) == [STATE_NAMES.index(name) for name in ("active", "once", "transient", "retired", "done")]


def test_the_constants_in_lua_are_those_in_python(store):
    """Credit of a page that somebody wants now; seconds until an owner counts as gone."""
    assert [float(value) for value in probe(store, "return {number(FORCED), number(OWNER_SILENCE_S)}")] == [FORCED, OWNER_SILENCE_S]


def test_columns_are_read_back_field_by_field_across_chunks(store):
    """What `write_*` puts at a slot beyond the first chunk is what numpy reads there, and nowhere else."""
    body = """
    write_page(4097, {importance = 1.5, min_rate = 0.25, max_rate = 2, gap = 3, host = 4294967295, generation = 7, state = 1,
      pattern = 9})
    write_seen(4097, {last_attempt = 1, last_seen = 2, shape = 3, time = 4, carry = -0.5, settled = 6, visits = 7, observations = 8,
      changes = 9, bits = 4294967295, failures = 11, gone = 12, attempts = 13})
    redis.call('HSET', P .. 'meta', 'slots', 4100)
    return 1"""
    probe(store, body)
    page, seen, plan = store.columns("page", "seen", "plan")
    assert page[4097].item() == (1.5, 0.25, 2.0, 3.0, 2**32 - 1, 7, 1, 9)
    assert seen[4097].item() == (1.0, 2.0, 3.0, 4.0, -0.5, 6.0, 7, 8, 9, 2**32 - 1, 11, 12, 13)
    assert len(page) == len(seen) == len(plan) == 4100
    assert not any(column[np.arange(4100) != 4097].tobytes().strip(b"\0") for column in (page, seen))
    assert store.records_at("page", [4097, 3])["state"].tolist() == [1, 0]


_BY_TIMES = """
local t = parse_timetable(ARGV[1])
local function get(i) return tonumber(ARGV[i]) end
return {number(visit_deadline(t, get(2), get(3), get(4), get(5), get(6))), number((next_update(t, get(3), false)))}
"""


@st.composite
def timetables(draw):
    """Up to eight times, one second apart or more; those of a settings file."""
    period = draw(st.one_of(st.sampled_from([8.0, 86_400.0]), st.floats(8.0, 1e6)))
    parts = draw(st.lists(st.floats(0, 1), min_size=1, max_size=7))
    steps = 1.0 + np.array(parts) / (sum(parts) + 1e-3) * (period - len(parts) - 0.5)
    times = np.append(0.0, np.cumsum(steps)[:-1]) + draw(st.floats(0, 0.4))
    return Timetable(period, tuple(times.tolist()), (1.0,) * len(times))


@FORMULAS
@given(
    timetable=timetables(),
    mask=st.integers(0, 255),
    seen=st.floats(1e9, 3e9),
    wait=st.floats(0, 1e6),
    longest=st.one_of(st.just(np.inf), st.floats(1.0, 1e7)),
    late=st.one_of(st.just(0.0), st.floats(1, 1e6)),
)
def test_the_deadline_by_update_times_equals_the_reference(store, timetable, mask, seen, wait, longest, late):
    """And lies at or behind an update time, out of the quiet before the next one."""
    now = seen + late if late else 0.0
    most = longest if longest < np.inf else 1e300
    replies = probe(store, _BY_TIMES, timetable.text, mask, *map(repr, (seen, seen + wait, most, now)))
    due, following = (float(value) for value in replies)
    bought = [bool(mask >> j & 1) for j in range(len(timetable.times))]
    (expected,) = visit_deadline(timetable, bought, seen, seen + wait, longest, now)
    assert due == (expected if expected < np.inf else 1e300)
    assert following == next_update(timetable, seen)[0][0]
    if expected < np.inf:
        (coming,), (which,) = next_update(timetable, due)
        assert due > seen
        assert due <= coming - quiet_before(timetable)[which] + 1e-6 or due < now
