"""From a bit, an interval and what a page says about its last change to the next posterior, and to what is to be thought of its host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from optimal_frontier.detection.modified import HEADER_RESOLUTION_S
from optimal_frontier.estimation.filtering import update_one
from optimal_frontier.estimation.last_modified import FIRST_WEIGHT, RESOLVED, update_one_with_age, update_one_with_first_age
from optimal_frontier.estimation.trust import SLACK, Trust, is_lie
from optimal_frontier.state.records import Handout

#: Kinds of word, in the order in which they are believed. Each has a trust of its own.
HEADER: Final = "header"
SITEMAP: Final = "sitemap"


@dataclass(frozen=True, slots=True)
class Word:
    """What a page says about its last change.

    Attributes
    ----------
    kind : str
        `HEADER` or `SITEMAP`.
    age : float
        Seconds from the last change until this was said, >= 0.
    silence : float
        Seconds from then until the visit, >= 0: of them it says nothing.
    resolution : float
        Of ``age``, seconds.
    trust : Trust
        What is known of its host.
    """

    kind: str
    age: float
    silence: float
    resolution: float
    trust: Trust

    def is_resolved(self, interval: float) -> bool:
        """Whether it was said since the last visit, and long enough after it."""
        return interval - self.silence >= RESOLVED * self.resolution

    def is_lie(self, interval: float, changed: bool, rate: float) -> bool | None:
        """Tell whether it contradicts the content; None where it may have changed in the silence."""
        if not changed:
            return is_lie(interval, self.age + self.silence, False, rate)
        if self.age + self.silence > interval and self.silence > SLACK * interval:
            return None
        return is_lie(interval - self.silence, self.age, True, rate)


def words_of(handout: Handout, age: float | None, responded: float) -> list[Word]:
    """Return what is said at a visit: by the header of the response, and by a sitemap beforehand.

    Parameters
    ----------
    handout : Handout
        The lease.
    age : float or None
        By the response's header, seconds.
    responded : float
        Local monotonic time of the response, seconds.
    """
    words = []
    if age is not None:
        words.append(Word(HEADER, age, 0.0, HEADER_RESOLUTION_S, Trust(*handout.header_trust)))
    if handout.lastmod is not None:
        told_ago, told_age, resolution = handout.lastmod
        silence = told_ago + max(0.0, responded - handout.received)
        words.append(Word(SITEMAP, told_age, silence, resolution, Trust(*handout.sitemap_trust)))
    return words


def learn(shape: float, time: float, interval: float, changed: bool, words: list[Word], is_first_bit: bool) -> tuple[float, float, str]:
    """Take in a visit that gave a bit.

    Parameters
    ----------
    shape, time : float
        Posterior before it, or the prior.
    interval : float
        Seconds since the last successful visit, > 0.
    changed : bool
        The bit.
    words : list of Word
        What is said.
    is_first_bit : bool
        Nothing but the prior is in the posterior: what holds now held at the first visit too, unless the page changed.

    Returns
    -------
    shape, time : float
        Posterior after it.
    words : str
        For the observation, see `Observation.words`.
    """
    rate = shape / time
    used, notes = None, []
    for word in words:
        if not word.is_resolved(interval):
            continue
        lie = word.is_lie(interval, changed, rate)
        # An unchanged page's age says what its bit says already, but what was before the first visit.
        is_telling = lie is False and (changed or is_first_bit)
        use = "none" if not is_telling or used is not None else "used" if word.trust.is_earned else "distrusted"
        if use == "used":
            used = word
        notes.append(f"{word.kind}:{_verdict(lie)}:{use}")
    if used is None:
        shape, time = update_one(shape, time, interval, changed)
    elif changed:
        heard = interval - used.silence
        shape, time = update_one_with_age(shape, time, heard, min(used.age, heard), True)
    else:
        shape, time = update_one(shape, time, interval, False)
        before = max(used.age + used.silence - interval, 0.0)
        shape, time = update_one_with_first_age(shape, time, before, FIRST_WEIGHT)
    return shape, time, " ".join(notes)


def learn_at_first(shape: float, time: float, words: list[Word]) -> tuple[float, float, str] | None:
    """Take in a first visit; None where nothing is believed that is said. Parameters and results as in `learn`."""
    for word in words:
        # Not by the age: to leave out the young would make all look old.
        if word.trust.is_earned and time >= RESOLVED * word.resolution:
            return *update_one_with_first_age(shape, time, word.age, FIRST_WEIGHT), f"{word.kind}:none:used"
    return None


def _verdict(lie: bool | None) -> str:
    return "none" if lie is None else "lies" if lie else "agrees"
