"""The largest call of every script, in a partition with thousands of pages: how much it asks of the server, in commands and elements."""

from __future__ import annotations

import importlib.util
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from optimal_frontier.state.connection import connect
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import BATCH, HEAVY_BATCH
from optimal_frontier.state.redis_url import parse_redis_url

_PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "visits" / "largest_calls.py"
_SPEC = importlib.util.spec_from_file_location("largest_calls", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
largest_calls = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(largest_calls)

PAGES, HOSTS = 3000, 1500
#: Most commands of a call, and most fields, members and values that these name.
MOST: dict[str, tuple[int, int]] = {
    "add_pages: new, new hosts": (2 * HEAVY_BATCH, 26 * HEAVY_BATCH),
    "add_pages: known, other tails": (2 * HEAVY_BATCH, 8 * HEAVY_BATCH),
    "adopt": (20, 30),
    "become_alias": (20, 40),
    "dispatch: due": (20, 7 * BATCH),
    "dispatch: due, paced": (20, 16 * BATCH),
    "dispatch: shut hosts": (20, 16 * BATCH),
    "dispatch: first visits": (3 * HEAVY_BATCH, 24 * HEAVY_BATCH),
    "dispatch: first visits beside full slots": (4 * HEAVY_BATCH, 24 * HEAVY_BATCH),
    "dispatch: first visits with room": (4 * HEAVY_BATCH, 24 * HEAVY_BATCH),
    "forget: under way": (20, 16 * HEAVY_BATCH),
    "forget: waiting": (5 * HEAVY_BATCH, 24 * HEAVY_BATCH),
    "shut_hosts: asks": (8, 8),
    "shut_hosts: began": (4 * BATCH, 8 * BATCH),
    "observe": (5 * BATCH, 28 * BATCH),
    "observe: retired": (3 * BATCH, 8 * BATCH),
    "publish_plan": (10, 240),
    "renew": (5, 4 * BATCH),
    "revise": (12, 9 * HEAVY_BATCH),
    "add_to_sources": (2 * BATCH, 4 * BATCH),
    "store_clocks": (5, 2 * BATCH + 10),
    "take_turns": (3 * BATCH, 9 * BATCH),
    "write_plan": (8, 6 * BATCH + 10),
}
#: Pages that a dispatch looks at, and members of queues of first visits that it reads.
MOST_LOOKED_AT, MOST_FIRST = 3 * BATCH, 6 * BATCH


@pytest.fixture(scope="module")
def calls(redis_socket: str) -> Iterator[Any]:
    space = Namespace(connect(parse_redis_url(f"unix://{redis_socket}", Path())), f"test-{uuid.uuid4().hex[:12]}")
    space.open(spider="test")
    made = largest_calls.LargestCalls(space, PAGES, HOSTS)
    yield made
    made.close()


def commands_of(client: redis.Redis, run: Any) -> list[list[bytes]]:
    """The commands of the scripts that are run, each with its arguments, as MONITOR writes them."""
    done, found = uuid.uuid4().hex.encode(), []
    with client.monitor() as watched:
        run()
        client.echo(done)
        while done not in (line := watched.connection.read_response()):
            if b" lua] " in line[:60]:
                found.append(re.findall(rb'"((?:[^"\\]|\\.)*)"', line))
    return found


@pytest.mark.parametrize("kind", MOST)
def test_a_call_asks_no_more_of_the_server_than_so(kind: str, calls: Any, redis_client: redis.Redis) -> None:
    call = calls.kinds[kind]()
    assert call.script == kind.partition(":")[0]
    replies: list[Any] = []
    commands = commands_of(redis_client, lambda: replies.extend(calls.namespace.run([call])))
    most_commands, most_elements = MOST[kind]
    elements = sum(len(command) - 2 for command in commands)
    assert 0 < len(commands) <= most_commands
    assert elements <= most_elements
    if kind.startswith("dispatch"):
        looked_at = sum(len(command) - 2 for command in commands if command[0] == b"HMGET" and command[1].endswith(b":pages"))
        first = [command for command in commands if command[0] == b"ZRANGE" and b":f:" in command[1]]
        assert 0 < looked_at <= MOST_LOOKED_AT
        assert sum(1 + int(command[3]) - int(command[2]) for command in first) <= MOST_FIRST
        assert kind == "dispatch: shut hosts" or len(replies[0][1]) == (BATCH if kind.startswith("dispatch: due") else HEAVY_BATCH)


def test_every_script_has_its_largest_call() -> None:
    """But those that set one value, the lock of the planner."""
    scripts = {path.stem for path in (_PATH.parents[2] / "optimal_frontier" / "state" / "lua").glob("[!_]*.lua")}
    assert scripts - {kind.partition(":")[0] for kind in MOST} == {"take_planner_lock"}
