"""Whole numbers of crawls: every method against dynamic programming, against each other, and against what bounds and ties ask for."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from each_value import each
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import Exponential, Pareto, QuasiDeterministic, Weibull, allocate_crawls
from optimal_frontier.papers.wolf.allocation.first_differences import Columns
from optimal_frontier.papers.wolf.allocation.relaxation import counts_above
from optimal_frontier.papers.wolf.allocation.selection import best, heaviest

PROFILE = settings(max_examples=100, deadline=None, derandomize=True, database=None)
METHODS = ("auto", "greedy", "galil-megiddo", "frederickson-johnson")


class Table:
    """Pages whose decreases are written down: any sorted numbers, with as many ties as are wanted."""

    def __init__(self, decreases) -> None:
        self.decreases = np.atleast_2d(decreases).astype(float)

    def __len__(self) -> int:
        return len(self.decreases)

    def decrease(self, crawls, interval):
        crawls = np.asarray(crawls)
        rows = np.arange(len(self)) if len(self) > 1 else 0
        depth = self.decreases.shape[1]
        return np.where(crawls < depth, self.decreases[rows, np.minimum(crawls, depth - 1)], 0.0)

    def staleness(self, crawls, interval):
        sums = np.concatenate([np.zeros((len(self), 1)), np.cumsum(self.decreases, axis=1)], axis=1)
        rows = np.arange(len(self)) if len(self) > 1 else 0
        return 1.0 - sums[rows, np.minimum(crawls, self.decreases.shape[1])]

    def part(self, pages):
        return Table(self.decreases[pages])


class Hyperbolas:
    """Pages whose decreases fall as 1 / (x + 1)^2, and that count how many of them were looked at."""

    looked_at: ClassVar[int] = 0

    def __init__(self, worth) -> None:
        self.worth = worth

    def __len__(self) -> int:
        return len(self.worth)

    def decrease(self, crawls, interval):
        Hyperbolas.looked_at += crawls.size
        return self.worth / (crawls + 1.0) ** 2

    def part(self, pages):
        return Hyperbolas(self.worth[pages])


def zipf_mixture(n: int, rng: np.random.Generator):
    """60% Poisson, 30% Pareto, 10% quasi-deterministic pages, Zipf change rates with mean 1.5."""
    rate = 1.0 / np.arange(1, n + 1)
    rate = rng.permutation(rate * 1.5 * n / rate.sum())
    first, second = round(0.6 * n), round(0.9 * n)
    late = n - second
    return [
        Exponential(rate[:first]),
        Pareto(1.0 / rate[first:second], 2.0),
        QuasiDeterministic(np.sort(rng.random((late, 6)), axis=1), rng.random((late, 6))),
    ]


def random_pages(n: int, rng: np.random.Generator):
    """Models of one page and of several, of all kinds, in any order."""
    models = []
    while n:
        size = int(rng.integers(1, n + 1)) if rng.random() < 0.5 else 1
        rate = 10.0 ** rng.uniform(-2, 2, size)
        kind = rng.integers(5)
        if kind == 0:
            models.append(Exponential(rate if size > 1 or rng.random() < 0.5 else rate[0]))
        elif kind == 1:
            models.append(Pareto(1.0 / rate, 1.1 + 3 * rng.random(size)))
        elif kind == 2:
            models.append(Weibull(rate, 0.3 + rng.random(size)))
        elif kind == 3:
            models.append(QuasiDeterministic(np.sort(rng.random((size, 4)), axis=1), rng.random((size, 4))))
        else:
            models.append(Table(-np.sort(-rng.integers(0, 4, (size, 6)), axis=1) / 24))
        n -= size
    return models


def staleness(models, crawls, interval):
    ends = np.cumsum([len(model) for model in models])[:-1]
    return np.concatenate([np.ravel(model.staleness(x, interval)) for model, x in zip(models, np.split(crawls, ends), strict=True)])


def objective(models, weights, crawls, interval=1.0) -> float:
    return float(np.sum(weights * staleness(models, crawls, interval)))


def stalenesses(model, total, interval):
    """Of each page of a model at 0 to ``total`` crawls, all numbers at once."""
    counts = np.arange(total + 1)
    if len(model) == 1:
        return np.ravel(model.staleness(counts, interval))[None]
    return model.staleness(np.repeat(counts[:, None], len(model), axis=1), interval).T


def by_dynamic_programming(models, weights, total, interval, low, high) -> float:
    """Least objective, by trying every number of crawls of one page after the other: the paper's O(n total^2)."""
    cost = weights[:, None] * np.concatenate([stalenesses(model, total, interval) for model in models])
    least = np.full(total + 1, np.inf)
    least[0] = 0.0
    for page in range(weights.size):
        following = np.full(total + 1, np.inf)
        for x in range(low[page], min(high[page], total) + 1):
            following[x:] = np.minimum(following[x:], least[: total + 1 - x] + cost[page, x])
        least = following
    return float(least[total])


@each("seed", range(120))
def test_every_method_reaches_the_optimum_of_dynamic_programming(seed):
    """120 problems with all models mixed, weights of 0, ties, and bounds that bind."""
    rng = np.random.default_rng(seed)
    n, interval = int(rng.integers(1, 9)), float(rng.choice([1.0, 3.0]))
    models = random_pages(n, rng)
    weights = rng.integers(0, 4, n).astype(float) if rng.random() < 0.5 else rng.random(n) * 10.0 ** rng.integers(-3, 4)
    low = rng.integers(0, 3, n) * (rng.random(n) < 0.4)
    high = low + rng.integers(0, 12, n)
    high[rng.random(n) < 0.3] = 40
    total = int(rng.integers(low.sum(), min(high.sum(), 40) + 1))
    optimum = by_dynamic_programming(models, weights, total, interval, low, high)
    for method in METHODS:
        crawls = allocate_crawls(models, weights, total, interval, low, high, method)
        assert crawls.sum() == total, method
        assert (crawls >= low).all(), method
        assert (crawls <= high).all(), method
        assert objective(models, weights, crawls, interval) == pytest.approx(optimum, rel=1e-12, abs=1e-12), method


@PROFILE
@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), min_size=1, max_size=12),
    st.integers(0, 80),
    st.randoms(use_true_random=False),
)
def test_all_methods_break_ties_alike(columns, total, random):
    """The same crawls to the same pages: of equal ones the first page's first, which is what sorting all entries gives."""
    depth = max(map(len, columns))
    table = np.array([sorted(column, reverse=True) + [0] * (depth - len(column)) for column in columns], dtype=float)
    n = len(columns)
    low = np.array([random.choice([0, 0, 2]) for _ in columns])
    high = low + np.array([random.choice([0, 1, 5, 1000]) for _ in columns])
    total = int(np.clip(total, low.sum(), high.sum()))
    entries = sorted(
        (-(table[page, x] if x < depth else 0.0), page, x)
        for page in range(n)
        for x in range(low[page], min(high[page], low[page] + total))
    )
    expected = low.copy()
    for _, page, _ in entries[: total - int(low.sum())]:
        expected[page] += 1
    for method in METHODS:
        assert allocate_crawls(Table(table), 1.0, total, 1.0, low, high, method).tolist() == expected.tolist()


@pytest.mark.parametrize("per_page", [0.02, 5, 300])
def test_all_methods_agree_on_a_mixture_of_many_pages(per_page):
    """More pages than crawls, the paper's ratio, and many crawls a page, at 10,000 pages."""
    rng = np.random.default_rng(1)
    n = 10_000
    models, weights = zipf_mixture(n, rng), rng.random(n)
    methods = METHODS if per_page < 10 else METHODS[::2] + METHODS[3:]
    found = {method: allocate_crawls(models, weights, int(per_page * n), 1.0, method=method) for method in methods}
    for crawls in found.values():
        assert crawls.sum() == int(per_page * n)
        assert (crawls == found["auto"]).all()


def test_the_start_from_the_continuous_problem_gives_the_same_objective_at_100_000_pages():
    """The paper's mixture and 5 crawls a page; "auto" starts from the continuous problem here. At 10,000 pages all methods agree."""
    rng = np.random.default_rng(2)
    models, weights = zipf_mixture(100_000, rng), rng.random(100_000)
    found = [
        objective(models, weights, allocate_crawls(models, weights, 500_000, 1.0, method=method)) for method in (METHODS[0], METHODS[3])
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.parametrize("total", [0, 1, 70_000, 500_000, 3_000_000])
def test_the_start_from_the_continuous_problem_changes_nothing(total):
    """Also with bounds, pages without weight, ties by the thousand, and a price of 0."""
    rng = np.random.default_rng(3)
    n = 80_000
    models = [Exponential(np.round(10.0 ** rng.uniform(-2, 2, n // 2), 1)), Table(-np.sort(-rng.integers(0, 9, (n // 2, 5)), axis=1) / 45)]
    weights = rng.integers(0, 3, n)
    low = (rng.random(n) < 0.1) * (total > n)
    high = np.where(rng.random(n) < 0.5, low + rng.integers(0, 9, n), np.inf)
    crawls = allocate_crawls(models, weights, total, 1.0, low, high)
    assert (crawls == allocate_crawls(models, weights, total, 1.0, low, high, "frederickson-johnson")).all()


@pytest.mark.parametrize(("ratio", "most"), [(0.1, 3), (4, 16), (64, 36), (1024, 60)])
def test_entries_looked_at_are_in_proportion_to_the_pages(ratio, most):
    """However many pages there are; with 16 times as many crawls a page there are four more halvings, of a few entries a page each."""
    for n in (1000, 10_000, 70_000):
        pages = Hyperbolas(10.0 ** np.random.default_rng(4).uniform(-2, 2, n))
        for method, besides in (("frederickson-johnson", 0), ("auto", most * 16384)):
            Hyperbolas.looked_at = 0
            allocate_crawls(pages, 1.0, int(n * ratio), 1.0, method=method)
            assert Hyperbolas.looked_at <= most * n + besides


@PROFILE
@given(st.integers(2, 40), st.integers(0, 10_000), st.integers(0, 2**31))
def test_no_exchange_of_two_crawls_pays(n, total, seed):
    """What the next crawl of any page is worth is no more than what the last one of any other is."""
    rng = np.random.default_rng(seed)
    model, weights = Exponential(10.0 ** rng.uniform(-3, 3, n)), 10.0 ** rng.uniform(-3, 3, n)
    crawls = allocate_crawls(model, weights, total, 1.0)
    next_one = weights * model.decrease(crawls, 1.0)
    some = crawls > 0
    if some.any():
        assert (weights * model.decrease(np.maximum(crawls - 1, 0), 1.0))[some].min() >= next_one.max() * (1 - 1e-12)


@PROFILE
@given(st.integers(1, 30), st.integers(0, 300), st.integers(0, 2**31))
def test_pages_may_come_in_any_order_and_in_any_models(n, total, seed):
    """One array model, single pages, and pages in another order get the same."""
    rng = np.random.default_rng(seed)
    rate, weights = 10.0 ** rng.uniform(-2, 2, n), rng.random(n) + 0.1
    crawls = allocate_crawls(Exponential(rate), weights, total, 2.0)
    assert (allocate_crawls([Exponential(one) for one in rate], weights, total, 2.0) == crawls).all()
    order = rng.permutation(n)
    assert (allocate_crawls(Exponential(rate[order]), weights[order], total, 2.0) == crawls[order]).all()


def test_one_more_crawl_goes_to_one_page():
    """The allocations of rising totals are nested, and their decreases fall: the optimum is convex in the total."""
    rng = np.random.default_rng(5)
    models, weights = random_pages(12, rng), rng.random(12)
    crawls = np.array([allocate_crawls(models, weights, total, 1.0) for total in range(60)])
    assert (np.sort(np.diff(crawls, axis=0), axis=1)[:, -1] == 1).all()
    assert (np.diff(crawls, axis=0).sum(axis=1) == 1).all()
    assert np.diff([objective(models, weights, row) for row in crawls], n=2).min() >= -1e-14


@pytest.mark.parametrize("method", METHODS)
def test_totals_beyond_what_is_of_use_are_given_out_all_the_same(method):
    """Where nothing takes off anything any more the first page gets the rest, up to its maximum."""
    page = QuasiDeterministic([[0.2, 0.5], [0.3, 0.6]], 0.5)
    assert allocate_crawls(page, [1.0, 1.0], 10, 1.0, method=method).tolist() == [8, 2]
    assert allocate_crawls(page, [1.0, 1.0], 10, 1.0, maximum=[5, np.inf], method=method).tolist() == [5, 5]


@pytest.mark.parametrize("method", METHODS)
def test_pinned_pages_and_no_crawls_at_all(method):
    model = Exponential([1.0, 2.0, 3.0])
    assert allocate_crawls(model, 1.0, 9, 1.0, [2, 3, 4], [2, 3, 4], method).tolist() == [2, 3, 4]
    assert allocate_crawls(model, 1.0, 0, 1.0, method=method).tolist() == [0, 0, 0]
    assert allocate_crawls([], [], 0, 1.0, method=method).tolist() == []


@pytest.mark.parametrize("method", ["auto", "galil-megiddo", "frederickson-johnson"])
def test_very_many_crawls_are_shared_out_in_few_steps(method):
    """1e15 crawls for three pages; a page with 4 times the weight x rate gets twice as many."""
    crawls = allocate_crawls(Exponential([1.0, 1.0, 4.0]), [1.0, 4.0, 1.0], 10**15, 1.0, method=method)
    assert crawls.sum() == 10**15
    assert crawls / 10**15 == pytest.approx([0.2, 0.4, 0.4], rel=1e-3)


@PROFILE
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), min_size=1, max_size=30), st.integers(-3, 200))
def test_selections_are_those_of_a_sort(pairs, wanted):
    """Which are the largest, and which weigh enough; of equal ones the first."""
    worth, weight = np.array(pairs, dtype=float)[:, 0], np.array(pairs)[:, 1]
    order = np.argsort(-worth, kind="stable")
    expected = np.zeros(worth.size, bool)
    expected[order[: max(wanted, 0)]] = True
    assert (best(worth, wanted) == expected).all()
    enough = int(np.clip(wanted, 1, weight.sum()))
    expected[:] = False
    expected[order[: np.searchsorted(np.cumsum(weight[order]), enough) + 1]] = True
    assert (heaviest(worth, weight, enough) == expected).all()


@PROFILE
@given(st.integers(0, 2**31), st.floats(-6, 1))
def test_counts_at_a_price_are_those_of_looking_at_all_entries(seed, log_price):
    rng = np.random.default_rng(seed)
    models = random_pages(10, rng)
    columns = Columns(models, rng.random(10), 1.0)
    low, high = rng.integers(0, 5, 10), rng.integers(5, 60, 10)
    pages, positions = np.repeat(np.arange(10), 60), np.tile(np.arange(60), 10)
    worth = columns.worth(pages, positions).reshape(10, 60)
    within = (np.arange(60) >= low[:, None]) & (np.arange(60) < high[:, None])
    expected = low + ((worth > 10.0**log_price) & within).sum(axis=1)
    assert (counts_above(columns, 10.0**log_price, low, high) == expected).all()


def test_nothing_the_caller_owns_is_written_to():
    weights, low, high = np.ones(3), np.array([1, 0, 0]), np.array([9, 9, 9])
    for array in (weights, low, high):
        array.flags.writeable = False
    for method in METHODS:
        assert allocate_crawls(Exponential([1.0, 2.0, 3.0]), weights, 7, 1.0, low, high, method).sum() == 7


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"models": 3}, "models is int; expected an update model"),
        ({"models": "ab"}, "models is str"),
        ({"models": [Exponential(1.0), None]}, r"models\[1\] is NoneType"),
        ({"weights": [1.0, -1.0]}, r"weights\[1\] is -1\.0"),
        ({"weights": [1.0, np.nan]}, r"weights\[1\] is nan"),
        ({"weights": [1.0]}, "weights has 1 entries for 2 pages"),
        ({"total": -1}, "total is -1; expected a whole number"),
        ({"total": 2.5}, "total is 2.5; expected a whole number"),
        ({"interval": 0.0}, "interval is 0.0"),
        ({"minimum": [1, 0.5]}, r"minimum\[1\] is 0\.5; expected a whole number"),
        ({"minimum": -1}, "minimum is -1"),
        ({"minimum": [0, np.inf]}, r"minimum\[1\] is inf"),
        ({"maximum": 1.5}, "maximum is 1.5; expected a whole number"),
        ({"maximum": [1, 2, 3]}, "maximum has 3 entries for 2 pages"),
        ({"minimum": [0, 5], "maximum": [9, 4]}, r"minimum\[1\] is 5, above maximum\[1\], 4"),
        ({"minimum": [3, 4]}, "minimum sums to 7; expected at most total, 6"),
        ({"maximum": [3, 2]}, "maximum sums to 5; expected at least total, 6"),
        ({"method": "fox"}, "method is 'fox'; expected 'auto', 'greedy'"),
        ({"method": None}, "method is None"),
    ],
)
def test_unusable_arguments_are_named(changed, message):
    good = {"models": Exponential([1.0, 2.0]), "weights": [1.0, 1.0], "total": 6, "interval": 1.0}
    with pytest.raises(InvalidProblemError, match=message):
        allocate_crawls(**good | changed)
