"""How long the largest call of each script holds the server up: its median, p99.9 and longest time, as SLOWLOG measures it.

SLOWLOG goes by the clock, so what else the machine does is in it: the last line is a bare loop in Lua that touches no key and computes for
about 2 ms, so that its p99.9 is the machine's own. ``cpu`` is what the server's main thread computed for the call, request and reply
included.

python benchmarks/script_times.py [--server PROGRAM] [--pages N] [--hosts N] [--calls N] [--cpu N] [--only KIND ...]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from visits.largest_calls import LargestCalls
from visits.server import Server

from optimal_frontier.state.connection import connect
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.redis_url import parse_redis_url

#: Turns of the bare loop, found so that it takes 2 ms on the processor at hand.
_LOOP = "local n = 0 for i = 1, tonumber(ARGV[1]) do n = n + i end return n"
_LOOP_MS, _TRIED = 2.0, 1_000_000
#: Calls of a kind before the server goes back to its snapshot: some kinds use its pages up.
ROUND = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=2_000)
    parser.add_argument("--calls", type=int, default=1_000, help="of each kind; p99.9 needs a thousand")
    parser.add_argument("--cpu", type=int, default=0, help="processor that the server is bound to; this process keeps off it")
    parser.add_argument("--only", nargs="+", metavar="KIND", help="kinds whose names begin so")
    given = parser.parse_args()
    server = Server(given.server, given.cpu)
    others = os.sched_getaffinity(0) - {given.cpu}
    os.sched_setaffinity(0, others or {given.cpu})  # this process is not what the server waits for
    times: dict[str, list[float]] = {}
    computed: dict[str, list[float]] = {}
    try:
        space = Namespace(connect(parse_redis_url(f"unix://{server.socket}", Path())), "bench")
        space.open(spider="bench")
        calls = LargestCalls(space, given.pages, given.hosts)
        server.keep()
        full = calls.visited[:], calls.waiting[:]
        loop = server.client.register_script(_LOOP)
        turns = turns_of_loop(server, loop)
        for begin in range(0, given.calls, ROUND):
            server.restore()
            server.watch_calls(0.0)
            calls.visited, calls.waiting = full[0][:], full[1][:]
            for kind, make in calls.kinds.items():
                if given.only and not kind.startswith(tuple(given.only)):
                    continue
                for _ in range(min(ROUND, given.calls - begin)):
                    call = make()
                    server.client.slowlog_reset()
                    before = server.computed_ms()
                    space.run([call])
                    computed.setdefault(kind, []).append(server.computed_ms() - before)
                    times.setdefault(kind, []).append(server.slow_calls()[0])
            for _ in range(min(ROUND, given.calls - begin)):
                server.client.slowlog_reset()
                before = server.computed_ms()
                loop(args=[turns])
                computed.setdefault("bare loop", []).append(server.computed_ms() - before)
                times.setdefault("bare loop", []).append(server.slow_calls()[0])
        calls.close()
    finally:
        server.close()
    for kind in sorted(times, key=lambda kind: kind == "bare loop"):  # which comes last
        told = times[kind]
        figures = {name: rounded(values) for name, values in (("slowlog_ms", told), ("cpu_ms", computed[kind]))}
        print(json.dumps({"call": kind, "calls": len(told), **figures}))


def turns_of_loop(server: Server, loop: Callable[..., object]) -> int:
    """How often the bare loop must turn to take its time."""
    found = []
    for _ in range(5):
        before = server.computed_ms()
        loop(args=[_TRIED])
        found.append(server.computed_ms() - before)
    return round(_TRIED * _LOOP_MS / min(found))


def rounded(values: list[float]) -> list[float]:
    """Median, p99.9, longest."""
    return [round(float(value), 3) for value in (*np.percentile(values, [50, 99.9]), max(values))]


if __name__ == "__main__":
    main()
