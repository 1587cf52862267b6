"""What a plan of a large crawl costs: seconds, memory and bytes a page, with everything visited since the last plan, and with 1% of it.

    python benchmarks/plans_at_scale.py [--pages N] [--hosts N] [--limits] [--clocks off] [--visited 1 0.01 0.01] [--profile]

No server: the namespace makes rows as they are asked for, as judges leave them, in replies of HSCAN and of the log of visits, and counts
what is written. The time of its own is not in ``seconds``, a server's and that of a connection is not either: `plans.py` measures these.
Memory is the peak of the process, with the rows of one part, 50,000 pages, that are made at a time. With ``--limits`` each host bears as
much as leaves about 1 in 4 at its limit. With ``--clocks open`` the gates of all hosts are held open, so that the clocks of neighbourhoods
move pages; ``closed`` is how a crawl begins.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import math
import pstats
import resource
import struct
import time
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from optimal_frontier.frontier.judging.waits import Terms, priced_numbers
from optimal_frontier.frontier.planning.clock_keeper import ClockKeeper
from optimal_frontier.frontier.planning.planner import Planner, PlanReport
from optimal_frontier.frontier.planning.rewriting import WRITTEN
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.connection import Connection
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.published import Published
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import ACTIVE, LAYOUT
from optimal_frontier.state.scan_ahead import Scan
from optimal_frontier.state.visit_log import CHANGED, SAMPLED, VISIT, WELL

#: Pages that are made at once, and visits in an entry of the log; entries that it keeps.
PART, ENTRY, ENTRIES = 50_000, 64, 4000
DAY = 86_400.0
STATE = struct.Struct("<7d")


class MadePages(Namespace):
    """A namespace of one partition whose pages are made as they are read; its connection is never used."""

    def __init__(self, pages: int, hosts: int) -> None:
        super().__init__(Connection(parse_redis_url("redis://nowhere", Path())), "made")
        self.pages, self.hosts = pages, hosts
        self.at = 2_000_000_000.0
        self.spent_s = self.spent_cpu_s = 0.0
        #: Shares of the pages that were visited one round after the other, and the plan by which judges made their numbers; None: as added.
        self.rounds: list[tuple[float, Published | None]] = [(1.0, None)]
        self.plan: dict[str, str] = {}
        self.values: dict[str, bytes] = {}
        self.log_price, self.visits = 0.0, 0
        self._part: tuple[int, int, np.ndarray, bytes] | None = None
        self.settings = FrontierSettings.parse({})

    # What planners ask for.

    def prefix(self, partition: int) -> str:
        return ""

    def time_of(self, partition: int, clock: tuple[int, int], stored: bytes | None) -> float:
        return self.at

    def counts(self, partition: int | None = None) -> dict[str, int]:
        n = self.pages
        return {"ended": n + self.visits, "pages": n, "fetched": n, "visits": n + self.visits, "observations": self.visits}

    def commands(self, rows: Iterable[Sequence[Any]], *, partition: int = 0, at: str | None = None) -> list[Any]:
        began, cpu = time.perf_counter(), time.thread_time()
        replies = [self._answer(*row) for row in rows]
        self.spent_s += time.perf_counter() - began
        self.spent_cpu_s += time.thread_time() - cpu
        return replies

    def scan(self, scan: Scan, *, partition: int = 0) -> Generator[tuple[int, list[bytes]]]:
        cursor, left = scan.cursor, scan.most
        while left > 0:
            began, cpu = time.perf_counter(), time.thread_time()
            cursor, found = self._scanned(cursor, scan.at_once)
            self.spent_s += time.perf_counter() - began
            self.spent_cpu_s += time.thread_time() - cpu
            left -= len(found) // 2
            yield cursor, found
            if not cursor:
                return

    def run(self, calls: Sequence[Call]) -> list[Any]:
        return [
            self.commands([[call.script, *call.arguments]])[0] if call.is_plain else self._run(call.script, call.arguments)
            for call in calls
        ]

    def _run(self, script: str, arguments: Any) -> int:
        if script == "write_plan":
            return len(arguments[1]) // WRITTEN.itemsize
        if script == "publish_plan":
            self.plan = {"number": str(int(self.plan.get("number", 0)) + 1)} | dict(
                zip(arguments[6::2], map(str, arguments[7::2]), strict=True)
            )
            self.log_price = float(arguments[2]) if arguments[2] else self.log_price
            self.values |= {"priors": arguments[3], "prices": arguments[4], "youth": arguments[5]}
        return 1

    def _answer(self, name: str, key: str = "", *rest: Any) -> Any:
        if name == "HSCAN":
            return 0, {}
        if name == "XRANGE":
            return self._logged(rest[0])
        if name == "GETRANGE":
            return struct.pack("<d", self.log_price)
        if name == "GET":
            return STATE.pack(self.at * 1e6, 1.0, 0.0, self.log_price, 0.001, 1.0, 0.0) if key == "d" else self.values.get(key)
        if name == "HLEN":
            return self.pages
        if name == "HGETALL" and key == "plan":
            return {field.encode(): value.encode() for field, value in self.plan.items()}
        if name == "HGET":
            return str(self.counts().get(rest[0], 0)).encode()
        return [] if name in ("HGETALL", "XREVRANGE", "HMGET", "SCAN") else [0, []]

    # Pages.

    def visit(self, share: float) -> None:
        """Let a share of the pages be visited since the last plan."""
        self.rounds.append((share, Published.parse(self.plan, self.values.get("priors"), self.values.get("prices"))))
        self.visits += int(share * self.pages)
        self._part = None

    def _scanned(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        part, start = divmod(cursor, PART)
        if self._part is None or self._part[0] != part or self._part[1] != len(self.rounds):
            made, pages = self.made(part)
            self._part = part, len(self.rounds), made, pages.tobytes()
        rows, ids = self._part[2:]
        stop = min(start + count, len(rows))
        heads, size = rows[start:stop].tobytes(), LAYOUT.itemsize
        tail = bytes(4) + b"\x01/" + b"x" * 60
        flat: list[bytes] = [b""] * (2 * (stop - start))
        flat[::2] = [ids[12 * i : 12 * i + 12] for i in range(start, stop)]
        flat[1::2] = [heads[at : at + size] + tail for at in range(0, len(heads), size)]
        done = part * PART + stop >= self.pages
        return (0 if done else (part + 1) * PART if stop == len(rows) else cursor + count), flat

    def made(self, part: int, rounds: int | None = None, *, with_numbers: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and identities of a part, after all rounds of visits or so many; without numbers but for those of the last round."""
        rng, n = np.random.default_rng(part), min(PART, self.pages - part * PART)
        ids = np.frombuffer(rng.bytes(12 * n), "V12")
        rows = np.zeros(n, LAYOUT)
        rows["state"], rows["visits"] = ACTIVE, 5
        rows["host"] = 1 + rng.integers(0, self.hosts, n)
        rows["pattern"] = rows["host"] * 3 + rng.integers(0, 3, n)
        kind = rng.integers(0, 5, n).astype(np.uint32)
        rows["directory"] = (kind + 1 << 16) + kind // 2 + 1
        rows["importance"] = rng.lognormal(0.0, 1.0, n)
        rows["min_interval"], rows["max_interval"] = 1.0, 90 * DAY
        rows["b"] = np.round((self.at - rng.uniform(0, DAY, n)) * 1e6)
        rows["a"], rows["l"] = np.inf, 90 * DAY
        rows["shape"], rows["time"] = rng.uniform(0.5, 9.0, n), 10 ** rng.uniform(4.0, 7.0, n)
        for number, (share, published) in enumerate(self.rounds[:rounds]):
            if published is None:
                continue
            # The first plan has made the numbers of all pages; a visit makes those of its page.
            at = np.flatnonzero(np.random.default_rng([part, number]).random(n) < share)
            luck = np.random.default_rng([part, number, 1])
            some = np.arange(n) if number == 1 and with_numbers else at
            rows["shape"][at] += luck.integers(0, 2, len(at))
            rows["time"][at] *= luck.uniform(1.0, 1.2, len(at))
            rows["b"][at] = np.round((self.at - luck.uniform(0, 60.0, len(at))) * 1e6)
            rows["visits"][at] += 1
            if not with_numbers and number < len(self.rounds) - 1:
                continue
            made = priced_numbers(rows[some], ids[some], Terms(published.log_price, published, self.settings), -np.inf)
            for name, values in zip(("a", "s", "e", "l"), made, strict=True):
                rows[name][some] = np.minimum(values, np.where(np.isinf(values), np.inf, 3e38))
        return rows, ids

    def _logged(self, after: str) -> list[Any]:
        """Return the visits of the last round, as the log has them: as many as it keeps."""
        first = int(after.lstrip("(").partition("-")[0])
        share, published = self.rounds[-1]
        if published is None or first >= len(self.rounds):
            return []
        entries, left = [], min(int(share * self.pages), ENTRY * ENTRIES)
        for part in range(-(-self.pages // PART)):
            if left <= 0:
                break
            old, ids = self.made(part, len(self.rounds) - 1, with_numbers=False)
            new, _ = self.made(part, with_numbers=False)
            at = np.flatnonzero(new["visits"] != old["visits"])[:left]
            left -= len(at)
            visits = np.zeros(len(at), VISIT)
            visits["page"], visits["since"], visits["until"] = ids[at], old["b"][at], new["b"][at]
            for name in ("shape", "time", "host", "directory", "pattern"):
                visits[name] = old[name][at]
            changed = new["shape"][at] > old["shape"][at]
            visits["flags"], visits["row_flags"] = SAMPLED + WELL + CHANGED * changed, new["flags"][at]
            for name, of in {"a": "a", "s": "s", "e": "e", "l": "l", "new_shape": "shape", "new_time": "time"}.items():
                visits[name] = new[of][at]
            entries += [visits[start : start + ENTRY].tobytes() for start in range(0, len(visits), ENTRY)]
        number = len(self.rounds)
        # All at once: a planner asks again where a reply has as many entries as it asked for.
        entries += [b""] * (len(entries) % 200 == 0)
        return [(f"{number}-{place}".encode(), [b"v", value]) for place, value in enumerate(entries)]


def resident() -> float:
    """Bytes of this process that are in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measured(planner: Planner, made: MadePages, what: str, profile: bool) -> PlanReport:
    made.spent_s = made.spent_cpu_s = 0.0
    watch = cProfile.Profile() if profile else None
    began, cpu = time.perf_counter(), time.process_time()
    if watch is not None:
        watch.enable()
    report = planner.plan()
    if watch is not None:
        watch.disable()
    seconds, cpu = time.perf_counter() - began - made.spent_s, time.process_time() - cpu - made.spent_cpu_s
    assert report is not None, what
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    told = {
        "plan": what,
        "seconds": round(seconds, 1),
        "cpu_s": round(cpu, 1),
        "made_rows_s": round(made.spent_s, 1),
        "peak_MB": round(peak / 1e6),
        "now_MB": round(resident() / 1e6),
        "bytes_a_page": round(peak / made.pages, 1),
        "read": report.read,
        "sent": report.queued,
        "log_price": round(math.log(report.multiplier), 6) if report.multiplier > 0 else None,
        "planned": round(report.planned_rate / report.revisit_budget, 8),
        "hosts_at_limit": int(made.plan.get("hosts_at_limit", 0)),
        "groups": int(made.plan.get("groups", 0)),
    }
    print(json.dumps(told), flush=True)
    if watch is not None:
        pstats.Stats(watch).sort_stats("tottime").print_stats(22)
    return report


def hold_open(keeper: ClockKeeper) -> None:
    """Open the gates of all hosts that are known."""
    for clocks in keeper.clocks.values():
        known = clocks._clocks
        if known is not None:
            known.gates.evidence[:] = 1e6
            known.gates.is_open[:] = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=10_000_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--limits", action="store_true", help="hosts have a limit that a quarter of them is at")
    parser.add_argument("--visited", type=float, nargs="*", default=[1.0, 0.01, 0.01, 0.01], help="shares of the pages, a plan each")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument(
        "--clocks", choices=("off", "closed", "open"), default="closed", help="clocks of neighbourhoods: gates of all hosts"
    )
    given = parser.parse_args()
    made = MadePages(given.pages, given.hosts)
    rate = given.pages / DAY
    values: dict[str, Any] = {"CRAWL_RATE": rate}
    values["NEIGHBOURHOODS"] = given.clocks != "off"
    if given.limits:
        values["HOST_MAX_RATE"] = 1.15 * rate / given.hosts
    made.settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()})
    planner = Planner(made, made.settings)
    print(json.dumps({"pages": given.pages, "hosts": given.hosts, "limits": given.limits, "start_MB": round(resident() / 1e6)}))
    measured(planner, made, "first, all numbers made anew", given.profile)
    for share in given.visited:
        made.at += 600
        made.visit(share)
        if given.clocks == "open" and planner.keeper is not None:
            hold_open(planner.keeper)
        measured(planner, made, f"{share:.0%} visited since", given.profile)


if __name__ == "__main__":
    main()
