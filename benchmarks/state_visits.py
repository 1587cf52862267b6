"""What a visit (dispatch and observe) costs the server: the state layer, the first edition, and a bare loop over Redis' commands.

Each has a server of its own; they are measured in turn, so that what else the machine does meets all. CPU is user and system time of the
server by INFO; batches above 64 go as calls of 64 in one pipeline. Every figure is the median of the rounds. Calls over a millisecond are
counted by SLOWLOG, at last while a plan is written between the batches.

    python benchmarks/state_visits.py [--server PROGRAM] [--pages N] [--hosts N] [--rounds N] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

from visits.first_edition import FirstEditionVisits
from visits.partition import BareLoop, PartitionVisits
from visits.server import Server

BATCHES = (16, 64, 256)
#: Visits of one round.
VISITS, FIRST_VISITS = 6000, 1500
#: Seconds between two requests to a host where all are paced: the hosts are busy, and open again a little later.
HOST_DELAY = 0.001
#: Calls that take longer are counted.
SLOW_S = 0.001

SYSTEMS: dict[str, Callable[[Server, int, int], Any]] = {
    "state": PartitionVisits,
    "state unlogged": lambda server, pages, hosts: PartitionVisits(server, pages, hosts, is_logged=False),  # NEIGHBOURHOODS off
    "state paced": lambda server, pages, hosts: PartitionVisits(server, pages, hosts, HOST_DELAY),
    "state shut": lambda server, pages, hosts: PartitionVisits(server, pages, hosts, 0.5),
    "first": FirstEditionVisits,
    "first paced": lambda server, pages, hosts: FirstEditionVisits(server, pages, hosts, HOST_DELAY),
    "loop": lambda server, pages, hosts: BareLoop(server, pages),
}


def visit(system: Any, batch: int, goal: int) -> int:
    made = 0
    while made < goal:
        taken = system.step(batch)
        made += taken
        if not taken:
            raise RuntimeError("nothing was due")
    return made


def measure(server: Server, system: Any, batch: int, goal: int) -> float:
    """Return microseconds of CPU a visit."""
    visit(system, batch, batch)
    before = server.cpu_s()
    made = visit(system, batch, goal)
    spent = server.cpu_s() - before
    system.end()
    return spent / made * 1e6


def visit_under_plan(system: Any, goal: int) -> None:
    """Visit in batches of 64, and write as many numbers of a plan between any two."""
    made = 0
    while made < goal:
        made += system.step(64)
        system.write_plan()
    system.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--hosts", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu", type=int, default=0, help="processor that the servers are bound to")
    parser.add_argument("--only", nargs="+", choices=SYSTEMS, default=["state", "state paced", "first", "loop"])
    given = parser.parse_args()
    made: dict[str, tuple[Server, Any]] = {}
    for name in given.only:
        server = Server(given.server, given.cpu)
        made[name] = server, SYSTEMS[name](server, given.pages, given.hosts)
        system = made[name][1]
        print(json.dumps({"system": name, "bytes_a_page": round(system.page_bytes, 1), "add_us": round(system.add_us, 1)}), flush=True)
    try:
        for batch in BATCHES:
            spent: dict[str, list[float]] = {name: [] for name in made}
            slow: dict[str, list[float]] = {}
            for _ in range(given.rounds):
                for name, (server, system) in made.items():
                    server.watch_calls(SLOW_S)
                    spent[name].append(measure(server, system, batch, FIRST_VISITS if name.startswith("first") else VISITS))
                    slow.setdefault(name, []).extend(server.slow_calls())
            medians = {name: round(statistics.median(values), 1) for name, values in spent.items()}
            ratios = {name: round(medians["first"] / value, 2) for name, value in medians.items()} if "first" in medians else {}
            calls = {name: [len(values), max(values, default=0.0)] for name, values in slow.items()}
            print(
                json.dumps({"batch": batch, "us_a_visit": medians, "first_over_it": ratios, "slow_calls_and_longest_ms": calls}), flush=True
            )
        for name, (server, system) in made.items():
            if hasattr(system, "write_plan"):
                server.watch_calls(SLOW_S)
                visit_under_plan(system, VISITS)
                taken = server.slow_calls()
                print(json.dumps({"system": name, "under_a_plan": [len(taken), max(taken, default=0.0)]}), flush=True)
        for name, (server, system) in made.items():
            if name.startswith("first"):
                continue
            server.log_writes()
            before = server.logged()
            count = visit(system, 64, VISITS)
            system.end()
            print(json.dumps({"system": name, "append_only_bytes_a_visit": round((server.logged() - before) / count)}), flush=True)
    finally:
        for server, system in made.values():
            if hasattr(system, "close"):
                system.close()
            server.close()


if __name__ == "__main__":
    main()
