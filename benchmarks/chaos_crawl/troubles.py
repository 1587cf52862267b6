"""What goes wrong in a chaos crawl: each trouble is a coroutine that makes it, waits, and ends it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import redis

from chaos_crawl.crawlers import NAMESPACE, Crawler
from chaos_crawl.proxy import Proxy
from chaos_crawl.server import Server

#: Where scripts of these crawlers look for how far ahead the server's clock is, seconds.
_AHEAD_KEY = f"{NAMESPACE}:{{0}}:chaos"
#: Longer than a lease.
_LONG_S = 20.0


@dataclass
class World:
    """What troubles may touch, and what checks have to know of them.

    Attributes
    ----------
    wipes : list of float
        When the server lost everything, monotonic seconds.
    disturbed : list of (float, float, str)
        From when to when something was done to a crawler (its name), or to all ("").
    """

    server: Server
    proxy: Proxy
    crawlers: list[Crawler]
    rng: random.Random
    wipes: list[float] = field(default_factory=list)
    disturbed: list[tuple[float, float, str]] = field(default_factory=list)


async def kill_crawler(world: World) -> None:
    crawler = world.rng.choice(world.crawlers)
    crawler.kill()
    await asyncio.sleep(world.rng.uniform(0.1, 2))
    crawler.start()


async def stop_crawler(world: World) -> None:
    """Also for longer than a lease: others have its pages by then. If it plans, its planner is paused."""
    crawler = world.rng.choice(world.crawlers)
    crawler.signal(signal.SIGSTOP)
    await asyncio.sleep(world.rng.choice([0.5, 3.0, _LONG_S]))
    crawler.signal(signal.SIGCONT)


async def pause_planner(world: World) -> None:
    """For longer than the planner's lock lasts."""
    owner = world.server.client.get(f"{NAMESPACE}:{{0}}:planner")
    if owner is not None:
        world.server.client.set(f"{NAMESPACE}:{{0}}:planner", b"chaos", px=5000)
        await asyncio.sleep(5)


async def kill_server(world: World) -> None:
    world.server.kill()
    await asyncio.sleep(world.rng.choice([0.2, 2.0, _LONG_S]))
    await world.server.start()


async def lose_server(world: World) -> None:
    """It comes back without its data."""
    world.server.kill()
    world.server.forget()
    await asyncio.sleep(world.rng.uniform(0.1, 2))
    world.wipes.append(time.monotonic())
    await world.server.start()


async def wipe_server(world: World) -> None:
    world.wipes.append(time.monotonic())
    world.server.client.flushall()


async def cut(world: World) -> None:
    world.proxy.cut()


async def delay(world: World) -> None:
    world.proxy.delay_s = world.rng.uniform(0.05, 1.0)
    await asyncio.sleep(4)
    world.proxy.delay_s = 0.0


async def lose_replies(world: World) -> None:
    world.proxy.loses = True
    await asyncio.sleep(world.rng.uniform(0.2, 2))
    world.proxy.loses = False


async def swallow(world: World) -> None:
    world.proxy.swallows = True
    await asyncio.sleep(world.rng.choice([2.0, 8.0]))
    world.proxy.swallows = False


async def kill_clients(world: World) -> None:
    for _ in range(5):
        world.server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await asyncio.sleep(0.2)


async def flush_scripts(world: World) -> None:
    for _ in range(5):
        world.server.client.script_flush()
        await asyncio.sleep(0.2)


async def fill_memory(world: World) -> None:
    world.server.client.config_set("maxmemory", "1mb")
    await asyncio.sleep(world.rng.uniform(1, 4))
    world.server.client.config_set("maxmemory", "0")


async def set_clock_ahead(world: World) -> None:
    """By an hour, for a while."""
    world.server.client.hset(_AHEAD_KEY, "ahead", 3600)
    await asyncio.sleep(8)
    world.server.client.hdel(_AHEAD_KEY, "ahead")


#: By name, with how often each comes.
TROUBLES: dict[str, tuple[Callable[[World], Awaitable[None]], int]] = {
    "kill_crawler": (kill_crawler, 4),
    "stop_crawler": (stop_crawler, 3),
    "pause_planner": (pause_planner, 1),
    "kill_server": (kill_server, 2),
    "lose_server": (lose_server, 1),
    "wipe_server": (wipe_server, 1),
    "cut": (cut, 3),
    "delay": (delay, 2),
    "lose_replies": (lose_replies, 2),
    "swallow": (swallow, 2),
    "kill_clients": (kill_clients, 1),
    "flush_scripts": (flush_scripts, 1),
    "fill_memory": (fill_memory, 1),
    "set_clock_ahead": (set_clock_ahead, 1),
}


async def trouble(world: World, seconds: float, only: list[str] | None) -> dict[str, int]:
    """Make one trouble after the other for so long; return how often each was made."""
    names = [name for name in TROUBLES if only is None or name in only]
    # All of them once in a drawn order, and then by weight.
    first, until, made = world.rng.sample(names, len(names)), time.monotonic() + seconds, dict.fromkeys(names, 0)
    while time.monotonic() < until:
        name = first.pop() if first else world.rng.choices(names, [TROUBLES[each][1] for each in names])[0]
        began = time.monotonic()
        print(f"{began:.1f} {name}", flush=True)
        with contextlib.suppress(redis.RedisError):  # the server may be filled up
            await TROUBLES[name][0](world)
        world.disturbed.append((began, time.monotonic(), name))
        made[name] += 1
        await asyncio.sleep(world.rng.uniform(0.5, 3))
    return made
