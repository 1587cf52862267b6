"""A small crawl as it is stored: two hosts, four pages, one plan."""

from __future__ import annotations

from typing import Any

from clocked_store import ClockedStore

from optimal_frontier.cli.identity import identity
from optimal_frontier.frontier.dispatcher import host_of
from optimal_frontier.frontier.patterns import pattern_of
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.records import Handout, NewPage, encode_record

SETTINGS = FrontierSettings.parse({"OPTIMAL_FRONTIER_CRAWL_RATE": 1.0, "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 10.0})

HOT = "http://a.example/hot"
WARM = "http://a.example/warm?x=1"
WORTHLESS = "http://b.example:8080/worthless"
UNSEEN = "http://b.example:8080/unseen"
#: URL -> importance, bits, posterior shape and time (s).
VISITED: dict[str, tuple[float, list[int], float, float]] = {
    HOT: (4.0, [1, 1, 0], 3.0, 10.0),
    WARM: (1.0, [0, 1], 2.0, 20.0),
    WORTHLESS: (0.001, [1], 5.0, 2.0),
}


class Crawl:
    """A stored crawl of four pages on two hosts; `store` is open on it."""

    def __init__(self, store: ClockedStore) -> None:
        self.store = store
        store.add(*(self.page(url, importance=importance) for url, (importance, *_) in VISITED.items()))
        store.visit_all(content=bytes([7] * 20))
        for turn in range(3):
            store.advance(10.0)
            for url, (_, bits, shape, time) in VISITED.items():
                if turn < len(bits):
                    self.visit(url, bit=bits[turn], shape=shape, time=time, lateness=0.1 * (turn + 1))
        planner = Planner(store, SETTINGS)
        self.report = planner.plan()
        assert self.report is not None
        planner.release()
        store.add(self.page(UNSEEN))
        store.advance(0.5)

    def replan(self, **values: Any) -> None:
        """Make a plan under other settings."""
        given = {"CRAWL_RATE": 1.0, "RESOLVE_INTERVAL": 10.0} | values
        settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in given.items()})
        self.report = Planner(self.store, settings).plan()
        assert self.report is not None

    @staticmethod
    def page(url: str, **values: Any) -> NewPage:
        return NewPage(
            identity(url), host_of(url), encode_record({"url": url}), **{"max_rate": 1.0, "gap": 1.0, "pattern": pattern_of(url), **values}
        )

    def visit(self, url: str, outcome: str = "ok", **values: Any) -> None:
        """Force a page, fetch it and observe it."""
        self.force(url)
        self.store.observe(self.lease(url), outcome, horizon=20.0, **values)

    def lease(self, url: str) -> Handout:
        """Hand out one page that is due."""
        mine = None
        for handout in self.store.dispatch(100)[0]:
            if handout.record["url"] == url:
                mine = handout
            else:
                self.store.observe(handout, "released", horizon=20.0)
        assert mine is not None
        return mine

    def force(self, url: str) -> int:
        return int(self.store.run([("force_page", [identity(url)])])[0])

    def slot_of(self, url: str) -> int:
        return int(self.store.command("HGET", self.store.key("ids"), identity(url)))
