"""What a bit teaches of a page: its change rate, whether its habits have changed, whether its changes come in bursts."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from optimal_frontier.detection import is_changed
from optimal_frontier.estimation.bursts import Bursts, follow_bursts
from optimal_frontier.estimation.change_points import watch_one
from optimal_frontier.estimation.signalled import update_signalled
from optimal_frontier.frontier.judging.ages import Note, Word, learn
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.heard import Heard
from optimal_frontier.state.rows import FAR_S, Row

#: Of a page that knows nothing but its bit: the change rate is about 1 over the time of the first interval.
_FIRST_SHAPE: Final = 1.0
#: Alarms that a row counts.
_MOST_RELEARNED: Final = 255


class Learned(NamedTuple):
    """Fields of a row after a bit, by their names there."""

    shape: float
    time: float
    watch_shape: float
    watch_time: float
    evidence: float
    relearned: int
    surprise: float
    score: float
    variance: float
    spread: float


#: Fields of `Learned` of a page whose bits were no bits, but for the number of its alarms.
FORGOTTEN: Final = dict.fromkeys(("shape", "time", "watch_shape", "watch_time", "evidence", "surprise", "score", "variance", "spread"), 0.0)


def change_bit(row: Row, found: Fingerprint) -> int:
    """Return 1 (changed), 0 (unchanged) or -1: a first visit, no fingerprint, or the stored one was made under other settings."""
    if found.digest is None or row.visits == 0 or row.tag != found.tag:
        return -1
    return int(is_changed(row.content, found.digest, found.distance))


def learn_bit(
    row: Row, interval: float, unseen: float, changed: bool, prior: tuple[float, float] | None, words: list[Word], recall: float = 0.0
) -> tuple[Learned, list[Note]]:
    """Take in a visit that gave a bit, and that no signal has caused.

    Parameters
    ----------
    row : Row
        Before it.
    interval : float
        Seconds since the last good response, > 0.
    unseen : float
        Seconds before that of which 304s had said that nothing changed, if they are not believed now: it may have changed at any time since
        its last full answer, and what they taught is taken back.
    changed : bool
        The bit.
    prior : tuple of float or None
        Shape and time (s) of what is believed of a page without a bit.
    words : list of Word
        What is said of the last change.
    recall : float
        Share of the changes that sources would have told of. They were silent, so those did not come; the bit is about the others.

    Returns
    -------
    learned : Learned
        What is known after it.
    notes : list of Note
        What became of the words.
    """
    prior = prior or (_FIRST_SHAPE, interval)
    known = _known(row, prior, unseen)
    interval += unseen
    if recall > 0.0:
        # As if that share of the time had shown no change, see `estimation.signalled`.
        known, interval = (known[0], known[1] + recall * interval), (1.0 - recall) * interval
    watch = (row.watch_shape, row.watch_time, row.evidence)
    (recent_shape, recent_time, evidence), is_other = watch_one(watch, *known, *prior, interval, changed)
    chance = -math.expm1(-known[0] * math.log1p(interval / known[1]))
    bursts = follow_bursts(Bursts(row.surprise, row.score, row.variance, row.spread), chance, changed)
    # The watch takes each burst for a new habit, and would leave the page with what ten bits say.
    is_other = is_other and not bursts.is_bursty
    shape, time, notes = learn(*known, interval, changed, words, row.visits == 1 and row.shape <= 0)
    if is_other:
        shape, time = recent_shape, recent_time
    relearned = min(row.relearned + is_other, _MOST_RELEARNED)
    stored = Learned(min(shape, FAR_S), min(time, FAR_S), min(recent_shape, FAR_S), min(recent_time, FAR_S), evidence, relearned, *bursts)
    return stored, notes


def learn_signalled_bit(
    row: Row, interval: float, unseen: float, changed: bool, prior: tuple[float, float] | None, heard: Heard
) -> tuple[float, float]:
    """Take in the bit of a visit before which signals came: shape and time (s) after it.

    Habits, bursts and words of the last change are left alone: they are about visits whose times have nothing to do with changes.
    """
    prior = prior or (_FIRST_SHAPE, interval)
    known = _known(row, prior, unseen)
    shape, time = update_signalled(*known, interval + unseen, changed, heard.signals, heard.recall, heard.false_rate)
    return min(shape, FAR_S), min(time, FAR_S)


def _known(row: Row, prior: tuple[float, float], unseen: float) -> tuple[float, float]:
    shape, time = (row.shape, row.time) if row.shape > 0 else prior
    return (shape, max(time - unseen, min(time, prior[1]))) if unseen > 0 else (shape, time)
