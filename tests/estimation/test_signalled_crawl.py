"""A played crawl: with signals that cause visits, and silence that puts them off, neither rates nor sources are misjudged."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.estimation.filtering import update_one
from optimal_frontier.estimation.signal_sources import KINDS, SignalSource, SignalVisit
from optimal_frontier.estimation.signalled import update_signalled
from optimal_frontier.scheduling.signals import evidence, unannounced


def play(recall: float, false: float, threshold: float, seed: int) -> tuple[float, float, SignalSource]:
    """Pages of rate 1, visited when the doubt in them is so large. Mean learned rate, with signals and as if none had come; the source."""
    rng = np.random.default_rng(seed)
    known = SignalSource()
    beliefs = {page: (4.0, 4.0 * rng.uniform(0.6, 1.6)) for page in range(40)}
    plain = dict(beliefs)
    at = dict.fromkeys(beliefs, 0.0)
    kind = KINDS["feed"]
    for _ in range(60):
        for page, (shape, time) in beliefs.items():
            rate = shape / time
            believed = known.recall(kind)
            noise = known.false_rate(rate, believed, kind)
            clock, weight = unannounced(rate, [believed]), evidence(rate, believed, noise)
            now, signals, changed = 0.0, 0, False
            while True:
                due = max((threshold - signals * weight) / clock, now)
                change, wrong = rng.exponential(1.0), rng.exponential(1.0 / false) if false else np.inf
                if now + min(change, wrong) >= due:
                    now = due + 1e-6
                    break
                now += min(change, wrong)
                changed |= change < wrong
                signals += change >= wrong or rng.random() < recall
            at[page] += now
            beliefs[page] = update_signalled(shape, time, now, changed, signals, believed, noise)
            plain[page] = update_one(*plain[page], now, changed)
            known = known.after(SignalVisit(now, signals, changed, rate, shape), kind)
    mean, blind = (float(np.mean([shape / time for shape, time in some.values()])) for some in (beliefs, plain))
    return mean, blind, known


@pytest.mark.parametrize(
    ("recall", "false", "threshold"), [(0.6, 0.6, 1.0), (0.9, 0.1, 0.7), (0.9, 0.1, 2.5), (0.3, 0.3, 1.5), (0.0, 2.0, 1.0)]
)
def test_rates_stay_unbiased_and_sources_are_found_out(recall: float, false: float, threshold: float) -> None:
    """The thresholds are of budgets from one visit a change to one in three changes."""
    rates, recalls = zip(
        *[(mean, known.recall(KINDS["feed"])) for mean, _, known in (play(recall, false, threshold, s) for s in (1, 2))], strict=True
    )
    assert np.mean(rates) == pytest.approx(1.0, abs=0.12)
    assert np.mean(recalls) == pytest.approx(recall, abs=0.2)


def test_taken_for_ordinary_visits_they_make_the_rate_too_high() -> None:
    mean, blind, _ = play(0.9, 0.1, 2.5, 3)
    assert blind > 1.5 * mean
