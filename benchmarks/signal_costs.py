"""What it costs a crawler that a source of signals watches a page: CPU time of a visit, us, beside that of a page that nobody watches.

A visit is judged, told to the callback, and what it teaches is taken in, as the courier does. Pages differ, so no cache of one helps.
Medians of many short runs in turn, CPU time of this process:

python benchmarks/signal_costs.py [--repeats 60]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation.signal_sources import SignalSource, SignalVisit
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.judge import Context, judge, told
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.source_worths import LESSONS_EVERY
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory, Signals
from optimal_frontier.state.messages import Handout
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import Row

AT = 1.7e9
PAGES = 500
CONTEXT = Context(FrontierSettings.parse({}), Published(3, AT, 6.0, 5000.0), Recent())
SOURCES = ("h sitemap", "h feed")


def handouts(signals: Sequence[Signals], seed: int = 1) -> list[Handout]:
    """Visits of pages that change once in about 1,000 s, of which sources have said so much."""
    rng, made = np.random.default_rng(seed), []
    row = Row(host=1, e=1.0, l=2e6, max_interval=2.5e6, watch_shape=1.0, visits=4, observations=3, changes=2, bits=5, tag=7)
    row = row._replace(directory=5, content=b"o" * 16, watch_time=500.0, variance=0.1, spread=0.1)
    memory = Memory(signals=tuple(signals))
    for at in range(PAGES):
        one = row._replace(
            visits=4 + at % LESSONS_EVERY, b=(AT - 500 - 1000 * rng.random()) * 1e6, shape=2.0 + 2.0 * rng.random(), time=3000.0
        )
        made.append(
            Handout(0, at.to_bytes(12, "little"), 1.0, AT, 100.0, 0.5, 6.0, one, 0.0, {"url": f"http://h/{at}"}, "h", memory=memory)
        )
    return made


def visit_us(pages: Sequence[Handout], visit: Visit) -> float:
    """CPU time of a visit."""
    began = time.process_time()
    for page in pages:
        observation = judge(page, visit, CONTEXT)
        told(page, observation, CONTEXT)
        CONTEXT.recent.sources.take(observation.lessons)
    CONTEXT.recent.sources.lessons(at_once=True)
    return (time.process_time() - began) / len(pages) * 1e6


def compared(signals: Sequence[Signals], visit: Visit, repeats: int) -> NDArray[np.float64]:
    """CPU time of a visit to a page that nobody watches, of one to a page that is watched, and the difference: medians.

    In turn, as a busy machine has slow seconds.
    """
    plain, watched = handouts(()), handouts(signals)
    found = np.array([(visit_us(plain, visit), visit_us(watched, visit)) for _ in range(repeats)])
    medians: NDArray[np.float64] = np.median(np.column_stack([found, found[:, 1] - found[:, 0]]), axis=0)
    return medians


def record(visits: int) -> tuple[float, ...]:
    """A source of recall 0.6 with half as many false signals as true ones, after so many visits."""
    rng, source = np.random.default_rng(2), SignalSource()
    for _ in range(visits):
        changed = bool(rng.random() < 0.6)
        signals = int(changed and rng.random() < 0.6) + int(rng.random() < 0.3)
        source = source.after(SignalVisit(1000.0, signals, changed, 1e-3, 3.0))
    return (*source[:5], *source.likelihoods)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=60)
    repeats = parser.parse_args().repeats
    same = Visit(101.0, fingerprint=Fingerprint(b"o" * 16, 7), sections=list, size=1000)
    other = replace(same, fingerprint=Fingerprint(b"n" * 16, 7))
    worlds = {
        "silent": (Signals(SOURCES[0], AT - 1e6, AT - 1e6),),
        "one signal": (Signals(SOURCES[0], AT - 1e6, AT - 10, n=1),),
        "two sources, one signal": (Signals(SOURCES[0], AT - 1e6, AT - 10, n=1), Signals(SOURCES[1], AT - 1e6, AT - 1e6)),
    }
    print(f"{'us a visit':44} {'unwatched':>10} {'watched':>10} {'more':>8}")
    with_one = []
    for known, visits in (("new source", 0), ("known a little", 60), ("known well", 2000)):
        CONTEXT.recent.sources.learn(dict.fromkeys(SOURCES, record(visits)))
        for name, signals in worlds.items():
            for bit, visit in (("unchanged", same), ("changed", other)):
                plain, watched, more = compared(signals, visit, repeats)
                print(f"{f'{known}, {name}, {bit}':44} {plain:10.1f} {watched:10.1f} {more:8.1f}", flush=True)
                if len(signals) == 1:
                    with_one.append(more)
    print(f"one source, median of the cases: {statistics.median(with_one):.1f} us more")


if __name__ == "__main__":
    main()
