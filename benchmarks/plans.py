"""What a plan costs: seconds by share of the pages that were visited since the last one, and how long dispatch waits meanwhile.

    python benchmarks/plans.py [--pages 1000000] [--hosts 20000] [--server redis-server] [--own-time]

A private server on a unix socket; rows are written as judges leave them. While a plan is made, another process hands out 64 pages at a
time, as many as the budget has, and ends their leases; its waits are printed.

With ``--own-time`` (needs cc) the server's SLOWLOG counts the processor time of calls: by the wall's clock, which goes on while somebody
else has the processor, virtual machines stop a call in a thousand for 5 to 20 ms. The wall's clock then holds for all other figures.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from optimal_frontier.frontier.judging.waits import Terms, numbers_of, priced_numbers
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.connection import connect
from optimal_frontier.state.messages import KEEP, Observation
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import Ask, dispatch_call, observe_calls, parse_dispatch
from optimal_frontier.state.published import Published
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import ACTIVE, LAYOUT, pack_tail

MINUTE = 60.0


def opened(socket: str) -> Namespace:
    namespace = Namespace(connect(parse_redis_url(f"unix://{socket}", Path())), "plans")
    namespace.open(spider="benchmark")
    return namespace


def last_plan(namespace: Namespace) -> Published:
    get = [["GET", namespace.key(name)] for name in ("priors", "prices")]
    return Published.parse(namespace.hash("plan"), *namespace.commands(get))


class World:
    """Pages as judges have left them: every one was visited, and is known by some bits."""

    def __init__(self, namespace: Namespace, settings: FrontierSettings, pages: int, hosts: int) -> None:
        rng = np.random.default_rng(1)
        self.namespace, self.settings, self.rng = namespace, settings, rng
        self.ids = rng.bytes(12 * pages)
        self.rows = np.zeros(pages, LAYOUT)
        self.rows["state"], self.rows["visits"] = ACTIVE, 5
        self.rows["host"] = 1 + rng.integers(0, hosts, pages)
        self.rows["pattern"] = self.rows["host"] * 3 + rng.integers(0, 3, pages)
        self.rows["importance"] = rng.uniform(0.1, 5, pages)
        self.rows["min_interval"], self.rows["max_interval"] = 1.0, 30 * 86400.0
        self.learn(np.arange(pages))
        self.rows["b"] = round(namespace.now() * 1e6) - rng.integers(0, 10**10, pages)
        self.rows["a"], self.rows["l"] = np.inf, 30 * 86400.0
        self.tail = pack_tail(0.0, b"\x01/" + b"x" * 60)

    def learn(self, at: np.ndarray) -> None:
        self.rows["shape"][at] = self.rng.uniform(0.5, 9, len(at))
        self.rows["time"][at] = 10 ** self.rng.uniform(3, 7, len(at))

    def visit(self, at: np.ndarray, published: Published, log_price: float) -> None:
        """Give pages new posteriors and the numbers that a judge would make, as of now."""
        self.learn(at)
        self.rows["b"][at] = round(self.namespace.now() * 1e6)
        self.rows["visits"][at] += 1
        ids = np.frombuffer(self.ids, "V12")[at]
        made = priced_numbers(self.rows[at], ids, Terms(log_price, published, self.settings), -np.inf)
        for name, values in zip(("a", "s", "e", "l"), made, strict=True):
            self.rows[name][at] = np.minimum(values, np.where(np.isinf(values), np.inf, 3e38))

    def store(self, at: np.ndarray, log_price: float) -> None:
        client, key = self.namespace.connection.client_of(self.namespace.prefix(0)), self.namespace.key
        heads, rows = self.rows.tobytes(), self.rows
        with np.errstate(invalid="ignore"):
            wait = np.clip(rows["a"].astype(float) + rows["s"] * log_price, rows["e"], rows["l"])
        due = (np.minimum(rows["b"] + wait * 1e6, 9e15) // 2 * 2).tolist()
        size = LAYOUT.itemsize
        client.config_set("slowlog-log-slower-than", -1)  # no call of a crawl or a plan
        for start in range(0, len(at), 2000):
            some = at[start : start + 2000].tolist()
            names = [self.ids[12 * i : 12 * i + 12] for i in some]
            pipe = client.pipeline(transaction=False)
            pipe.hset(key("pages"), mapping={n: heads[size * i : size * i + size] + self.tail for n, i in zip(names, some, strict=True)})
            pipe.zadd(key("q"), {n: due[i] for n, i in zip(names, some, strict=True)})
            pipe.execute()
        client.config_set("slowlog-log-slower-than", 5000)


def hand_out(socket: str, settings: FrontierSettings, stop: Any, waits: Any) -> None:
    """Dispatch and observe, within the budget, until told to stop; put the seconds of each call."""
    assert settings.crawl_rate is not None
    budget = settings.crawl_rate
    namespace, found, published = opened(socket), [], Published()
    while not stop.is_set():
        began = time.perf_counter()
        reply = namespace.run([dispatch_call(0, Ask(64, budget=budget))])[0]
        found.append(time.perf_counter() - began)
        dispatched = parse_dispatch(0, reply)
        if dispatched.plan > published.number:
            published = last_plan(namespace)
        ended = []
        for handout in dispatched.handouts:
            row = handout.row._replace(b=round(handout.at * 1e6), visits=handout.row.visits + 1)
            a, s, e, longest = numbers_of(row, handout.page, Terms(dispatched.log_price, published, settings))
            ended.append(Observation(handout, KEEP, row._replace(a=a, s=s, e=e, l=longest), counters={"visits": 1}))
        if ended:
            namespace.run(observe_calls(0, ended, [seen.handout.token for seen in ended]))
        time.sleep(max(0.01, 64 / budget - (time.perf_counter() - began)))
    waits.put(found)


def measured(planner: Planner, socket: str, what: str) -> None:
    """Plan once beside a crawler, and print what it took."""
    stop = multiprocessing.Event()
    waits: multiprocessing.Queue[list[float]] = multiprocessing.Queue()
    crawler = multiprocessing.Process(target=hand_out, args=(socket, planner.settings, stop, waits), daemon=True)
    crawler.start()
    time.sleep(0.5)
    info = planner.namespace.connection.client_of(planner.namespace.prefix(0)).info("cpu")
    began, cpu = time.perf_counter(), time.process_time()
    report = planner.plan()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    after = planner.namespace.connection.client_of(planner.namespace.prefix(0)).info("cpu")
    stop.set()
    found = np.array(waits.get()) * 1e3
    crawler.join()
    server = sum(after[name] - info[name] for name in ("used_cpu_user", "used_cpu_sys"))
    assert report is not None, what
    print(
        f"{what:34s} {seconds:6.2f} s, CPU {cpu:6.2f} s, server {server:5.2f} s with dispatch, "
        f"read {report.read:9,d}, sent {report.queued:9,d}, "
        f"written {report.written:9,d}; "
        f"dispatch of 64: median {np.median(found):.2f} ms, p99 {np.percentile(found, 99):.2f}, "
        f"most {found.max():.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=20_000)
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--own-time", action="store_true")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="plans-", dir="/tmp")
    socket = f"{directory}/redis.sock"
    arguments = [
        options.server,
        "--port",
        "0",
        "--unixsocket",
        socket,
        "--save",
        "",
        "--appendonly",
        "no",
        "--slowlog-log-slower-than",
        "5000",
        "--slowlog-max-len",
        "10000",
    ]
    environment = dict(os.environ)
    if options.own_time:
        environment["LD_PRELOAD"] = f"{directory}/own_time.so"
        source = Path(__file__).with_name("own_time.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", environment["LD_PRELOAD"], source, "-ldl"], check=True)
    server = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, env=environment)
    try:
        while not Path(socket).exists():
            time.sleep(0.05)
        namespace = opened(socket)
        n, rate = options.pages, options.pages / 6000.0  # a page in a hundred is visited between two plans
        settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_CRAWL_RATE": rate})
        world = World(namespace, settings, n, options.hosts)
        everything = np.arange(n)
        world.store(everything, 0.0)
        # A plan believes no number of a host that is higher than there are hosts.
        namespace.command(
            "HSET", namespace.key("hosts"), *(word for number in range(1, options.hosts + 1) for word in (f"host{number}", number))
        )
        namespace.command("HSET", namespace.key("stats"), "fetched", n, "ended", n, "pages", n)
        print(f"{n:,d} pages, {options.hosts:,d} hosts, {sys.version.split()[0]}")
        client = namespace.connection.client_of(namespace.prefix(0))
        client.config_resetstat()
        client.slowlog_reset()
        planner = Planner(namespace, settings)
        measured(planner, socket, "first plan, all numbers anew")
        ended = n
        for share in (0.0, 0.01, 0.01, 0.1, 1.0):
            published = last_plan(namespace)
            log_price = published.log_price
            at = world.rng.permutation(n)[: int(share * n)]
            world.visit(at, published, log_price)
            world.store(at, log_price)
            ended += len(at)
            namespace.command("HSET", namespace.key("stats"), "ended", ended)
            measured(planner, socket, f"{share:.0%} visited since the last plan")
        measured(Planner(namespace, settings), socket, "first plan of another process")
        slow = client.slowlog_get(10_000)
        scripts = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        print(f"{len(slow):,d} calls over 5 ms {'of their own time ' * options.own_time}beside {scripts:,d} calls of scripts; the longest:")
        for entry in sorted(slow, key=lambda entry: -entry["duration"])[:10]:
            print(f"  {entry['duration'] / 1e3:.1f} ms", entry["command"][:20])
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
