"""crawlfrontier's API and behaviour."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import OptimalSolver, WCluster, changes_periodic, golden_section_search, solve_periodic


def filled(values, rates, spacing, n_clusters=100):
    clusters = WCluster(n_clusters, spacing)
    for value, rate in zip(values, rates, strict=True):
        clusters.add(value, rate)
    return clusters


def test_two_page_example():
    """values 1/5 and 1, rates 5 and 1: the first page not at all at a low frequency, more often than the other at a high one."""
    low = OptimalSolver().solve([0.2, 1.0], [5.0, 1.0], 0.25, 2)
    high = OptimalSolver().solve([0.2, 1.0], [5.0, 1.0], 4.5, 2)
    assert low[0] == 0 < low[1]
    assert high[0] > high[1] > 0


def test_exact_by_default_and_frequencies_sum_to_n_pages_times_frequency():
    rng = np.random.default_rng(0)
    values, rates = rng.random(50), rng.random(50)
    found = OptimalSolver().solve(list(values), list(rates), 0.3, 60)
    assert found.sum() == pytest.approx(0.3 * 60, rel=1e-9)
    np.testing.assert_allclose(found, solve_periodic(values, rates, 18.0, "changes").rates)


@pytest.mark.parametrize("spacing", ["equal", "log"])
def test_clustered_mode_is_close_on_uniform_weights(spacing):
    rng = np.random.default_rng(1)
    values, rates = 1 - rng.random(2000), rng.random(2000)
    exact = changes_periodic(values, rates, OptimalSolver().solve(values, rates, 0.2, 2000))
    found = OptimalSolver(clusters=filled(values, rates, spacing)).solve(values, rates, 0.2, 2000)
    assert found.sum() == pytest.approx(400.0, rel=1e-9)
    assert 0.98 * exact <= changes_periodic(values, rates, found) <= exact * (1 + 1e-9)


def test_documented_loss_on_weights_over_many_decades():
    """Equal clusters lose a good part; log clusters keep 0.99."""
    rng = np.random.default_rng(2)
    values, rates = np.minimum((rng.pareto(1.2, 3000) + 0.1) / 1e4, 1.0), rng.lognormal(0, 1.5, 3000)
    exact = changes_periodic(values, rates, OptimalSolver().solve(values, rates, 0.1, 3000))
    share = {
        spacing: changes_periodic(values, rates, OptimalSolver(clusters=filled(values, rates, spacing)).solve(values, rates, 0.1, 3000))
        / exact
        for spacing in ("equal", "log")
    }
    assert 0.4 < share["equal"] < 0.95
    assert share["log"] > 0.99


def test_cluster_index_and_clamp():
    clusters = WCluster()
    assert [clusters.cluster_index(w) for w in (0.0, 0.005, 0.01, 0.0100001, 0.5, 1.0, 7.0)] == [0, 0, 0, 1, 49, 99, 99]
    assert [WCluster.clamp(w) for w in (-1.0, 0.3, 2.0)] == [0.0, 0.3, 1.0]
    log = WCluster(40, "log")
    assert [log.cluster_index(w) for w in (0.0, 1.0, 0.5, 0.49, 1e-30)] == [0, 39, 39, 38, 0]
    assert (np.diff(log.value) > 0).all()


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.001, 1000)), max_size=30))
@settings(max_examples=50, deadline=None)
def test_add_then_delete_leaves_nothing(pages):
    clusters = WCluster(10)
    for value, rate in pages:
        clusters.add(value, rate)
    assert clusters.count.sum() == len(pages)
    for value, rate in pages:
        clusters.delete(value, rate)
    assert not clusters.count.any()
    assert not clusters.rate.any()


def test_bad_input():
    with pytest.raises(InvalidProblemError, match="n_pages"):
        OptimalSolver().solve([0.1, 0.2], [1.0, 1.0], 1.0, 1)
    with pytest.raises(InvalidProblemError, match=r"rates\[1\]"):
        OptimalSolver().solve([0.1, 0.2], [1.0, -1.0], 1.0, 2)
    with pytest.raises(InvalidProblemError, match="cluster"):
        WCluster().delete(0.5, 1.0)
    with pytest.raises(InvalidProblemError, match="n_clusters"):
        WCluster(0)


def test_golden_section_search():
    found = golden_section_search(lambda x: abs(x - 0.3), 0.0, 1.0, 1e-6)
    assert found is not None
    (xa, xb, xc), (fa, fb, fc) = found
    assert xa < xb < xc
    assert fa > fb < fc
    assert xc - xa < 1e-6
    assert xa < 0.3 < xc


def test_golden_section_search_near_an_end_and_without_a_minimum_inside():
    found = golden_section_search(lambda x: (x - 1e-6) ** 2, 0.0, 1.0, 1e-8)
    assert found is not None
    assert found[0][1] == pytest.approx(1e-6, abs=1e-8)
    assert golden_section_search(lambda x: x, 0.0, 1.0, 1e-6) is None
    assert golden_section_search(lambda x: 1.0, 0.0, 1.0, 1e-6) is None


def test_verbose_prints(capsys):
    OptimalSolver(verbose=True).solve([0.5], [1.0], 1.0, 1)
    golden_section_search(lambda x: (x - 0.5) ** 2, 0.0, 1.0, 0.01, verbose=True)
    out = capsys.readouterr().out
    assert "multiplier" in out
    assert "golden section" in out
