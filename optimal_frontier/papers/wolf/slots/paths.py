"""Slots for tasks with restrictions: one shortest path after the other, each found near the task that it begins with."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf

import numpy as np

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Integers
from optimal_frontier.papers.wolf.slots.restrictions import Restrictions
from optimal_frontier.papers.wolf.slots.tasks import Tasks

#: One event of a search: its key; cell, or -1 for a look at a slot; task; slot x 2, and 1 if to the right; key of the task's ideal place.
_Event = tuple[float, int, int, int, float]
#: Group of tasks, and step -> key of the cheapest that came by, and how far it may go on.
_Seen = dict[tuple[int, int], tuple[float, int]]
#: Cell -> cheapest way to it so far, and the task that takes it.
_Reached = dict[int, tuple[float, int]]


class ShortestPaths:
    """Assigns tasks one by one, each by the cheapest chain of tasks that make room for the next, the last in a free place.

    A *cell* is one slot of the crawlers of one kind. Prices of cells keep all reduced costs non-negative, so that Dijkstra's algorithm
    finds the chain. What a task pays for a slot is its price and the distance, so slots are looked at from the ideal place outwards, as
    far as the path reaches and no further. From there on all tasks with the same crawlers go on alike, so that one which comes to a slot
    after another, from the same side, has nothing to add, but for slots that only its window holds. A *bound* is what it costs to go on
    from a slot to the side at least, price of the cell and way there; with it a look at a slot waits until its turn has come.
    """

    def __init__(self, tasks: Tasks, restrictions: Restrictions) -> None:
        self.place: list[float] = tasks.place.tolist()
        self.first: list[int] = restrictions.first.tolist()
        self.last: list[int] = restrictions.last.tolist()
        self.right = np.maximum(np.ceil(tasks.place).astype(np.int64), restrictions.first).tolist()
        self.left = np.minimum(np.ceil(tasks.place).astype(np.int64) - 1, restrictions.last).tolist()
        self.group: list[int] = restrictions.group.tolist()
        self.groups = restrictions.groups
        self.width = len(restrictions.kinds)
        self.price = [0.0] * (self.width * tasks.slots)
        self.room = [crawlers.size for crawlers in restrictions.kinds] * tasks.slots
        self.slots = tasks.slots
        #: By kind, side (left, right) and slot.
        self.bounds = [([0.0] * tasks.slots, [0.0] * tasks.slots) for _ in restrictions.kinds]
        self.members: list[list[int]] = [[] for _ in self.price]
        self.cell = [-1] * tasks.n
        for task in np.argsort(tasks.place, kind="stable").tolist():
            self._insert(task)

    def _insert(self, task: int) -> None:
        """Give a task a place, and move those that stand in the way."""
        events: list[_Event] = []
        seen: _Seen = {}
        reached: _Reached = {}
        settled: dict[int, float] = {}
        self._look(events, seen, task, 0.0)
        while events:
            key, cell, mover, step, base = heappop(events)
            if cell < 0:
                self._widen(events, seen, reached, settled, mover, step, base)
            elif cell not in settled and reached[cell][0] == key:
                settled[cell] = key
                if self.room[cell]:
                    self._move(cell, reached, settled, key)
                    return
                slot, start = cell // self.width, key - self.price[cell]
                for member in self.members[cell]:
                    self._look(events, seen, member, start - abs(slot - self.place[member]))
        asking = sum(len(self.members[cell]) for cell in settled)
        raise InvalidProblemError(
            f"allowed leaves {asking + 1} tasks, number {task} among them, {asking} places between them; expected as many as tasks"
        )

    def _look(self, events: list[_Event], seen: _Seen, task: int, base: float) -> None:
        """Start looking at the slots of a task, on both sides of its ideal place."""
        right, left = self.right[task], self.left[task]
        if right <= self.last[task]:
            self._step(events, seen, task, right * 2 + 1, base)
        if left >= self.first[task]:
            self._step(events, seen, task, left * 2, base)

    def _step(self, events: list[_Event], seen: _Seen, task: int, step: int, base: float) -> None:
        """Have a task look at one more slot, unless one like it was there that came cheaper and may go on as far."""
        distance = base + abs(step // 2 - self.place[task])
        node = self.group[task], step
        before = seen.get(node)
        if before is not None and before[0] <= distance and (before[1] >= self.last[task] if step % 2 else before[1] <= self.first[task]):
            return
        seen[node] = distance, self.last[task] if step % 2 else self.first[task]
        slot, side = step // 2, step % 2
        bound = min([self.bounds[kind][side][slot] for kind in self.groups[node[0]]])
        heappush(events, (distance + bound, -1, task, step, base))

    def _widen(
        self,
        events: list[_Event],
        seen: _Seen,
        reached: _Reached,
        settled: dict[int, float],
        task: int,
        step: int,
        base: float,
    ) -> None:
        """Look at the cells of a slot, and go on to the next."""
        slot = step // 2
        distance = base + abs(slot - self.place[task])
        for kind in self.groups[self.group[task]]:
            cell = slot * self.width + kind
            key = distance + self.price[cell]
            # By rounding alone a way to a settled cell may seem shorter still.
            if cell not in settled and (cell not in reached or key < reached[cell][0]):
                reached[cell] = key, task
                heappush(events, (key, cell, task, 0, 0.0))
        if slot < self.last[task] if step % 2 else slot > self.first[task]:
            self._step(events, seen, task, step + 2 if step % 2 else step - 2, base)

    def _move(self, cell: int, reached: _Reached, settled: dict[int, float], length: float) -> None:
        """Raise prices by what the path was longer than the way to each cell, and move the tasks along it."""
        for other, key in settled.items():
            self.price[other] += length - key
        if min(settled.values()) < length:
            self._raise_bounds(settled)
        self.room[cell] -= 1
        while cell >= 0:
            mover = reached[cell][1]
            before = self.cell[mover]
            if before >= 0:
                self.members[before].remove(mover)
            self.members[cell].append(mover)
            self.cell[mover] = cell
            cell = before

    def _raise_bounds(self, cells: Iterable[int]) -> None:
        """Bring the bounds up to prices that rose in some cells; further off it ends where nothing changes."""
        ends: dict[int, tuple[int, int]] = {}
        for cell in cells:
            slot, kind = divmod(cell, self.width)
            least, most = ends.get(kind, (slot, slot))
            ends[kind] = min(least, slot), max(most, slot)
        for kind, (least, most) in ends.items():
            for side, route in ((0, range(least, self.slots)), (1, range(most, -1, -1))):
                bounds = self.bounds[kind][side]
                behind = route.start + (1 if side else -1)
                onward = bounds[behind] if 0 <= behind < self.slots else inf
                for slot in route:
                    onward = min(onward + 1.0, self.price[slot * self.width + kind])
                    if onward == bounds[slot] and not least <= slot <= most:
                        break
                    bounds[slot] = onward


def by_shortest_paths(tasks: Tasks, restrictions: Restrictions) -> tuple[Integers, Integers]:
    """Return slot and crawler of each task, two arrays (n,).

    Raises
    ------
    InvalidProblemError
        Not all tasks fit.
    """
    solved = ShortestPaths(tasks, restrictions)
    cells = np.array(solved.cell, dtype=np.int64)
    crawler = np.empty(tasks.n, dtype=np.int64)
    for cell, members in enumerate(solved.members):
        crawler[members] = restrictions.kinds[cell % solved.width][: len(members)]
    return cells // solved.width, crawler
