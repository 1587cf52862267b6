"""Neighbourhoods of paths and URLs."""

from __future__ import annotations

from optimal_frontier.simulation import path_groups, synthetic_world
from optimal_frontier.simulation.path_groups import LEVELS


def together(names, level):
    """Which pages share a group of a level: sets of names."""
    column = path_groups(names)[:, LEVELS.index(level)].tolist()
    return {frozenset(name for name, group in zip(names, column, strict=True) if group == one) for one in column}


def test_urls_of_different_hosts_share_nothing():
    names = ["http://a/x/1.html", "http://b/x/1.html", "http://a/x/2.html?q=/y/z.pdf", "https://a"]
    for level in LEVELS[1:]:
        assert together(names, level) == {frozenset({names[0], names[2]}), frozenset({names[1]}), frozenset({names[3]})}
    assert together(names, "host") == {frozenset({names[0], names[2], names[3]}), frozenset({names[1]})}


def test_levels_nest():
    names = ["a/b/c/x.py", "a/b/c/y.py", "a/b/c/z.txt", "a/b/d/x.py", "a/e/x.py", "Makefile", "x.py"]
    assert frozenset(names[:4]) in together(names, "first two segments")
    assert frozenset(names[:3]) in together(names, "directory")
    assert frozenset(names[:2]) in together(names, "directory and ending")
    groups = path_groups(names)
    for wide in range(len(LEVELS) - 1):
        pairs = set(map(tuple, groups[:, wide : wide + 2].tolist()))
        assert len(pairs) == len({narrow for _, narrow in pairs}), "a narrow group lies in one wide group"


def test_drawn_worlds_have_the_same_columns():
    sites = synthetic_world("S", pages=50).realise(10.0, 0).sites
    assert sites.groups.shape == (50, len(LEVELS))
    assert (sites.groups[:, 0] == sites.host).all()
    assert (sites.groups[:, 1:] == sites.pattern[:, None]).all()
