"""What the sources of signals say of a page, weighed by what each has been worth: how much is unannounced, how much doubt signals add.

A source that has named a page watches it from then on, so its silence says something too. Signals count until the next good response,
which shows whether they were true: `answered`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from optimal_frontier.estimation.quantile import median_one
from optimal_frontier.estimation.signal_sources import PlainVisit
from optimal_frontier.frontier.judging.source_worths import Source
from optimal_frontier.scheduling.signals import evidence, unannounced
from optimal_frontier.state.memory import Signals

#: From this share of true signals on a source may bring back a retired page, and put forward one whose deadline is no matter of doubt.
CONVINCING: Final = 0.5

#: The median of a Gamma posterior is below its mean by this over its time at most.
_BELOW_MEAN: Final = 1.0 / 3.0

#: By how much signals raise the doubt, how many they are, and the false rate of their source.
_NO_SIGNAL: Final = (0.0, 0, 0.0)

#: A named tuple of all its fields, in half of the time.
_new: Final = tuple.__new__

#: Name of a source -> what is known of it.
KnownOf = Callable[[str], Source]


class Heard(NamedTuple):
    """What the sources say of a page that changes at a believed rate.

    Attributes
    ----------
    recalls, false_rates : tuple of float
        Of each source that has watched it since it was seen, and counts: the share of changes that it tells of, and signals per second that
        no change caused.
    signals : int
        How many came since the last good response from the source whose signals say most: several sources tell of one change.
    false_rate : float
        Of that source.
    doubt : float
        By how much they lower the logarithm of the chance that the copy is fresh.
    change_rate : float
        That rate, 1/s; 0 where nobody counts.
    """

    recalls: tuple[float, ...] = ()
    false_rates: tuple[float, ...] = ()
    signals: int = 0
    false_rate: float = 0.0
    doubt: float = 0.0
    change_rate: float = 0.0

    @property
    def recall(self) -> float:
        """Share of the changes that at least one source tells of."""
        missed = 1.0
        for recall in self.recalls:
            missed *= 1.0 - recall
        return 1.0 - missed

    def seconds(self, *, is_silence_told: bool = True) -> float:
        """Return by how much the signals bring the next visit nearer, seconds; of a wait that goes by unannounced changes, or by all."""
        return self.doubt / unannounced(self.change_rate, self.recalls if is_silence_told else ()) if self.doubt > 0.0 else 0.0


#: Of a page that nobody watches.
SILENCE: Final = Heard()


def heard_of(signals: Sequence[Signals], change_rate: float | None, known_of: KnownOf, seen: float, now: float) -> Heard:
    """Weigh what the sources say.

    Parameters
    ----------
    signals : sequence of Signals
        Of the page, as remembered.
    change_rate : float or None
        Believed, 1/s; None: nothing is believed, and nobody counts.
    known_of : callable
        Name of a source -> what is known of it.
    seen : float
        When the page was last seen, seconds since the epoch: a source that named it for the first time after that was not silent before.
    now : float
        Until when the signals came, seconds since the epoch.
    """
    if not signals or change_rate is None or change_rate <= 0.0:
        return SILENCE
    recalls: tuple[float, ...] = ()
    false_rates: tuple[float, ...] = ()
    doubt, most = 0.0, _NO_SIGNAL
    for told in signals:
        known = known_of(told.source)
        if change_rate < known.least_rate:
            continue
        believed, since, n = known.believed, told.since, told.n
        if since <= seen:
            recalls += (believed.recall,)
            false_rates += (believed.false_rate(change_rate),)
        if n:
            false_rate = believed.false_rate_after(change_rate, n, now - max(seen, since))
            more = n * evidence(change_rate, believed.recall, false_rate)
            if more > 0.0:
                doubt, most = doubt + more, max(most, (more, n, false_rate))
    _, n, false_rate = most
    return _new(Heard, (recalls, false_rates, n, false_rate, doubt, change_rate)) if recalls or doubt else SILENCE


def answered(
    signals: Sequence[Signals],
    believed: tuple[float, float],
    seen: float,
    interval: float,
    changed: bool,
    known_of: KnownOf,
    spares: bool = False,
) -> tuple[float | None, list[tuple[str, PlainVisit]]]:
    """Return what the silence of sources said of a page before a visit that gave a bit, and what the visit shows of each source.

    Parameters
    ----------
    signals : sequence of Signals
        Of the page, as remembered before the visit.
    believed : tuple of float
        Shape and time (s) of what was believed of the change rate before the visit.
    seen : float
        When it was last seen, seconds since the epoch.
    interval : float
        Seconds since then, > 0.
    changed : bool
        The bit.
    known_of : callable
        Name of a source -> what is known of it.
    spares : bool
        The visit teaches nothing of sources that are known well.

    Returns
    -------
    recall : float or None
        `Heard.recall` of a page that no source that counts has signalled; None: one has.
    lessons : list of (str, PlainVisit)
        Sources, and what the visit shows of them.

    Notes
    -----
    A source that named the page since its last visit for the first time, and told of no change, says nothing: it may have been silent
    only since then. What a page that has not changed was told of while it was being seen is left out.

    A source counts from a change rate on, of which the median is believed. That is between (shape - 1/3) / time and shape / time, so for
    most sources it need not be found: they count by the one, or do not by the other.
    """
    shape, time = believed
    rate = shape / time
    missed, is_silent = 1.0, True
    lessons: list[tuple[str, PlainVisit]] = []
    for told in signals:
        n, is_watched = told.n, told.since <= seen
        if not (n or is_watched):
            continue
        source = told.source
        known = known_of(source)
        least = known.least_rate * time
        if shape - _BELOW_MEAN >= least or (shape >= least and median_one(shape, time) >= known.least_rate):
            if n:
                is_silent = False
            else:
                missed *= 1.0 - known.believed.recall
        if spares and known.is_known_well:
            continue
        if n and not changed:
            n = max(0, n - told.unsure)
        if n or is_watched:
            lessons.append((source, (interval, n, changed, rate, shape)))
    return 1.0 - missed if is_silent else None, lessons


def after_good(signals: tuple[Signals, ...]) -> tuple[Signals, ...]:
    """Return what is remembered of signals after a good response: which sources watch the page. Where there was none, the same tuple."""
    for told in signals:
        if told.n:
            return tuple([_new(Signals, (*told[:3], 0, 0)) if told.n else told for told in signals])
    return signals
