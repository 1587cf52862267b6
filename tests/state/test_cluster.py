"""A namespace lives on one node of a real Redis Cluster, whichever node the URL names."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from optimal_frontier.errors import StateError
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.connection import connect, parse_redis_url
from optimal_frontier.state.embedded import _server_program
from optimal_frontier.state.records import encode_record
from optimal_frontier.state.store import Store

SLOTS = 16384
PATIENCE_S = 30.0


def _free_port() -> int:
    # The bus port is 10,000 above.
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port < 55_000:
            return port


def _wait(condition: object) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with contextlib.suppress(redis.RedisError):
            if condition():  # type: ignore[operator]
                return
        time.sleep(0.05)
    raise AssertionError("the cluster did not form in time")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[int]]:
    ports, running = [], []
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            port = _free_port()
            folder = tmp_path_factory.mktemp("node")
            options = {"port": port, "bind": "127.0.0.1", "dir": folder, "cluster-enabled": "yes", "save": "", "daemonize": "no"}
            words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
            process = subprocess.Popen([_server_program(), *words], stdout=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            ports.append(port)
            running.append(stack.enter_context(redis.Redis(port=port, protocol=2)))
        for client in running:
            _wait(client.ping)
        running[0].execute_command("CLUSTER ADDSLOTSRANGE", 0, SLOTS // 2 - 1)
        running[1].execute_command("CLUSTER ADDSLOTSRANGE", SLOTS // 2, SLOTS - 1)
        running[0].execute_command("CLUSTER MEET", "127.0.0.1", ports[1])
        for client in running:
            _wait(lambda client=client: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")  # type: ignore[misc]
        yield ports


@pytest.mark.parametrize("asked", [0, 1])
def test_any_node_leads_to_the_one_that_has_the_keys(nodes: list[int], asked: int) -> None:
    settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_CRAWL_RATE": 100})
    with connect(parse_redis_url(f"redis+cluster://127.0.0.1:{nodes[asked]}", Path())) as connection:
        store = Store(connection, f"cluster-{asked}")
        store.open(spider="spider")
        dispatcher = Dispatcher(store, settings)
        page = dispatcher.new_page(b"f" * 20, "http://example.org/", encode_record({"url": "http://example.org/"}))
        outcome = dispatcher.exchange(Exchange(pages=[page], want=1))
        assert [handout.record["url"] for handout in outcome.handouts] == ["http://example.org/"]
        dispatcher.leave()
        connection.reconnect()
        assert store.counts()["pages"] == 1


def test_a_server_that_is_no_cluster_is_called_so(redis_socket: str, nodes: list[int]) -> None:
    port = _free_port()
    process = subprocess.Popen([_server_program(), "--port", str(port), "--bind", "127.0.0.1", "--save", ""], stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=port, protocol=2) as client:
            _wait(client.ping)
        with pytest.raises(StateError, match="cluster"):
            connect(parse_redis_url(f"redis+cluster://127.0.0.1:{port}", Path()))
    finally:
        process.kill()
        process.wait()
