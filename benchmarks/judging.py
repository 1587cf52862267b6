"""What it costs to judge a visit, and to make the numbers of a page, in us.

The least of many short runs, so that a busy machine says the same:

python benchmarks/judging.py
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from functools import partial

import numpy as np

from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.judge import Context, judge, told
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.validators import Validators
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.frontier.judging.waits import Terms, numbers_of, priced_numbers
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import Handout
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import LAYOUT, Row

AT = 1.7e9
PAGES = 2000


def least_us(run: Callable[[], object], times: int = 100) -> float:
    return min(timeit.repeat(run, number=times, repeat=300)) / times * 1e6


def main() -> None:
    settings = FrontierSettings.parse({})
    published = Published(3, AT, 6.0, 5000.0, host_prices={2: 0.5})
    context = Context(settings, published, Recent())
    row = Row(host=1, b=(AT - 1000) * 1e6, e=1.0, l=2e6, max_interval=2.5e6, shape=3.0, time=3000.0, visits=4, observations=3, changes=2)
    row = row._replace(bits=5, watch_shape=1.0, watch_time=500.0, variance=0.1, spread=0.1, tag=7, content=b"o" * 16)
    handout = Handout(0, b"p" * 12, 1.0, AT, 100.0, 0.5, 6.0, row, 0.0, {"url": "http://h/a"}, "h")
    visits = {
        "unchanged": Visit(101.0, fingerprint=Fingerprint(b"o" * 16, 7), sections=list, size=1000),
        "changed": Visit(101.0, fingerprint=Fingerprint(b"n" * 16, 7), sections=list, size=1000),
        "304": Visit(101.0, status=304, asked=Validators(b'"1"'), validators=Validators(b'"1"')),
        "500": Visit(101.0, "500"),
        "404": Visit(101.0, "404"),
    }
    for name, visit in visits.items():
        print(f"judge, {name:12} {least_us(partial(judge, handout, visit, context)):6.1f}")
    observation = judge(handout, visits["unchanged"], context)
    print(f"told {least_us(partial(told, handout, observation, context)):20.1f}")
    for policy in ("periodic", "poisson"):
        terms = Terms(6.0, published, FrontierSettings.parse({"OPTIMAL_FRONTIER_POLICY": policy}))
        table = np.repeat(np.frombuffer(row.pack(), LAYOUT), PAGES)
        pages = np.frombuffer(np.random.default_rng(1).bytes(12 * PAGES), "V12")
        print(f"numbers_of, {policy:10} {least_us(partial(numbers_of, row, handout.page, terms)):6.1f}")
        many = least_us(partial(priced_numbers, table, pages, terms, AT), 1) / PAGES
        print(f"priced_numbers, {policy:9} {many:4.2f} a page")


if __name__ == "__main__":
    main()
