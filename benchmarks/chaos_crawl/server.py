"""The redis-server of a chaos crawl, which is killed, wiped and filled up."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import redis


class Server:
    """A server with an append-only file on a unix socket in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = str(folder / "redis.sock")
        self.client = redis.Redis(unix_socket_path=self.socket, socket_timeout=10)
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", str(data), "--appendonly", "yes", "--save", ""],
                stdout=log,
                stderr=log,
            )
        for _ in range(200):
            try:
                self.client.ping()
                return
            except redis.RedisError:
                await asyncio.sleep(0.05)
        raise RuntimeError("redis-server does not answer")

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def forget(self) -> None:
        """Remove its data; it is not running."""
        shutil.rmtree(self.folder / "data")
