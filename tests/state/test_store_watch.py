"""What stands by of a page in case that its habits change, in the store."""

from __future__ import annotations

import pytest
from clocked_store import ClockedStore, fingerprint, new_page

from optimal_frontier.state.records import Handout, Watched


def again(store: ClockedStore, name: str) -> Handout:
    """Hand the page out once more."""
    store.advance(1.0)
    store.run([("force_page", [fingerprint(name)])])
    (handout,) = store.dispatch(1)[0]
    return handout


def test_it_comes_back_as_it_was_stored_and_is_counted_once(store):
    store.add(new_page("a/1"))
    (handout,) = store.dispatch(1)[0]
    assert handout.watch == Watched()
    store.observe(handout, bit=1, shape=1.0, time=1.0, rate=1.0, watch=Watched(1.5, 1e40, 0.25, 1))
    assert store.counts()["relearned"] == 1
    handout = again(store, "a/1")
    assert handout.watch == (1.5, pytest.approx(3e38), 0.25, 1)
    store.observe(handout, bit=0, shape=1.0, time=2.0)
    handout = again(store, "a/1")
    assert handout.watch.relearned == 1
    store.observe(handout, bit=0, shape=1.0, time=2.0, watch=Watched(1.0, 2.0, 0.0, 1))
    assert store.counts()["relearned"] == 1


def test_a_slot_that_is_given_back_forgets_it(store):
    store.add(new_page("a/1"))
    (handout,) = store.dispatch(1)[0]
    store.observe(handout, bit=1, shape=1.0, time=1.0, rate=1.0, watch=Watched(1.5, 2.0, 0.25, 1))
    store.run([("forget_page", [fingerprint("a/1")])])
    store.add(new_page("a/2"))
    (handout,) = store.dispatch(1)[0]
    assert (handout.slot, handout.watch) == (0, Watched())
