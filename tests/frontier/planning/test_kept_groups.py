"""Which groups of pages have clocks of their own, in crawls that have more of them than memory allows."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.frontier.planning import neighbourhood_clocks as module
from optimal_frontier.frontier.planning.neighbourhood_clocks import NeighbourhoodClocks, PageGroups
from optimal_frontier.frontier.planning.page_columns import Pages
from optimal_frontier.state.clocks import group_keys


def pages_of(hosts: list[int], pages: Pages | None = None) -> Pages:
    """Pages that are known by their host alone."""
    table = Pages.none() if pages is None else pages
    table.append(len(hosts), host=np.array(hosts, np.uint32))
    return table


def kept(clocks: NeighbourhoodClocks, hosts: range) -> list[int]:
    keys = group_keys(np.array(hosts), np.zeros(len(hosts)), np.zeros(len(hosts)))
    return [host for host, is_kept in zip(hosts, clocks._is_kept(keys)[:, 0].tolist(), strict=True) if is_kept]


@pytest.mark.parametrize(("most", "smallest"), [(1000, 3), (20, 11), (3, 28)])
def test_the_largest_groups_are_kept(monkeypatch, most, smallest):
    """Hosts 1 to 30 have as many pages as their number says."""
    monkeypatch.setattr(module, "MOST_GROUPS", most)
    clocks = NeighbourhoodClocks(None, 0)
    clocks.count(pages_of([host for host in range(1, 31) for _ in range(host)]), 0)
    assert kept(clocks, range(1, 31)) == list(range(smallest, 31))


def test_groups_of_a_large_table_are_counted_anew_when_many_pages_have_joined(monkeypatch):
    monkeypatch.setattr(module, "FEW", 10)
    clocks, pages = NeighbourhoodClocks(None, 0), pages_of([7] * 100)
    clocks.count(pages, 100)
    pages_of([8] * 4, pages)
    clocks.count(pages, 4)
    assert kept(clocks, range(7, 9)) == [7]
    clocks.count(pages, 4)
    assert kept(clocks, range(7, 9)) == [7, 8]


def test_pages_that_join_are_in_the_groups_of_those_that_are_there():
    pages = pages_of([5, 5, 6])
    groups = PageGroups(pages, lambda keys: keys > 0)
    pages_of([6, 5, 9], pages)
    groups.extend(pages)
    assert groups.of_page[0].tolist() == [0, 0, 1, 1, 0, 2]
    assert len(groups.keys) == 2  # the last number stands for none
    assert groups.touch(groups.keys[:1]).tolist() == [False] * 6  # hosts are not near
