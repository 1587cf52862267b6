"""What the whole posterior is worth to a plan, against plans from its median or its mean alone.

    python benchmarks/uncertain_inputs.py [--pages N] [--seeds N]

In each world every page is visited k times at the mean interval ("mixed": each page one of these numbers of times, at random), one bit a
visit, and its posterior updated. Then three plans are made:
`solve_posterior`, and `solve_periodic` at the posterior medians and at the means. They are compared twice: by what is believed (expected
freshness under the posterior, relative to `solve_posterior`, which is best there by definition) and by what is true (freshness at the true
change rates, relative to the plan of somebody who knows them). Medians over seeds. Times are in days.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from optimal_frontier.estimation import posterior_median, update_posterior
from optimal_frontier.optimization import freshness_periodic, solve_periodic, solve_posterior

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def zipf_importance(rng: np.random.Generator, n: int) -> np.ndarray:
    """Zipf's law of exponent 2 on 1 to 10,000."""
    values = np.arange(1, 10_001)
    weights = values**-2.0
    return rng.choice(values, n, p=weights / weights.sum()).astype(float)


#: World -> importance and change rates (per day), and the budget in visits per page and day. In P the prior is the truth.
WORLDS: dict[str, tuple[Draw, float]] = {
    "A": (lambda rng, n: (1 - rng.random(n), 1 - rng.random(n)), 0.2),
    "B": (lambda rng, n: (rng.pareto(1.2, n) + 0.1, rng.lognormal(np.log(0.1), 1.5, n)), 0.1),
    "C": (lambda rng, n: (zipf_importance(rng, n), 1 - rng.random(n)), 0.2),
    "P": (lambda rng, n: (rng.pareto(1.2, n) + 0.1, rng.exponential(0.1, n)), 0.1),
}
VISITS = (0, 1, 3, 10, 30)
MIXED = "mixed"


def compare(draw: Draw, share: float, pages: int, visits: int | str, seed: int) -> list[float]:
    """Return expected freshness of the median and mean plans relative to the posterior's, then the truth of all three."""
    rng = np.random.default_rng(seed)
    importance, change_rate = draw(rng, pages)
    budget = share * pages
    interval = np.full(pages, 1 / share)
    counts = rng.choice(VISITS, pages) if isinstance(visits, str) else np.full(pages, visits)
    # The prior of a live crawl: its mean is the mean revisit rate.
    shape, time = np.ones(pages), np.full(pages, 1 / share)
    for turn in range(counts.max()):
        now = counts > turn
        changed = rng.random(pages) < -np.expm1(-change_rate * interval)
        shape[now], time[now] = update_posterior(shape[now], time[now], interval[now], changed[now])
    whole = solve_posterior(importance, shape, time, budget)
    plans = [whole.rates] + [solve_periodic(importance, rate, budget).rates for rate in (posterior_median(shape, time), shape / time)]
    # Pinned to given rates, `solve_posterior` only says what they are worth.
    believed = [solve_posterior(importance, shape, time, 1.01 * budget, min_rate=r, max_rate=r).objective for r in plans[1:]]
    known = solve_periodic(importance, change_rate, budget).objective
    return [value / whole.objective for value in believed] + [freshness_periodic(importance, change_rate, r) / known for r in plans]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=21)
    options = parser.parse_args()
    print(f"{options.pages} pages, medians over {options.seeds} seeds")
    print("              believed, to posterior      true, to the optimum that knows")
    print("world visits     median      mean         posterior    median      mean")
    for name, (draw, share) in WORLDS.items():
        for visits in (*VISITS, MIXED):
            rows = [compare(draw, share, options.pages, visits, seed) for seed in range(options.seeds)]
            median, mean, true_whole, true_median, true_mean = np.median(rows, axis=0)
            print(f"{name:>5} {visits:>6} {median:>10.4f} {mean:>9.4f} {true_whole:>17.4f} {true_median:>9.4f} {true_mean:>9.4f}")


if __name__ == "__main__":
    main()
