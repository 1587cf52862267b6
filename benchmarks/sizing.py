"""The constants of docs/sizing.md: bytes a page of a server by length of URL, bytes of the append-only file a visit and a page that a plan
writes, CPU of the server a visit, and memory of a planner a page.

    python benchmarks/sizing.py [--server PROGRAM] [--pages N] [--planned N N] [--only-planner]

A planner is a process of its own, at two numbers of pages; the memory a page is the slope between them. Its pages have a record of 62
bytes, that of a URL of 60 characters or so. `plans_at_scale.py` goes on to 10 million pages without a server.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
from dataclasses import replace

import numpy as np
from plans import World, opened
from state_visits import measure, visit
from visits.partition import PartitionVisits
from visits.server import Server, host_of

from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import NewPage
from optimal_frontier.state.records import pack_record

#: Characters of a URL.
LENGTHS = (40, 80, 200)
BATCH, VISITS = 64, 6000


class Visits(PartitionVisits):
    """Pages with URLs of one length."""

    def __init__(self, server: Server, pages: int, length: int) -> None:
        self.length = length
        super().__init__(server, pages, max(1, pages // 50))

    def _page(self, i: int, hosts: int) -> NewPage:
        host = host_of(i, hosts)
        url = f"https://{host}/{i}/"
        return replace(super()._page(i, hosts), record=pack_record({"url": url + "x" * (self.length - len(url))}, host))


def measured_server(program: str, pages: int, length: int) -> dict[str, float]:
    server = Server(program, 0)
    try:
        system = Visits(server, pages, length)
        spent = measure(server, system, BATCH, VISITS)
        server.log_writes()
        before = server.logged()
        made = visit(system, BATCH, VISITS)
        system.end()
        logged = (server.logged() - before) / made
        return {"url": length, "bytes_a_page": system.page_bytes, "log_bytes_a_visit": logged, "server_us_a_visit": spent}
    finally:
        server.close()


def peak(socket: str, settings: FrontierSettings, replies: multiprocessing.Queue[tuple[float, int]]) -> None:
    """Plan once in this process, and put the bytes that its memory grew to, and how many pages it wrote."""
    report = Planner(opened(socket), settings).plan()
    replies.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0, report.written if report is not None else 0))


def planner_bytes(program: str, pages: int) -> tuple[float, float]:
    """Return the memory of a first plan, and the bytes of the append-only file for each page that it writes."""
    server = Server(program, 0)
    try:
        namespace = opened(server.socket)
        settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_CRAWL_RATE": pages / 6000.0})
        World(namespace, settings, pages, max(1, pages // 50)).store(np.arange(pages), 0.0)
        namespace.command("HSET", namespace.key("stats"), "fetched", pages, "ended", pages, "pages", pages)
        spawned = multiprocessing.get_context("spawn")
        replies: multiprocessing.Queue[tuple[float, int]] = spawned.Queue()
        server.log_writes()
        before = server.logged()
        process = spawned.Process(target=peak, args=(server.socket, settings, replies))
        process.start()
        memory, written = replies.get()
        process.join()
        return memory, (server.logged() - before) / max(written, 1)
    finally:
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--planned", type=int, nargs=2, default=(50_000, 250_000))
    parser.add_argument("--only-planner", action="store_true")
    given = parser.parse_args()
    for length in LENGTHS if not given.only_planner else ():
        found = measured_server(given.server, given.pages, length)
        print(json.dumps({name: round(value, 1) for name, value in found.items()}), flush=True)
    few, many = given.planned
    (low, _), (high, logged) = planner_bytes(given.server, few), planner_bytes(given.server, many)
    told = {"pages": [few, many], "peak_MB": [round(low / 1e6), round(high / 1e6)], "bytes_a_page": round((high - low) / (many - few))}
    told |= {"log_bytes_a_page_written": round(logged)}
    print(json.dumps({"planner": told}))


if __name__ == "__main__":
    main()
