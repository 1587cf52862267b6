"""Clocks of hosts are kept while their pages are there, and no longer."""

from __future__ import annotations

import numpy as np
from crawled import Crawl

from optimal_frontier.frontier.planning.neighbourhood_clocks import NeighbourhoodClocks
from optimal_frontier.frontier.planning.page_columns import Pages
from optimal_frontier.state.clocks import read_clocks, store_calls
from optimal_frontier.state.namespace import Call


def test_hosts_whose_pages_are_gone_are_dropped(crawl: Crawl) -> None:
    """Their numbers are given to others, who begin anew."""
    space = crawl.namespace
    fence = int(space.run([Call(0, "take_planner_lock", ["planner", 10_000])])[0])
    clocks = NeighbourhoodClocks(space, 0)
    clocks.load(100.0)
    made = clocks._clocks
    assert made is not None
    made.grow(0, 1)
    made.gates.set(0, 5.0)
    made.rhythms.expected[0] = 2.0
    space.run(store_calls(0, fence, "", {}, {5: made.pack_hosts(np.array([0]))[0], 6: made.pack_hosts(np.array([0]))[0]}, []))
    clocks.load(100.0)
    made = clocks._clocks
    assert made is not None
    assert clocks.store(fence)
    assert set(read_clocks(space, 0).hosts) == {5, 6}, "nobody has counted their pages"
    clocks.count(pages_of([5, 5, 5, 6, 6]), 5)
    assert clocks.store(fence)
    assert set(read_clocks(space, 0).hosts) == {5}
    clocks._hosts.add(np.array([7], np.uint64))
    number = int(clocks._hosts.of(np.array([7], np.uint64))[0])
    assert number < 2, "the number of the one that is gone"
    assert (made.gates.evidence[number], made.rhythms.expected[number].max(), made.rhythms.begun[number]) == (0.0, 0.0, np.inf)
    assert made.gates.evidence[1 - number] == 5.0


def test_pages_are_told_whose_clocks_run(crawl: Crawl) -> None:
    """By the gates of their hosts; a host that no visit was learned from is on the calendar."""
    space, clocks = crawl.namespace, NeighbourhoodClocks(crawl.namespace, 0)
    assert clocks.running(pages_of([5])) == 0.0, "nothing was loaded"
    fence = int(space.run([Call(0, "take_planner_lock", ["planner", 10_000])])[0])
    clocks.load(100.0)
    made = clocks._clocks
    assert made is not None
    made.grow(0, 1)
    shut = made.pack_hosts(np.array([0]))[0]
    made.gates.set(0, 10.0)
    space.run(store_calls(0, fence, "", {}, {5: made.pack_hosts(np.array([0]))[0], 6: shut}, []))
    clocks.load(100.0)
    assert clocks.running(pages_of([5, 5, 5, 6, 9])) == 0.6
    assert clocks.running(pages_of([4_294_967_295, 6])) == 0.0
    assert clocks.running(pages_of(500_000 * [6] + 500_000 * [5])) == 0.5, "of a large table some are looked at"


def pages_of(hosts: list[int]) -> Pages:
    pages = Pages.none()
    pages.append(len(hosts), host=np.array(hosts, np.uint32))
    return pages
