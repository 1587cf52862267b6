"""Neighbourhoods of pages, from their paths: the groups that a live crawl has from URLs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from optimal_frontier.simulation.ragged import Ints

#: Levels of a neighbourhood, from wide to narrow.
LEVELS: Final = ("host", "first two segments", "directory", "directory and ending")


def path_groups(names: Iterable[str]) -> Ints:
    """Return the groups that pages belong to.

    Parameters
    ----------
    names : iterable of str
        URLs, or paths; all paths are of one host.

    Returns
    -------
    ndarray of int (n, 4)
        A column for each of `LEVELS`: host, the first two segments of the directory, the directory, and the directory with the ending of
        the last segment. The groups of a column are numbered through from 0. Each group lies in one group of every column before it.

    Examples
    --------
    >>> path_groups(["docs/a/b/x.md", "docs/a/c/y.md", "docs/a/c/y.txt", "x.md"]).tolist()
    [[0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3], [0, 0, 0, 0]]
    """
    keys = [_keys(name) for name in names]
    columns = [np.unique([key[level] for key in keys], return_inverse=True)[1] for level in range(len(LEVELS))]
    return np.asarray(np.column_stack(columns), dtype=np.int64)


def _keys(name: str) -> tuple[str, str, str, str]:
    """Names of the groups of a page; no path contains a NUL."""
    scheme, separator, rest = name.partition("://")
    host, _, path = rest.partition("/") if separator else ("", "", scheme)
    directory, _, last = path.partition("?")[0].rpartition("/") if separator else path.rpartition("/")
    _, dot, ending = last.rpartition(".")
    top = "/".join(directory.split("/")[:2])
    return host, f"{host}\0{top}", f"{host}\0{directory}", f"{host}\0{directory}\0{dot}{ending if dot else ''}"
