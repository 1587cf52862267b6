"""What a visit costs the nodes of a cluster of three, against one server; and whether a budget holds over all of its partitions.

CPU is user and system time of the servers by INFO; a visit is a dispatch and an observe, in batches of 64. One server has one partition,
and then as many as the cluster. The three are measured in turn; figures are medians of the rounds. For the budget two crawlers without
downloaders (a dispatcher each, and one planner) fetch pages that are always worth a visit, by the clock; the first seconds do not count.

    python benchmarks/cluster_visits.py [--server PROGRAM] [--pages N] [--hosts N] [--partitions N] [--rounds N] [--seconds N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

from visits.cluster import ClusterNodes
from visits.partition import PartitionVisits
from visits.server import Server, url_of

from optimal_frontier.frontier.admitting.pages import new_page
from optimal_frontier.frontier.dispatching.exchange import Dispatcher, Exchange, Lease
from optimal_frontier.frontier.dispatching.server_watch import ServerWatch
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.connection import connect
from optimal_frontier.state.messages import KEEP, Handout, Observation
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.redis_url import parse_redis_url

BATCH, VISITS = 64, 6000
#: Fetches a second; seconds that do not count: plans find the shares of partitions.
BUDGET, WARM_S = 300.0, 8.0
CRAWLERS = 2


def visit(system: PartitionVisits, goal: int) -> int:
    made = 0
    while made < goal:
        taken = system.step(BATCH)
        made += taken
        if not taken:
            raise RuntimeError("nothing was due")
    return made


def measure(system: PartitionVisits) -> float:
    """Return microseconds of CPU a visit, of all servers together."""
    visit(system, BATCH * system.namespace.partitions)
    before = system.server.cpu_s()
    made = visit(system, VISITS)
    spent = system.server.cpu_s() - before
    system.end()
    return spent / made * 1e6


def measure_nodes(system: PartitionVisits, nodes: ClusterNodes) -> list[float]:
    """Return microseconds of CPU a visit of each node, by the visits of its partitions."""
    before, had = nodes.cpu_s_of_nodes(), list(system.visits)
    visit(system, VISITS)
    spent = [after - one for one, after in zip(before, nodes.cpu_s_of_nodes(), strict=True)]
    system.end()
    made: Counter[int] = Counter()
    for k, count in enumerate(system.visits):
        made[nodes.node_of(system.namespace.prefix(k))] += count - had[k]
    return [spent[node] / made[node] * 1e6 for node in sorted(made)]


class IdealCrawler:
    """A crawler whose fetches take no time, on a thread of its own; it takes whatever it is given."""

    def __init__(self, url: str, name: str, settings: FrontierSettings, hosts: int) -> None:
        self.namespace = Namespace(connect(parse_redis_url(url, Path())), name)
        self.namespace.open(spider="bench", partitions=settings.partitions)
        self.dispatcher = Dispatcher(self.namespace, settings, ServerWatch(self.namespace))
        self.hosts, self.fetches = hosts, list[float]()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def add(self, pages: int, settings: FrontierSettings) -> None:
        for at in range(0, pages, 1000):
            urls = [url_of(i, self.hosts) for i in range(at, min(pages, at + 1000))]
            new = [new_page(settings, uuid.uuid5(uuid.NAMESPACE_URL, url).bytes + b"1234", url, {"url": url}) for url in urls]
            self.dispatcher.exchange(Exchange(pages=new))

    def _run(self) -> None:
        ended: list[tuple[Observation, Lease]] = []
        while not self.stop.is_set():
            outcome = self.dispatcher.exchange(Exchange(ended=ended, want=32))
            now = time.monotonic()
            self.fetches += [now] * len(outcome.handouts)
            ended = [(_seen(handout), Lease.of(handout)) for handout in outcome.handouts]
            if not ended:
                self.stop.wait(min(outcome.wait or 0.0, 0.02))


def _seen(handout: Handout) -> Observation:
    """A visit that found a change every other time, and wants the next one a second later."""
    row = handout.row
    counted = {} if row.attempts else {"pending": -1, "fetched": 1}
    now = handout.server_time(time.monotonic()) * 1e6
    row = row._replace(b=now, a=1.0, s=0.5, e=0.1, l=60.0, visits=row.visits + 1, shape=2.0, time=2.0, observations=row.visits)
    return Observation(handout, KEEP, row, counters={"visits": 1, **counted})


def measure_budget(url: str, pages: int, partitions: int, seconds: float) -> float:
    """Return the fetches a second of all crawlers, as a share of the budget."""
    values = {"PARTITIONS": partitions, "CRAWL_RATE": BUDGET, "RESOLVE_INTERVAL": 2, "MIN_INTERVAL": 0.1, "MAX_INTERVAL": 60}
    settings = FrontierSettings.parse({f"OPTIMAL_FRONTIER_{name}": value for name, value in values.items()})
    name = f"budget-{uuid.uuid4().hex[:6]}"
    crawlers = [IdealCrawler(url, name, settings, hosts=200) for _ in range(CRAWLERS)]
    crawlers[0].add(pages, settings)
    planner_space = Namespace(connect(parse_redis_url(url, Path())), name)
    planner_space.open(spider="bench", partitions=partitions)
    planner = Planner(planner_space, settings)
    for crawler in crawlers:
        crawler.thread.start()
    began = time.monotonic()
    while time.monotonic() < began + WARM_S + seconds:
        due = planner.due_in()
        if due is not None and due <= 0:
            planner.plan()
        time.sleep(0.1)
    ended = time.monotonic()
    for crawler in crawlers:
        crawler.stop.set()
        crawler.thread.join()
    counted = sum(began + WARM_S <= at < ended for crawler in crawlers for at in crawler.fetches)
    return counted / (ended - began - WARM_S) / BUDGET


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--pages", type=int, default=60_000)
    parser.add_argument("--hosts", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--cpu", type=int, default=0, help="processor that the servers are bound to")
    given = parser.parse_args()
    one, several, nodes = Server(given.server, given.cpu), Server(given.server, given.cpu), ClusterNodes(given.server, given.cpu)
    try:
        systems = {
            "one server, one partition": PartitionVisits(one, given.pages, given.hosts),
            "one server": PartitionVisits(several, given.pages, given.hosts, partitions=given.partitions),
            "cluster": PartitionVisits(nodes, given.pages, given.hosts, partitions=given.partitions),
        }
        spent: dict[str, list[float]] = {name: [] for name in systems}
        of_nodes = []
        for _ in range(given.rounds):
            for name, system in systems.items():
                spent[name].append(measure(system))
            of_nodes.append(measure_nodes(systems["cluster"], nodes))
        medians = {name: round(statistics.median(values), 1) for name, values in spent.items()}
        nodes_us = [round(statistics.median(values), 1) for values in zip(*of_nodes, strict=True)]
        print(
            json.dumps(
                {
                    "us_a_visit": medians,
                    "nodes": nodes_us,
                    "worst_node_over_one_server": round(max(nodes_us) / medians["one server, one partition"], 2),
                }
            )
        )
        share = measure_budget(nodes.url, 3000, given.partitions, given.seconds)
        print(json.dumps({"budget": BUDGET, "fetched_over_budget": round(share, 4)}))
    finally:
        for server in (one, several, nodes):
            server.close()


if __name__ == "__main__":
    main()
