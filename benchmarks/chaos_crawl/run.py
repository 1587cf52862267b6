"""One chaos crawl from beginning to end."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import redis

from chaos_crawl.checks import (
    MOST_SHORT,
    WINDOW_S,
    asked_while_held,
    counted_twice,
    fetched_twice_at_once,
    fullest_window,
    short_gaps,
)
from chaos_crawl.crawlers import NAMESPACE, Crawler, write_project
from chaos_crawl.proxy import Proxy
from chaos_crawl.server import Server
from chaos_crawl.site import Site
from chaos_crawl.troubles import trouble
from chaos_crawl.world import World
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.rows import Row, split_tail

#: Seconds between two fetches of a host, and fetches per second of a crawler.
DELAY_S, RATE_OF_ONE = 0.25, 25.0
#: Seconds in which all pages have to be found after the last trouble, beyond what the budget takes; in which nothing may stand still.
REST_S, STANDSTILL_S = 60.0, 10.0
#: Seconds that a crawler takes at most to start, or to wake up, on a busy machine.
START_S = 40.0
#: A crawler that ran, and ended because of what Redis said. At a start without Redis it may.
_GAVE_UP = re.compile(r"\[optimal_frontier\.frontier\.dispatching\.courier\] CRITICAL: (.*)")
#: What Scrapy logs of a host that fails, with a traceback.
_SITES_FAULT = re.compile(r"^.*\[scrapy\.core\.scraper\] ERROR: Error downloading .*\n(?:(?!\d{4}-\d\d-\d\d ).*\n)*", re.MULTILINE)


@dataclass(frozen=True)
class Plan:
    """What is run: see the arguments of `chaos.py`."""

    seconds: float
    crawlers: int
    pages: int
    hosts: int
    seed: int
    only: list[str] | None = None


async def run(plan: Plan, folder: Path) -> int:
    """Run it; print what was found, and return 0 if all is as it must be."""
    site, server, rate = Site(plan.pages, plan.hosts, folder / "fetches.jsonl"), Server(folder), RATE_OF_ONE * plan.crawlers
    await server.start()
    proxies = [Proxy(server.socket) for _ in range(plan.crawlers)]
    proxied = [await proxy.serve() for proxy in proxies]
    write_project(folder, rate, DELAY_S)
    crawlers = [
        Crawler(folder, f"crawler-{number}", f"redis://127.0.0.1:{port}/0", site.start_url) for number, (_, port) in enumerate(proxied)
    ]
    world = World(server, proxies, crawlers, site, random.Random(plan.seed))  # the same troubles again
    try:
        for crawler in crawlers:
            crawler.start()
        while len(site.fetches) < 10:
            await asyncio.sleep(0.5)
        supervisor = asyncio.create_task(_supervise(crawlers))
        made = await trouble(world, plan.seconds, plan.only)
        found = await _found(world, plan.pages, REST_S + 2 * plan.pages / rate)
        await _started(crawlers, site)
        rested = time.monotonic()
        await asyncio.sleep(STANDSTILL_S)
        fetching = {fetch.crawler for fetch in site.fetches if fetch.at > rested}
        world.hung += [f"{one.name} stood still" for one in crawlers if one.name not in fetching]
        supervisor.cancel()
        world.hung += [f"{crawler.name} did not end" for crawler in crawlers if not await asyncio.to_thread(crawler.stop)]
        checked = await asyncio.to_thread(_check, folder, world.server)
        rows = _rows(world.server)
    finally:
        for crawler in crawlers:
            crawler.kill()
        site.close()
        for listening, _ in proxied:
            listening.close()
        world.server.kill()
    logs = _SITES_FAULT.sub("", "".join(log.read_text(errors="replace") for log in folder.glob("*.log")))
    figures, wrong = _judged(plan, world, found, rows, logs)
    wrong += [f"check: {checked}"] if checked else []
    names = ", ".join(f"{name} {n}" for name, n in made.items() if n)
    verdict = f"WRONG: {'; '.join(wrong)}" if wrong else "all is well"
    print(f"seed {plan.seed}: {sum(made.values())} troubles ({names}); {figures}; {verdict}")
    return int(bool(wrong))


def _judged(plan: Plan, world: World, found: int, rows: list[tuple[str, Row]], logs: str) -> tuple[str, list[str]]:
    """Return the figures of a crawl, and what is wrong with it."""
    fetches, losses, rate = world.site.fetches, world.losses, RATE_OF_ONE * plan.crawlers
    short, gaps, shortest = short_gaps(fetches, DELAY_S, losses)
    window, allowed = fullest_window(fetches, losses), WINDOW_S * rate + 0.1 * rate + 16 * plan.crawlers
    twice, doubled = fetched_twice_at_once(fetches, losses), counted_twice(rows, fetches)
    held, given_up = asked_while_held(fetches, losses), _GAVE_UP.findall(logs)
    faults = {
        f"{plan.pages - found} pages lost": found < plan.pages,
        f"{twice} pages in two hands": twice > 0,
        f"{doubled} pages counted twice": doubled > 0,
        f"{short} of {gaps} gaps short": short > MOST_SHORT * gaps,
        f"{window} fetches within {WINDOW_S:g} s, allowed are {allowed:g}": window > allowed,
        f"{held} fetches of hosts that had asked for none": held > 0,
        f"{logs.count('Traceback')} tracebacks": "Traceback" in logs,
        f"crawlers gave up: {given_up[:3]}": bool(given_up),
        f"something hung: {', '.join(world.hung)}": bool(world.hung),
    }
    figures = (
        f"{len(fetches)} fetches; {found} of {plan.pages} pages; in two hands {twice}; counted twice {doubled}; short gaps {short} of "
        f"{gaps}, least {shortest:.3f} s of {DELAY_S:g}; fullest {WINDOW_S:g} s {window} of {allowed:g}; asked while held {held}"
    )
    return figures, [fault for fault, is_so in faults.items() if is_so]


async def _supervise(crawlers: list[Crawler]) -> None:
    """Start crawlers again that have ended: at a start without a server they refuse."""
    while True:
        await asyncio.sleep(2)
        for crawler in crawlers:
            if not crawler.is_running:
                crawler.start()


async def _started(crawlers: list[Crawler], site: Site) -> None:
    """Wait until all have fetched since they were started last, or have had the time to."""
    while not all(any(fetch.crawler == one.name and fetch.at > one.since for fetch in site.fetches) for one in crawlers):
        if time.monotonic() > max(one.since for one in crawlers) + START_S:
            break
        await asyncio.sleep(1)


async def _found(world: World, pages: int, patience_s: float) -> int:
    """Wait until all pages are known and were fetched; return how many are."""
    give_up, count = time.monotonic() + patience_s, 0
    while time.monotonic() < give_up:
        count = len({path.rpartition("/")[2] for path, row in _rows(world.server) if row.visits > 0})
        if count >= pages:
            break
        await asyncio.sleep(1)
    return count


def _rows(server: Server) -> list[tuple[str, Row]]:
    """Return path and row of every page."""
    try:
        stored: dict[bytes, bytes] = server.client.hgetall(f"{NAMESPACE}:{{0}}:pages")
        names: dict[bytes, bytes] = server.client.hgetall(f"{NAMESPACE}:{{0}}:hosts:names")
    except redis.RedisError:
        return []
    rows = []
    for value in stored.values():
        row = Row.unpack(value)
        record = unpack_record(split_tail(value)[1], names.get(b"%d" % row.host, b"").decode())
        rows.append((urlsplit(record["url"]).path, row))
    return rows


def _check(folder: Path, server: Server) -> str:
    """Return what `optimal-frontier check` finds; empty: nothing."""
    server.client.delete(f"{NAMESPACE}:{{0}}:chaos")
    command = [sys.executable, "-m", "optimal_frontier.cli", "--redis-url", f"unix://{server.socket}", "--namespace", NAMESPACE, "check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    return "" if done.returncode == 0 else (done.stdout + done.stderr)[-1500:]
