"""The planner's lock: one planner at a time, elected where it plans, with a fencing token in every partition."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from typing import Final

from optimal_frontier.errors import OptimalFrontierError, StateUnavailableError
from optimal_frontier.state.namespace import Call, Namespace

#: The lock outlives its holder by this much, seconds.
LOCK_S: Final = 30.0
#: It is renewed so often, seconds.
RENEW_S: Final = 3.0


class LockLostError(OptimalFrontierError):
    """Another planner has taken over, or this one ends."""


class PlannerLock:
    """The locks of the partitions of a namespace. The first partition that can be reached elects; the others follow.

    Parameters
    ----------
    namespace : Namespace
        Opened.

    Attributes
    ----------
    fences : dict of int to int
        Fencing token of each partition that is held.
    is_given_up : bool
        The process ends, and its plan with it; another thread says so.
    """

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.owner = f"{os.getpid()}:{secrets.token_hex(4)}"
        self.fences: dict[int, int] = {}
        self.is_given_up = False
        self._renewed = 0.0

    def take(self) -> bool:
        """Take the locks; False if another planner holds them.

        A partition that cannot be reached is left out, and so is one that another planner still holds after this one was elected.

        Raises
        ------
        StateUnavailableError
            No partition can be reached.
        """
        self.fences = {}
        lost: StateUnavailableError | None = None
        for k in range(self.namespace.partitions):
            try:
                fence = self._ask(k)
            except StateUnavailableError as error:
                lost = error
                continue
            if fence:
                self.fences[k] = fence
            elif not self.fences:
                return False
        self._renewed = time.monotonic()
        if not self.fences and lost is not None:
            raise lost
        return True

    def renew(self) -> None:
        """Renew the locks when it is time; called between any two calls of a plan.

        Raises
        ------
        LockLostError
            Another planner has taken one of them over, or they were given up.
        """
        if self.is_given_up:
            raise LockLostError("the planner ends")
        if time.monotonic() - self._renewed < RENEW_S:
            return
        for k, fence in self.fences.items():
            # The token is the same one, too, if the lock had run out, while this process was held up, and nobody has planned since.
            if self._ask(k, fence) != fence:
                raise LockLostError(f"another planner has taken partition {k} over")
        self._renewed = time.monotonic()

    def release(self) -> None:
        """Let another planner take over at once."""
        for k in self.fences:
            with contextlib.suppress(OptimalFrontierError):  # they run out by themselves
                self.namespace.run([Call(k, "take_planner_lock", [self.owner, 0])])
        self.fences = {}

    def _ask(self, partition: int, fence: int = -1) -> int:
        return int(self.namespace.run([Call(partition, "take_planner_lock", [self.owner, int(LOCK_S * 1000), fence])])[0])
