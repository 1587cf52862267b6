"""From visits to freshness: how long copies were current, by stretches of time."""

from __future__ import annotations

import numpy as np

from optimal_frontier.simulation.crawl import Visits
from optimal_frontier.simulation.ragged import Floats, Ints
from optimal_frontier.simulation.worlds import Realised


def freshness_by_time(world: Realised, visits: Visits, edges: Floats) -> Floats:
    """Return the share of the importance that is up to date, in each stretch of time; the parameters are those of `fresh_and_counted`.

    Returns
    -------
    ndarray (k,)
        0 where nothing counts.
    """
    fresh, counted = fresh_and_counted(world, visits, edges)
    return np.asarray(fresh / np.maximum(counted, np.finfo(np.float64).tiny))


def fresh_and_counted(world: Realised, visits: Visits, edges: Floats) -> tuple[Floats, Floats]:
    """Return importance x time that is up to date, and all that counts, in each stretch of time.

    Parameters
    ----------
    world : Realised
        Pages and changes.
    visits : Visits
        To them; a page that has arrived and was not visited yet is not fresh.
    edges : ndarray (k + 1,)
        Where stretches begin and end, rising.

    Returns
    -------
    fresh, counted : ndarray (k,)
        A page counts from its arrival on while it exists. After that its copy is not fresh, and counts until a visit finds that out.
    """
    order = np.argsort(visits.pages, kind="stable")
    pages, fetched = visits.pages[order], visits.times[order]
    until = np.append(fetched[1:], edges[-1])
    until[np.append(pages[1:] != pages[:-1], True)] = edges[-1]
    exists = fetched < world.gone[pages]
    end_of_page = world.gone.copy()
    end_of_page[pages[exists]] = edges[-1]
    end_of_page[pages[~exists]] = fetched[~exists]
    counted = spent(np.minimum(world.arrival, end_of_page), end_of_page, edges) @ world.importance
    begin = np.clip(fetched, edges[0], edges[-1])[exists]
    end = np.clip(until[exists], begin, edges[-1])
    copy, stretch, start, stop = cut(begin, end, edges)
    pages, fetched = pages[exists], fetched[exists]
    fresh = world.fresh_time(pages[copy], fetched[copy], start, stop) * world.importance[pages[copy]]
    return np.asarray(np.bincount(stretch, weights=fresh, minlength=len(edges) - 1), dtype=np.float64), counted


def spent(begin: Floats, end: Floats, edges: Floats) -> Floats:
    """Return how much of each of n spans lies in each of k stretches, as an array (k, n)."""
    return np.asarray(np.clip(np.minimum(edges[1:, None], end) - np.maximum(edges[:-1, None], begin), 0.0, None))


def cut(begin: Floats, end: Floats, edges: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the pieces of spans that lie in one stretch each: number of span and stretch, begin and end.

    Parameters
    ----------
    begin, end : ndarray (m,)
        Of each span; between the first and the last edge.
    edges : ndarray (k + 1,)
        Where stretches begin and end, rising.
    """
    last = len(edges) - 2
    first = np.clip(np.searchsorted(edges, begin, side="right") - 1, 0, last)
    final = np.maximum(np.clip(np.searchsorted(edges, end, side="left") - 1, 0, last), first)
    count = final - first + 1
    copy = np.repeat(np.arange(len(begin)), count)
    offset = np.arange(len(copy)) - np.repeat(np.cumsum(count) - count, count)
    stretch = first[copy] + offset
    start = np.maximum(begin[copy], edges[stretch])
    return copy, stretch, start, np.maximum(np.minimum(end[copy], edges[stretch + 1]), start)
