"""Pages with update times: what a visit teaches of their probabilities, which times are worth a visit, and when the next one is due."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np

from optimal_frontier.estimation.update_probabilities import Beta, learn_update, stated_beta
from optimal_frontier.frontier.judging.backoff import backoff_s, counted_failures
from optimal_frontier.frontier.judging.waits import Terms, longest_wait, shortest_wait
from optimal_frontier.optimization.repeated_times import repeated_choices
from optimal_frontier.scheduling.numbers import Numbers, fixed
from optimal_frontier.scheduling.update_deadlines import passed, visit_deadline
from optimal_frontier.settings import Timetable
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.rows import CHECKED, FAR_S, Row

#: Rows hold waits in 32 bits: a visit at an update time comes later by what they may be short.
_ROUNDING: Final = 2.0**-23
#: Of counts of visits in a period, which are divided and multiplied.
_NEARLY: Final = 1.0 + 1e-9


class Republished(NamedTuple):
    """A page with update times.

    Attributes
    ----------
    timetable : Timetable
        By RULES.
    betas : tuple of (float, float)
        Posteriors of their probabilities.
    """

    timetable: Timetable
    betas: tuple[Beta, ...]

    @property
    def probabilities(self) -> list[float]:
        """With which the page is believed to change at each time."""
        return [a / (a + b) for a, b in self.betas]


def republished(timetable: Timetable, memory: Memory) -> Republished:
    """Return what is known of a page: of another timetable than it has by now nothing is."""
    if memory.timetable == key_of(timetable) and len(memory.betas) == len(timetable.times):
        return Republished(timetable, memory.betas)
    return Republished(timetable, tuple(map(stated_beta, timetable.probabilities)))


@lru_cache(maxsize=1024)
def key_of(timetable: Timetable) -> int:
    """Return what `Memory.timetable` holds for a page with these update times."""
    return crc32(timetable.text.encode())


def learn_bit(page: Republished, since: float, until: float, changed: bool) -> Republished:
    """Take in a bit: it speaks of the times that were passed since the page was last seen; both seconds since the epoch."""
    return page._replace(betas=tuple(learn_update(page.betas, passed(page.timetable, since, until), changed)))


def bought_times(page: Republished, row: Row, terms: Terms) -> list[bool]:
    """Tell of each update time whether a visit is worth the price, beside those to times that are worth more.

    Notes
    -----
    As many times as the least interval allows at most, and as the longest one asks for at least. Before the first plan all of them.
    """
    timetable, settings, published = page.timetable, terms.settings, terms.published
    times, q = np.array(timetable.times), len(timetable.times)
    if published.number == 0:
        return [True] * q
    lengths = np.append(np.diff(times), times[0] + timetable.period - times[-1]) / timetable.period
    gains, order, _ = repeated_choices(lengths, np.array([page.probabilities]), settings.objective)
    worth = gains[0] * row.importance * (timetable.period if settings.objective == "freshness" else 1.0)
    price = math.exp(min(published.lasting_price_at(row.host, terms.log_price), 700.0))
    most = min(max(math.floor(timetable.period / row.min_interval * _NEARLY), 1), q)
    least = min(math.floor(timetable.period / (row.max_interval * published.stretch) * _NEARLY), most)
    # What is worth nothing is not bought, though it were free.
    count = min(max(int(np.count_nonzero((worth >= price) & (worth > 0.0))), least), most)
    chosen = set(order[0, :count].tolist())
    return [at in chosen for at in range(q)]


def numbers_of_timed(page: Republished, row: Row, identity: bytes, terms: Terms) -> Numbers:
    """Return the numbers of a page with update times that was seen before and is not gone.

    Parameters
    ----------
    page : Republished
        Its times.
    row : Row
        As it is from now on, but for its numbers.
    identity : bytes
        Of the page.
    terms : Terms
        The price.

    Notes
    -----
    It is due at the next time that is bought; at the latest at the last time at all before its longest interval is over, or then. Where
    least interval or backoff would put the visit shortly before an update time, it waits for that, if the longest interval allows it.
    """
    now = row.b / 1e6
    shortest = shortest_wait(row)
    if row.flags & CHECKED and not row.failures:
        return fixed(shortest)
    longest = longest_wait(row, terms.published)
    if row.failures:
        shortest = min(max(shortest, backoff_s(identity, counted_failures(row))), longest)
    seen = now - row.unseen
    due = float(
        visit_deadline(page.timetable, bought_times(page, row, terms), seen, now + shortest, longest if longest < FAR_S else math.inf)[0]
    )
    if due == math.inf:
        return Numbers(math.inf, 0.0, shortest, longest)
    wait = max(due - now, shortest)
    return fixed(min(wait * (1.0 + _ROUNDING), longest))


def interval_of_timed(page: Republished, row: Row, terms: Terms) -> float:
    """Return the mean interval (s) at which it is visited: its longest one where no time is worth a visit."""
    count = sum(bought_times(page, row, terms))
    longest = longest_wait(row, terms.published)
    return page.timetable.period / count if count else longest
