"""A callback or an item pipeline that raised: the visit counts, and the page is fetched again until its items were taken.

Such a page keeps no validators, so its next fetch brings a full answer and a callback, whatever CALLBACK_ON says and whatever fails in
between. It waits as after a failure, twice as long after each further error, and never longer than it would have waited anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from optimal_frontier.frontier.judging import fetched_once
from optimal_frontier.frontier.judging.backoff import wait_after_failures
from optimal_frontier.frontier.judging.judgement import Judgement
from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.frontier.judging.waits import shortest_wait
from optimal_frontier.scheduling.numbers import Numbers, at_latest, fixed
from optimal_frontier.state.memory import MISSED_CHANGE, MISSED_FIRST, Lost
from optimal_frontier.state.messages import KEEP, Handout, Observation
from optimal_frontier.state.rows import DONE, MOST_IN_A_ROW, ONCE, UNCONDITIONAL, Row

#: Longest description of an exception that is kept, characters.
MOST_CHARACTERS: Final = 200


def described(exception: BaseException) -> str:
    """Return the type and the first line of an exception, in 200 printable characters at most.

    Examples
    --------
    >>> described(ValueError("no price\\nin 12 lines")), described(KeyError())
    ('ValueError: no price', 'KeyError')
    """
    try:
        lines = str(exception).strip().splitlines()
    except Exception:  # its own __str__ may raise
        lines = []
    said = ": ".join([type(exception).__name__, *lines[:1]])
    said = "".join(character if character.isprintable() else " " for character in said)
    return said if len(said) <= MOST_CHARACTERS else said[: MOST_CHARACTERS - 1] + "…"


def after_callback_error(observation: Observation, cause: str, error: str) -> Observation:
    """Return the observation of a visit whose callback or item pipeline raised.

    Parameters
    ----------
    observation : Observation
        As judged. One that was given here before is returned as it is.
    cause : str
        `outcomes.CALLBACK` or `outcomes.ITEM`.
    error : str
        See `described`.

    Notes
    -----
    Left as they are: requests that are forgotten after their fetch, and pages that this visit has retired. A page that failed all the same
    (its errback raised) keeps the backoff of its failure. A page that was found elsewhere moves at a later visit.
    """
    handout, row, is_seen = observation.handout, observation.row, observation.outcome == "ok"
    is_once = row.state == DONE and is_seen
    kept = observation.memory or handout.memory
    is_noted = row.failures > 0 if is_seen else kept.lost is not None
    if is_noted or not (observation.op == KEEP or is_once):
        return observation
    before = handout.memory.lost
    missed = _missed(handout, observation.bit) if is_seen else 0
    row = row._replace(flags=row.flags | UNCONDITIONAL)
    if is_seen:
        failures = min((handout.row.failures if before is not None else 0) + 1, MOST_IN_A_ROW)
        row = row._replace(state=ONCE if is_once else row.state, failures=failures, cause=CAUSES.index(cause))
        wait = _wait(handout, row)
        planned = fixed(wait) if is_once else Numbers(row.a, row.s, row.e, row.l)
        row = row._replace(**at_latest(planned, wait)._asdict())
    return replace(
        observation,
        op=KEEP,
        row=row,
        memory=kept._replace(etag=b"", last_modified=b"", size=0, lost=Lost(cause, error, missed)),
        counters=_counted(observation.counters, {f"failures_{cause}": 1, f"lost_{cause}": 1}),
        moved="",
        is_canonical=False,
    )


def fetched_once_more(observation: Observation) -> Observation:
    """Return the observation of a request that is fetched once, and was fetched again as its callback had raised.

    While it fails it is tried again; one that is gone is given up.
    """
    handout, lost = observation.handout, observation.handout.memory.lost
    assert lost is not None  # the caller looked
    if observation.outcome in ("ok", "gone"):
        counters = _counted(observation.counters, {f"lost_{lost.cause}": -1})
        return replace(observation, memory=handout.memory._replace(lost=None), counters=counters)
    return fetched_once.tried_again(observation)


def settle(judgement: Judgement) -> None:
    """Note that a full answer has come, so that the callback has its chance, or that the page is given up."""
    lost = judgement.handout.memory.lost
    if lost is not None:
        judgement.remembered["lost"] = None
        judgement.count(f"lost_{lost.cause}", -1)


def change_told(handout: Handout, observation: Observation | None) -> bool | None:
    """Return whether a visit shows a change, as callbacks read it: also one that an earlier callback could not take. None: no bit."""
    if observation is None or observation.outcome != "ok":
        return None
    missed = _missed(handout, observation.bit)
    if missed:
        return None if missed == MISSED_FIRST else True
    return None if observation.bit < 0 else False


def is_first_told(handout: Handout) -> bool:
    """Tell whether a page is new to the spider: it was never seen, or its callback raised at each visit so far."""
    return _missed(handout, 0) == MISSED_FIRST


def _missed(handout: Handout, bit: int) -> int:
    before = 0 if handout.memory.lost is None else handout.memory.lost.missed
    return MISSED_FIRST if handout.row.visits == 0 else max(before, MISSED_CHANGE if bit == 1 else 0)


def _wait(handout: Handout, row: Row) -> float:
    return wait_after_failures(handout.page, row, shortest_wait(row), None)


def _counted(counters: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    sums = Counter(counters)
    sums.update(more)
    return {name: by for name, by in sums.items() if by}
