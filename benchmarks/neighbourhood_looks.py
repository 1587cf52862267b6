"""What clocks of neighbourhoods cost a visit: CPU of the planner's looks and of the server, beside the visits themselves.

Pages lie in sections, some of which change as a whole at any time, so that gates are open and deadlines move. Each look takes in about a
32nd of a round of visits. CPU of the server is by INFO, of this process by the clock of its CPU. The log of visits itself is in the
visits; `state_visits.py --only state "state unlogged"` tells what it costs the server.

    python benchmarks/neighbourhood_looks.py [--pages N] [--looks N] [--section N]
"""

from __future__ import annotations

import argparse
import json
import time

from visits.partition import PartitionVisits
from visits.server import Server

from optimal_frontier.frontier.planning.clock_keeper import LOOKS_A_ROUND
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.messages import KEEP, NewPage, Observation
from optimal_frontier.state.namespace import Call
from optimal_frontier.state.partition import observe_calls
from optimal_frontier.state.visit_log import pack_visits

#: Share of the sections that have changed when a look begins.
CHANGED = 0.05


class SectionVisits(PartitionVisits):
    """Page i is in section i // section of its host."""

    section, changed = 20, frozenset[int]()

    def _page(self, i: int, hosts: int) -> NewPage:
        new = super()._page(i, hosts)
        section = i // self.section
        row = new.row._replace(directory=(section % 65_535 + 1) << 16 | section % 999 + 1, pattern=section + 1, max_interval=1e6)
        return NewPage(new.page, f"host{section % hosts}.example", row, 0.0, new.record)

    def _ended(self) -> list[Call]:
        seen = []
        for handout in self.held:
            old = handout.row
            bit = -1 if old.visits == 0 else int(old.pattern - 1 in self.changed)
            wait = self.pages / 5000 * self.rng.uniform(0.5, 1.5)
            b = handout.server_time(time.monotonic()) * 1e6
            row = old._replace(b=b, a=wait, s=wait / 2, e=0.0, l=1e6, visits=old.visits + 1, shape=3.0, time=60.0)
            seen.append(Observation(handout, KEEP, row, lateness=0.0, counters={"visits": 1, "fetched": int(not old.visits)}, bit=bit))
        self.seen = seen
        return observe_calls(0, seen, [handout.token for handout in self.held], is_logged=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--looks", type=int, default=48)
    parser.add_argument("--section", type=int, default=20, help="pages of a section")
    given = parser.parse_args()
    SectionVisits.section = given.section
    server = Server("redis-server", 0)
    try:
        visits = SectionVisits(server, given.pages, given.hosts)
        visits._run([Call(0, "take_planner_lock", ["bench", 0])])
        settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_CRAWL_RATE": given.pages / 10.0, "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 60.0})
        planner = Planner(visits.namespace, settings)
        assert planner.keeper is not None
        planner.plan()
        made = written = 0
        looks_s = server_s = packing_s = 0.0
        for _ in range(given.looks):
            visits.changed = frozenset(visits.rng.sample(range(given.pages // given.section), int(CHANGED * given.pages / given.section)))
            goal = made + given.pages // LOOKS_A_ROUND
            while made < goal:
                made += visits.step(64) or 64
                began = time.process_time()
                pack_visits(visits.seen)
                packing_s += time.process_time() - began
            visits.end()
            before, began = server.cpu_s(), time.process_time()
            written += planner.look()
            looks_s += time.process_time() - began
            server_s += server.cpu_s() - before
        began, before = time.process_time(), server.cpu_s()
        planner.keeper.store(0, visits.namespace.run([Call(0, "take_planner_lock", ["bench", 1000])])[0])
        stored_s, stored_server_s = time.process_time() - began, server.cpu_s() - before
        print(json.dumps({"visits": made, "written_a_visit": round(written / made, 2), **planner.keeper.fields(0)}))
        figures = {"looks": looks_s, "packing": packing_s, "storing": stored_s, "server_looks": server_s, "server_storing": stored_server_s}
        print(json.dumps({f"{name}_us_a_visit": round(value / made * 1e6, 1) for name, value in figures.items()}))
    finally:
        server.close()


if __name__ == "__main__":
    main()
