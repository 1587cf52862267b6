"""Frontera's broker, DB worker and strategy worker with two spiders, in processes of their own: those of docs/frontera.md."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from forked_programs import ForkedProgram
from misbehaving_site import MisbehavingSite
from plain_frontera import PlainState

ROOT = Path(__file__).resolve().parents[2]
#: Longest wait for anything that is expected, seconds.
PATIENCE_S = 60.0
#: Ports of Frontera's broker, from its base port on.
PORTS = 6
#: What a file of the documentation begins with -> its name.
FILES = {"Settings of Frontera's workers": "workers.py", "Settings of the spiders": "spiders.py", "One spider of several": "spider.py"}
#: Everything in a hurry.
HURRIED = """
ZMQ_BASE_PORT = {port}
NEW_BATCH_DELAY = 0.1
OPTIMAL_FRONTIER_REDIS_URL = "unix://{redis}"
OPTIMAL_FRONTIER_NAMESPACE = "{namespace}"
OPTIMAL_FRONTIER_CRAWL_RATE = 200
OPTIMAL_FRONTIER_HOST_DELAY = 0
OPTIMAL_FRONTIER_MIN_INTERVAL = 0.5
OPTIMAL_FRONTIER_RESOLVE_INTERVAL = 0.3
OPTIMAL_FRONTIER_LEASE_SECONDS = 2
OPTIMAL_FRONTIER_RESULT_TIMEOUT = 2
"""


def base_port() -> int:
    """A port on 127.0.0.1 that is free, as are those after it."""
    while True:
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError, OverflowError):
            first = probes.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            for further in range(1, PORTS):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port + further))
            return port


class Processes:
    """The processes of one crawl, by name; what they print goes to NAME.log."""

    def __init__(self, folder: Path, seed: str) -> None:
        self.folder = folder
        self._running: dict[str, ForkedProgram] = {}
        self.commands = {
            "broker": ["-m", "frontera.contrib.messagebus.zeromq.broker", "--config", "workers"],
            "db": ["-m", "optimal_frontier.integrations.frontera.db_worker", "--config", "workers"],
            "strategy": ["-m", "frontera.worker.strategy", "--config", "workers"],
            "spider 0": ["spider.py", "0", seed],
            "spider 1": ["spider.py", "1", seed],
        }

    def start(self, name: str) -> None:
        """Start a process."""
        self._running[name] = ForkedProgram(self.commands[name], self.folder, self.folder / f"{name}.log", os.environ)

    def kill(self, name: str) -> None:
        """End a process at once."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> int:
        """Stop a process in good order; return its exit code."""
        process = self._running.pop(name)
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(PATIENCE_S)
        finally:
            process.kill()

    def until(self, what: Callable[[], Any]) -> None:
        """Wait until ``what`` holds; no process may end before."""
        give_up = time.monotonic() + PATIENCE_S
        while not what():
            ended = [name for name, process in self._running.items() if process.poll() is not None]
            assert not ended, f"{ended} ended\n{self.logs}"
            assert time.monotonic() < give_up, f"waited {PATIENCE_S} s in vain\n{self.logs}"
            time.sleep(0.05)

    def end(self) -> None:
        """End what still runs."""
        for name in list(self._running):
            self.kill(name)

    @property
    def logs(self) -> str:
        """What all of them printed."""
        return "\n".join(f"--- {path.stem}\n{path.read_text()}" for path in sorted(self.folder.glob("*.log")))


@pytest.fixture
def processes(tmp_path: Path, redis_socket: str, namespace: str, site: MisbehavingSite) -> Iterator[Processes]:
    """The files of the documentation, in a hurry; nothing is started yet."""
    if find_spec("zmq") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("not installed: pyzmq")
    for block in (ROOT / "docs" / "frontera.md").read_text().split("```python\n")[1:]:
        for beginning, name in FILES.items():
            if block.startswith(f'"""{beginning}'):
                (tmp_path / name).write_text(block.split("```")[0])
    with (tmp_path / "workers.py").open("a") as out:
        out.write(HURRIED.format(port=base_port(), redis=redis_socket, namespace=namespace))
    started = Processes(tmp_path, site.url("/links/counter/0,pages/20"))
    yield started
    started.end()


def test_workers_and_spiders_lose_nothing(processes: Processes, site: MisbehavingSite, plain_state: PlainState) -> None:
    """Pages come in by links and are revisited by both spiders; each process is killed once, and none is missed."""
    seed, counter = "/links/counter/0,pages/20", "/counter/0"
    pages = [seed, counter, "/pages/20", *(f"/static/{n}" for n in range(20))]
    for name in processes.commands:
        processes.start(name)
    processes.until(lambda: all(site.count(path) >= 2 for path in pages))
    spiders = Counter(fetch.headers["user-agent"] for fetch in site.fetches)
    assert set(spiders) == {"spider 0", "spider 1"}
    assert min(spiders.values()) >= len(pages) // 5, "one spider did nearly all of it"

    # Its leases run out, and its successor hands out all of them.
    processes.kill("db")
    processes.start("db")
    before = Counter(site.paths())
    processes.until(lambda: all(site.count(path) >= before[path] + 2 for path in pages))

    # A link that nobody hears of comes again with its page.
    processes.kill("strategy")
    site.answers[seed] = (200, '<html><body><a href="/static/new">new</a></body></html>', {})
    before = Counter(site.paths())
    processes.until(lambda: site.count(seed) >= before[seed] + 2)
    assert not site.count("/static/new")
    processes.start("strategy")
    processes.until(lambda: site.count("/static/new") >= 2)

    # What a spider had in its queue falls due again.
    processes.kill("spider 0")
    processes.start("spider 0")
    before = Counter(site.paths())
    processes.until(lambda: all(site.count(path) >= before[path] + 1 for path in pages))

    for name in ("db", "strategy"):
        assert processes.stop(name) == 0, processes.logs
    assert "Traceback" not in processes.logs
    assert plain_state.in_flight == 0
    assert plain_state.counts["pages"] == len(pages) + 1
    for path in pages:
        row = plain_state.at(site.url(path))
        assert 4 <= row["visits"] <= site.count(path)
        assert row["changes"] == {counter: row["observations"], seed: 1}.get(path, 0), path  # a visit that counts twice shows no change


def test_without_a_strategy_worker_every_link_is_a_page(processes: Processes, site: MisbehavingSite, plain_state: PlainState) -> None:
    """With OptimalBackend in the DB worker; conditions go to the spiders, and 304s come back."""
    with (processes.folder / "workers.py").open("a") as out:
        out.write('BACKEND = "optimal_frontier.integrations.frontera.OptimalBackend"\n')
    site.answers["/counter/0"] = (200, "tagged", {"ETag": '"1"'})
    for name in ("broker", "db", "spider 0", "spider 1"):
        processes.start(name)
    pages = ["/links/counter/0,pages/20", "/counter/0", "/pages/20", *(f"/static/{n}" for n in range(20))]
    processes.until(lambda: all(site.count(path) for path in pages))
    processes.until(lambda: any("if-none-match" in fetch.headers for fetch in site.of("/counter/0")))
    assert processes.stop("db") == 0
    assert "Traceback" not in processes.logs
    assert plain_state.counts["pages"] == len(pages)


def test_a_spider_that_is_not_there_gets_nothing(processes: Processes, site: MisbehavingSite, plain_state: PlainState) -> None:
    """So the other one fetches all pages."""
    with (processes.folder / "workers.py").open("a") as out:
        out.write('BACKEND = "optimal_frontier.integrations.frontera.OptimalBackend"\n')
    for name in ("broker", "db", "spider 1"):
        processes.start(name)
    pages = ["/links/counter/0,pages/20", "/counter/0", "/pages/20", *(f"/static/{n}" for n in range(20))]
    processes.until(lambda: all(site.count(path) >= 2 for path in pages))
    assert processes.stop("db") == 0
    assert "Traceback" not in processes.logs
    assert {fetch.headers["user-agent"] for fetch in site.fetches} == {"spider 1"}
