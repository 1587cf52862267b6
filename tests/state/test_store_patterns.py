"""Patterns of pages: numbered as pages come, bounded, and their priors handed out with pages that have no bit."""

from __future__ import annotations

import numpy as np
import pytest
from clocked_store import fingerprint, new_page

from optimal_frontier.state.columns import ACTIVE, ONCE, PRIOR, TRANSIENT


def patterns_of(store, *names):
    return [int(store.records_at("page", [store.slot(name)])["pattern"][0]) for name in names]


def write_priors(store, rows):
    fence = store.run([("take_planner_lock", ["planner", 10_000_000])])[0]
    assert store.run([("write_plan", [fence, "prior", 0, 0, np.array(rows, PRIOR).tobytes()])]) == [1]


def test_pages_of_one_pattern_of_one_host_share_a_number(store):
    """From 1 on; the same text on another host is another pattern. What is no page has none."""
    pages = [("a/1", "/x"), ("a/2", "/y"), ("b/1", "/x"), ("a/3", "/x")]
    store.add(*(new_page(name, pattern=pattern) for name, pattern in pages), new_page("a/once", kind=ONCE, pattern="/x"))
    assert patterns_of(store, "a/1", "a/2", "b/1", "a/3", "a/once") == [1, 2, 3, 1, 0]
    store.add(new_page("a/t", kind=TRANSIENT, pattern="/x"), new_page("a/1", pattern="/z", importance=2.0))
    assert patterns_of(store, "a/1") == [1]  # a known page stays what it is
    assert store.hash("patterns") == {"1 /x": "1", "1 /y": "2", "2 /x": "3"}
    assert len(store.priors()) == 4


def test_a_host_of_many_patterns_has_one_for_the_rest(store):
    """200 of its own; the next 50 share one, and other hosts are not touched by that."""
    store.add(*(new_page(f"a/{i}", pattern=f"/{i}") for i in range(250)))
    numbers = patterns_of(store, *(f"a/{i}" for i in range(250)))
    assert numbers == [*range(1, 201), *[201] * 50]
    assert store.hash("patterns")["1 "] == "201"
    store.add(new_page("b/1", pattern="/1"), new_page("a/250", pattern="/3"))
    assert patterns_of(store, "b/1", "a/250") == [202, 4]


def test_a_namespace_has_no_more_than_100_000(store):
    """Beyond them a page has none, unless its pattern is known."""
    store.add(new_page("a/1", pattern="/x"))
    fill = "for i = 1, 99999 do redis.call('HSET', KEYS[1], 'filler ' .. i, i) end"
    store.command("EVAL", fill, 1, store.key("patterns"))
    store.add(new_page("a/2", pattern="/y"), new_page("a/3", pattern="/x"))
    assert patterns_of(store, "a/2", "a/3") == [0, 1]


def test_changed_rules_force_and_state_leave_the_pattern(store):
    store.add(new_page("a/1", pattern="/x"), new_page("a/2", pattern="/y"))
    store.visit_all()
    slot = store.slot("a/2")
    store.run([("set_bounds", [slot, 0, 3.0, 0, 10, 0.0, ACTIVE, ""])])
    for outcome in ("gone", "gone"):
        store.run([("force_page", [fingerprint("a/2")])])
        (handout,) = [h for h in store.dispatch(5)[0] if h.slot == slot]
        store.observe(handout, outcome)
    store.run([("force_page", [fingerprint("a/2")])])
    assert patterns_of(store, "a/2") == [2]


def test_a_forgotten_page_leaves_no_pattern_in_its_slot(store):
    store.add(new_page("a/1", pattern="/x"))
    slot = store.slot("a/1")
    store.run([("forget_page", [fingerprint("a/1")])])
    assert store.records_at("page", [slot])["pattern"].tolist() == [0]
    store.add(new_page("a/once", kind=ONCE))
    assert patterns_of(store, "a/once") == [0]
    store.run([("forget_page", [fingerprint("a/once")])])
    store.add(new_page("a/2", pattern="/y"))
    assert patterns_of(store, "a/2") == [2]


def test_a_page_without_a_bit_comes_with_the_prior_of_its_pattern(store):
    """Nothing where its pattern is newer than the plan; one with bits of its own may have to be learned anew."""
    store.add(new_page("a/1", pattern="/x"), new_page("a/2", pattern="/y"), new_page("a/3", pattern="/z"))
    write_priors(store, [(1.0, 9.0, 0.0), (1.5, 30.0, 2.5), (1.25, 400.0, 7.0)])
    handouts = {handout.slot: handout for handout in store.dispatch(3)[0]}
    found = [(handouts[slot].prior_shape, handouts[slot].prior_time) for slot in range(3)]
    assert found == [(1.5, 30.0), (1.25, 400.0), (0.0, 0.0)]
    store.observe(handouts[0], bit=1, shape=3.0, time=10.0, rate=1.0)
    store.run([("force_page", [fingerprint("a/1")])])
    (again,) = store.dispatch(1)[0]
    assert (again.slot, again.shape, again.prior_shape) == (0, 3.0, 1.5)
    assert store.priors()["siblings"].tolist() == pytest.approx([0.0, 2.5, 7.0, 0.0])
