"""What is known of a host's 304s, in the store: as the Python reference has it, handed out with its pages, and of no other host."""

from __future__ import annotations

import dataclasses

import pytest
from clocked_store import ClockedStore, fingerprint, new_page

from optimal_frontier.estimation.validators import MOST_EVIDENCE, TOLD, ValidatorTrust
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.reading import read_page
from optimal_frontier.state.records import Handout

FULL = Memory(etag=b'W/"\xff"', last_modified=b"x", size=10**9, misses=3, unchecked=99, unseen=1e6, check=True, lies=2)


def again(store: ClockedStore, name: str) -> Handout:
    """Hand the page out once more."""
    store.advance(1.0)
    store.run([("force_page", [fingerprint(name)])])
    (handout,) = store.dispatch(1)[0]
    return handout


def test_lua_keeps_the_trust_as_python_does(store):
    store.add(new_page("a/1"))
    store.observe(store.dispatch(1)[0][0])
    trust = ValidatorTrust()
    script = ["lies", "agrees", "told", "unclear", *["lies"] * 5, *["told"] * 20]
    evidence = {"lies": MOST_EVIDENCE, "agrees": -0.0123456, "told": -TOLD, "unclear": 0.5}
    for verdict in script:
        handout = again(store, "a/1")
        assert handout.validator_trust == pytest.approx(tuple(trust), rel=1e-8)
        store.observe(handout, bit=1, shape=1.0, time=1.0, words=f"header:none:none validators={verdict}={evidence[verdict]:.9g}")
        trust = trust.after(verdict, evidence[verdict])
    assert trust.lies == store.counts()["validator_lies"] == 6
    store.add(new_page("b/1"))
    assert store.dispatch(1)[0][0].validator_trust == ValidatorTrust()
    reading = read_page(store, fingerprint("a/1"))
    assert reading is not None
    assert reading.validator_trust == pytest.approx(tuple(trust), rel=1e-8)


def test_memory_comes_back_whole(store):
    store.add(new_page("a/1"))
    (handout,) = store.dispatch(1)[0]
    store.observe(handout, rate=1.0, memory=FULL, counters={"not_modified": 1, "bytes_saved": 10**9})
    assert again(store, "a/1").memory == FULL
    reading = read_page(store, fingerprint("a/1"))
    assert reading is not None
    assert reading.memory == FULL
    assert store.counts()["bytes_saved"] == 10**9
    assert len(dataclasses.replace(FULL, etag=b"", last_modified=b"").pack()) < 80


def test_a_sitemaps_word_still_comes_behind(store):
    """The reply of a dispatch has the trust in 304s before it."""
    store.add(new_page("a/1"))
    store.run([("note_lastmod", [fingerprint("a/1"), repr(store.time() - 100.0), "60.0"])])
    store.advance(1.0)
    (handout,) = store.dispatch(1)[0]
    assert handout.lastmod == pytest.approx((1.0, 100.0, 60.0))
    assert handout.validator_trust == ValidatorTrust()
