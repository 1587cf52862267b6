"""What visits at update times are worth to pages whose timetable comes again and again.

Node j is an update time, followed by a stretch of length L_j (as a share of the period) until the next one, and the page changes at node
j with probability k_j; ``q_j = 1 - k_j``. Unlike in one interval of Wolf et al., which begins with a fresh copy and ends, the nodes form a
circle: the copy that is held at the end of a period is that which the next one begins with.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.optimization.problem import Floats, Integers


def repeated_choices(
    lengths: Floats, probabilities: Floats, objective: Literal["freshness", "changes"] = "freshness"
) -> tuple[Floats, Integers, Floats]:
    """Choose the update time whose visit gains most beside those chosen before, until all are chosen.

    Parameters
    ----------
    lengths : ndarray (q,)
        From each update time to the next, as shares of the period.
    probabilities : ndarray (n, q)
        With which each page changes at each time.
    objective : {"freshness", "changes"}
        Whether visits gain time in which the copy is fresh, or changes seen.

    Returns
    -------
    gains : ndarray (n, q)
        What the first visit adds to the freshness (or to the changes seen in a period), the second, and so on; non-increasing.
    order : ndarray of int (n, q)
        Times in the order of their choice; of equal gains the earliest.
    fresh : ndarray (n, q)
        Share of time in which the copy is fresh with one visit in a period, two, and so on.

    Notes
    -----
    A visit at b matters up to the next visited node c. There the copy was stale with probability ``1 - F_b``, where F_b is the product of
    q over the nodes since the visited one before, b included; it gains ``(1 - F_b) sum over b <= j < c of L_j q_(b+1) ... q_j``
    freshness, as in `greedy_choices`, or ``(1 - F_b) (1 - q_(b+1) ... q_c)`` changes seen. Both are submodular in the set of visited
    nodes (a stretch counts if a visit lies in a window that chance sets), so gains do not increase, and the choice has at least 1 - 1/e
    of the best. Without any visit the copy is stale. O(q^2) a page.

    References
    ----------
    Wolf et al. 2002, section 2.3.3.

    Examples
    --------
    A page republished at 06:00 with probability 0.25 and at 18:00 for sure: a visit at 18:00 is fresh for the 12 hours until 06:00, and
    with probability 0.75 for the 12 hours after that.

    >>> gains, order, _ = repeated_choices(np.array([0.5, 0.5]), np.array([[0.25, 1.0]]))
    >>> gains.tolist(), order.tolist()
    ([[0.875, 0.125]], [[1, 0]])
    """
    n, q = probabilities.shape
    lasts = 1.0 - probabilities.T
    gains, fresh, order = np.zeros((n, q)), np.zeros((n, q)), np.zeros((n, q), np.int64)
    taken = np.zeros((q, n), bool)
    rows, least = np.arange(n), np.full(n, np.inf)
    for step in range(q):
        gain = np.where(taken, -np.inf, _stale(lasts, taken) * _worth(lengths, lasts, taken, objective))
        node = gain.argmax(axis=0)
        least = np.minimum(np.maximum(gain[node, rows], 0.0), least)  # submodular, but for rounding
        gains[:, step], order[:, step] = least, node
        taken[node, rows] = True
        fresh[:, step] = lengths @ np.where(taken, 1.0, 1.0 - _stale(lasts, taken))
    return gains, order, fresh


def _stale(lasts: Floats, taken: NDArray[np.bool_]) -> Floats:
    """``1 - F_b``: twice around, from a copy that is stale; after once around the visited nodes have told."""
    stale = np.ones(lasts.shape)
    held = np.ones(lasts.shape[1])
    for at in range(2 * len(lasts)):
        node = at % len(lasts)
        held = 1.0 - lasts[node] * (1.0 - held)
        stale[node] = held
        held = np.where(taken[node], 0.0, held)
    return stale


def _worth(lengths: Floats, lasts: Floats, taken: NDArray[np.bool_], objective: Literal["freshness", "changes"]) -> Floats:
    """What a fresh copy from node b on is worth until the next visited node, or until b comes again."""
    q = len(lasts)
    worth, kept = np.zeros(lasts.shape), np.ones(lasts.shape)
    first = not taken.any()
    for start in range(q) if first else (q - 1,):
        ahead, fresh = np.zeros(lasts.shape[1]), np.ones(lasts.shape[1])
        for back in range(1, q + 1 if first else 2 * q):  # from the end; twice around, until the visited nodes have told
            node, after = (start - back) % q, (start - back + 1) % q
            ahead = lengths[node] + np.where(taken[after], 0.0, lasts[after] * ahead)
            fresh = lasts[after] * np.where(taken[after], 1.0, fresh)
            if not first or back == q:
                worth[node], kept[node] = ahead, fresh
    return worth if objective == "freshness" else 1.0 - kept
