"""When fetches begin, and turns of hosts for fetches that are no dispatch, as script calls of an exchange."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from optimal_frontier.frontier.dispatching.server_watch import ServerWatch
from optimal_frontier.frontier.dispatching.work import Exchange, Outcome, Start, Turn, grouped
from optimal_frontier.state.namespace import Call
from optimal_frontier.state.partition import starts_calls, turns_calls

#: A fetch that begins so soon after its handout, or its turn, began with it, seconds.
_SLACK_S: Final = 0.015
#: Share of the mean time between two starts by which one may follow another that was late: the mean is kept by the handouts.
_CLOSEST: Final = 0.5


def add_starts(
    add: Callable[[Sequence[Call], Callable[[list[Any]], None] | None], None],
    work: Exchange,
    outcome: Outcome,
    watch: ServerWatch,
    delay_s: float,
    period_s: float,
    awaited_s: float,
) -> None:
    """Add the calls that say when fetches began, and take the turns of others.

    Parameters
    ----------
    add : callable
        Takes calls, and what reads their replies.
    work, outcome
        Of the exchange.
    watch : ServerWatch
        What the server's time is.
    delay_s, period_s, awaited_s : float
        Least and mean seconds between two starts of a host; how long it waits to be told of one.
    """
    least_s = max(0.0, delay_s - _SLACK_S, _CLOSEST * period_s)
    of, now = watch.namespace.partition_of, time.monotonic()
    for partition, begun in grouped(work.starts, lambda start: of(start.host)).items():
        latest = watch.latest(partition)
        told = [(start.host, max(0.0, latest - (now - start.at)) if start.at else 0.0, start.turn) for start in begun]
        add(starts_calls(partition, least_s, told), None)
    for partition, wanted in grouped(work.turns, lambda turn: of(turn.host)).items():

        def read(replies: list[Any], wanted: list[Turn] = wanted) -> None:
            got, told = time.monotonic(), iter([value for reply in replies for value in reply])
            for turn, wait, awaited in zip(wanted, told, told, strict=True):
                if wait < 0:
                    outcome.turns.append(turn)
                else:
                    turn.awaited, turn.at = float(awaited), got + wait / 1e6
                    if not turn.is_wanted:  # any more: its host would wait for a fetch that never begins
                        outcome.never.append(Start(turn.host, 0.0, turn.awaited))

        add(turns_calls(partition, max(delay_s, period_s), awaited_s, [turn.host for turn in wanted], watch.belief(partition)), read)
