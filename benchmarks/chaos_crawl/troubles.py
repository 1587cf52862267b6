"""What goes wrong in a chaos crawl, with crawlers, the network and the site: each trouble makes it, waits, and ends it."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

from chaos_crawl import server_troubles as of_server
from chaos_crawl.crawlers import NAMESPACE, Crawler
from chaos_crawl.site import FAILURES
from chaos_crawl.world import LONG_S, World

#: Commands that others run meanwhile; seconds in which one ends, whatever happens to Redis.
_COMMANDS, _COMMAND_S = (["status"], ["check"], ["pages", "--limit", "20"], ["plan", "--once"]), 60.0


async def kill_crawler(world: World) -> None:
    await _kill(world.rng, [world.rng.choice(world.crawlers)])


async def kill_all_crawlers(world: World) -> None:
    await _kill(world.rng, world.crawlers)


async def _kill(rng: random.Random, crawlers: list[Crawler]) -> None:
    for crawler in crawlers:
        crawler.kill()
    await asyncio.sleep(rng.uniform(0.1, 2))
    for crawler in crawlers:
        crawler.start()


async def end_crawler(world: World) -> None:
    """With SIGTERM, in the middle of another trouble."""
    crawler, meanwhile = world.rng.choice(world.crawlers), _another(world)
    await asyncio.sleep(world.rng.uniform(0, 1))
    if not await asyncio.to_thread(crawler.stop):
        world.hung.append(f"{crawler.name} did not end")
    await meanwhile
    crawler.start()


async def run_command(world: World) -> None:
    """In the middle of another trouble."""
    crawler, command, meanwhile = world.rng.choice(world.crawlers), world.rng.choice(_COMMANDS), _another(world)
    started = [sys.executable, "-m", "optimal_frontier.cli", "--redis-url", crawler.redis_url, "--namespace", NAMESPACE, *command]
    await asyncio.sleep(world.rng.uniform(0, 1))
    with (crawler.folder / "commands.log").open("ab") as log:
        process = subprocess.Popen(started, stdout=log, stderr=log, cwd=crawler.folder)
    try:
        await asyncio.to_thread(process.wait, _COMMAND_S)
    except subprocess.TimeoutExpired:
        process.kill()
        world.hung.append(f"optimal-frontier {command[0]} did not end")
    await meanwhile


def _another(world: World) -> asyncio.Task[None]:
    """Begin a trouble that another one is in the middle of."""
    among = [cut, swallow, delay, lose_replies, of_server.kill_server, of_server.make_read_only]
    return asyncio.ensure_future(world.rng.choice(among)(world))


async def stop_crawler(world: World) -> None:
    """Also for longer than a lease: others have its pages by then. If it plans, its planner is paused."""
    crawler = world.rng.choice(world.crawlers)
    crawler.signal(signal.SIGSTOP)
    lost = await _away(world)
    crawler.signal(signal.SIGCONT)
    world.learn_late(lost)


async def _away(world: World) -> list[float]:
    """Let somebody be away, while the server may become another one; return from when on it has lost something."""
    before = len(world.losses)
    if world.rng.random() < 0.5:
        others = [of_server.fail_over, of_server.restore_server, of_server.crash_server, of_server.wipe_server, of_server.set_clock]
        await world.rng.choice(others)(world)
    await asyncio.sleep(world.rng.choice([0.5, 3.0, LONG_S]))
    return [loss.since for loss in world.losses[before:]]


async def cut(world: World) -> None:
    for proxy in world.some_proxies():
        proxy.cut()


async def delay(world: World) -> None:
    proxies, delay_s = world.some_proxies(), world.rng.uniform(0.05, 1.0)
    for proxy in proxies:
        proxy.delay_s = delay_s
    await asyncio.sleep(4)
    for proxy in proxies:
        proxy.delay_s = 0.0


async def lose_replies(world: World) -> None:
    proxies = world.some_proxies()
    for proxy in proxies:
        proxy.loses = True
    await asyncio.sleep(world.rng.uniform(0.2, 2))
    for proxy in proxies:
        proxy.loses = False


async def tear(world: World) -> None:
    """Half a reply comes through, or half a request."""
    proxies, is_reply = world.some_proxies(), world.rng.choice([True, True, False])
    for proxy in proxies:
        proxy.tears = is_reply
    await asyncio.sleep(world.rng.uniform(0.2, 2))
    for proxy in proxies:
        proxy.tears = None


async def swallow(world: World) -> None:
    proxies = world.some_proxies()
    for proxy in proxies:
        proxy.swallows = True
    lost = await _away(world)
    for proxy in proxies:
        proxy.swallows = False
    world.learn_late(lost)


async def fail_hosts(world: World) -> None:
    """Some of the site's hosts fail, each in its way."""
    failing = world.rng.sample(world.site.hosts, max(1, len(world.site.hosts) // 3))
    world.site.fail({host: world.rng.choice(FAILURES) for host in failing})
    await asyncio.sleep(world.rng.choice([3.0, 12.0]))
    world.site.fail({})


#: By name, with how often each comes.
TROUBLES: dict[str, tuple[Callable[[World], Awaitable[None]], int]] = {
    "kill_crawler": (kill_crawler, 4),
    "kill_all_crawlers": (kill_all_crawlers, 1),
    "end_crawler": (end_crawler, 2),
    "run_command": (run_command, 2),
    "stop_crawler": (stop_crawler, 3),
    "pause_planner": (of_server.pause_planner, 1),
    "kill_server": (of_server.kill_server, 2),
    "crash_server": (of_server.crash_server, 2),
    "freeze_server": (of_server.freeze_server, 1),
    "lose_server": (of_server.lose_server, 1),
    "restore_server": (of_server.restore_server, 1),
    "wipe_server": (of_server.wipe_server, 1),
    "fail_over": (of_server.fail_over, 2),
    "load_slowly": (of_server.load_slowly, 1),
    "cut": (cut, 3),
    "delay": (delay, 2),
    "lose_replies": (lose_replies, 2),
    "tear": (tear, 2),
    "swallow": (swallow, 2),
    "kill_clients": (of_server.kill_clients, 1),
    "refuse_clients": (of_server.refuse_clients, 1),
    "flush_scripts": (of_server.flush_scripts, 1),
    "occupy_server": (of_server.occupy_server, 1),
    "fill_memory": (of_server.fill_memory, 1),
    "fail_saves": (of_server.fail_saves, 1),
    "miss_replicas": (of_server.miss_replicas, 1),
    "make_read_only": (of_server.make_read_only, 1),
    "set_clock": (of_server.set_clock, 1),
    "fail_hosts": (fail_hosts, 2),
}


async def trouble(world: World, seconds: float, only: list[str] | None) -> dict[str, int]:
    """Make one trouble after the other for so long; return how often each was made."""
    names = [name for name in TROUBLES if only is None or name in only]
    # All of them once in a drawn order, and then by weight.
    first, until, made = world.rng.sample(names, len(names)), time.monotonic() + seconds, dict.fromkeys(names, 0)
    while time.monotonic() < until:
        name = first.pop() if first else world.rng.choices(names, [TROUBLES[each][1] for each in names])[0]
        print(f"{time.monotonic():.1f} {name}", flush=True)
        await TROUBLES[name][0](world)
        made[name] += 1
        await asyncio.sleep(world.rng.uniform(0.5, 3))
    return made
