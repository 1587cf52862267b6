"""Changes of a template: one difference of the block sums of most pages of a host is one event, not a change of each page.

Fingerprints of the text of HTML end with a sum over its blocks (`detection/block_sums.py`). Where a banner, a footer or a date line that
all pages share is replaced, the sums of all of them change by one and the same difference, whatever else the pages hold. What of a page
changed by itself comes on top, so such a page differs otherwise, and counts as changed.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate, combinations
from typing import Final

from optimal_frontier.detection.block_sums import MODULUS, difference, sum_of
from optimal_frontier.state.messages import Handout

logger = logging.getLogger(__name__)

#: From so many pages on, each of which had a content of its own before and was unchanged at its last visit, a difference is an event,
SHOWN_BY: Final = 4
#: as long as it shows at this share of the visits to such pages that should show it, and on which nothing else changed.
LEAST_SHARE: Final = 0.75

#: What a name in `P flagged` has between the host and an event.
_SIGN: Final = " +"
#: Of each host events, and differences that may become one; hosts that are remembered.
_MOST_EVENTS: Final = 16
_MOST_HOSTS: Final = 2_000


def name_of(host: str, step: int, since: float) -> bytes:
    """Return the name under which an event is stored: host, difference, and when it was first seen (s)."""
    return f"{host}{_SIGN}{step:08x}@{since:.3f}".encode()


def is_event(name: bytes) -> bool:
    """Tell whether a name in ``P flagged`` is that of an event of a template."""
    return _SIGN.encode() in name


def parse_name(name: bytes) -> tuple[str, int, float] | None:
    """Return host, difference and time (s) of a stored event; None if it is none.

    Examples
    --------
    >>> parse_name(name_of("a.example:8000", 10, 5.0)), parse_name(b"a.example 00ff")
    (('a.example:8000', 10, 5.0), None)
    """
    host, sign, rest = name.decode("utf-8", "replace").partition(_SIGN)
    step, at, since = rest.partition("@")
    try:
        return (host, int(step, 16), float(since)) if sign and at else None
    except ValueError:
        return None


@dataclass(slots=True, eq=False)
class _Step:
    """A difference by which pages of a host changed.

    ``since``: when it was first seen (s). ``seen``: visits since to calm pages that were last visited before, and either showed it or had
    not changed at all; ``shown``: the former. ``contents``: what these pages had before; of an event not kept.
    """

    value: int
    since: float
    shown: int = 0
    seen: int = 0
    contents: set[bytes] = field(default_factory=set)

    @property
    def is_common(self) -> bool:
        return self.shown >= LEAST_SHARE * self.seen


@dataclass(slots=True)
class _Host:
    """What is known of a host: events in their order, and differences that may become one."""

    events: list[_Step] = field(default_factory=list)
    candidates: OrderedDict[int, _Step] = field(default_factory=OrderedDict)


class TemplateEvents:
    """Tells changes of templates from those of pages. One for each crawler process; what it finds is shared by all.

    An event counts for pages that were last visited before it was first seen, and for no longer than it shows at `LEAST_SHARE` of the
    visits to those that change seldom. So what only looked like one does little harm.
    """

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._stored: set[bytes] = set()
        self._told = self._stored

    def learn(self, stored: Iterable[bytes]) -> None:
        """Take over what other processes have found, by all of its names in ``P flagged``; the next visit goes by it, as the thread that
        judges may be in the midst of one."""
        self._told = {name for name in stored if is_event(name)}

    def _take(self, told: set[bytes]) -> None:
        for name in sorted(told - self._stored):
            found = parse_name(name)
            if found is not None:
                host, value, since = found
                known = self._host(host)
                if all(event.value != value for event in known.events):
                    known.candidates.pop(value, None)
                    _enlist(known, _Step(value, since, SHOWN_BY, SHOWN_BY))
        self._stored = told

    def judge(self, handout: Handout, content: bytes, at: float, changed: bool) -> tuple[bool, bytes]:
        """Judge a page by its fingerprint.

        Parameters
        ----------
        handout : Handout
            The page; its stored fingerprint was made in the same way.
        content : bytes
            Its fingerprint now, which ends with a sum of blocks.
        at : float
            When the visit was, seconds since the epoch.
        changed : bool
            By the fingerprint.

        Returns
        -------
        is_template : bool
            It changed by events of the template alone.
        name : bytes
            Of an event that was found out just now, to be stored; else empty.

        Notes
        -----
        A page shows the sum of all events since its last visit; so what is left of its difference without those that are known is what
        a new event is looked for in. A page that has only a part of them (another section of the site) shows one or two of them.
        """
        if (told := self._told) is not self._stored:
            self._take(told)
        row = handout.row
        last, is_calm = row.b / 1e6, not row.bits & 1
        if not changed:
            known = self._hosts.get(handout.host)
            if known is not None and is_calm:
                _count(known, last, at, ())
            return False, b""
        known = self._host(handout.host)
        step = difference(sum_of(row.content), sum_of(content))
        due = [event for event in known.events if event.since > last]
        shown = _parts_of(step, due)
        if shown:
            if is_calm:
                _count(known, last, at, shown)
            return True, b""
        rest = (step - sum(event.value for event in due)) % MODULUS
        if not is_calm or not step:
            return False, b""
        candidate = known.candidates.get(rest)
        if candidate is None:
            candidate = known.candidates[rest] = _Step(rest, at)
            if len(known.candidates) > _MOST_EVENTS:
                known.candidates.popitem(last=False)
            candidate.shown = candidate.seen = 1
            candidate.contents.add(row.content)
        elif candidate.since > last:
            candidate.contents.add(row.content)
        # What else there is in a page that changed by itself, too, nobody can tell.
        _count(known, last, at, (candidate,), is_telling=False)
        if len(candidate.contents) < SHOWN_BY or not candidate.is_common:
            return False, b""
        del known.candidates[rest]
        candidate.contents.clear()
        _enlist(known, candidate)
        name = name_of(handout.host, rest, candidate.since)
        self._stored.add(name)
        logger.info("%s: its template changed; pages that changed by nothing else count as unchanged", handout.host)
        return True, name

    def _host(self, name: str) -> _Host:
        known = self._hosts.setdefault(name, _Host())
        self._hosts.move_to_end(name)
        if len(self._hosts) > _MOST_HOSTS:
            self._hosts.popitem(last=False)
        return known


def _enlist(known: _Host, event: _Step) -> None:
    known.events.append(event)
    known.events.sort(key=lambda event: event.since)
    del known.events[:-_MOST_EVENTS]


def _parts_of(step: int, due: list[_Step]) -> tuple[_Step, ...]:
    """Return the events that a difference is the sum of: all from one on, or one, or two; none where there are none."""
    if not due or not step:
        return ()
    for at, total in enumerate(accumulate(event.value for event in reversed(due))):
        if total % MODULUS == step:
            return tuple(due[len(due) - 1 - at :])
    for count in (1, 2):
        for some in combinations(due, count):
            if sum(event.value for event in some) % MODULUS == step:
                return some
    return ()


def _count(known: _Host, last: float, at: float, shown: tuple[_Step, ...], *, is_telling: bool = True) -> None:
    """Count a visit for all that it shows, and where it is telling for all that it should show; drop those that few pages show."""
    for step in (*known.candidates.values(), *known.events):
        if last < step.since < at and (is_telling or step in shown):
            step.seen += 1
            step.shown += step in shown
            if step.is_common:
                continue
            if known.candidates.get(step.value) is step:
                del known.candidates[step.value]
            else:
                known.events.remove(step)
