"""What could be reached on recorded changes: schedulers that know what no crawl can know.

They are bounds to hold policies against, each for another kind of knowledge:

- `constant_rates`: the best constant interval of each page, found on the very changes that it is measured on.
- `told_visits`: the mean change rates, and, once a visit has seen a change, which other pages changed in the same event.
- `foreseen_visits`: the times of all changes. Greedy, so not quite the best.

None of them is for worlds whose freshness is an expectation, as an expectation takes changes for unknown.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from optimal_frontier.simulation.bandwidth import slot_times
from optimal_frontier.simulation.crawl import Visits
from optimal_frontier.simulation.measuring import cut, spent
from optimal_frontier.simulation.ragged import Floats, Ints
from optimal_frontier.simulation.worlds import Realised

HINDSIGHT: Final = "hindsight"
TOLD: Final = "told-siblings"
FORESEEN: Final = "all-times"
#: Names of what is here, from little knowledge to much.
ORACLE_NAMES: Final = (HINDSIGHT, TOLD, FORESEEN)

#: Rates that are tried for a page, in multiples of that of even visits: none, and steps of 4%.
_RATES: Final = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 353)])
#: Pieces of time that are valued at once, at all rates.
_CHUNK: Final = 10_000
_PRICE_STEPS: Final = 80


def constant_rates(world: Realised, start: float, horizon: float) -> Floats:
    """Return the constant revisit rates that leave the least staleness within the budget.

    Parameters
    ----------
    world : Realised
        Pages, changes and budget.
    start, horizon : float
        From when to when that is measured.

    Returns
    -------
    ndarray (n,)
        Visits per unit of time while a page exists.

    Notes
    -----
    Visits every d with a random phase leave a gap g between two changes stale for f(g) = g - g^2 / 2d on average if g < d, else for d / 2.
    At one common price each page takes the rate that minimises importance x staleness + price x visits; the price spends the budget.
    Rates are found on a grid.
    """
    edges = np.array([start, horizon])
    pages, since, _, begin, end = _stale_pieces(world, edges)
    grid = _RATES / world.round(horizon)
    stale = np.zeros((len(world), len(grid)))
    for first in range(0, len(pages), _CHUNK):
        piece = slice(first, first + _CHUNK)
        np.add.at(stale, pages[piece], _stale_for(since[piece, None], begin[piece, None], end[piece, None], grid))
    stale *= world.importance[:, None]
    visits = spent(world.arrival, np.maximum(world.gone, world.arrival), edges)[0][:, None] * grid
    least, most = -700.0, 700.0
    chosen = np.zeros(len(world), np.int64)
    for _ in range(_PRICE_STEPS):
        log_price = 0.5 * (least + most)
        best = np.argmin(stale + np.exp(log_price) * visits, axis=1)
        if np.take_along_axis(visits, best[:, None], axis=1).sum() > world.budget * (horizon - start):
            least = log_price
        else:
            most, chosen = log_price, best
    return np.asarray(grid[chosen])


def fresh_at_rates(world: Realised, rates: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Return what `fresh_and_counted` does, on average over phases, for visits at constant rates that never wait for each other."""
    pages, since, stretch, begin, end = _stale_pieces(world, edges)
    stale = _stale_for(since, begin, end, rates[pages])
    exists = spent(world.arrival, np.maximum(world.gone, world.arrival), edges) @ world.importance
    weights = stale * world.importance[pages]
    late = since >= world.gone[pages]
    after = np.bincount(stretch[late], weights=weights[late], minlength=len(edges) - 1)
    before = np.bincount(stretch[~late], weights=weights[~late], minlength=len(edges) - 1)
    return np.asarray(exists - before), np.asarray(exists + after)


def told_visits(world: Realised, horizon: float) -> Visits:
    """Return the visits of a crawl that knows mean rates and is told of siblings.

    Parameters
    ----------
    world : Realised
        Pages, changes and budget. Changes at the same time are one event.
    horizon : float
        Length of the crawl.

    Returns
    -------
    Visits
        Pages that have just arrived come first; then those that changed in an event that an earlier visit saw, in the order in which that
        became known; else the page to which a visit is worth most by the mean rates.

    Notes
    -----
    O(n) a visit.
    """
    changes = world.drawn.changes
    owner = np.repeat(np.arange(len(world)), changes.counts)
    events = np.unique(changes.times, return_inverse=True)[1]
    order = np.argsort(events, kind="stable")
    ends = np.cumsum(np.bincount(events)).tolist()
    together, times = owner[order].tolist(), changes.times.tolist()
    starts, arrival, gone = changes.starts.tolist(), world.arrival.tolist(), world.gone.tolist()
    event, cursor = events.tolist(), list(starts)
    rates = world.known_rates(0.0)
    value = world.importance / rates
    worth, last = np.full(len(world), -1.0), np.zeros(len(world))
    coming, told = _coming(world), deque[tuple[int, float]]()
    pages, made = [], []
    for at in slot_times(world.budget, horizon, phase=world.phase).tolist():
        is_new = bool(coming) and arrival[coming[0]] <= at
        page = coming.popleft() if is_new else _next_told(told, last, worth)
        if page is None:
            expected = rates * (at - last)
            page = int(np.argmax(worth * (1.0 - np.exp(-expected) * (1.0 + expected))))
            if worth[page] < 0.0:
                continue  # nothing is known
        pages.append(page)
        made.append(at)
        place, end = cursor[page], starts[page + 1]
        while place < end and times[place] <= at:
            if not is_new:
                begin = ends[event[place] - 1] if event[place] else 0
                told.extend((sibling, times[place]) for sibling in together[begin : ends[event[place]]] if sibling != page)
            place += 1
        cursor[page], last[page] = place, at
        worth[page] = value[page] if at < gone[page] else -1.0
    return Visits(np.array(pages, dtype=np.int64), np.array(made))


def foreseen_visits(world: Realised, horizon: float) -> Visits:
    """Return the visits of a crawl that knows the times of all changes.

    Parameters
    ----------
    world : Realised
        Pages, changes and budget.
    horizon : float
        Length of the crawl.

    Returns
    -------
    Visits
        To the stale page whose copy will then be fresh for longest, times importance; to none if all copies are fresh.

    Notes
    -----
    O(n) a visit.
    """
    changes = world.drawn.changes
    owner = np.concatenate([np.arange(len(world)), np.repeat(np.arange(len(world)), changes.counts)])
    times = np.concatenate([world.arrival, changes.times])
    ends = np.minimum(changes.next_time(owner, times), horizon)
    order = np.argsort(times, kind="stable")
    becomes = deque(zip(times[order].tolist(), owner[order].tolist(), ends[order].tolist(), strict=True))
    fresh_until = np.full(len(world), -np.inf)
    pages, made = [], []
    for at in slot_times(world.budget, horizon, phase=world.phase).tolist():
        while becomes and becomes[0][0] <= at:
            _, page, end = becomes.popleft()
            fresh_until[page] = end
        gain = world.importance * (fresh_until - at)
        page = int(np.argmax(gain))
        if gain[page] > 0.0:
            pages.append(page)
            made.append(at)
            fresh_until[page] = -np.inf
    return Visits(np.array(pages, dtype=np.int64), np.array(made))


def _coming(world: Realised) -> deque[int]:
    """Pages in the order of their first visits."""
    return deque(np.lexsort((-world.importance, world.arrival)).tolist())


def _next_told(told: deque[tuple[int, float]], last: Floats, worth: Floats) -> int | None:
    """The next page that changed after its last visit, of those that are known and may still exist."""
    while told:
        page, changed = told.popleft()
        if last[page] < changed and worth[page] >= 0.0:
            return page
    return None


def _stale_pieces(world: Realised, edges: Floats) -> tuple[Ints, Floats, Ints, Floats, Floats]:
    """Time after each change up to the next one, in stretches: page, time of the change, number of stretch, begin and end."""
    changes = world.drawn.changes
    pages = np.repeat(np.arange(len(world)), changes.counts)
    until = np.clip(changes.next_time(pages, changes.times), edges[0], edges[-1])
    span, stretch, begin, end = cut(np.clip(changes.times, edges[0], until), until, edges)
    return pages[span], changes.times[span], stretch, begin, end


def _stale_for(since: Floats, begin: Floats, end: Floats, rate: Floats) -> Floats:
    """How long a page that changed at a time is stale between two later ones, on average over phases of visits at a rate."""
    return _waited(end - since, rate) - _waited(begin - since, rate)


def _waited(gap: Floats, rate: Floats) -> Floats:
    """The smaller one of a gap and the time until the next visit, on average."""
    expected = gap * rate
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(expected < 1.0, gap - 0.5 * gap * expected, 0.5 / rate))
