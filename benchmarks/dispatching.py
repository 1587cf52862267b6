"""What a visit costs the dispatcher: DISPATCH "edf" against "index", visits a second of dispatch and observe together.

One embedded server, pages whose posteriors stay as they are, fetches that take no time, an "auto" budget; the two in turn, so that what
else the machine does meets both.

    python benchmarks/dispatching.py [PAGES]
"""

from __future__ import annotations

import secrets
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.connection import connect, parse_redis_url
from optimal_frontier.state.embedded import EmbeddedServer
from optimal_frontier.state.records import Handout, NewPage, Observation, encode_record
from optimal_frontier.state.store import Store

PAGES = 20_000
HOSTS = 50
ROUNDS = 5
SECONDS = 1.0
#: Requests asked for at a time.
WANTED = (1, 16, 64)


class Crawl:
    """A crawl whose fetches take no time."""

    def __init__(self, socket: str, dispatch: str, pages: int) -> None:
        # A plan of a whole crawl costs what it costs; here only what is between two counts.
        values = {"DISPATCH": dispatch, "MIN_INTERVAL": 0.001, "RESOLVE_INTERVAL": 1e6, "NAMESPACE": f"bench-{secrets.token_hex(4)}"}
        self.settings = FrontierSettings.parse({f"OPTIMAL_FRONTIER_{name}": value for name, value in values.items()})
        self.store = Store(connect(parse_redis_url(f"unix://{socket}", Path())), self.settings.namespace)
        self.store.open(spider="bench")
        self.dispatcher = Dispatcher(self.store, self.settings)
        rng = np.random.default_rng(1)
        self.posteriors = np.stack([rng.uniform(2.0, 9.0, pages), rng.uniform(5.0, 50.0, pages)], axis=1).tolist()
        weights = rng.uniform(0.5, 2.0, pages).tolist()
        new = [
            NewPage(secrets.token_bytes(20), f"h{i % HOSTS}", encode_record({"url": f"http://h{i % HOSTS}/{i}"}), 1, weights[i], 1e-6, 1e3)
            for i in range(pages)
        ]
        ended: list[Observation] = []
        for at in range(0, pages, 200):
            outcome = self.dispatcher.exchange(Exchange(pages=new[at : at + 200], observations=ended, want=200))
            ended = [self.ended(handout) for handout in outcome.handouts]
        self.dispatcher.exchange(Exchange(observations=ended))
        Planner(self.store, self.settings).plan()

    def ended(self, handout: Handout) -> Observation:
        """The observation of a fetch that took no time."""
        return Observation(handout.slot, handout.token, "ok", time.monotonic(), 0, *self.posteriors[handout.slot], b"", 0.0, 0.0)

    def visits_per_s(self, wanted: int) -> float:
        """Dispatch and observe for a while."""
        ended: list[Observation] = []
        made, began = 0, time.perf_counter()
        while (taken := time.perf_counter() - began) < SECONDS:
            handouts = self.dispatcher.exchange(Exchange(observations=ended, want=wanted)).handouts
            ended = [self.ended(handout) for handout in handouts]
            made += len(handouts)
        self.dispatcher.exchange(Exchange(observations=ended))
        return made / taken


def main() -> None:
    pages = int(sys.argv[1]) if len(sys.argv) > 1 else PAGES
    server = EmbeddedServer(Path(tempfile.mkdtemp(prefix="dispatching-")))
    socket = server.ensure()
    try:
        crawls = {dispatch: Crawl(socket, dispatch, pages) for dispatch in ("edf", "index")}
        for wanted in WANTED:
            measured = [(crawls["edf"].visits_per_s(wanted), crawls["index"].visits_per_s(wanted)) for _ in range(ROUNDS)]
            edf, index = (statistics.median(column) for column in zip(*measured, strict=True))
            ratio = statistics.median(one / other for other, one in measured)
            print(f"{wanted:3} at a time: edf {edf:8,.0f}/s   index {index:8,.0f}/s   index/edf {ratio:.2f}", flush=True)
        counts = crawls["index"].store.counts()
        print(f"index: {counts['evaluations'] / (counts['dispatched'] - pages):.1f} evaluations a visit, {pages:,} pages")
    finally:
        server.release()


if __name__ == "__main__":
    main()
