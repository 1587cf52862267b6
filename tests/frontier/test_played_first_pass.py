"""First passes, played through dispatch, judge and planner: no turn of a host is lost, nothing goes in between but pinned pages."""

from __future__ import annotations

import numpy as np
import pytest
from played_crawl import Play, parse
from timed_namespace import START

PINNED = {"RULES": [{"pattern": r"/pinned$", "interval": 10.0}]}


def test_no_turn_of_a_host_is_lost(space):
    """Sixty pages of one host with a delay of a second, budget auto: a first visit each second, while revisits are due as well."""
    play = Play(space, parse(HOST_DELAY=1.0, MIN_INTERVAL=1.0))
    play.add(60, hosts=1)
    play.until(59.5)
    assert sorted(len(visits) for visits in play.visits.values()) == [1] * 60
    assert np.diff(play.handouts) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("values", [{"HOST_DELAY": 0.5}, {"CRAWL_RATE": 5.0}, {"CRAWL_RATE": 5.0, "HOST_DELAY": 0.5}])
def test_pinned_pages_keep_their_times_in_a_first_pass(space, values):
    """Two pinned pages among 300 of three hosts: no more than two seconds late at any visit, whatever holds the first visits up."""
    play = Play(space, parse(MIN_INTERVAL=1.0, **values, **PINNED))
    pinned = [play.add_page(f"h{host}/pinned", importance=9.0) for host in range(2)]
    play.add(300, hosts=3)
    play.until(50.0)
    first = [visits[0] - START for number, visits in play.visits.items() if number not in pinned]
    assert len(first) > 200
    assert all(len(play.visits[number]) == 1 for number in play.visits if number not in pinned)
    for number in pinned:
        at = np.array(play.visits[number]) - START
        assert len(at) >= 5
        assert np.diff(at).max() < 12.0
        assert np.diff(at).mean() == pytest.approx(10.0, abs=0.6)
