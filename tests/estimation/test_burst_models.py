"""From what is kept of a page to its Weibull model: bias and spread on simulated pages."""

from __future__ import annotations

import numpy as np
import pytest
from test_bursts import followed

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.bursts import Bursts, are_bursty, sure_correlation, weibull_of_bits


def fits(shape, interval, visits, pages, rng):
    """Shape and mean (1 is true) of pages that are found bursty by then; the Poisson rate is that of all their bits."""
    rows = []
    for _ in range(pages):
        bursts = followed(shape, interval, visits, rng)[-1]
        rows.append((*bursts[1:], visits))
    score, variance, spread, counts = np.array(rows).T
    found = are_bursty(score, variance)
    # Bits and rate that agree, as those of a posterior: what is tested is the step from them to the model.
    changes = np.full(found.sum(), round(visits * chance(shape, interval, rng)))
    rate = -np.log1p(-changes / visits) / interval
    return weibull_of_bits(changes, counts[found], sure_correlation(score, variance, spread)[found], rate)


def chance(shape, interval, rng):
    from test_bursts import bits

    return float(np.mean(bits(shape, interval, 20_000, rng)))


@pytest.mark.parametrize(("shape", "interval", "visits", "bias"), [(0.5, 1.0, 300, 0.25), (0.5, 1.0, 1000, 0.1), (0.35, 1.0, 1000, 0.08)])
def test_shapes_are_shrunk_towards_1_and_come_right_with_the_bits(shape, interval, visits, bias):
    """Never far below the truth on average; means are right to 40%."""
    found, mean = fits(shape, interval, visits, 40, np.random.default_rng(4))
    assert len(found) >= 25
    assert -0.02 < found.mean() - shape < bias
    assert 0.8 < np.median(mean) < 1.6


def test_a_poisson_page_that_is_rejected_by_chance_gets_nearly_its_own_model():
    """At the moment of rejection the correlation is taken for nothing: shape 1, and the mean is 1 / rate."""
    correlation = sure_correlation(3.2 * np.sqrt(10.0) * (1 + 1e-9), 10.0, 40.0)
    assert correlation == pytest.approx(0.0, abs=1e-8)
    shape, mean = weibull_of_bits([30], [60], [correlation], [0.01])
    assert shape[0] == pytest.approx(1.0, abs=0.01)
    assert mean[0] == pytest.approx(100.0, rel=0.02)


def test_the_correlation_is_nearly_all_of_it_once_the_statistic_is_large():
    bursts = Bursts(0.0, 300.0, 100.0, 1000.0)
    assert bursts.z == 30.0
    assert bursts.correlation == 0.3
    assert sure_correlation(*bursts[1:]) == pytest.approx(0.3, rel=0.02)


def test_pages_are_judged_together_as_each_alone():
    rng = np.random.default_rng(6)
    score, variance = rng.uniform(-20, 20, 200), rng.uniform(0, 30, 200)
    alone = [Bursts(0.0, *row, 1.0).is_bursty for row in zip(score, variance, strict=True)]
    assert are_bursty(score, variance).tolist() == alone
    assert 20 < sum(alone) < 180


def test_bits_of_one_kind_only_are_no_certainty():
    """And bad input is named."""
    shape, mean = weibull_of_bits([0, 50], [50, 50], [0.1, 0.1], [0.01, 10.0])
    assert np.isfinite([shape, mean]).all()
    assert (mean > 0).all()
    with pytest.raises(InvalidProblemError, match=r"observations\[1\]"):
        weibull_of_bits([1, 1], [2, 0], [0.1, 0.1], [1.0, 1.0])
    with pytest.raises(InvalidProblemError, match="change_rate"):
        weibull_of_bits([1], [2], [0.1], [0.0])
