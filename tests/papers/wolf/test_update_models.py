"""Renewal processes: staleness and what a crawl takes off, against integration, simulation and each other."""

from itertools import pairwise
from math import exp, gamma, log, log1p

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammainc

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import Exponential, Pareto, Renewal, Weibull
from optimal_frontier.simulation import processes

#: Model of one page with a scale of time, its mean, and its tail.
EXPONENTIAL = (lambda s: Exponential(1 / s), lambda s: s, lambda s: lambda t: exp(-t / s))


def weibull(shape):
    return (
        lambda s: Weibull(s**-shape, shape),
        lambda s: s * gamma(1 + 1 / shape),
        lambda s: lambda t: exp(-((t / s) ** shape)),
    )


def pareto(shape):
    return lambda s: Pareto(s, shape), lambda s: s / (shape - 1), lambda s: lambda t: exp(-shape * log1p(t / s))


FAMILIES = {
    "exponential": EXPONENTIAL,
    **{f"weibull {shape}": weibull(shape) for shape in (0.1, 0.35, 0.6, 1.0, 2.0, 5.0, 30.0)},
    **{f"pareto {shape}": pareto(shape) for shape in (1 + 1e-9, 1.01, 1.5, 2.0, 2 + 1e-12, 3.0, 50.0, 1e4)},
}
FAMILY = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
SCALES = 10.0 ** np.arange(-6, 7, 1.5)
COUNTS = [0, 1, 2, 5, 30, 1000, 10**6]


def integral(function, low, high):
    """By scipy, decade by decade of the distance from 0."""
    edges = [low, *(high * 10.0**-k for k in range(12, -1, -1) if high * 10.0**-k > low)]
    return sum(quad(function, a, b, epsabs=1e-300, epsrel=1e-12, limit=200)[0] for a, b in pairwise(edges))


def staleness_by_integration(tail, mean, gap):
    """eq. 3 in its one-dimensional form."""
    return integral(lambda u: (1 - u / gap) * tail(u), 0.0, gap) / mean


def decrease_by_integration(tail, mean, x):
    """A(x) - A(x + 1) in an interval of length 1, from terms of one sign."""
    n, after = x + 1, 1.0 / (x + 2)
    width = after / n
    stretches = pairwise((0.0, 0.1, 0.25, 0.5, 1.0))
    longer = sum(quad(lambda s: (1 - s) * tail(after + s * width), a, b, epsabs=1e-300, epsrel=1e-12)[0] for a, b in stretches)
    return (integral(lambda u: u * tail(u), 0.0, after) + n * width**2 * longer) / mean


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")  # asked for more digits than it can promise
@FAMILY
def test_staleness_is_the_integral(family):
    """Over 12 decades of the rate, relative to A, which may be tiny."""
    model, mean, tail = family
    for scale in SCALES:
        expected = [staleness_by_integration(tail(scale), mean(scale), 1.0 / (x + 1)) for x in (0, 1, 7)]
        np.testing.assert_allclose(model(scale).staleness([0, 1, 7], 1.0), expected, rtol=1e-11)


def test_staleness_is_eq_3_as_printed():
    """The double integral of the paper, with t_j = j / 3."""
    for tail, mean, model in (
        (lambda t: exp(-((t / 0.3) ** 0.6)), 0.3 * gamma(1 + 1 / 0.6), Weibull(0.3**-0.6, 0.6)),
        (lambda t: (0.2 / (0.2 + t)) ** 2.5, 0.2 / 1.5, Pareto(0.2, 2.5)),
    ):

        def stale(age, tail=tail, mean=mean):
            return 1 - quad(lambda v: tail(age + v), 0.0, np.inf, epsrel=1e-11)[0] / mean

        printed = sum(quad(lambda t, start=j / 3: stale(t - start), j / 3, (j + 1) / 3, epsabs=1e-10)[0] for j in range(3))
        assert model.staleness(2, 1.0) == pytest.approx(printed, abs=1e-9)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@FAMILY
def test_decrease_has_no_cancellation(family):
    """Also after a million crawls, where A(x) and A(x + 1) agree in 6 digits or more."""
    model, mean, tail = family
    for scale in SCALES:
        expected = [decrease_by_integration(tail(scale), mean(scale), x) for x in COUNTS]
        np.testing.assert_allclose(model(scale).decrease(COUNTS, 1.0), expected, rtol=1e-12)


@FAMILY
def test_decreases_add_up(family):
    model, _, _ = family
    for scale in SCALES:
        page = model(scale)
        curve, steps = page.staleness(np.arange(201), 1.0), page.decrease(np.arange(200), 1.0)
        np.testing.assert_allclose(curve[:-1] - curve[1:], steps, atol=3e-16)
        assert curve.max() <= 1
        assert curve.min() >= 0
        assert (np.diff(steps) <= 1e-14 * steps[1:]).all()


@pytest.mark.parametrize("shape", [0.1, 0.35, 1.0, 4.0, 90.0])
def test_weibull_is_scipys_incomplete_gamma_function(shape):
    """``A = P(a, z) - Gamma(2 a) / Gamma(a) z^-a P(2 a, z)``; the series of it is ours."""
    a, z = 1 / shape, 10.0 ** np.linspace(-3, 3, 400)
    model = Weibull(z, np.full(400, shape))  # T = 1
    with np.errstate(under="ignore"):
        expected = gammainc(a, z) - np.exp(np.vectorize(lambda v: log(gamma(v)))(2 * a) - log(gamma(a)) - a * np.log(z)) * gammainc(
            2 * a, z
        )
    np.testing.assert_allclose(model.staleness(0, 1.0), expected, rtol=1e-11)


def test_families_meet():
    """A Weibull page of shape 1 and a Pareto page of a huge shape are memoryless; a general one is what its tail says."""
    counts = np.arange(50)
    memoryless = Exponential(3.0)
    for quantity in ("staleness", "decrease", "slope", "crawl_times"):
        argument = 7 if quantity == "crawl_times" else counts
        expected = getattr(memoryless, quantity)(argument, 2.0)
        np.testing.assert_allclose(getattr(Weibull(3.0, 1.0), quantity)(argument, 2.0), expected, rtol=1e-12)
        np.testing.assert_allclose(getattr(Pareto(1e9 / 3, 1e9), quantity)(argument, 2.0), expected, rtol=1e-6)
        np.testing.assert_allclose(getattr(Renewal(lambda t: np.exp(-3 * t), 1 / 3), quantity)(argument, 2.0), expected, rtol=1e-9)


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0, 3.0])
def test_a_renewal_model_is_within_the_stated_error(shape):
    """1e-10 for tails smooth in log(t), over 12 decades."""
    rate = 10.0 ** np.linspace(-6, 6, 25)
    for known, general in (
        (Weibull(rate**shape, shape), Renewal(lambda t: np.exp(-((rate * t) ** shape)), gamma(1 + 1 / shape) / rate)),
        (Pareto(1 / rate, 1 + shape), Renewal(lambda t: np.exp(-(1 + shape) * np.log1p(rate * t)), 1 / (shape * rate))),
    ):
        for x in (0, 1, 20):
            np.testing.assert_allclose(general.staleness(x, 1.0), known.staleness(x, 1.0), atol=1e-10)
            np.testing.assert_allclose(general.decrease(x, 1.0), known.decrease(x, 1.0), atol=1e-10)
        few = np.array([3, 20, 7, 3, 3])
        crawls = np.array([1, 2, 3, 0, 2])
        np.testing.assert_allclose(general.part(few).staleness(crawls, 1.0), known.part(few).staleness(crawls, 1.0), atol=1e-10)
        np.testing.assert_allclose(general.crawls_worth(0.01, 1.0), known.crawls_worth(0.01, 1.0), rtol=1e-5, atol=1e-6)


def test_fixed_times_between_updates():
    """A tail with a jump: stale for the share d / 2 of a gap d, up to the stated error."""
    fixed = Renewal(lambda t: (t < 1.0).astype(float), 1.0)
    counts = np.arange(20)
    gap = 3.0 / (counts + 1)
    np.testing.assert_allclose(fixed.staleness(counts, 3.0), np.where(gap <= 1, gap / 2, 1 - 1 / (2 * gap)), atol=3e-4)


PROCESSES = {
    "exponential": (processes.Poisson(), Exponential(1.3)),
    "weibull": (processes.Weibull(0.5), Weibull.from_mean(1 / 1.3, 0.5)),
    "regular weibull": (processes.Weibull(2.0), Weibull.from_mean(1 / 1.3, 2.0)),
    "pareto": (processes.Pareto(1.5), Pareto.from_mean(1 / 1.3, 1.5)),
}


@pytest.mark.parametrize(("process", "model"), PROCESSES.values(), ids=PROCESSES)
def test_simulated_pages_are_as_stale(process, model):
    """Mean over 40,000 simulated pages, crawled at the model's times, within 4.5 standard errors."""
    n, interval = 40_000, 2.0
    changes = process.draw(np.random.default_rng(5), np.full(n, 1.3), interval, lambda rng, m: np.full(m, 1.3)).changes
    for x in (0, 1, 5):
        times = np.concatenate([[0.0], model.crawl_times(x, interval), [interval]])
        stale = np.zeros(n)
        for start, end in pairwise(times):
            stale += np.clip(end - changes.next_time(np.arange(n), np.full(n, start)), 0.0, None)
        shares = stale / interval
        assert abs(shares.mean() - model.staleness(x, interval)) < 4.5 * shares.std() / np.sqrt(n)


def test_no_other_times_are_better():
    """Evenly spaced times against random ones, by the sum of the gaps' own staleness."""
    rng = np.random.default_rng(0)
    for model in (Exponential(2.0), Weibull(2.0, 0.4), Pareto(0.3, 1.2)):
        for _ in range(200):
            times = np.sort(rng.random(4))
            gaps = np.diff(times, prepend=0.0, append=1.0)
            others = sum(gap * model.staleness(0, gap) for gap in gaps)
            assert model.staleness(4, 1.0) <= others + 1e-15


def test_long_run_staleness():
    """Crawls every T / x for ever: A(x - 1), as the module says, checked on a long interval in the middle of crawls."""
    page = Pareto(0.3, 1.5)
    assert page.staleness(5 - 1, 1.0) == pytest.approx(page.staleness(50_000 - 1, 10_000.0), rel=1e-12)


def test_crawl_times():
    pages = Weibull([1.0, 2.0, 3.0], 0.5)
    np.testing.assert_allclose(pages.crawl_times([1, 0, 3], 8.0), [4.0, 2.0, 4.0, 6.0])
    np.testing.assert_allclose(pages.crawl_times(1, 8.0), [4.0, 4.0, 4.0])
    assert Exponential(1.0).crawl_times(0, 1.0).shape == (0,)


def families_of_pages(n, seed):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-6, 6, n)
    shape = rng.uniform(0.2, 3.0, n)
    return Exponential(1 / scale), Weibull(scale**-shape, shape), Pareto(scale, 1 + shape)


@pytest.mark.parametrize("n", [1, 7, 30_000])
def test_pages_at_once_are_pages_one_by_one(n):
    """Arrays, parts, sets of crawls and scalars, also over several blocks."""
    crawls = np.random.default_rng(1).integers(0, 50, (2, n))
    some = np.array([n // 2, 0, n - 1])  # in any order, repeated if n is 1
    for model in families_of_pages(n, 2):
        assert len(model) == n
        for quantity in (model.staleness, model.decrease):
            together = quantity(crawls, 3.0)
            assert together.shape == (2, n)
            np.testing.assert_allclose(quantity(crawls[0], 3.0), together[0], rtol=1e-13)
            np.testing.assert_array_equal(quantity(4, 3.0), quantity(np.full(n, 4), 3.0))
        few = model.part(some)
        assert len(few) == 3
        np.testing.assert_allclose(few.staleness(crawls[0][some], 3.0), model.staleness(crawls[0], 3.0)[some], rtol=1e-13)
        np.testing.assert_allclose(model.part(slice(0, 1)).decrease(2, 3.0), model.decrease(2, 3.0)[:1], rtol=1e-13)
    one = Exponential(2.0)
    assert len(one) == 1
    assert one.staleness(np.zeros((2, 3, 4), int), 1.0).shape == (2, 3, 4)
    assert float(one.staleness(0, 1.0)) == one.staleness([0], 1.0)[0] == one.part(slice(0, 1)).staleness([0], 1.0)[0]


def test_no_pages():
    for model in (Exponential([]), Weibull([], 0.5), Pareto([], 1.5)):
        assert len(model) == 0
        assert model.staleness([], 1.0).shape == model.decrease(3, 1.0).shape == model.crawl_times([], 1.0).shape == (0,)
        assert model.slope([], 1.0).shape == model.crawls_worth(0.1, 1.0).shape == (0,)


def test_slope_lies_between_decreases():
    for model in families_of_pages(2000, 3):
        for x in (0, 1, 10, 1000):
            decrease, slope, next_slope = model.decrease(x, 1.0), model.slope(x, 1.0), model.slope(x + 1.0, 1.0)
            assert (decrease <= slope * (1 + 1e-12)).all()
            assert (next_slope <= decrease * (1 + 1e-12)).all()


def test_crawls_at_a_price():
    """The slope there is the price; where none is, the first crawl is not worth it."""
    for model in families_of_pages(2000, 4):
        for price in (1e-9, 1e-4, 0.03, 0.2):
            crawls = model.crawls_worth(price, 1.0)
            some = crawls > 0
            np.testing.assert_allclose(model.slope(crawls, 1.0)[some], price, rtol=1e-7)
            assert (model.slope(0, 1.0)[~some] <= price * (1 + 1e-12)).all()
    assert Exponential(1.0).crawls_worth(np.inf, 1.0) == 0
    np.testing.assert_array_equal(Exponential([1.0, 0.0]).crawls_worth(1e-3, 1.0) > 0, [True, False])


rates = st.floats(-12, 12).map(lambda power: 10.0**power)
models = st.one_of(
    rates.map(Exponential),
    st.builds(Weibull, rates, st.floats(0.02, 20)),
    st.builds(Pareto, rates, st.floats(0, 5).map(lambda power: 1 + 10.0 ** (power - 3))),
)


@given(models, st.integers(0, 10**12), rates)
@settings(max_examples=100, deadline=None)
def test_convex_and_non_increasing(model, x, interval):
    """By decreases, which do not cancel: A(x) - A(x + 1) >= A(x + 1) - A(x + 2) >= 0. No warnings over 12 decades, either way."""
    curve = model.staleness([0, x, x + 1], interval)
    assert 0 <= curve[2] <= curve[1] * (1 + 1e-12) <= curve[0] * (1 + 1e-11) <= 1 + 1e-11
    steps = model.decrease([x, x + 1, x + 2], interval)
    assert steps[2] >= 0
    assert (np.diff(steps) <= 1e-12 * steps[:2] + 1e-300).all()


@given(models, st.integers(0, 1000), rates, st.floats(-6, 6))
@settings(max_examples=100, deadline=None)
def test_units_do_not_matter(model, x, interval, power):
    factor = 10.0**power
    if isinstance(model, Exponential):
        scaled = Exponential(model.rate / factor)
    elif isinstance(model, Weibull):
        scaled = Weibull(np.clip(model.rate * factor**-model.shape, 1e-100, 1e100), model.shape)
        if not 1e-99 < scaled.rate < 1e99:
            return
    else:
        scaled = Pareto(model.scale * factor, model.shape)
    for quantity in ("staleness", "decrease"):
        tolerance = 1e-9 if isinstance(model, Weibull) else 1e-12  # rate^(1 / shape)
        np.testing.assert_allclose(getattr(scaled, quantity)(x, interval * factor), getattr(model, quantity)(x, interval), rtol=tolerance)


def test_limits():
    """Pages that hardly change are never stale, those that always do always; many crawls keep any page fresh."""
    for calm, lively in (
        (Exponential(1e-12), Exponential(1e12)),
        (Weibull(1e-12, 0.5), Weibull(1e6, 0.5)),
        (Pareto(1e12, 3.0), Pareto(1e-12, 3.0)),
    ):
        assert calm.staleness(0, 1.0) < 1e-11
        assert lively.staleness(0, 1.0) == pytest.approx(1.0, abs=1e-9)
        assert calm.decrease(0, 1.0) > 0
        assert lively.decrease(0, 1.0) > 0
        assert lively.staleness(2**53, 1.0) < 0.01
    still = Exponential([0.0, 1.0])
    np.testing.assert_array_equal(still.staleness(0, 1.0) == 0, [True, False])
    np.testing.assert_array_equal(still.decrease(0, 1.0) == 0, [True, False])
    np.testing.assert_array_equal(still.slope(0, 1.0) == 0, [True, False])


def test_given_means():
    """The mean is the slope of A x T where hardly anything changes: A(0) = T / (2 mean)."""
    for mean in (1e-3, 1.0, 1e5):
        assert Pareto.from_mean(mean, 1.3).staleness(0, mean * 1e-8) == pytest.approx(0.5e-8, rel=1e-6)
        assert Weibull.from_mean(mean, 0.7).staleness(0, mean * 1e-14) == pytest.approx(0.5e-14, rel=1e-6)


def test_callers_arrays_are_left_alone():
    rate = np.array([1.0, 2.0, 3.0])[::-1]
    rate.flags.writeable = False
    crawls = np.array([1, 2, 3], np.int8)
    Weibull(rate, 0.5).staleness(crawls, 1)
    np.testing.assert_array_equal(crawls, [1, 2, 3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Exponential([1.0, -1.0]), r"rate\[1\] is -1"),
        (lambda: Exponential(np.nan), "rate is nan"),
        (lambda: Exponential([[1.0]]), "rate: expected one number per page"),
        (lambda: Exponential(1e200), "rate is 1e\\+200"),
        (lambda: Weibull([1.0, 0.0], 0.5), r"rate\[1\] is 0"),
        (lambda: Weibull(1.0, [0.5, 1e-3]), r"shape\[1\] is 0.001"),
        (lambda: Weibull(1.0, 200.0), "shape is 200"),
        (lambda: Weibull([1.0, 2.0], [0.5]), "shape has 1 entries for 2 pages; index 1"),
        (lambda: Pareto(1.0, 1.0), "shape is 1.0; expected a number above 1"),
        (lambda: Pareto(1.0, [1.5, 0.5]), r"shape\[1\] is 0.5"),
        (lambda: Pareto([1.0, np.inf], 1.5), r"scale\[1\] is inf"),
        (lambda: Pareto.from_mean(0.0, 1.5), "mean is 0"),
        (lambda: Renewal(0.5, 1.0), "tail is 0.5"),
        (lambda: Renewal(np.exp, 0.0), "mean is 0"),
        (lambda: Renewal(np.exp, 1.0).staleness(1, 1.0), r"tail\(.*\) is 1\.\d+; expected a probability"),
        (lambda: Renewal(lambda t: np.exp(-t), 0.5).staleness(0, 9.0), "mean is 0.5, but the tail integrates to more"),
        (lambda: Renewal(lambda t: 1.0, 0.5).staleness(0, 9.0), r"tail answers with shape \(\)"),
        (lambda: Exponential(1.0).staleness(-1, 1.0), "crawls is -1"),
        (lambda: Exponential(1.0).staleness([1, 1.5], 1.0), r"crawls\[1\] is 1.5; expected a whole number"),
        (lambda: Exponential([1.0, 2.0]).decrease([1, 2, 3], 1.0), r"crawls has shape \(3,\)"),
        (lambda: Exponential([1.0, 2.0]).staleness("x", 1.0), "crawls: expected numbers"),
        (lambda: Exponential(1.0).staleness(1, 0.0), "interval is 0"),
        (lambda: Exponential(1.0).staleness(1, [1.0]), "interval: expected one number"),
        (lambda: Exponential(1.0).crawl_times([1, 2], 1.0), r"crawls has shape \(2,\); expected one number per page"),
        (lambda: Exponential(1.0).slope(-0.5, 1.0), "crawls is -0.5"),
        (lambda: Exponential([1.0, 1.0]).crawls_worth([1.0, 0.0], 1.0), r"price\[1\] is 0"),
    ],
)
def test_bad_input_names_argument_and_index(call, message):
    with pytest.raises(InvalidProblemError, match=message):
        call()
