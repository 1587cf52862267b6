"""One visit while it is judged: what is known so far, and how it becomes an observation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from optimal_frontier.estimation.signal_sources import PlainVisit
from optimal_frontier.frontier.admitting.pages import importance_of
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.heard import SILENCE, Heard, after_good, answered, heard_of
from optimal_frontier.frontier.judging.hubs import worth_of
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.source_worths import LESSONS_EVERY
from optimal_frontier.frontier.judging.update_times import Republished, numbers_of_timed, republished
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.frontier.judging.waits import Terms, change_rate_of, numbers_of, pinned_lateness, second_look_of
from optimal_frontier.frontier.judging.young import look_of
from optimal_frontier.scheduling.numbers import Numbers, fixed
from optimal_frontier.settings import FrontierSettings, PageRule
from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import KEEP, REST, Change, Handout, Observation
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import (
    ACTIVE,
    APPEARED,
    CHECKED,
    DONE,
    FAR_S,
    HUB,
    OWN,
    QUEUE,
    SIGNALLED,
    TIMED,
    UNCONDITIONAL,
    Row,
)

#: Flags that outlive a visit.
_KEPT: Final = UNCONDITIONAL | HUB | OWN | APPEARED


@dataclass(frozen=True, slots=True)
class Context:
    """What a visit is judged by, beside the page.

    Attributes
    ----------
    settings : FrontierSettings
        With RULES.
    published : Published
        By the last plan of the page's partition.
    recent : Recent
        What this process remembers.
    """

    settings: FrontierSettings
    published: Published
    recent: Recent


@dataclass(slots=True)
class Judgement:
    """A visit to a page while it is judged.

    Attributes
    ----------
    handout, visit, context
        What there is to judge.
    rule : PageRule
        What RULES say of the page now.
    at : float
        When the visit was, by the server's clock, seconds since the epoch.
    interval : float
        Seconds since the last good response; -1 if there was none.
    words : HostWords
        What is known of the host.
    fields : dict
        Of the row, as they are after the visit.
    remembered : dict
        Of the memory, likewise.
    counters : dict of str to int
        What is to be counted.
    outcome : str
        As in `Observation`, like the following ones.
    again : bool
        The page is to be looked at again soon, to check what this visit showed.
    raw_bit : int
        By the fingerprint alone; `bit` may be overruled.
    found : Fingerprint or None
        Of the content, without the noise that it shares with other pages.
    republished : Republished or None
        What is known of its update times after a bit.
    lessons : sequence of (str, PlainVisit)
        Sources of signals, and what a bit teaches of each.
    """

    handout: Handout
    visit: Visit
    context: Context
    rule: PageRule
    at: float
    interval: float
    words: HostWords
    fields: dict[str, Any]
    remembered: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    outcome: str = "ok"
    bit: int = -1
    raw_bit: int = -1
    found: Fingerprint | None = None
    again: bool = False
    republished: Republished | None = None
    change: Change | None = None
    moved: str = ""
    is_canonical: bool = False
    brings_back: bool = False
    flag: bytes = b""
    lessons: Sequence[tuple[str, PlainVisit]] = ()

    @classmethod
    def of(cls, handout: Handout, visit: Visit, context: Context) -> Judgement:
        """Begin: bounds and importance are those that RULES have now."""
        row, settings = handout.row, context.settings
        rule = settings.rules.of(handout.record["url"])
        shortest, longest = settings.interval_bounds(rule)
        at = handout.server_time(visit.responded)
        fields = {
            "state": ACTIVE if rule.revisit or handout.memory.lost is not None else DONE,
            "flags": row.flags & _KEPT,
            "b": max(float(round(at * 1e6)), row.b + 1.0),
            "importance": importance_of(handout.stated, rule),
            "min_interval": min(shortest, FAR_S),
            "max_interval": min(longest, FAR_S),
        }
        interval = at - row.b / 1e6 + row.unseen if row.visits else -1.0
        return cls(handout, visit, context, rule, at, interval, context.recent.words_of(handout), fields)

    @property
    def shortest(self) -> float:
        """Least interval of revisits, seconds."""
        return float(self.fields["min_interval"])

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        self.counters[name] = self.counters.get(name, 0) + by

    def observation(self) -> Observation:
        """Put the parts together, with the numbers of the next deadline."""
        self._answer_signals()
        fields, handout = self.fields, self.handout
        if self.again:
            fields["flags"] |= CHECKED
        if self.rule.update_times is not None:
            fields["flags"] |= TIMED
        row = _with_fields(handout.row, fields)
        if row.state == ACTIVE:
            row = self._scheduled(row)
        elif row.state == DONE:
            self.count("pages", -1)
            self.count("fetched", -(row.visits > 0))
        news = {name: value for name, value in self.remembered.items() if value != getattr(handout.memory, name)}
        memory = Memory._make(map(news.get, Memory._fields, handout.memory)) if news else None
        words = None
        if self.words != handout.words:
            words = self.words
            self.context.recent.learn_words(handout, self.visit.responded, words)
        lateness = self.visit.lateness if self.visit.lateness is not None else handout.lateness
        return Observation(
            handout,
            KEEP if row.state == ACTIVE else REST,
            row,
            memory,
            words,
            self.change,
            lateness,
            self.counters,
            self.bit,
            self.outcome,
            self.moved,
            self.is_canonical,
            self.brings_back,
            self.flag,
            self.lessons,
        )

    def hear(self, prior: tuple[float, float] | None) -> tuple[Heard, float | None]:
        """Take in what sources had said of the page when it was visited: its bit teaches of them.

        Parameters
        ----------
        prior : tuple of float or None
            Shape and time (s) of what is believed of a page without a bit.

        Returns
        -------
        heard : Heard
            As far as signals came before a change: false ones say nothing of how often the page changes.
        recall : float or None
            The share of the changes that they would have told of; None: one that counts has signalled one.
        """
        signals, row = self.handout.memory.signals, self.handout.row
        if not signals:
            return SILENCE, 0.0
        shape = row.shape
        believed = (shape, row.time) if shape > 0.0 else prior
        if believed is None:
            return SILENCE, 0.0
        known_of, interval, changed = self.context.recent.sources.known_of, self.interval, self.bit == 1
        seen = self.at - interval
        # Of a source that is known well, some visits say as much as all.
        spares = row.visits % LESSONS_EVERY > 0
        recall, self.lessons = answered(signals, believed, seen, interval, changed, known_of, spares)
        if recall is not None or not changed:
            return SILENCE, recall
        return heard_of(signals, change_rate_of(row, self.context.published), known_of, seen, self.at), None

    def _answer_signals(self) -> None:
        """Forget the signals that a good response answers."""
        signals = self.handout.memory.signals
        if not signals or self.outcome != "ok":
            return
        left = after_good(signals)
        if left is not signals:
            self.remembered["signals"] = left
            if self.bit >= 0:
                self.count("signals_true" if self.bit else "signals_false", sum([told.n for told in signals]))

    def _scheduled(self, row: Row) -> Row:
        """Return the row with its numbers."""
        terms = Terms(self.handout.log_price, self.context.published, self.context.settings)
        heard = self._heard(row)
        numbers = self._numbers(row, terms, heard)
        if row.flags & APPEARED and self.outcome == "ok":
            wait = look_of(row, self.handout.page, self.remembered.get("birth"), terms, numbers)
            if wait < math.inf:
                return _with_numbers(row, fixed(wait), row.flags | CHECKED)
        if numbers.a == math.inf and self.bit >= 0:
            # Before it is given up.
            wait = second_look_of(row, terms, self.interval)
            if wait < numbers.l:
                return _with_numbers(row, fixed(wait), row.flags | CHECKED)
        # Intervals that are fixed say nothing of sources; with the flag they would go first, as pages that were pinged.
        return _with_numbers(row, numbers, row.flags | SIGNALLED if heard.recalls and numbers.e < numbers.l else row.flags)

    def _heard(self, row: Row) -> Heard:
        """What sources say of the page from now on, where its deadline goes by doubt."""
        signals = self.remembered.get("signals", self.handout.memory.signals)
        is_apart = row.failures or row.flags & (TIMED | HUB | CHECKED) or row.is_pinned
        if not signals or is_apart:
            return SILENCE
        rate = change_rate_of(row, self.context.published)
        return heard_of(signals, rate, self.context.recent.sources.known_of, self.at, self.at)

    def _numbers(self, row: Row, terms: Terms, heard: Heard) -> Numbers:
        handout = self.handout
        timetable = self.rule.update_times
        if timetable is not None and row.visits and not row.gone:
            page = self.republished or republished(timetable, handout.memory)
            return numbers_of_timed(page, row, handout.page, terms)
        late = pinned_lateness(handout.row, row.b) if row.is_pinned else 0.0
        yielded = worth_of(handout.memory, terms.settings) if row.flags & HUB else 0.0
        return numbers_of(row, handout.page, terms, late=late, yielded=yielded, heard=heard)


def _with_fields(row: Row, fields: dict[str, Any]) -> Row:
    """`Row._replace` in a fifth of its time: a row has many fields."""
    return Row._make(map(fields.get, Row._fields, row))


def _with_numbers(row: Row, numbers: Numbers, flags: int) -> Row:
    """Other numbers and flags, likewise."""
    return Row._make((row.host, row.state, flags, row.b, *numbers, *row[QUEUE:]))
