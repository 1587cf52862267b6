"""Visits by the first edition of optimal_frontier, from a checkout of it in a process of its own.

As a program it is that process: it imports the checkout that PYTHONPATH names, and answers one line of JSON for each line it reads.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

#: The last commit of it.
COMMIT = "f1527f6"


class FirstEditionVisits:
    """Its Store and Dispatcher with DISPATCH "edf"; all pages fetched once and planned."""

    def __init__(self, server: Any, pages: int, hosts: int, host_delay: float = 0.0) -> None:
        here = Path(__file__).resolve()
        self.folder = tempfile.TemporaryDirectory(prefix="of-first-")
        archive = ["git", "-C", str(here.parents[2]), "archive", COMMIT, "optimal_frontier"]
        packed = subprocess.run(archive, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(self.folder.name, filter="data")
        paths = os.pathsep.join((self.folder.name, str(here.parents[1])))
        self.process = subprocess.Popen(
            [sys.executable, str(here), server.socket, str(pages), str(hosts), str(host_delay)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
        self.page_bytes, self.add_us = self._read()

    def step(self, n: int) -> int:
        return int(self._ask(n))

    def end(self) -> None:
        self._ask(0)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()

    def _ask(self, n: int) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


def serve(socket: str, pages: int, hosts: int, host_delay: float) -> None:
    """Fetch every page once, plan, then make as many visits as each line says; 0 ends those under way."""
    import secrets
    import struct
    import time

    import numpy as np
    import redis
    from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
    from optimal_frontier.frontier.planner import Planner
    from optimal_frontier.state.store import Store

    from optimal_frontier.settings import FrontierSettings
    from optimal_frontier.state.connection import connect, parse_redis_url
    from optimal_frontier.state.records import NewPage, Observation, encode_record
    from visits.server import host_of, url_of

    def cpu_s() -> float:
        said = client.info("cpu")
        return float(said["used_cpu_user"] + said["used_cpu_sys"])

    client = redis.Redis(unix_socket_path=socket, protocol=2)
    before = client.info("memory")["used_memory"]
    values = {"DISPATCH": "edf", "MIN_INTERVAL": 0.001, "RESOLVE_INTERVAL": 1e6, "NAMESPACE": "b", "HOST_DELAY": host_delay}
    settings = FrontierSettings.parse({f"OPTIMAL_FRONTIER_{name}": value for name, value in values.items()})
    store = Store(connect(parse_redis_url(f"unix://{socket}", Path())), "b")
    store.open(spider="bench")
    dispatcher = Dispatcher(store, settings)
    rng = np.random.default_rng(1)
    posteriors = np.stack([rng.uniform(2.0, 9.0, pages), rng.uniform(5.0, 50.0, pages)], axis=1).tolist()
    weights = rng.uniform(0.5, 2.0, pages).tolist()
    content = struct.pack("<I16s", 7, b"0123456789abcdef")

    def ended(handouts: list[Any], is_first: bool = False) -> list[Any]:
        stored = content if is_first else b""
        return [Observation(h.slot, h.token, "ok", time.monotonic(), 0, *posteriors[h.slot], stored, 0.0, 0.0) for h in handouts]

    added = 0.0
    seen: list[Any] = []
    for at in range(0, pages, 1000):
        new = [
            NewPage(
                secrets.token_bytes(20),
                host_of(i, hosts),
                encode_record({"url": url_of(i, hosts)}),
                1,
                weights[i],
                1e-6,
                1e3,
                pattern="/section/*",
            )
            for i in range(at, min(pages, at + 1000))
        ]
        spent = cpu_s()
        dispatcher.exchange(Exchange(pages=new))
        added += cpu_s() - spent
        for _ in range(5):
            seen = ended(dispatcher.exchange(Exchange(observations=seen, want=200)).handouts, True)
    while seen:
        seen = ended(dispatcher.exchange(Exchange(observations=seen, want=200)).handouts, True)
    Planner(store, settings).plan()
    print(json.dumps([(client.info("memory")["used_memory"] - before) / pages, added / pages * 1e6]), flush=True)
    held: list[Any] = []
    for line in sys.stdin:
        held = dispatcher.exchange(Exchange(observations=ended(held), want=int(line))).handouts
        print(len(held), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
