"""A real cluster on loopback, of Redis or of the Valkey that comes along, whose nodes are killed and started again."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest
import redis
from real_server import binary_of

#: Longest wait for servers, seconds.
PATIENCE_S = 30.0
#: Milliseconds of silence after which a node is taken for dead: a replica takes its place within about two seconds.
NODE_TIMEOUT_MS = 1000
_CLI_TLS = {"ssl_ca_certs": "--cacert", "ssl_certfile": "--cert", "ssl_keyfile": "--key"}


def wait_for(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait until something holds that servers are asked for, which may be away meanwhile."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        with contextlib.suppress(redis.RedisError):
            if condition():
                return
        time.sleep(0.02)
    raise AssertionError("the servers did not get ready in time")


def free_port() -> int:
    """Return a port that is free, as is the one 10,000 above, which is the cluster's own."""
    while True:
        port = random.randrange(20_000, 32_000)  # below what the system gives to connections
        with contextlib.suppress(OSError), socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 10_000))
            return port


def port_of(client: redis.Redis) -> int:
    """Return where a client's server listens."""
    return int(client.connection_pool.connection_kwargs["port"])


class ClusterServers:
    """The nodes of a cluster.

    Parameters
    ----------
    binary : str
        Of the server.
    folder : Path
        For their data.
    options : mapping
        Those of redis.conf, for each node.
    tls : mapping
        Options of redis-py for TLS, as in URLs; none: no TLS.
    """

    def __init__(self, binary: str, folder: Path, options: Mapping[str, object], tls: Mapping[str, object]) -> None:
        self.binary, self.folder = binary, folder
        self.options, self.tls = options, tls
        self.clients: list[redis.Redis] = []
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._silent: set[int] = set()

    def __enter__(self) -> ClusterServers:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.close()
        for process in self._processes.values():
            process.kill()
            process.wait()

    def make(self, masters: int, replicas: int) -> None:
        """Start the nodes, and join them: ``replicas`` for each master."""
        for _ in range(masters * (1 + replicas)):
            port = free_port()
            self.start(port)
            self.clients.append(redis.Redis("127.0.0.1", port, protocol=2, ssl=bool(self.tls), **self.tls))  # type: ignore[arg-type]
        for client in self.clients:
            wait_for(client.ping)
        addresses = [f"127.0.0.1:{port_of(client)}" for client in self.clients]
        self.cli("--cluster", "create", *addresses, "--cluster-replicas", replicas, "--cluster-yes")
        self.wait_until_well()

    def start(self, port: int) -> None:
        """Start a node, which knows the others if it ran before."""
        folder = self.folder / str(port)
        folder.mkdir(exist_ok=True)
        given: dict[str, object] = {"bind": "127.0.0.1", "dir": folder, "save": "", "cluster-enabled": "yes"}
        given |= {"cluster-node-timeout": NODE_TIMEOUT_MS, "cluster-replica-validity-factor": 0, "repl-diskless-sync-delay": 0}
        given |= {"port": 0, "tls-port": port} if self.tls else {"port": port}
        words = [word for name, value in (given | dict(self.options)).items() for word in (f"--{name}", str(value))]
        with (folder / "server.log").open("ab") as log:
            self._processes[port] = subprocess.Popen([self.binary, *words], stdout=log, stderr=log)

    def kill(self, client: redis.Redis) -> None:
        """End a node at once."""
        self._processes[port_of(client)].send_signal(signal.SIGKILL)
        self._processes[port_of(client)].wait()

    def silence(self, client: redis.Redis) -> None:
        """Let a node stand still: connections stay open, and nobody answers; `restore` wakes it."""
        self._processes[port_of(client)].send_signal(signal.SIGSTOP)
        self._silent.add(port_of(client))

    def cli(self, *words: object) -> str:
        """Run redis-cli."""
        tls = [word for name, option in _CLI_TLS.items() if self.tls for word in (option, self.tls[name])]
        command = ["redis-cli", *(["--tls"] if self.tls else []), *map(str, (*tls, *words))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def masters(self) -> list[redis.Redis]:
        """Clients of the nodes that have slots now, as those that live say."""
        return [client for client in self._living if client.execute_command("ROLE")[0] == b"master" and self.slots_of(client)]

    def master_of(self, key: str) -> redis.Redis:
        """Return the client of the node that has a key now."""
        slot = int(self._living[0].execute_command("CLUSTER KEYSLOT", key))
        return next(client for client in self.masters if any(first <= slot <= last for first, last in self.slots_of(client)))

    @staticmethod
    def slots_of(client: redis.Redis) -> list[tuple[int, int]]:
        """Return first and last slots of the ranges that a node says it has."""
        nodes = client.execute_command("CLUSTER NODES").values()
        mine = next(node for node in nodes if "myself" in node["flags"])
        return [(int(span[0]), int(span[-1])) for span in mine["slots"]]

    def nearest_move(self, keys: Iterable[str]) -> tuple[redis.Redis, redis.Redis, int]:
        """Return from which master to which other so many slots are to be moved, the fewest with which one of the keys goes along."""
        slots = sorted({int(self._living[0].execute_command("CLUSTER KEYSLOT", key)) for key in keys})
        moves = []
        for number, master in enumerate(self.masters):
            spans = self.slots_of(master)
            counts = [sum(min(slot, last) - first + 1 for first, last in spans if first <= slot) for slot in slots]
            there = [count for slot, count in zip(slots, counts, strict=True) if any(first <= slot <= last for first, last in spans)]
            moves += [(min(there), number)] if there else []
        count, number = min(moves)
        return self.masters[number], self.masters[number - 1], count

    def move_slots(self, source: redis.Redis, target: redis.Redis, count: int) -> None:
        """Move the first slots of a master to another, as `redis-cli` does; returns when that is done."""
        words = ["--cluster-from", self.id_of(source), "--cluster-to", self.id_of(target), "--cluster-slots", count]
        self.cli("--cluster", "reshard", self.address_of(source), *words, "--cluster-yes")

    @staticmethod
    def address_of(client: redis.Redis) -> str:
        """Return where a node is, as redis-cli wants it."""
        return f"127.0.0.1:{port_of(client)}"

    def cut_off_replicas(self, master: redis.Redis) -> None:
        """From now on the replicas of a master see nothing that is written there; `restore` ends that."""
        nodes = master.execute_command("CLUSTER NODES")
        mine = {address.split("@")[0] for address, node in nodes.items() if node["master_id"] == self.id_of(master)}
        for client in self.clients:
            if self.address_of(client) in mine:
                client.config_set("masterauth", "none such")  # the master has no password, and refuses who names one
        master.client_kill_filter(_type="replica")

    def id_of(self, client: redis.Redis) -> str:
        """Return the name that a node has in the cluster."""
        return str(client.execute_command("CLUSTER MYID").decode())

    def url(self, *clients: redis.Redis) -> str:
        """Return a URL that names some nodes, the first one unless told."""
        nodes = ",".join(f"127.0.0.1:{port_of(client)}" for client in clients or self.clients[:1])
        options = "&".join(f"{name}={value}" for name, value in self.tls.items())
        return f"rediss+cluster://{nodes}/?{options}" if self.tls else f"redis+cluster://{nodes}"

    def restore(self) -> None:
        """Start nodes that were killed, and wait until each has its place."""
        for port, process in self._processes.items():
            if port in self._silent:
                process.send_signal(signal.SIGCONT)
            if process.poll() is not None:
                self.start(port)
        self._silent.clear()
        for client in self.clients:
            wait_for(lambda client=client: client.config_set("masterauth", ""))  # type: ignore[misc]
        self.wait_until_well()

    def wait_until_well(self) -> None:
        """Wait until all nodes agree, and all replicas have what their masters have."""
        # In one look: a node that was started again takes itself for a master first, and has nothing until it is a replica that was told.
        wait_for(lambda: len(self.masters) == 3 and all(map(self._is_well, self.clients)))

    def _is_well(self, client: redis.Redis) -> bool:
        nodes = client.execute_command("CLUSTER NODES").values()
        is_known = len(nodes) == len(self.clients) and all(node["connected"] and "fail" not in node["flags"] for node in nodes)
        role = client.execute_command("ROLE")
        is_ok = client.execute_command("CLUSTER INFO")["cluster_state"] == "ok"
        return bool(is_known and is_ok and (role[0] == b"master" or role[3] == b"connected"))

    @property
    def _living(self) -> list[redis.Redis]:
        ports = {port for port, process in self._processes.items() if process.poll() is None} - self._silent
        return [client for client in self.clients if port_of(client) in ports]


@contextlib.contextmanager
def cluster_servers(
    kind: str, folder: Path, replicas: int = 0, options: Mapping[str, object] | None = None, tls: Mapping[str, object] | None = None
) -> Iterator[ClusterServers]:
    """Run three masters of ``"redis"`` or ``"valkey"``; in CI nothing may be left out because nobody installed it."""
    if shutil.which("redis-cli") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("not installed: redis-cli")
    with ClusterServers(binary_of(kind), folder, options or {}, tls or {}) as servers:
        servers.make(3, replicas)
        yield servers
