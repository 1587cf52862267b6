"""A live crawl tests each page's bits for bursts, on a clock that the test sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from clocked_store import START, fingerprint, new_page

from optimal_frontier.estimation.bursts import REJECTED, Bursts
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.state.reading import read_page
from optimal_frontier.state.records import NOT_SURPRISED, Published, Surprises

MEAN_S = 5000.0
PUBLISHED = Published(1.0, MEAN_S)


def crawl(store, shape: float, visits: int) -> Bursts:
    """Visit a page whose changes are those of a Weibull process every mean time between them; return what is stored at the end."""
    rng = np.random.default_rng(3)
    changes = np.cumsum(MEAN_S / math.gamma(1 + 1 / shape) * rng.weibull(shape, 3 * visits))
    store.add(new_page("h/page", max_rate=1e3))
    for visit in range(visits):
        store.set_time(START + MEAN_S * (visit + 1))
        if visit:
            store.run([("force_page", [fingerprint("h/page")])])
            store.advance(0.001)
        (handout,), _ = store.dispatch(1)
        edition = int(np.searchsorted(changes, MEAN_S * visit))
        observation = judge_visit(handout, edition.to_bytes(16, "little"), 77, handout.received, PUBLISHED)
        store.run(store.observe_calls([observation], 1e15))
    return Bursts(*read_page(store, fingerprint("h/page")).surprises)


def test_a_bursty_page_is_found_from_its_bits(store):
    bursts = crawl(store, 0.4, 300)
    assert bursts.is_bursty
    assert 0.15 < bursts.correlation < 0.6


def test_a_poisson_page_is_not(store):
    bursts = crawl(store, 1.0, 300)
    assert not bursts.is_bursty
    assert abs(bursts.z) < REJECTED
    assert bursts.variance > 3


def test_what_is_kept_goes_with_the_page(store):
    """As 32-bit floats; nothing of it comes to the next page in its slot."""
    store.add(new_page("h/page", max_rate=1e3))
    store.visit_all(surprises=Surprises(0.25, 1.5, 2.0, 8.0))
    assert read_page(store, fingerprint("h/page")).surprises == pytest.approx((0.25, 1.5, 2.0, 8.0))
    store.run([("forget_page", [fingerprint("h/page")])])
    store.add(new_page("h/other", max_rate=1e3))
    assert read_page(store, fingerprint("h/other")).surprises == NOT_SURPRISED
