"""The inner loop of simulated crawls, compiled with numba where that is installed (the extra ``simulation``), else as it is.

numba is told which functions of `estimation`, `optimization` and `scheduling` compiled code may call, and compiles them from their own
source. Three of them use what it cannot compile; they are stated again here, and a test holds the crawls equal, visit for visit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from optimal_frontier.estimation import bursts, change_points, filtering, median
from optimal_frontier.estimation.bursts import Bursts
from optimal_frontier.estimation.forgetting import RESIDUE
from optimal_frontier.optimization import single
from optimal_frontier.scheduling import numbers, price_law
from optimal_frontier.simulation import believing, crawling

#: Compiling takes about as long as so many visits do without it.
WORTH_COMPILING = 150_000


def has_compiler() -> bool:
    """Return whether numba is installed."""
    try:
        import numba  # noqa: F401  # heavy, and only wanted where a crawl is long
    except ImportError:
        return False
    return True


def run_slots(
    crawl: crawling.Crawl, belief: believing.Belief, end: int, *, learn: crawling.Learn = believing.learn_bit, compiled: bool = False
) -> None:
    """Make the visits of all slots before number ``end``; compiled code learns from bits alone."""
    if compiled:
        loop, learn_compiled = compiled_loop()
        loop(crawl, belief, learn_compiled, end)
    else:
        crawling.crawl_until(_plain(crawl), _plain(belief), learn, end)


def _plain(arrays: Any) -> Any:
    """The same memory, whose elements are read as plain Python numbers: 3 times as fast as numpy's."""
    return type(arrays)(*(memoryview(array) for array in arrays))


@cache
def compiled_loop() -> tuple[Callable[..., None], Callable[..., float]]:
    """Return `crawl_until` and `learn_bit`, compiled; takes some seconds once in a process."""
    from numba import njit
    from numba.extending import overload, register_jitable

    for function in (
        filtering.update_one,
        change_points._log_probability_of_one,
        single.changes_per_visit,
        numbers.wait_at_price,
        numbers.numbers_at,
        price_law.rank,
        price_law.log_price_after,
        crawling.come_back,
        crawling.renumber,
        crawling.due,
        crawling.hand_out,
    ):
        register_jitable(function)

    small, middle, large = (np.array(series) for series in median._coefficients())
    low, high, largest = median._LOW, median._HIGH, median._LARGEST

    @njit
    def chebyshev(coefficients: Any, x: float) -> float:
        after = before = 0.0
        for k in range(len(coefficients) - 1, 0, -1):
            after, before = coefficients[k] + 2.0 * x * after - before, after
        return float(coefficients[0] + x * after - before)

    @overload(median.median_one)
    def _(shape: Any, time: Any) -> Any:
        def one(shape: Any, time: Any) -> Any:
            if shape > high:
                return min((shape + chebyshev(large, 2.0 * high / shape - 1.0)) / time, largest)
            if shape <= low:
                log_median = chebyshev(small, shape * (2.0 / low) - 1.0) / shape
            else:
                log_median = chebyshev(middle, (shape - low) * (2.0 / (high - low)) - 1.0) / shape
            return min((np.exp(log_median) if log_median > -745.0 else 0.0) / time, largest)

        return one

    @overload(bursts.follow_bursts)
    def _(bursts: Any, probability: Any, changed: Any) -> Any:
        def follow(bursts: Any, probability: Any, changed: Any) -> Any:
            surprise, spread = changed - probability, probability * (1.0 - probability)
            if bursts.last == 0.0:
                return Bursts(surprise, bursts.score, bursts.variance, bursts.spread)
            score = bursts.score + bursts.last * surprise
            return Bursts(surprise, score, bursts.variance + spread * bursts.last * bursts.last, bursts.spread + spread)

        return follow

    memory, residue, alarming = change_points.MEMORY, RESIDUE, change_points.ALARM

    @overload(change_points.watch_one)
    def _(watch: Any, shape: Any, time: Any, prior_shape: Any, prior_time: Any, interval: Any, changed: Any) -> Any:
        # Annotations are those of the outer function: numba compares them.
        def watch_page(watch: Any, shape: Any, time: Any, prior_shape: Any, prior_time: Any, interval: Any, changed: Any) -> Any:
            a0, b0 = residue * prior_shape, residue * prior_time
            recent_shape, recent_time = a0, b0
            if watch[0] > 0:
                recent_shape, recent_time = a0 + memory * (watch[0] - a0), b0 + memory * (watch[1] - b0)
            more = change_points._log_probability_of_one(recent_shape, recent_time, interval, changed)
            more -= change_points._log_probability_of_one(shape, time, interval, changed)
            evidence = max(watch[2] + more, 0.0)
            alarm = evidence > alarming
            recent_shape, recent_time = filtering.update_one(recent_shape, recent_time, interval, changed)
            return (recent_shape, recent_time, 0.0 if alarm else evidence), alarm

        return watch_page

    return njit(crawling.crawl_until), njit(believing.learn_bit)
