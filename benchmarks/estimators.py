"""Bias and root-mean-square error (RMSE) of every estimator of a change rate.

    python benchmarks/estimators.py [--visits N]

A page with change rate x is visited 3 to 1,000 times, at equal intervals I or at irregular ones (exponential, mean I), one bit a visit;
xI is 0.1, 1 or 3. About N visits are simulated for each line, and every estimator is given the same bits. Bias and RMSE are relative
to x.

The posterior is that of the filter, `update_posterior`, from a prior that is not told the rate: its mean is 1/I, so that it is right for
one xI in three. Gamma(1, I) is what a live crawl starts from; Gamma(1/2, I/2) has the same mean and half the weight.

If every visit found a change, the likelihood has no greatest value. How its error is then counted decides comparisons, so there are three
tables of RMSE relative to the MLE's, with standard errors:
    finite     all histories; where all visits found a change, the finite rate that `mle_rate` documents
    answered   only histories with an unchanged visit, for the MLE and for the posterior
    bounded    all histories; MLE and posterior both clipped to [0.01/I, 10/I], an MLE beyond all bounds thus to 10/I
Then there are pages with rates of their own, from three populations, as a crawler meets them: RMSE in units of the mean rate, and that
of the posterior relative to the MLE's (finite), over all pages and over those with xI below 5. Last, what the filter's approximation
costs: the exact posterior has a closed form at equal intervals, where e^(-xI) has a Beta distribution.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from optimal_frontier.estimation import bias_reduced_rate, mle_rate, moment_rate, naive_rate, posterior_median, update_posterior

VISITS = (3, 10, 30, 100, 1000)
SCALED_RATES = (0.1, 1.0, 3.0)
SPACINGS = ("equal", "irregular")
PRIOR_SHAPES = {"": 1.0, "/2": 0.5}
POSTERIORS = ("mean", "median", "mean/2", "median/2")
BOUNDS = (0.01, 10.0)
#: Change rates relative to 1/I. All have mean 1.
POPULATIONS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "exponential": lambda rng, n: rng.exponential(1.0, n),  # the prior Gamma(1, I) itself
    "uniform": lambda rng, n: 2.0 * (1.0 - rng.random(n)),
    "lognormal": lambda rng, n: rng.lognormal(-0.5 * 1.5**2, 1.5, n),
}


def histories(rng: np.random.Generator, spacing: str, rates: np.ndarray, visits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return intervals (mean 1) and bits, a row for each page."""
    shape = (rates.size, visits)
    intervals = np.ones(shape) if spacing == "equal" else rng.exponential(1.0, shape) + 1e-12
    return intervals, rng.random(shape) < -np.expm1(-rates[:, None] * intervals)


def estimates(intervals: np.ndarray, changed: np.ndarray) -> dict[str, np.ndarray]:
    """Every estimator's answer for every page."""
    pages, visits = intervals.shape
    joined = (intervals.ravel(), changed.ravel())
    counts = np.full(pages, visits)
    found = {
        "naive": naive_rate(*joined, counts=counts),
        "reduced": bias_reduced_rate(*joined, counts=counts),
        "MLE": mle_rate(*joined, counts=counts),
        "moment": moment_rate(*joined, counts=counts),
    }
    for suffix, prior_shape in PRIOR_SHAPES.items():
        shape, time = np.full(pages, prior_shape), np.full(pages, prior_shape)
        for visit in range(visits):
            shape, time = update_posterior(shape, time, intervals[:, visit], changed[:, visit])
        found["mean" + suffix] = shape / time
        found["median" + suffix] = posterior_median(shape, time)
    return found


def rmse(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def ratio(error: np.ndarray, reference: np.ndarray) -> str:
    """RMSE relative to that of the reference on the same pages, with its standard error by the delta method."""
    if error.size < 2 or not reference.any():
        return "          -  "
    mine, other = error**2, reference**2
    value = np.sqrt(mine.mean() / other.mean())
    spread = 0.5 * value * np.std(mine / mine.mean() - other / other.mean()) / np.sqrt(error.size)
    return f"{value:>7.3f} ±{spread:.3f}"


def cells(rng: np.random.Generator, total: int) -> dict[tuple[str, float, int], tuple[dict[str, np.ndarray], np.ndarray]]:
    """Print bias and RMSE at fixed rates; return the estimates and which histories were all changes."""
    kept: dict[tuple[str, float, int], tuple[dict[str, np.ndarray], np.ndarray]] = {}
    names = ("naive", "reduced", "MLE", "moment", *POSTERIORS)
    print("Relative bias and RMSE. mean and median: of the posterior from the prior Gamma(1, I); mean/2 and median/2: Gamma(1/2, I/2).")
    print(f"{'intervals':<10}{'xI':>4}{'visits':>7}{'all chg.':>9} " + "".join(f"{name:>15}" for name in names))
    for spacing in SPACINGS:
        for rate in SCALED_RATES:
            for visits in VISITS:
                intervals, changed = histories(rng, spacing, np.full(max(total // visits, 100), rate), visits)
                found, always = estimates(intervals, changed), np.all(changed, axis=1)
                kept[spacing, rate, visits] = (found, always)
                errors = [found[name] / rate - 1.0 for name in names]
                row = "".join(f"{error.mean():>+8.3f}{rmse(error):>7.3f}" for error in errors)
                print(f"{spacing:<10}{rate:>4}{visits:>7}{always.mean():>9.1%} {row}")
    return kept


def bars(kept: dict[tuple[str, float, int], tuple[dict[str, np.ndarray], np.ndarray]]) -> None:
    """Print the posterior's RMSE relative to the MLE's, for 10 and 1,000 visits, under each treatment of all-changed histories."""
    for treatment in ("finite", "answered", "bounded"):
        print(f"\nRMSE relative to the MLE's, {treatment}")
        print(f"{'visits':<7}{'intervals':<10}{'xI':>4}" + "".join(f"{name:>15}" for name in POSTERIORS))
        for visits in (10, 1000):
            for spacing in SPACINGS:
                for rate in SCALED_RATES:
                    found, always = kept[spacing, rate, visits]
                    rows = ~always if treatment == "answered" else np.ones_like(always)
                    if treatment == "bounded":
                        clipped = {name: np.clip(found[name], *BOUNDS) for name in POSTERIORS}
                        clipped["MLE"] = np.clip(np.where(always, np.inf, found["MLE"]), *BOUNDS)
                    else:
                        clipped = found
                    errors = {name: clipped[name][rows] / rate - 1.0 for name in ("MLE", *POSTERIORS)}
                    line = "".join(f"{ratio(errors[name], errors['MLE']):>15}" for name in POSTERIORS)
                    print(f"{visits:<7}{spacing:<10}{rate:>4}{line}")


def populations(rng: np.random.Generator, total: int) -> None:
    """Print RMSE over pages with rates of their own."""
    names = ("naive", "reduced", "MLE", "moment", *POSTERIORS)
    print("\nRMSE over pages whose rates differ, in units of the mean rate (xI = 1 on average)")
    columns = "".join(f"{name:>9}" for name in names)
    print(f"{'rates':<12}{'intervals':<10}{'visits':>6}{columns}" + f"{'mean : MLE':>15}{'median : MLE':>15}{'median, xI < 5':>15}")
    for name, draw in POPULATIONS.items():
        for spacing in SPACINGS:
            for visits in VISITS:
                rates = draw(rng, max(total // visits, 100))
                found = estimates(*histories(rng, spacing, rates, visits))
                errors = {column: found[column] - rates for column in names}
                line = "".join(f"{rmse(error):>9.3f}" for error in errors.values())
                line += "".join(f"{ratio(errors[column], errors['MLE']):>15}" for column in ("mean", "median"))
                line += f"{ratio(errors['median'][rates < 5.0], errors['MLE'][rates < 5.0]):>15}"
                print(f"{name:<12}{spacing:<10}{visits:>6}{line}")


def approximation(rng: np.random.Generator, total: int) -> None:
    """Print bias and RMSE of the filter's mean beside those of the exact posterior from Gamma(1, I), equal intervals."""
    print("\nRelative bias and RMSE at equal intervals, posterior mean exactly and by the filter")
    print(f"{'xI':>4}{'visits':>7}{'MLE':>15}{'exact':>15}{'filter':>15}")
    for rate in (1.0, 3.0, 4.0, 5.0, 6.0, 8.0):
        for visits in (10, 100, 1000):
            intervals, changed = histories(rng, "equal", np.full(max(total // visits, 100), rate), visits)
            found = estimates(intervals, changed)
            # e^(-x) ~ Beta(1 + unchanged, 1 + changed), whose mean of -log is a difference of two harmonic numbers
            harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, visits + 2))])
            exact = harmonic[visits + 1] - harmonic[visits - changed.sum(axis=1)]
            errors = [value / rate - 1.0 for value in (found["MLE"], exact, found["mean"])]
            print(f"{rate:>4}{visits:>7}" + "".join(f"{error.mean():>+8.3f}{rmse(error):>7.3f}" for error in errors))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--visits", type=int, default=2_000_000, help="visits simulated for each line of a table")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    kept = cells(rng, options.visits)
    bars(kept)
    populations(rng, options.visits)
    approximation(rng, options.visits)


if __name__ == "__main__":
    main()
