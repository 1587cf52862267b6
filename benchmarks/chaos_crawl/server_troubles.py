"""What goes wrong with the server of a chaos crawl; each trouble is a coroutine that makes it, waits, and ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator

import redis

from chaos_crawl.crawlers import NAMESPACE
from chaos_crawl.world import LONG_S, World

#: A script that runs for as long as nobody kills it.
_ENDLESS = "while true do end"


async def kill_server(world: World) -> None:
    world.server.kill()
    await asyncio.sleep(world.rng.choice([0.2, 2.0, LONG_S]))
    await world.server.start()


async def crash_server(world: World) -> None:
    """Its machine lost power: it comes back without the end of its log, which is torn."""
    file, size = world.server.size_of_log()
    since = time.monotonic()
    await asyncio.sleep(world.rng.uniform(0.1, 1.0))
    world.server.kill()
    os.truncate(file, world.rng.randint(size, file.stat().st_size))
    await asyncio.sleep(world.rng.uniform(0.1, 2))
    await world.server.start()
    world.lose(since)


async def freeze_server(world: World) -> None:
    """Also for longer than crawlers wait for a reply; what they have sent meanwhile is done afterwards."""
    world.server.freeze(is_frozen=True)
    await asyncio.sleep(world.rng.choice([1.0, 8.0, 35.0]))
    world.server.freeze(is_frozen=False)


async def lose_server(world: World) -> None:
    """It comes back without its data."""
    world.server.kill()
    world.server.forget()
    await asyncio.sleep(world.rng.uniform(0.1, 2))
    await world.server.start()
    world.lose(0.0)


async def restore_server(world: World) -> None:
    """It comes back with what it held a while ago."""
    snapshot, since = await world.server.snapshot(), time.monotonic()
    await asyncio.sleep(world.rng.choice([2.0, 8.0, LONG_S]))
    world.server.kill()
    await asyncio.sleep(world.rng.uniform(0.1, 2))
    await world.server.restore(snapshot)
    world.lose(since)


async def wipe_server(world: World) -> None:
    world.server.client.flushall()
    world.lose(0.0)


async def fail_over(world: World) -> None:
    """A replica takes the place of the server, which dies; the last moments before that never reached it. Clocks may differ."""
    replica = await world.server.replica(world.new_name())
    await asyncio.sleep(world.rng.uniform(0.5, 2))
    replica.client.replicaof("NO", "ONE")
    since = time.monotonic()
    await asyncio.sleep(world.rng.choice([0.0, 0.2, 1.0]))
    before = world.server
    before.kill()
    before.forget()
    await asyncio.sleep(world.rng.uniform(0.0, 2))
    world.replace_server(replica)
    world.set_clock(world.rng.choice([0, 0, 2, 3600, -2, -3600]))
    world.lose(since)


async def load_slowly(world: World) -> None:
    world.server.load_slowly(world.rng.uniform(2, 8))
    await world.server.answers()


async def fill_memory(world: World) -> None:
    with _set(world, "maxmemory", "1mb", "0"):
        await asyncio.sleep(world.rng.uniform(1, 4))


async def miss_replicas(world: World) -> None:
    with _set(world, "min-replicas-to-write", "1", "0"):
        await asyncio.sleep(world.rng.uniform(1, 10))


async def fail_saves(world: World) -> None:
    """Its disk takes no snapshot, so it takes no writes."""
    (world.server.data / "dump.rdb").unlink(missing_ok=True)
    (world.server.data / "dump.rdb").mkdir()
    try:
        with _set(world, "save", "3600 1", ""):
            world.server.client.bgsave()
            await asyncio.sleep(world.rng.uniform(1, 10))
    finally:
        (world.server.data / "dump.rdb").rmdir()


async def make_read_only(world: World) -> None:
    """It is told to be a replica of a server that is not there."""
    world.server.client.replicaof("127.0.0.1", "1")
    await asyncio.sleep(world.rng.choice([1.0, 5.0, LONG_S]))
    world.server.client.replicaof("NO", "ONE")


async def refuse_clients(world: World) -> None:
    with _set(world, "maxclients", "1", "10000"):
        world.server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await asyncio.sleep(world.rng.uniform(1, 6))


async def occupy_server(world: World) -> None:
    """Another program's script runs for too long."""
    with _set(world, "busy-reply-threshold", "200", "5000"):
        occupied = threading.Thread(target=_occupy, args=(world.server.socket,))
        occupied.start()
        await asyncio.sleep(world.rng.uniform(1, 8))
        while occupied.is_alive():
            with contextlib.suppress(redis.RedisError):
                world.server.client.script_kill()
            await asyncio.sleep(0.05)


async def kill_clients(world: World) -> None:
    for _ in range(5):
        world.server.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await asyncio.sleep(0.2)


async def flush_scripts(world: World) -> None:
    for _ in range(5):
        world.server.client.script_flush()
        await asyncio.sleep(0.2)


async def set_clock(world: World) -> None:
    """Ahead or back by an hour, for a while."""
    before = world.ahead
    world.set_clock(before + world.rng.choice([3600, -3600]))
    await asyncio.sleep(8)
    world.set_clock(before)


async def pause_planner(world: World) -> None:
    """For longer than the planner's lock lasts."""
    owner = world.server.client.get(f"{NAMESPACE}:{{0}}:planner")
    if owner is not None:
        world.server.client.set(f"{NAMESPACE}:{{0}}:planner", b"chaos", px=5000)
        await asyncio.sleep(5)


def _occupy(socket: str) -> None:
    with redis.Redis(unix_socket_path=socket, socket_timeout=60) as client, contextlib.suppress(redis.RedisError):
        client.eval(_ENDLESS, 0)


@contextlib.contextmanager
def _set(world: World, name: str, value: str, before: str) -> Iterator[None]:
    world.server.client.config_set(name, value)
    try:
        yield
    finally:
        world.server.client.config_set(name, before)
