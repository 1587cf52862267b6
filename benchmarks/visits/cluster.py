"""A cluster of one's own for a benchmark: three masters on loopback, made with redis-cli."""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import redis

#: Seconds for which the nodes may take to agree.
PATIENCE_S = 60.0
NODES = 3


class ClusterNodes:
    """Three servers, bound to one processor, that keep nothing."""

    def __init__(self, program: str, cpu: int) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="of-cluster-")
        first = random.randrange(20_000, 30_000)  # the nodes' own ports are 10,000 above
        self.ports = range(first, first + NODES)
        self.processes = []
        for port in self.ports:
            folder = Path(self.folder.name) / str(port)
            folder.mkdir()
            options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--cluster-enabled", "yes", "--dir", str(folder)]
            self.processes.append(subprocess.Popen(["taskset", "-c", str(cpu), program, *options], stdout=subprocess.DEVNULL))
        self.clients = [redis.Redis(port=port, protocol=2) for port in self.ports]
        self._wait(lambda client: client.ping())
        addresses = [f"127.0.0.1:{port}" for port in self.ports]
        self.url = f"redis+cluster://{','.join(addresses)}"
        command = ["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self._wait(lambda client: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")

    def cpu_s_of_nodes(self) -> list[float]:
        """CPU seconds of each node so far, user and system."""
        said = [client.info("cpu") for client in self.clients]
        return [float(one["used_cpu_user"] + one["used_cpu_sys"]) for one in said]

    def cpu_s(self) -> float:
        """CPU seconds of all nodes together."""
        return sum(self.cpu_s_of_nodes())

    def memory(self) -> int:
        """Bytes of their data."""
        return sum(int(client.info("memory")["used_memory"]) for client in self.clients)

    def node_of(self, key: str) -> int:
        """Return which node has a key."""
        slot = int(self.clients[0].execute_command("CLUSTER KEYSLOT", key))
        for first, last, master, *_ in self.clients[0].execute_command("CLUSTER SLOTS"):
            if first <= slot <= last:
                return self.ports.index(int(master[1]))
        raise RuntimeError(f"nobody has slot {slot}")

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for process in self.processes:
            process.kill()
            process.wait()
        self.folder.cleanup()

    def _wait(self, is_so: Callable[[redis.Redis], object]) -> None:
        end = time.monotonic() + PATIENCE_S
        for client in self.clients:
            while True:
                try:
                    if is_so(client):
                        break
                except redis.RedisError:
                    pass
                if time.monotonic() > end:
                    raise TimeoutError("the cluster did not get ready")
                time.sleep(0.05)
