"""What takes several round trips, for many at once: each says which calls its next step has, and those of all go together."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from optimal_frontier.state.namespace import Call, Namespace

_T = TypeVar("_T")

#: Yields the calls of each step, gets their replies, and returns what has come of it.
Steps: TypeAlias = Generator[list[Call], list[Any], _T]


def side_by_side(namespace: Namespace, several: Iterable[Steps[_T]]) -> list[_T]:
    """Take steps of several together, which must not depend on each other: as many round trips as the longest of them has steps.

    Returns
    -------
    list
        What each has returned, in their order.

    Raises
    ------
    StateError
        See `Namespace.run`. All of them end there.
    """
    going = dict(enumerate(several))
    replies: dict[int, Any] = dict.fromkeys(going)
    returned: dict[int, _T] = {}
    while going:
        asked: dict[int, list[Call]] = {}
        for number, one in list(going.items()):
            try:
                asked[number] = one.send(replies[number])
            except StopIteration as end:
                returned[number] = end.value
                del going[number]
        told = iter(namespace.run([call for calls in asked.values() for call in calls]))
        replies = {number: list(islice(told, len(calls))) for number, calls in asked.items()}
    return [returned[number] for number in sorted(returned)]
