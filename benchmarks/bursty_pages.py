"""What heavy-tailed models are worth in plans, and what a wrong one costs.

    python benchmarks/bursty_pages.py [--seeds N] [--pages N] [--visits N]

Pages with importance log-normal(0, 1) and mean change rates log-normal (median 1, sigma 1), clipped to 0.1 and 5; some of them change in
bursts (Weibull of the shape given), the others are Poisson. The budget is in visits per page and unit of time; no page has less than 0.3
of its even share. Freshness is what a plan is worth by the true models, in %; gains are in points with 95% confidence over seeds.

Known: plans by the true models (best), and by the true mean rates as if all pages were Poisson.

Learned: whole crawls, visit by visit, from the prior, with a new plan every 20 rounds; mean over the plans of their second half. All
crawls of a seed see the same changes. Compared are crawls that
    watched    plan by posterior medians, and learn anew whatever page seems to have changed its habits
    spared     do the same, but spare pages whose bits reject the Poisson model the learning anew
    fitted     do that, and plan those pages by the Weibull models that fit
"found" is the share of bursty pages that are planned by a heavy-tailed model at the end of the last one, "wrong" that of the others.

Jumping: the same with Poisson pages that change their rate by a factor of 10, up or down, half-way. Last, how far shape and mean of a fit
are off, by shape, interval and number of visits.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.estimation.bursts import Bursts, are_bursty, follow_bursts, sure_correlation
from optimal_frontier.estimation.change_points import watch_one
from optimal_frontier.optimization.updates import Weibull
from optimal_frontier.scheduling import believed_rates, plan_rates
from optimal_frontier.scheduling.bursty_pages import BurstyPages, StandIns
from optimal_frontier.simulation.comparing import interval

#: Rounds between two plans: a round is the time in which the budget visits every page once.
ROUNDS = 20


class Page:
    """What a live crawl keeps of a page, and the page."""

    def __init__(self, prior_time: float, rng: np.random.Generator, shape: float, mean: float, is_spared: bool) -> None:
        self.prior_time, self.is_spared = prior_time, is_spared
        self.posterior, self.watch, self.bursts = (1.0, prior_time), (0.0, 0.0, 0.0), Bursts()
        self.observations = self.changes = 0
        self.rng, self.mean, self.shape, self.scale = rng, mean, shape, mean / math.gamma(1.0 + 1.0 / shape)
        self.last = self.time = 0.0
        # A process that has been going on for long: it begins well before the first visit.
        self.times = np.zeros(0)
        self.next = -20.0 * mean

    def extend(self, until: float) -> None:
        """Draw changes until then."""
        while self.next < until:
            steps = np.cumsum(self.scale * self.rng.weibull(self.shape, 256))
            self.times = np.append(self.times, self.next + steps)
            self.next = float(self.times[-1])

    def jump(self, factor: float) -> None:
        """Change the rate from now on; the page is Poisson."""
        self.times = self.times[self.times <= self.time]
        self.scale, self.mean = self.scale / factor, self.mean / factor
        self.next = self.time

    def visit(self, at: float) -> None:
        """Take in a visit, as `judge_visit` does."""
        self.extend(at)
        bit = bool(np.searchsorted(self.times, at) > np.searchsorted(self.times, self.time))
        elapsed, known, self.time = at - self.time, self.posterior, at
        self.watch, is_other = watch_one(self.watch, *known, 1.0, self.prior_time, elapsed, bit)
        chance = -math.expm1(-known[0] * math.log1p(elapsed / known[1]))
        self.bursts = follow_bursts(self.bursts, chance, bit)
        is_other = is_other and not (self.bursts.is_bursty and self.is_spared)
        posterior = RatePosterior(*known)
        posterior.update(elapsed, bit)
        self.posterior = self.watch[:2] if is_other else (posterior.shape, posterior.time)
        self.observations, self.changes = self.observations + 1, self.changes + bit


@dataclass(frozen=True)
class World:
    """Pages and a budget, in visits per page and unit of time."""

    importance: np.ndarray
    mean: np.ndarray
    shape: np.ndarray
    budget: float

    @classmethod
    def drawn(cls, rng: np.random.Generator, pages: int, shape: float, share: float, budget: float) -> World:
        """Draw one; the first ``share`` of the pages are bursty."""
        mean = 1.0 / np.clip(rng.lognormal(0.0, 1.0, pages), 0.1, 5.0)
        return cls(rng.lognormal(0.0, 1.0, pages), mean, np.where(np.arange(pages) < share * pages, shape, 1.0), budget)

    def plan(self, shape: np.ndarray, time: np.ndarray, bursty: BurstyPages | None) -> np.ndarray:
        """Return the rates that a crawl would plan."""
        n, budget = len(self.importance), self.budget * len(self.importance)
        change_rate = believed_rates(shape, time, budget)
        bounds = (np.full(n, 0.3 * self.budget), np.full(n, np.inf))
        if bursty is None or not len(bursty.rows):
            return plan_rates(self.importance, shape, time, budget, *bounds, change_rate=change_rate).rates

        def solve(weight: np.ndarray, rate: np.ndarray) -> object:
            return plan_rates(weight, shape, time, budget, *bounds, change_rate=rate)

        return StandIns(bursty, self.importance, change_rate, "freshness", np.zeros(len(bursty.rows))).plan(solve).rates

    def best(self) -> np.ndarray:
        """Return the rates of the plan by the true models."""
        n = len(self.mean)
        return self.plan(1e9 * np.ones(n), 1e9 * self.mean, BurstyPages.of_models(np.arange(n), self.shape, self.mean))

    def by_means(self) -> np.ndarray:
        """Return the rates of the plan by the true mean rates alone."""
        return self.plan(1e9 * np.ones(len(self.mean)), 1e9 * self.mean, None)

    def freshness(self, rates: np.ndarray) -> float:
        """Return what a plan is worth by the true models."""
        fresh = Weibull.from_mean(self.mean, self.shape).freshness_every(1.0 / rates)
        return float(self.importance @ fresh / self.importance.sum())


def kept(pages: list[Page]) -> tuple[np.ndarray, np.ndarray, BurstyPages]:
    """Return posteriors, and the models of pages that are found bursty."""
    shape, time = (np.array([page.posterior[at] for page in pages]) for at in (0, 1))
    score, variance, spread = (np.array([getattr(page.bursts, name) for page in pages]) for name in ("score", "variance", "spread"))
    rows = np.flatnonzero(are_bursty(score, variance))
    changes, observations = (np.array([getattr(page, name) for page in pages])[rows] for name in ("changes", "observations"))
    correlation = sure_correlation(score[rows], variance[rows], spread[rows])
    return shape, time, BurstyPages.of_bits(rows, changes, observations, correlation, believed_rates(shape, time, 1.0)[rows])


def crawl(world: World, seed: int, visits: int, *, fitted: bool, spared: bool, jumps: bool = False) -> tuple[float, list[Page]]:
    """Visit each page so many times, on average; return the mean freshness of the plans of the second half, and the pages."""
    end, round_s = visits / world.budget, ROUNDS / world.budget
    draws = np.random.default_rng(seed + 1000).spawn(len(world.mean) + 1)
    pages = [Page(1.0 / world.budget, *model, spared) for model in zip(draws, world.shape, world.mean, strict=False)]
    factors = np.where(draws[-1].random(len(pages)) < 0.5, 10.0, 0.1)
    fresh = []
    for start in np.arange(0.0, end - 1e-9, round_s):
        if jumps and start < end / 2 <= start + round_s:
            for page, factor in zip(pages, factors, strict=True):
                page.jump(factor)
            world = World(world.importance, world.mean / factors, world.shape, world.budget)
        shape, time, bursty = kept(pages)
        rates = world.plan(shape, time, bursty if fitted else None)
        if start >= end / 2:
            fresh.append(100.0 * world.freshness(rates))
        for page, rate in zip(pages, rates, strict=True):
            at = max(page.time + 1.0 / rate, start)
            while at < start + round_s:
                page.visit(at)
                at += 1.0 / rate
    return float(np.mean(fresh)), pages


KINDS = ({"fitted": False, "spared": False}, {"fitted": False, "spared": True}, {"fitted": True, "spared": True})


def known(options: argparse.Namespace) -> None:
    """Print what knowing the models is worth to who knows the mean rates."""
    print("Known: freshness of plans by the true mean rates, and what the true models add")
    print(f"{'shape':>5}{'bursty':>8}{'budget':>8}{'mean rates':>12}{'models':>16}")
    for shape in (0.35, 0.5, 0.7):
        for share in (0.3, 1.0):
            for budget in (0.1, 0.5):
                table = []
                for seed in range(options.seeds):
                    world = World.drawn(np.random.default_rng(seed), options.pages, shape, share, budget)
                    table.append([100.0 * world.freshness(world.best()), 100.0 * world.freshness(world.by_means())])
                gain = interval([best - other for best, other in table])
                means = np.mean(table, axis=0)
                print(f"{shape:>5}{share:>8.0%}{budget:>8}{means[1]:>12.2f}{gain.mean:>+10.2f} ±{gain.error:.2f}", flush=True)


def learned(options: argparse.Namespace, *, jumps: bool) -> None:
    """Print what crawls that learn get."""
    print(f"\n{'Jumping' if jumps else 'Learned'}: freshness, {options.visits} visits a page, {options.pages} pages, {options.seeds} seeds")
    print(
        f"{'shape':>5}{'bursty':>8}{'budget':>8}{'watched':>9}{'spared':>9}{'fitted':>9}{'best':>9}"
        f"{'spared - watched':>19}{'fitted - spared':>19}{'found':>7}{'wrong':>7}"
    )
    kinds = [(1.0, 0.0)] if jumps else [(shape, share) for shape in (0.35, 0.5, 0.7) for share in (0.1, 0.3, 1.0)]
    for shape, share in kinds:
        for budget in (0.3, 1.0):
            table, found, wrong = [], [], []
            for seed in range(options.seeds):
                world = World.drawn(np.random.default_rng(seed), options.pages, shape, share, budget)
                runs = [crawl(world, seed, options.visits, jumps=jumps, **kind) for kind in KINDS]
                mean = np.array([page.mean for page in runs[-1][1]])
                end = World(world.importance, mean, world.shape, budget)
                table.append([run[0] for run in runs] + [100.0 * end.freshness(end.best())])
                is_found = np.array([page.bursts.is_bursty for page in runs[-1][1]])
                found.append(is_found[world.shape < 1.0].mean() if share else 0.0)
                wrong.append(is_found[world.shape == 1.0].mean() if share < 1 else 0.0)
            spared, fitted = (interval([row[at + 1] - row[at] for row in table]) for at in (0, 1))
            print(
                f"{shape:>5}{share:>8.0%}{budget:>8}"
                + "".join(f"{value:>9.2f}" for value in np.mean(table, axis=0))
                + "".join(f"{gain.mean:>+13.2f} ±{gain.error:.2f}" for gain in (spared, fitted))
                + f"{np.mean(found):>7.0%}{np.mean(wrong):>7.1%}",
                flush=True,
            )


def fits(options: argparse.Namespace) -> None:
    """Print how far fitted shapes and means are off, over pages that are found bursty by then."""
    print(
        "\nFits to pages that are rejected by then, visited evenly: mean of shape - true shape, median and middle half of mean / true mean"
    )
    print(f"{'shape':>5}{'interval':>10}{'visits':>8}{'found':>8}{'shape off':>11}{'its sd':>8}{'mean':>8}{'25%':>7}{'75%':>7}")
    rng = np.random.default_rng(1)
    for shape in (0.35, 0.5, 0.7):
        for gap in (0.3, 1.0, 3.0):
            for visits in (100, 300, 1000):
                pages = []
                for _ in range(options.fits):
                    page = Page(1.0, rng, shape, 1.0, True)
                    for visit in range(visits):
                        page.visit(gap * (visit + 1))
                    pages.append(page)
                models = kept(pages)[2]
                if not len(models.rows):
                    continue
                off, low, middle, high = models.shape - shape, *np.percentile(models.mean, [25, 50, 75])
                print(
                    f"{shape:>5}{gap:>10}{visits:>8}{len(off) / len(pages):>8.0%}{off.mean():>+11.3f}{off.std():>8.3f}"
                    f"{middle:>8.2f}{low:>7.2f}{high:>7.2f}",
                    flush=True,
                )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8, metavar="N")
    parser.add_argument("--pages", type=int, default=300, metavar="N")
    parser.add_argument("--visits", type=int, default=400, metavar="N", help="per page, on average")
    parser.add_argument("--fits", type=int, default=200, metavar="N", help="pages of each line of the last table")
    options = parser.parse_args()
    known(options)
    learned(options, jumps=False)
    learned(options, jumps=True)
    fits(options)


if __name__ == "__main__":
    main()
