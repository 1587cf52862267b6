"""What is learned about sources of signals from the visits of the pages that they cover."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optimal_frontier.estimation.signal_sources import KINDS, LEAST_FALSE, PLAIN, RECALLS, Believed, SignalSource, SignalVisit, taught
from optimal_frontier.scheduling.signals import evidence, unannounced


class Played:
    """Pages of a source, visited as a crawl would: when doubt, by what is believed, reaches a threshold."""

    def __init__(self, recall: float, even: float, by_changes: float, seed: int = 0, threshold: float = 1.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.rates = self.rng.lognormal(-1.0, 0.8, 60)
        self.recall, self.even, self.by_changes, self.threshold = recall, even, by_changes, threshold
        self.source = SignalSource()

    def false_rate(self, rate: float) -> float:
        return self.even + self.by_changes * rate

    def visit(self, times: int, kind=PLAIN) -> SignalSource:
        for _ in range(times):
            rate = float(self.rng.choice(self.rates))
            believed = self.source.recall(kind)
            false = self.source.false_rate(rate, believed, kind)
            pace, weight = unannounced(rate, [believed]), evidence(rate, believed, false)
            now, doubt, signals, changed = 0.0, 0.0, 0, False
            total = rate + self.false_rate(rate)
            while True:
                wait, left = self.rng.exponential(1.0 / total), min((self.threshold - doubt) / pace, 20.0 / rate - now)
                if wait >= left:
                    now += left
                    break
                now, doubt = now + wait, doubt + wait * pace
                is_change = self.rng.random() < rate / total
                changed = changed or is_change
                if not is_change or self.rng.random() < self.recall:
                    signals, doubt = signals + 1, doubt + weight
                    if doubt >= self.threshold:
                        break
            self.source = self.source.after(SignalVisit(now, signals, changed, rate), kind)
        return self.source


@pytest.mark.parametrize("threshold", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("recall", "even", "by_changes"), [(0.6, 0.0, 0.6), (0.6, 0.2, 0.0), (0.9, 0.0, 0.1), (0.3, 0.0, 0.3)])
def test_recall_and_false_rate_are_found(recall, even, by_changes, threshold) -> None:
    played = Played(recall, even, by_changes, threshold=threshold)
    source = played.visit(1500)
    assert source.recall() == pytest.approx(recall, abs=0.12)
    for rate in (0.15, 0.5):
        found, true = source.false_rate(rate, source.recall()), played.false_rate(rate)
        assert found == pytest.approx(true, abs=0.35 * true + 0.12 * rate)


@pytest.mark.parametrize(("even", "by_changes"), [(0.3, 0.0), (0.0, 1.0), (0.1, 0.1)])
def test_a_source_that_signals_at_random_is_found_out(even, by_changes) -> None:
    for seed in range(4):
        assert Played(0.0, even, by_changes, seed).visit(300).recall() < 0.15


def test_a_source_that_always_says_now_is_worth_nothing() -> None:
    """Its signals are so many that one tells nothing, and together with the time they run at the pace of the changes, as without it."""
    played = Played(0.0, 24.0, 0.0)
    source = played.visit(300)
    for rate in (0.1, 0.5, 1.0):
        recall = source.recall()
        false = source.false_rate(rate, recall)
        assert evidence(rate, recall, false) < 0.06
        pace = unannounced(rate, [recall]) + evidence(rate, recall, false) * 24.0
        assert pace == pytest.approx(rate, rel=0.1)


def test_a_source_that_goes_bad_is_found_out_and_one_that_is_mended_believed_again() -> None:
    played = Played(0.8, 0.0, 0.1)
    assert played.visit(1000).recall() > 0.7
    played.recall, played.by_changes = 0.0, 1.0
    assert played.visit(1500).recall() < 0.1
    played.recall, played.by_changes = 0.8, 0.1
    assert played.visit(1500).recall() > 0.6


def test_visits_without_a_signal_or_a_change_do_not_wash_out_what_is_known() -> None:
    source = Played(0.6, 0.0, 0.6).visit(500)
    quiet = source
    for _ in range(5000):
        quiet = quiet.after(SignalVisit(1e-4, 0, False, 0.3))
    assert quiet.recall() == pytest.approx(source.recall(), abs=0.02)


def test_what_is_assumed_depends_on_the_kind_and_gives_way_to_what_is_seen() -> None:
    assert SignalSource().recall(KINDS["ping"]) > SignalSource().recall(KINDS["feed"]) > SignalSource().recall(PLAIN)
    for kind in KINDS.values():
        assert Played(0.6, 0.0, 0.3).visit(1500, kind).recall(kind) == pytest.approx(0.6, abs=0.12)


def test_no_visit_decides_alone_and_none_makes_it_certain() -> None:
    for visit in (SignalVisit(1e-9, 0, True, 1.0), SignalVisit(1e9, 0, False, 1.0), SignalVisit(1.0, 1000, False, 1.0)):
        source = SignalSource().after(visit)
        assert 0.0 <= source.recall() < 1.0
        assert all(math.isfinite(number) for number in (*source[:5], *source.likelihoods))
        assert min(source.likelihoods) > -5.0
    sure = SignalSource()
    for _ in range(2000):
        sure = sure.after(SignalVisit(1.0, 1, True, 1.0)).after(SignalVisit(1.0, 0, False, 1.0))
    assert evidence(1.0, sure.recall(), sure.false_rate(1.0, sure.recall())) < math.log(1.0 / LEAST_FALSE) + 1.0


def test_it_is_stored_in_a_short_line() -> None:
    source = Played(0.6, 0.0, 0.6).visit(700)
    assert len(source.text) < 200
    again = SignalSource.parse(source.text)
    assert again.recall() == pytest.approx(source.recall(), rel=1e-3)
    assert again.false_rate(0.3, 0.5) == pytest.approx(source.false_rate(0.3, 0.5), rel=1e-3)
    assert SignalSource.parse("") == SignalSource()
    assert len(source.likelihoods) == len(RECALLS)


def test_signals_tell_of_a_page_of_which_nothing_is_known() -> None:
    """A page that is hardly known and had many signals is taken for a fast one: that it changed is no sign of a good source."""
    known = SignalSource().after(SignalVisit(1.0, 5, True, 0.1))
    unknown = SignalSource().after(SignalVisit(1.0, 5, True, 0.1, shape=1.0))
    assert unknown.recall() < known.recall()


def test_visits_teach_by_batches_as_they_do_one_by_one() -> None:
    """Of one visit it is the same; of many it is that of small steps from one record, the first of which have faded."""
    record = Played(0.6, 0.1, 0.3).visit(200)
    some = [
        SignalVisit(3.0, 2, True, 0.4, 2.5),
        SignalVisit(8.0, 0, False, 0.2),
        SignalVisit(1.0, 1, False, 0.9, 1.0),
        SignalVisit(5.0, 0, True, 0.1),
    ]

    def added(visits: list[SignalVisit]) -> tuple[float, list[float], list[float]]:
        ((keep, sums),) = taught([(record, record.believed())], np.zeros(len(visits)), visits)
        numbers = [keep * before + more for before, more in zip((*record[:5], *record.likelihoods), sums, strict=True)]
        return keep, numbers[:5], [number - max(numbers[5:]) for number in numbers[5:]]

    for visit in some:
        keep, sums, likelihoods = added([visit])
        after = record.after(visit)
        assert keep == (0.998 if visit.changed or visit.signals else 1.0)
        assert sums == pytest.approx(after[:5])
        assert likelihoods == pytest.approx(after.likelihoods, abs=1e-12)
    keep, sums, likelihoods = added(some)
    after = record
    for visit in some:
        after = after.after(visit)
    assert keep == pytest.approx(0.998**3)
    assert sums == pytest.approx(after[:5], rel=0.01)
    assert likelihoods == pytest.approx(after.likelihoods, abs=0.05)


def test_signals_that_no_visit_has_checked_add_less_and_less() -> None:
    """However many: until visits have counted them, a page takes them for the habit of the source. Of one that is known they all count."""
    new, known = SignalSource().believed(), Played(0.6, 0.0, 0.3).visit(2000).believed()

    def doubt(believed: Believed, signals: int) -> float:
        return signals * evidence(0.3, believed.recall, believed.false_rate_after(0.3, signals, 1.0))

    assert 0.1 < doubt(new, 1) < doubt(new, 4) < doubt(new, 1000) < 1.5
    assert doubt(known, 4) > 3.5 * doubt(known, 1) > 3.0
    # What comes is no less than what is believed to come: a page that heard nothing for long is not believed to be told of more truly.
    assert new.false_rate_after(0.3, 0, 1e6) == new.false_rate(0.3)


def test_visits_to_pages_of_several_sources_teach_of_each_as_if_there_were_no_others() -> None:
    sources = [SignalSource(), Played(0.6, 0.1, 0.3).visit(200), Played(0.0, 0.0, 1.0).visit(50, KINDS["feed"])]
    known = [(source, source.believed(kind)) for source, kind in zip(sources, (PLAIN, PLAIN, KINDS["feed"]), strict=True)]
    rng = np.random.default_rng(4)
    visits = np.column_stack(
        [5.0 * rng.random(40), rng.integers(0, 3, 40), rng.integers(0, 2, 40), 0.1 + rng.random(40), rng.choice([1.0, 2.5, np.inf], 40)]
    )
    of = rng.integers(0, 3, 40)
    for one, (keep, sums) in enumerate(taught(known, of, visits)):
        mine = visits[of == one]
        ((alone, sums_alone),) = taught([known[one]], np.zeros(len(mine)), mine)
        assert keep == pytest.approx(alone)
        assert sums == pytest.approx(sums_alone)
