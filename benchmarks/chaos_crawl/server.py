"""The redis-server of a chaos crawl: killed, wiped, filled up, frozen, set back to a snapshot, followed by its replica."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import redis

#: Seconds in which a server must answer, or follow another.
_PATIENCE_S = 60.0
#: What the shortest sleep takes, microseconds.
_SLEEP_US = 60.0


class Server:
    """A server with an append-only file, on a unix socket in ``folder`` and a port for replicas; ``name`` is that of its data."""

    def __init__(self, folder: Path, name: str = "data") -> None:
        self.folder, self.name = folder, name
        self.data = folder / name
        self.socket = str(folder / f"{name}.sock")
        self.client = redis.Redis(unix_socket_path=self.socket, socket_timeout=10)
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, *options: str) -> None:
        """Start it; it may be loading for a while."""
        self.data.mkdir(exist_ok=True)
        listens = ["--bind", "127.0.0.1", "--port", str(self.port), "--unixsocket", self.socket]
        keeps = ["--dir", str(self.data), "--appendonly", "yes", "--save", "", "--repl-diskless-sync-delay", "0"]
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(["redis-server", *listens, *keeps, *options], stdout=log, stderr=log)

    async def start(self, *options: str) -> None:
        """Start it, and wait until it answers."""
        self.launch(*options)
        await self.answers()

    async def answers(self) -> None:
        """Wait until it does."""
        give_up = time.monotonic() + _PATIENCE_S
        while time.monotonic() < give_up:
            try:
                await asyncio.to_thread(self.client.ping)  # proxies go on meanwhile
                return
            except redis.RedisError:
                await asyncio.sleep(0.02)
        raise RuntimeError("redis-server does not answer")

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self, *, is_frozen: bool) -> None:
        """Stop its process, or let it go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP if is_frozen else signal.SIGCONT)

    def forget(self) -> None:
        """Remove its data; it is not running."""
        shutil.rmtree(self.data)

    async def snapshot(self) -> Path:
        """Return a copy of what it holds now."""
        self.client.save()
        return Path(shutil.copy(self.data / "dump.rdb", self.folder / "snapshot.rdb"))

    async def restore(self, snapshot: Path) -> None:
        """Start it with what a snapshot holds; it is not running."""
        self.forget()
        self.data.mkdir()
        shutil.copy(snapshot, self.data / "dump.rdb")
        await self.start("--appendonly", "no")
        self.client.config_set("appendonly", "yes")
        await self._written()

    def load_slowly(self, seconds: float) -> None:
        """Kill it, and start it again; it loads its log for about so long, and says so to who asks. Returns once it has begun to."""
        keys = int(self.client.dbsize())
        self.kill()
        file, _ = self.size_of_log()
        each_us = 1e6 * seconds / (1 + keys + file.read_bytes().count(b"\r\n*"))
        # A negative delay is that of some commands, drawn.
        delay = int(each_us - _SLEEP_US) if each_us > 2 * _SLEEP_US else -max(1, int(_SLEEP_US / each_us))
        self.launch("--key-load-delay", str(delay))

    def size_of_log(self) -> tuple[Path, int]:
        """Return the append-only file that is written to, and its size."""
        file = max((self.data / "appendonlydir").glob("*.incr.aof"), key=lambda path: int(path.name.split(".")[-3]))
        return file, file.stat().st_size

    async def replica(self, name: str) -> Server:
        """Return a replica, which has all that is there now."""
        other = Server(self.folder, name)
        await other.start("--replicaof", "127.0.0.1", str(self.port))
        give_up = time.monotonic() + _PATIENCE_S
        while other.client.info("replication")["master_link_status"] != "up":
            if time.monotonic() > give_up:
                raise RuntimeError("the replica does not follow")
            await asyncio.sleep(0.02)
        return other

    async def _written(self) -> None:
        """Wait until the append-only file is rewritten."""
        while True:
            told = self.client.info("persistence")
            if not (told["aof_rewrite_in_progress"] or told["aof_rewrite_scheduled"]):
                return
            await asyncio.sleep(0.02)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
