"""Pages with potential update times: eq. 17 and 18, the greedy choice and the best one."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import QuasiDeterministic

METHODS = ("greedy", "exact")
METHOD = pytest.mark.parametrize("method", METHODS)


def freshness(crawled, times, probabilities, initially_fresh, interval):
    """From the definition: walk through the segments, with the probability that the copy is fresh."""
    ends = np.concatenate([[0.0], times, [interval]])
    total, fresh = 0.0, initially_fresh
    for j in range(len(times) + 1):
        if j > 0:
            fresh *= 1 - probabilities[j - 1]
        if j in crawled:
            fresh = 1.0
        total += fresh * (ends[j + 1] - ends[j])
    return total / interval


def greedy_as_printed(page, interval):
    """Section 2.3.3: turn on the variable that decreases the objective the most, again and again; staleness after each."""
    nodes, crawled = range(len(page[0]) + 1), set()
    curve = [1 - freshness(crawled, *page, interval)]
    for _ in nodes:
        crawled.add(max((j for j in nodes if j not in crawled), key=lambda j: freshness(crawled | {j}, *page, interval)))
        curve.append(1 - freshness(crawled, *page, interval))
    return curve


def best_of_all(page, interval):
    """Staleness of the best set of each size."""
    nodes = range(len(page[0]) + 1)
    return [1 - max(freshness(set(some), *page, interval) for some in combinations(nodes, x)) for x in range(len(nodes) + 1)]


def random_page(rng, most=7, interval=1.0):
    count = int(rng.integers(0, most + 1))
    probabilities = rng.random(count) ** rng.choice([0.3, 1.0, 3.0])
    probabilities[rng.random(count) < 0.1] = 1.0
    return np.sort(rng.random(count)) * interval, probabilities, float(rng.choice([1.0, 0.0, rng.random()]))


def crawled_nodes(page, times):
    return set(np.searchsorted(np.concatenate([[0.0], page[0]]), times))


@pytest.mark.parametrize("seed", range(60))
def test_greedy_and_best_choices_are_those_of_the_definition(seed):
    """For every number of crawls, and the crawl times give the staleness; the greedy choice has 1 - 1/e of the best freshness."""
    rng = np.random.default_rng(seed)
    page = random_page(rng)
    greedy, exact = (QuasiDeterministic(*page, method=method) for method in METHODS)
    counts = np.arange(len(page[0]) + 2)
    best = best_of_all(page, 1.0)
    np.testing.assert_allclose(greedy.staleness(counts, 1.0), greedy_as_printed(page, 1.0), atol=1e-14)
    np.testing.assert_allclose(exact.staleness(counts, 1.0), best, atol=1e-14)
    assert (1 - greedy.staleness(counts, 1.0) >= (1 - np.exp(-1)) * (1 - np.array(best)) - 1e-14).all()
    for model in (greedy, exact):
        for x in counts:
            times = model.crawl_times(x, 1.0)
            assert len(times) == x
            assert 1 - freshness(crawled_nodes(page, times), *page, 1.0) == pytest.approx(model.staleness(x, 1.0), abs=1e-14)


def test_greedy_is_not_always_best():
    """Seven even times: the greedy choice begins in the middle, where the best choice of two is not."""
    times, probabilities = np.arange(1, 8) / 8, np.full(7, 0.3)
    greedy, exact = (QuasiDeterministic(times, probabilities, method=method) for method in METHODS)
    np.testing.assert_array_equal(greedy.crawl_times(1, 1.0), exact.crawl_times(1, 1.0))
    assert set(greedy.crawl_times(1, 1.0)) < set(greedy.crawl_times(2, 1.0))
    assert not set(exact.crawl_times(1, 1.0)) < set(exact.crawl_times(2, 1.0))
    assert exact.staleness(2, 1.0) < greedy.staleness(2, 1.0) - 0.01


def test_gap_between_greedy_and_best():
    """Over 3,000 pages of 12 random times and probabilities and all numbers of crawls: the figures in docs/maths.md."""
    rng = np.random.default_rng(12)
    times, probabilities = np.sort(rng.random((3000, 12)), axis=1), rng.random((3000, 12))
    greedy, exact = (QuasiDeterministic(times, probabilities, method=method) for method in METHODS)
    counts = np.arange(1, 12)[:, None] * np.ones((1, 3000), int)
    shares = (1 - greedy.staleness(counts, 1.0)) / (1 - exact.staleness(counts, 1.0))
    assert shares.max() <= 1 + 1e-12
    assert shares.min() > 0.9
    assert 0.999 < shares.mean() < 0.9999


pages = st.integers(0, 12).flatmap(
    lambda q: st.tuples(
        st.lists(st.floats(0, 1), min_size=q, max_size=q).map(sorted),
        st.lists(st.one_of(st.sampled_from([0.0, 1.0, 1e-12]), st.floats(0, 1)), min_size=q, max_size=q),
        st.floats(0, 1),
    )
)


@given(pages, st.sampled_from(METHODS))
@settings(max_examples=100, deadline=None)
def test_convex_and_non_increasing(page, method):
    """Equal times, certain and impossible updates included; never stale with Q + 1 crawls or more."""
    model = QuasiDeterministic(*page, method=method)
    counts = np.arange(len(page[0]) + 4)
    curve, steps = model.staleness(counts, 1.0), model.decrease(counts, 1.0)
    assert curve[0] == pytest.approx(1 - freshness(set(), *page, 1.0), abs=1e-14)
    np.testing.assert_allclose(curve[:-1] - curve[1:], steps[:-1], atol=1e-15)
    assert (np.diff(steps) <= 0).all()
    assert (steps >= 0).all()
    assert (curve[len(page[0]) + 1 :] == 0).all()


def test_rare_updates_do_not_cancel():
    """Probabilities of 1e-12: what a crawl takes off is known to all digits."""
    page = QuasiDeterministic([0.25, 0.5], [1e-12, 1e-12])
    np.testing.assert_allclose(page.decrease([0, 1, 2], 1.0), [1e-12, 0.25e-12, 0.0], rtol=1e-11, atol=1e-30)


def test_simulated_updates():
    """20,000 days of a page crawled at its times, within 4.5 standard errors."""
    rng = np.random.default_rng(3)
    times, probabilities = np.sort(rng.random(6)), rng.random(6)
    page = QuasiDeterministic(times, probabilities, 0.7)
    days = 20_000
    updated = rng.random((days, 6)) < probabilities
    ends = np.concatenate([[0.0], times, [1.0]])
    for x in (0, 2, 4):
        crawled = crawled_nodes((times,), page.crawl_times(x, 1.0))
        fresh, shares = rng.random(days) < 0.7, np.zeros(days)
        for j in range(7):
            if j > 0:
                fresh &= ~updated[:, j - 1]
            if j in crawled:
                fresh[:] = True
            shares += np.where(fresh, 0.0, ends[j + 1] - ends[j])
        assert abs(shares.mean() - page.staleness(x, 1.0)) < 4.5 * shares.std() / np.sqrt(days)


def test_by_hand():
    """An hour each: fresh with probability 1, 1/2, 1/4 and 1/8 without a crawl, and eq. 18 with interval lengths."""
    page = QuasiDeterministic([1, 2, 3], 0.5)
    assert page.staleness(0, 4) == 1 - (1 + 1 / 2 + 1 / 4 + 1 / 8) / 4
    np.testing.assert_array_equal(page.crawl_times(1, 4), [2.0])
    assert page.staleness(1, 4) == 1 - (1 + 1 / 2 + 1 + 1 / 2) / 4
    np.testing.assert_array_equal(page.crawl_times(1, 10), [3.0])  # the last hour lasts seven
    assert page.staleness(1, 10) == 1 - (1 + 1 / 2 + 1 / 4 + 7) / 10


def test_a_stale_beginning():
    """A copy that is stale at 0 is crawled there, which a copy known to be fresh never is while other crawls help."""
    certain = QuasiDeterministic([0.5], [0.5], initially_fresh=0.0)
    np.testing.assert_array_equal(certain.crawl_times(1, 1.0), [0.0])
    assert certain.staleness([0, 1, 2], 1.0).tolist() == [1.0, 0.25, 0.0]
    np.testing.assert_array_equal(QuasiDeterministic([0.5], [0.5]).crawl_times(1, 1.0), [0.5])


@METHOD
def test_pages_at_once_are_pages_one_by_one(method):
    """Lists of different lengths, arrays filled up with probability 0, parts, one number for all; over several blocks."""
    rng = np.random.default_rng(1)
    each = [random_page(rng, 5) for _ in range(300)]
    times, probabilities, fresh = (list(column) for column in zip(*each, strict=True))
    ragged = QuasiDeterministic(times, probabilities, fresh, method=method)
    crawls = rng.integers(0, 8, (2, 300))
    singles = [QuasiDeterministic(*page, method=method) for page in each]
    for name in ("staleness", "decrease"):
        one_by_one = [[getattr(page, name)(x, 1.0) for page, x in zip(singles, row, strict=True)] for row in crawls]
        np.testing.assert_allclose(getattr(ragged, name)(crawls, 1.0), one_by_one, atol=1e-15)
        some = np.array([5, 299, 17])
        before, after = ragged.part(some), QuasiDeterministic(times, probabilities, fresh, method=method).part(some)
        for part in (before, after):  # with and without what was chosen already
            np.testing.assert_array_equal(getattr(part, name)(crawls[0][some], 1.0), getattr(ragged, name)(crawls[0], 1.0)[some])
    useful = np.minimum(crawls[0], [len(row) + 1 for row in times])
    found = ragged.crawl_times(useful, 1.0)
    for page, model, mine in zip(each, singles, np.split(found, np.cumsum(useful)[:-1]), strict=True):
        assert 1 - freshness(crawled_nodes(page, mine), *page, 1.0) == pytest.approx(model.staleness(len(mine), 1.0), abs=1e-14)


@METHOD
def test_another_interval_is_another_choice(method):
    page = QuasiDeterministic([1.0, 2.0], [0.4, 0.5], method=method)
    fresh_copy = QuasiDeterministic([1.0, 2.0], [0.4, 0.5], method=method)
    page.staleness(1, 100.0)
    for interval in (2.0, 2.5, 100.0):
        np.testing.assert_array_equal(page.crawl_times(1, interval), fresh_copy.crawl_times(1, interval))
        assert page.staleness(1, interval) == QuasiDeterministic([1.0, 2.0], [0.4, 0.5], method=method).staleness(1, interval)


def test_crawls_beyond_use_repeat_times():
    page = QuasiDeterministic([[0.25, 0.5], [0.5, 0.75]], [[1.0, 0.5], [0.5, 0.5]])
    np.testing.assert_array_equal(page.crawl_times([5, 1], 1.0), [0.0, 0.0, 0.25, 0.25, 0.5, 0.5])
    assert page.staleness([5, 1], 1.0)[0] == 0


def test_no_times_and_no_pages():
    never = QuasiDeterministic([], [])
    assert never.staleness([0, 3], 1.0).tolist() == [0.0, 0.0]
    assert never.crawl_times(2, 1.0).tolist() == [0.0, 0.0]
    nobody = QuasiDeterministic(np.zeros((0, 3)), np.zeros((0, 3)))
    assert len(nobody) == 0
    assert nobody.staleness(np.zeros(0, int), 1.0).shape == nobody.crawl_times(2, 1.0).shape == (0,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: QuasiDeterministic([0.5, 0.4], [0.5, 0.5]), r"times\[1\] is 0.4, before the one in front"),
        (lambda: QuasiDeterministic([[0.1, 0.2], [0.4, -0.5]], 0.5), r"times\[1, 1\] is -0.5"),
        (lambda: QuasiDeterministic([0.5, np.nan], 0.5), r"times\[1\] is nan"),
        (lambda: QuasiDeterministic([[[0.5]]], 0.5), r"times\[0\] has shape \(1, 1\)"),
        (lambda: QuasiDeterministic(0.5, 0.5), r"times has shape \(\)"),
        (lambda: QuasiDeterministic([0.5, 0.6], [0.5, 1.5]), r"probabilities\[1\] is 1.5; expected a probability"),
        (lambda: QuasiDeterministic([[0.5, 0.6]], [[0.5, np.nan]]), r"probabilities\[0, 1\] is nan"),
        (lambda: QuasiDeterministic([0.5, 0.6], [0.5]), r"probabilities has shape \(1,\); expected that of times, \(2,\)"),
        (lambda: QuasiDeterministic([[0.5, 0.6], [0.1]], [[0.5, 0.1]]), "probabilities has 1 rows for 2 pages"),
        (lambda: QuasiDeterministic([[0.5, 0.6], [0.1]], [[0.5, 0.1], [0.1, 0.2]]), r"probabilities\[1\] has 2 entries for 1 times"),
        (lambda: QuasiDeterministic([[0.5, 0.6], [0.1]], 0.5), "probabilities: expected a list for each page"),
        (lambda: QuasiDeterministic([0.5], 0.5, 1.5), "initially_fresh is 1.5"),
        (lambda: QuasiDeterministic([[0.5], [0.6]], 0.5, [0.5, -1.0]), r"initially_fresh\[1\] is -1"),
        (lambda: QuasiDeterministic([0.5], 0.5, [0.5]), r"initially_fresh has shape \(1,\)"),
        (lambda: QuasiDeterministic([0.5], 0.5, method="best"), "method is 'best'"),
        (
            lambda: QuasiDeterministic([[0.5, 2.0], [0.6, 0.7]], 0.5).staleness(0, 1.0),
            r"times\[0, 1\] is 2.0, after the end of the interval, 1",
        ),
        (lambda: QuasiDeterministic([0.5, 2.0], 0.5).crawl_times(0, 1.0), r"times\[1\] is 2.0, after the end"),
        (lambda: QuasiDeterministic([[0.5], [0.6]], 0.5).decrease([1, -1], 1.0), r"crawls\[1\] is -1"),
        (lambda: QuasiDeterministic([[0.5], [0.6]], 0.5).decrease([1, 2, 3], 1.0), "one for each of 2 pages"),
        (lambda: QuasiDeterministic([0.5], 0.5).staleness(1, np.inf), "interval is inf"),
    ],
)
def test_bad_input_names_argument_and_index(call, message):
    with pytest.raises(InvalidProblemError, match=message):
        call()
