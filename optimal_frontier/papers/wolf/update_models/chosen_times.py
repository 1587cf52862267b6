"""Which of its potential update times a quasi-deterministic page is crawled at: step by step, or the best of all choices.

Nodes are 0, for time 0, and 1 to Q, for the potential times. Node j is followed by a segment of length L_j, and at node j an update
occurs with probability k_j; ``q_j = 1 - k_j``. Arrays have one row per node and one column per page, so that each step of a page's
recursion is one of numpy for all pages of a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.problem import Floats, Integers


@dataclass(frozen=True)
class Segments:
    """Some pages.

    Attributes
    ----------
    lengths : ndarray (Q + 1, m)
        L_j, as shares of the interval.
    updates : ndarray (Q + 1, m)
        k_j; k_0 is the probability that the copy is stale at time 0, before any crawl.
    """

    lengths: Floats
    updates: Floats


def greedy_choices(segments: Segments) -> tuple[Floats, Integers]:
    """Choose the node that gains most beside those chosen before, until all are chosen.

    Returns
    -------
    tuple
        Gains, and nodes in the order of their choice, both (Q + 1, m); of equal gains the earliest node.

    Notes
    -----
    A crawl at b matters up to the next crawled node c. There the copy was stale with probability ``1 - F_b q_(b+1) ... q_j``, and is with
    ``1 - q_(b+1) ... q_j``, so the gain is ``(1 - F_b) sum over b <= j < c of L_j q_(b+1) ... q_j``: no difference of like numbers.
    ``1 - F_j = k_j + q_j (1 - F_(j-1))`` follows from the left, the sum from the right, O(Q) a step.
    """
    lengths = segments.lengths
    nodes, pages = lengths.shape
    fails, lasts = segments.updates.copy(), 1.0 - segments.updates  # both 0 where crawled: nothing of the copy before is left there
    gains, order = np.empty((nodes, pages)), np.empty((nodes, pages), np.int64)
    stale, worth = np.empty((nodes, pages)), np.empty((nodes, pages))
    columns, last = np.arange(pages), np.full(pages, np.inf)
    taken = np.zeros((nodes, pages))
    for step in range(nodes):
        stale[0] = fails[0]
        worth[-1] = lengths[-1]
        for j in range(1, nodes):
            np.multiply(lasts[j], stale[j - 1], out=stale[j])
            np.add(stale[j], fails[j], out=stale[j])
            back = nodes - 1 - j
            np.multiply(lasts[back + 1], worth[back + 1], out=worth[back])
            np.add(worth[back], lengths[back], out=worth[back])
        np.multiply(stale, worth, out=worth)
        np.subtract(worth, taken, out=worth)
        node = worth.argmax(axis=0)
        last = np.minimum(worth[node, columns], last)  # submodular, but for rounding
        gains[step], order[step] = last, node
        taken[node, columns] = 1.0
        fails[node, columns] = lasts[node, columns] = 0.0
    return gains, order


def best_gains(segments: Segments) -> Floats:
    """Return what the best choice of one node gains over none, that of two over that of one, and so on, (Q + 1, m).

    Notes
    -----
    ``V(a, c) = sum over a <= j < c of L_j q_(a+1) ... q_j`` is the freshness from a crawl at a to the next at c, and
    ``E_x(a) = max over c > a of V(a, c) + E_(x-1)(c)`` that from a crawl at a to the end with x more: dynamic programming, O(Q^2 x) time
    and O(Q (Q + x)) numbers a page. As ``V(a, c) + V(b, d) >= V(a, d) + V(b, c)`` for a < b < c < d (Monge's condition), the best
    freshness is concave in x. Gains are right to 1e-15 of the interval.
    """
    between, rest = _best_freshness(segments)
    nodes = len(between)
    fresh = 1.0 - segments.updates[0]
    best = np.vstack([fresh * rest[:1, 0], (fresh * between[0, :nodes] + rest[:nodes]).max(axis=1)])
    return np.minimum.accumulate(np.maximum(np.diff(best, axis=0), 0.0), axis=0)  # concave, but for rounding


def best_nodes(segments: Segments, crawls: Integers) -> NDArray[np.bool_]:
    """Return which nodes are in the best choice of `crawls`, (m,) numbers from 0 to Q + 1; shape (m, Q + 1)."""
    between, rest = _best_freshness(segments)
    nodes, _, pages = between.shape
    chosen = np.zeros((pages, nodes), bool)
    some = np.flatnonzero(crawls > 0)
    left = crawls[some] - 1
    fresh = 1.0 - segments.updates[0, some, None]
    node = (fresh * between[0, :nodes, some] + rest[left, :, some]).argmax(axis=1)
    while True:
        chosen[some, node] = True
        more = left > 0
        some, node, left = some[more], node[more], left[more] - 1
        if some.size == 0:
            return chosen
        ahead = between[node, :nodes, some] + rest[left, :, some]
        ahead[np.arange(nodes) <= node[:, None]] = -np.inf
        node = ahead.argmax(axis=1)


def _best_freshness(segments: Segments) -> tuple[Floats, Floats]:
    """``V(a, c)``, (Q + 1, Q + 2, m), and ``E_x(a)``, (Q + 1, Q + 1, m), -inf where there are no x nodes after a."""
    lengths, lasts = segments.lengths, 1.0 - segments.updates
    nodes, pages = lengths.shape
    between = np.zeros((nodes, nodes + 1, pages))
    for a in range(nodes):
        product = np.ones(pages)
        for c in range(a + 1, nodes + 1):
            np.multiply(lengths[c - 1], product, out=between[a, c])
            between[a, c] += between[a, c - 1]
            if c < nodes:
                product *= lasts[c]
    rest = np.full((nodes, nodes, pages), -np.inf)
    rest[0] = between[:, nodes]
    for x in range(1, nodes):
        for a in range(nodes - x):
            np.max(between[a, a + 1 : nodes - x + 1] + rest[x - 1, a + 1 : nodes - x + 1], axis=0, out=rest[x, a])
    return between, rest
