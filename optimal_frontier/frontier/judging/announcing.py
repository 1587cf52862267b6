"""What sources say of the last change of known pages: it is noted, and is a signal where it is news.

A signal raises the doubt in the copy, so the page's deadline comes nearer by what the source has been worth (`judging.heard`). The row is
written anew only where that moves the deadline; otherwise the signal is only remembered. Its next visit shows whether it was true.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Final, NamedTuple

from optimal_frontier.frontier.admitting.pinged import CLOCKS_S
from optimal_frontier.frontier.admitting.revival import brought_back, due_at
from optimal_frontier.frontier.judging.heard import CONVINCING, KnownOf, heard_of
from optimal_frontier.frontier.judging.hubs import worth_of as worth_of_hub
from optimal_frontier.frontier.judging.waits import Terms, change_rate_of, is_early_look, numbers_of
from optimal_frontier.scheduling.numbers import Numbers, at_latest, deadline
from optimal_frontier.state.memory import MOST_SOURCES, Lastmod, Memory, Signals
from optimal_frontier.state.messages import NewPage
from optimal_frontier.state.rows import ACTIVE, CHECKED, HELD, HUB, RETIRED, SIGNALLED, TIMED, UNCONDITIONAL, Row
from optimal_frontier.state.source_lessons import is_ping

#: A time whose resolution is longer may mean any moment in it, seconds.
ROUGH_S: Final = 60.0
#: A row is written anew where its deadline moves by more than this share of its wait.
MOVED: Final = 0.05
_AT_ONCE_S: Final = 1e-3
#: Times are stored in 32 bits: so much of one is not later than it.
_ROUNDED: Final = 1.0 - 2e-7
#: Pages of one taking in that pings send to the front; further ones go by their doubt. So many pings do not stop the rest of the crawl, and
#: a source that lies is found out before it has cost many visits.
MOST_FIRST: Final = 20
#: Flags of pages whose next visit is not for a signal to choose.
_SETTLED: Final = UNCONDITIONAL | CHECKED | HELD
#: Change rate of a page of which nothing is believed: what a source is worth to it does not depend on it.
_ANY_RATE: Final = 1.0


class Word(NamedTuple):
    """What a source's word means for a page.

    Attributes
    ----------
    memory : Memory
        Of the page, with the word; as it was where the word is none.
    is_signal : bool
        It tells of a change that was not told and not seen before.
    """

    memory: Memory
    is_signal: bool


def hear(row: Row, memory: Memory, new: NewPage, now: float) -> Word:
    """Judge what a source says of a page; pure.

    Parameters
    ----------
    row : Row
        Of the page, as stored.
    memory : Memory
        The same.
    new : NewPage
        With ``lastmod``, and with ``announcement`` where the source is one that announces.
    now : float
        Server's time, seconds since the epoch.
    """
    assert new.lastmod is not None
    modified, resolution = new.lastmod
    if modified > now + resolution:
        return Word(memory, False)
    told = Lastmod(modified, resolution, now)
    if new.announcement is None:
        return Word(memory._replace(lastmod=told), False)
    source, unread = new.announcement
    # The word is no fair sample of ages: one that has not moved was not passed on, and a page that is found because it is new is young.
    # So it is noted as too rough to be used as one, but for the words of a source that is read for the first time.
    is_sample = row.attempts == 0 and unread < 0
    if (row.attempts or is_sample) and not is_ping(source):
        memory = memory._replace(lastmod=told if is_sample else told._replace(resolution=math.inf))
    before = next((known for known in memory.signals if known.source == source), None)
    if before is None:
        if len(memory.signals) >= MOST_SOURCES:
            return Word(memory, False)
        known = Signals(source, now, modified)
    else:
        known = before._replace(modified=max(modified, before.modified))
    seen_by = modified + (resolution / 2 if resolution > ROUGH_S else CLOCKS_S)
    last_seen = row.b / 1e6 - row.unseen
    # A word that is new since the source was read before speaks of a change since then, whatever the site's clock says.
    is_unseen = seen_by > last_seen or (before is not None and unread >= 0 and last_seen < now - unread)
    is_page = row.state == RETIRED or (row.state == ACTIVE and row.visits > 0 and not row.flags & HELD)
    is_signal = is_page and is_unseen and (before is None or modified > before.modified)
    if is_signal:
        # What the last visit may have seen already does not speak against the source.
        is_unsure = resolution <= ROUGH_S and modified <= last_seen
        known = known._replace(n=known.n + 1, unsure=known.unsure + is_unsure)
    others = tuple(one for one in memory.signals if one.source != source)
    return Word(memory._replace(signals=(*others, known)) if known != before else memory, is_signal)


def after_signal(
    row: Row, page: bytes, memory: Memory, now: float, terms: Terms, known_of: KnownOf, *, may_go_first: bool = True
) -> Row | None:
    """Return the row of a page of which signals tell, or None: they do not move it.

    Parameters
    ----------
    row : Row
        As stored.
    page : bytes
        Its identity.
    memory : Memory
        With the signals.
    now : float
        Server's time, seconds since the epoch.
    terms : Terms
        Price, plan and settings.
    known_of : callable
        Name of a source -> what is known of it.
    may_go_first : bool
        A ping may make it due whatever its doubt.

    Notes
    -----
    Pages that failed keep their backoff, pinned ones their interval. A retired page, one with update times, and one from before the first
    plan have no doubt to add to: one signal that is `CONVINCING` makes them due. So does one ping for any page: it is looked at soon, also
    where it is not worth a visit at the price.
    """
    rate = change_rate_of(row, terms.published)
    is_convinced = _is_convinced(row, memory, rate, known_of, may_go_first)
    if row.state == RETIRED:
        at = now if row.visits == 0 else max(now, row.b / 1e6 + row.min_interval)
        return brought_back(row, at, SIGNALLED) if is_convinced else None
    # A check is soon enough; a look that is early may be far away.
    latest = row.l if is_early_look(row) else math.inf
    if latest < math.inf:
        row = row._replace(flags=row.flags & ~CHECKED)
    if row.failures or row.flags & _SETTLED or row.is_pinned or row.l <= 0.0:
        return None
    # Due now at the earliest: whoever is due since long ago goes before all others, and raises the price.
    since = max(now - row.b / 1e6, 0.0)
    was = _deadline_of(row, terms)
    if is_convinced:
        moved = due_at(row, row.b / 1e6 + max(row.min_interval, since * _ROUNDED), SIGNALLED)
        is_fixed = row.s <= 0.0 and row.e == row.l
        # Dispatch lets such a page go first, as if it were late by a slope; it loses nothing by another ping, nor if it is later already.
        # The slope of one that a clock has made late says nothing of that.
        is_sooner = _deadline_of(moved, terms) < was if is_fixed else row.s <= 0.0 or now - was < max(row.s, 0.5 * (was - row.b / 1e6))
        return moved if is_sooner else None
    if row.flags & TIMED or rate is None:
        return None
    heard = heard_of(memory.signals, rate, known_of, row.b / 1e6 - row.unseen, now)
    if heard.doubt <= 0.0 and not row.flags & SIGNALLED:
        return None
    yielded = worth_of_hub(memory, terms.settings) if row.flags & HUB else 0.0
    a, s, e, longest = at_latest(numbers_of(row, page, terms, since, yielded=yielded, heard=heard), latest)
    moved = row._replace(flags=row.flags | SIGNALLED, a=a, s=s, e=e, l=longest)
    due = _deadline_of(moved, terms)
    is_due_already = was <= now and due <= now + _AT_ONCE_S
    return moved if abs(due - was) > MOVED * (was - row.b / 1e6) and not is_due_already else None


def consequences(
    heard: Mapping[bytes, tuple[Row, Memory, Memory]], signals: Container[bytes], now: float, terms: Terms, known_of: KnownOf
) -> list[tuple[bytes, float, Row | None, Memory]]:
    """Return what becomes of pages, as `revise_calls` takes it: the rows of those that signals move, and what is remembered of others."""
    revisions: list[tuple[bytes, float, Row | None, Memory]] = []
    first = 0
    for page, (row, before, memory) in heard.items():
        moved = after_signal(row, page, memory, now, terms, known_of, may_go_first=first < MOST_FIRST) if page in signals else None
        if moved is not None or memory != before:
            first += moved is not None and moved.e == moved.l
            revisions.append((page, row.b, moved, memory))
    return revisions


def credit_source(new: NewPage, row: Row, terms: Terms, known_of: KnownOf) -> None:
    """Count a word that has moved a page for the source that it was read in: what that is visited for."""
    if new.found_on is not None and new.announcement is not None:
        rate = change_rate_of(row, terms.published) or _ANY_RATE
        is_true = known_of(new.announcement.source).believed.precision(rate)
        new.found_on.told += is_true
        new.found_on.told_importance += row.importance * is_true


def _is_convinced(row: Row, memory: Memory, rate: float | None, known_of: KnownOf, may_go_first: bool) -> bool:
    """Tell whether the page is due whatever its doubt: by a ping, and by any source where there is no doubt to add to."""
    goes_by_doubt = row.state != RETIRED and not row.flags & TIMED and rate is not None
    for told in memory.signals:
        if told.n and (not goes_by_doubt or (may_go_first and is_ping(told.source))):
            known = known_of(told.source)
            # As of the pages that it tells of on average, if this one is slower: who pings has that page in mind.
            mean = known.record.changes / known.record.time if known.record.time > 0.0 else 0.0
            if known.believed.precision(max(rate or _ANY_RATE, mean)) >= CONVINCING:
                return True
    return False


def _deadline_of(row: Row, terms: Terms) -> float:
    return deadline(row.b / 1e6, Numbers(row.a, row.s, row.e, row.l), terms.log_price)
