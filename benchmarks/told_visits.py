"""What signals and clocks of neighbourhoods cost a visit: CPU of a crawler, of its planner's looks and of the server, beside neither.

Pages lie in sections that change as a whole, now and then. Where a feed watches them, it tells of six in ten changes, and half as often of
none. A crawl with neither, with the feed, with clocks and with both take turns, each on a server of its own, so that what else the
machine does meets all alike. In a step the crawler takes handouts, judges and tells callbacks, learns of the feed, and ends leases; when a
32nd of the pages were visited, the planner looks. CPU of the server is by INFO, of this process by the clock of its CPU: medians over
some looks at a time, and the least of these, which says the same on a busy machine.

Pages that are watched go by their sources, so looks only learn of them. With both, all pages but one in eight are watched. The sum of the
two apart is the most that any page can cost. Last comes what it costs to take in a word of the feed, which is no part of a visit.

    python benchmarks/told_visits.py [--pages N] [--rounds N] [--changed CHANGES]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterable
from dataclasses import replace

from visits.partition import PartitionVisits
from visits.server import Server

from optimal_frontier.frontier.dispatching.word_taking import take_in
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.judge import Context, judge, told
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.frontier.judging.waits import Terms
from optimal_frontier.frontier.planning.clock_keeper import LOOKS_A_ROUND
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.frontier.planning.publishing import LivePrice
from optimal_frontier.integrations.scrapy.garbage import Collections
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory, Signals
from optimal_frontier.state.messages import Announcement, Handout, NewPage, Observation
from optimal_frontier.state.namespace import Call
from optimal_frontier.state.partition import Ask, dispatch_call, observe_calls, parse_dispatch
from optimal_frontier.state.rows import Row
from optimal_frontier.state.source_records import learn_calls, read_sources

#: Visits of a step, and looks of which the cost is found together.
BATCH, LOOKS = 64, 4
HOSTS, SECTION = 50, 20
#: Share of the changes that the feed tells of, and false signals for each change.
RECALL, FALSE = 0.6, 0.3
#: In the crawl with both, one page of so many is not watched.
UNWATCHED = 8
#: Seconds that plans take a round for, about as long as one of 20,000 pages takes here; and the least interval: fewer pages are visited
#: sooner than planned, and calls would find the head of the queue full of pages that may not be visited again yet.
ROUND_S, LEAST_S = 12.0, 0.01
CRAWLS = {"neither": (False, False), "feed": (True, False), "clocks": (False, True), "both": (True, True)}


class Crawl(PartitionVisits):
    """Page i is in section i // SECTION; its visits are judged."""

    def __init__(self, server: Server, pages: int, has_feed: bool, has_clocks: bool) -> None:
        self.has_feed, self.has_clocks, self.changed, self.seen = has_feed, has_clocks, set[bytes](), list[Observation]()
        self.settings = FrontierSettings.parse(
            {
                "OPTIMAL_FRONTIER_CRAWL_RATE": pages / ROUND_S,
                "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 60.0,
                "OPTIMAL_FRONTIER_MIN_INTERVAL": LEAST_S,
                "OPTIMAL_FRONTIER_NEIGHBOURHOODS": has_clocks,
            }
        )
        self.recent, self.spent = Recent(), dict.fromkeys(("crawler", "planner", "server"), 0.0)
        self.context: Context | None = None
        super().__init__(server, pages, HOSTS, is_logged=has_clocks)
        self._run([Call(0, "take_planner_lock", ["bench", 0])])
        if has_feed:
            self._tell(i for i in range(pages) if not has_clocks or i % UNWATCHED)
        self.planner = Planner(self.namespace, self.settings)
        self.planner.plan()
        self.terms = self._terms()

    def _page(self, i: int, hosts: int) -> NewPage:
        new, section = super()._page(i, hosts), i // SECTION
        row = new.row._replace(directory=(section % 65_535 + 1) << 16 | section % 999 + 1, pattern=section + 1, max_interval=1e6)
        return NewPage(new.page, f"host{section % hosts}.example", row, 0.0, new.record)

    def _terms(self) -> Terms:
        live = LivePrice.read(self.namespace, 0)
        self.context = Context(self.settings, live.published, self.recent)
        return Terms(live.log_price, live.published, self.settings)

    def _source(self, i: int) -> str:
        return f"host{i // SECTION % HOSTS}.example feed"

    def _tell(self, pages: Iterable[int], n: int = 0) -> None:
        """Remember of pages that their feeds watch them, and have told of so many changes."""
        now = time.time()
        packed = [(self.ids[i], Memory(signals=(Signals(self._source(i), now - 1e6, now - 1.0, n),)).pack()) for i in pages]
        if packed:
            self.namespace.command("HSET", self.namespace.key("memory"), *(part for pair in packed for part in pair))

    def begin(self, share: float) -> None:
        """Let a share of the sections change, and the feeds tell of it."""
        false, told = FALSE * share, []
        for section in range(self.pages // SECTION):
            changes, pages = self.rng.random() < share, range(section * SECTION, (section + 1) * SECTION)
            if changes:
                self.changed.update(self.ids[i] for i in pages)
            told += [i for i in pages if self.rng.random() < (RECALL if changes else false)]
        if self.has_feed:
            self._tell((i for i in told if not self.has_clocks or i % UNWATCHED), 1)

    def _ended(self) -> list[Call]:
        tokens = [seen.handout.token for seen in self.seen]
        return observe_calls(0, self.seen, tokens, is_logged=self.is_logged)

    def step(self, n: int, share: float = 0.2) -> int:
        server, began = self.server.cpu_s(), time.process_time()
        results = self._run([*self._ended(), dispatch_call(0, Ask(n, share=share))])
        handouts = parse_dispatch(0, results[-1]).handouts
        sources = self.recent.sources
        sources.take([lesson for seen in self.seen for lesson in seen.lessons])
        lessons = sources.lessons()
        if lessons:
            self._run(learn_calls(self.namespace, lessons))
        stale = sources.stale([told.source for handout in handouts for told in handout.memory.signals])
        if stale:
            sources.learn(read_sources(self.namespace, stale))
        self._spend("crawler", began)
        self.spent["server"] += self.server.cpu_s() - server
        visits = [self._visit(handout) for handout in handouts]
        context = self.context or Context(self.settings, LivePrice.read(self.namespace, 0).published, self.recent)
        began = time.process_time()
        self.seen = [judge(handout, visit, context) for handout, visit in zip(handouts, visits, strict=True)]
        for handout, seen in zip(handouts, self.seen, strict=True):
            told(handout, seen, context)
        self._spend("crawler", began)
        return len(handouts)

    def _visit(self, handout: Handout) -> Visit:
        content = self.rng.randbytes(16) if handout.page in self.changed else bytes(handout.row.content)
        self.changed.discard(handout.page)
        return Visit(time.monotonic(), fingerprint=Fingerprint(content, 7), sections=list, size=1000)

    def look(self) -> None:
        """End the visits under way, and let the planner look."""
        self.end()
        if self.has_clocks:
            server, began = self.server.cpu_s(), time.process_time()
            self.planner.look()
            self._spend("planner", began)
            self.spent["server"] += self.server.cpu_s() - server

    def end(self) -> None:
        self._run(self._ended())
        self.seen = []

    def _spend(self, what: str, began: float) -> None:
        self.spent[what] += time.process_time() - began

    def taken_in(self, words: int) -> tuple[float, float]:
        """Return what it costs to take in a word that moves a page, us of this process and of the server."""
        source, some = self._source(0), [self.ids[i] for i in range(words) if i // SECTION % HOSTS == 0]
        row = NewPage(b"", "host0.example", Row(), 0.0, b"")
        new = [replace(row, page=page, lastmod=(time.time(), 1.0), announcement=Announcement(source, 1.0)) for page in some]
        server, began = self.server.cpu_s(), time.process_time()
        take_in(self.namespace, {0: new}, lambda _: self.terms)
        return (time.process_time() - began) / len(some) * 1e6, (self.server.cpu_s() - server) / len(some) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=16, help=f"each of {LOOKS} looks")
    parser.add_argument("--changed", type=float, default=0.5, help="changes of a section in a round")
    given = parser.parse_args()
    Collections().begin()  # as in a crawl
    servers = [Server("redis-server", 0) for _ in CRAWLS]
    try:
        crawls = {name: Crawl(server, given.pages, *has) for (name, has), server in zip(CRAWLS.items(), servers, strict=True)}
        found: dict[str, list[dict[str, float]]] = {name: [] for name in CRAWLS}
        for _ in range(given.rounds):
            for name, crawl in crawls.items():
                crawl.spent, made = dict.fromkeys(crawl.spent, 0.0), 0
                for _ in range(LOOKS):
                    crawl.begin(given.changed / LOOKS_A_ROUND)
                    goal = made + given.pages // LOOKS_A_ROUND
                    while made < goal:
                        made += crawl.step(BATCH)
                    crawl.look()
                found[name].append({what: spent / made * 1e6 for what, spent in crawl.spent.items()})
        for of, typical in (("median", statistics.median), ("least", min)):
            figures = {name: {what: typical([one[what] for one in rounds]) for what in rounds[0]} for name, rounds in found.items()}
            for name, figure in figures.items():
                more = {what: round(figure[what] - figures["neither"][what], 1) for what in figure}
                print(json.dumps({of: name, "us_a_visit": {what: round(us, 1) for what, us in figure.items()}, "more": more}))
        keepers = {name: crawl.planner.keeper for name, crawl in crawls.items()}
        print(json.dumps({name: keeper.fields(0) for name, keeper in keepers.items() if keeper is not None}))
        print(json.dumps({"us_a_word_taken_in": [round(us, 1) for us in crawls["feed"].taken_in(given.pages)]}))
    finally:
        for server in servers:
            server.close()


if __name__ == "__main__":
    main()
