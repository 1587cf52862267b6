"""From a bit, an interval and what a page says about its last change to the next posterior, and to what is to be thought of its host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from optimal_frontier.detection.modified import HEADER_RESOLUTION_S
from optimal_frontier.estimation.filtering import update_one
from optimal_frontier.estimation.last_modified import FIRST_WEIGHT, RESOLVED, update_one_with_age, update_one_with_first_age
from optimal_frontier.estimation.trust import SLACK, Trust, is_lie
from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.memory import Lastmod

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


class Note(NamedTuple):
    """What became of a word.

    Attributes
    ----------
    kind : str
        `HEADER` or `SITEMAP`.
    lies : bool or None
        Whether it contradicts the content; None: it could not be checked.
    use : str
        ``used``, ``distrusted`` (it would have been, of a trusted host) or empty.
    """

    kind: str
    lies: bool | None
    use: str


def words_of(words: HostWords, age: float | None, lastmod: Lastmod | None, dispatched: float, seen: float) -> list[Word]:
    """Return what is said at a visit: by the header of the response, and by a sitemap beforehand.

    Parameters
    ----------
    words : HostWords
        What is known of the host.
    age : float or None
        By the response's header, seconds.
    lastmod : Lastmod or None
        By a sitemap.
    dispatched, seen : float
        When the page was handed out, and when the response came, seconds since the epoch.
    """
    said = []
    if age is not None:
        said.append(Word(HEADER, age, 0.0, HEADER_RESOLUTION_S, Trust(*words.header)))
    # What a sitemap said while the page was in flight is not about this visit.
    if lastmod is not None and lastmod.told <= dispatched:
        told_age = max(0.0, lastmod.told - lastmod.modified)
        said.append(Word(SITEMAP, told_age, max(0.0, seen - lastmod.told), lastmod.resolution, Trust(*words.sitemap)))
    return said


def after_checks(words: HostWords, notes: list[Note], changed: bool) -> HostWords:
    """Return what is known of a host after its words were checked against a page that had changed, or had not."""
    for note in notes:
        if note.lies is not None:
            trust = Trust(*getattr(words, note.kind)).after(changed, note.lies)
            counts = (trust.unchanged, trust.moved, trust.changed, trust.wrong)
            words = words._replace(header=counts) if note.kind == HEADER else words._replace(sitemap=counts)
    return words


def learn(
    shape: float, time: float, interval: float, changed: bool, words: list[Word], is_first_bit: bool
) -> tuple[float, float, list[Note]]:
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
    notes : list of Note
        What became of the words.
    """
    if not words:
        return *update_one(shape, time, interval, changed), []
    rate = shape / time
    used: Word | None = None
    notes: list[Note] = []
    for word in words:
        if not word.is_resolved(interval):
            continue
        lie = word.is_lie(interval, changed, rate)
        # An unchanged page's age says what its bit says already, but what was before the first visit.
        is_telling = lie is False and (changed or is_first_bit)
        use = "" if not is_telling or used is not None else "used" if word.trust.is_earned else "distrusted"
        if use == "used":
            used = word
        notes.append(Note(word.kind, lie, use))
    if used is None:
        shape, time = update_one(shape, time, interval, changed)
    elif changed:
        heard = interval - used.silence
        shape, time = update_one_with_age(shape, time, heard, min(used.age, heard), True)
    else:
        shape, time = update_one(shape, time, interval, False)
        before = max(used.age + used.silence - interval, 0.0)
        shape, time = update_one_with_first_age(shape, time, before, FIRST_WEIGHT)
    return shape, time, notes


def learn_at_first(shape: float, time: float, words: list[Word]) -> tuple[float, float, list[Note]] | None:
    """Take in a first visit; None where nothing is believed that is said. Parameters and results as in `learn`."""
    for word in words:
        # Not by the age: to leave out the young would make all look old.
        if word.trust.is_earned and time >= RESOLVED * word.resolution:
            return *update_one_with_first_age(shape, time, word.age, FIRST_WEIGHT), [Note(word.kind, None, "used")]
    return None
