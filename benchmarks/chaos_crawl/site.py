"""The site of a chaos crawl, a process of its own: pages that link to others on many hosts, and a record of every fetch.

Hosts can be told to fail, a line of JSON on standard input: from host to how, in place of what was said before.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

#: Links of a page; seconds that an answer takes; every so many pages is reached by a redirect, or fails at first.
LINKS, ANSWER_S, REDIRECTED, FAILING = 6, 0.01, 23, 37
#: How a host fails: no answer until it is well again, a connection that is reset, half an answer, "503" with so many seconds to wait.
FAILURES, RETRY_AFTER_S = ("silent", "resets", "half", "503"), 4.0
#: Seconds between two looks of the site whether it is held up itself.
LOOK_S = 0.005


@dataclass
class Fetch:
    """One request: host, path, who asked, when it came and was answered (monotonic, s; 0: it was not), status, seconds to wait.

    ``late_s`` is for how long the site was held up when it came: it may have come so much sooner.
    """

    host: str
    path: str
    crawler: str
    at: float
    done: float = 0.0
    status: int = 200
    hold_s: float = 0.0
    late_s: float = 0.0


@dataclass
class _Site:
    """``pages`` pages over ``hosts`` hosts, 127.0.0.1 and those behind it."""

    pages: int
    hosts: int
    port: int = 0
    record: Path = Path()
    _failed: set[str] = field(default_factory=set)
    _failures: Mapping[str, str] = field(default_factory=dict)
    _lines: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    #: For how long it was held up at the last two looks, and when the last one was.
    _held_up: tuple[float, float] = (0.0, 0.0)
    _looked: float = 0.0

    async def serve(self) -> None:
        """Serve until the process is ended; say the port first."""
        server = await asyncio.start_server(self._connection, "0.0.0.0", self.port, backlog=1000)  # loopback has many hosts
        self.port = server.sockets[0].getsockname()[1]
        print(self.port, flush=True)
        threading.Thread(target=self._write, daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look())
            tasks.create_task(server.serve_forever())

    async def _look(self) -> None:
        self._looked = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_S)
            now = time.monotonic()
            self._held_up, self._looked = (self._held_up[1], now - self._looked - LOOK_S), now

    def _late_s(self, at: float) -> float:
        return max(*self._held_up, at - self._looked - LOOK_S)

    def _write(self) -> None:
        # On a thread: a disk that is busy does not make the site late.
        with self.record.open("a", buffering=1) as out:
            while True:
                out.write(self._lines.get())

    def _listen(self) -> None:
        for line in sys.stdin:
            self._failures = json.loads(line)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                fetch = Fetch(headers["host"], head[0].split(" ")[1], headers.get("user-agent", ""), at := time.monotonic())
                fetch.late_s = self._late_s(at)
                try:
                    await asyncio.sleep(ANSWER_S)
                    if not await self._respond(fetch, writer):
                        break
                finally:
                    self._lines.put(json.dumps(asdict(fetch)) + "\n")
        writer.transport.abort()

    async def _respond(self, fetch: Fetch, writer: asyncio.StreamWriter) -> bool:
        """Answer a fetch; return whether the connection is good for another."""
        failure = self._failures.get(fetch.host.partition(":")[0])
        while failure == "silent" and self._failures.get(fetch.host.partition(":")[0]) == "silent":
            await asyncio.sleep(0.1)
        if failure in ("silent", "resets"):
            # Closed at once, the other side is told of a reset.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if failure == "503":
            fetch.hold_s = RETRY_AFTER_S
            status, extra, text = 503, f"Retry-After: {RETRY_AFTER_S:g}\r\n", "later"
        else:
            status, extra, text = self._answer(fetch.path)
        fetch.status = status
        answer = f"HTTP/1.1 {status} x\r\nContent-Type: text/html\r\n{extra}Content-Length: {len(text)}\r\n\r\n{text}".encode("latin-1")
        writer.write(answer[: len(answer) - len(text) // 2 - 1] if failure == "half" else answer)
        await writer.drain()
        if failure == "half":
            return False
        fetch.done = time.monotonic()
        return True

    def _answer(self, path: str) -> tuple[int, str, str]:
        _, kind, number = path.split("/")
        page = int(number)
        if kind == "r":
            return 302, f"Location: {url_of(page, 'p', self.hosts, self.port)}\r\n", ""
        if page % FAILING == 1 and path not in self._failed:
            self._failed.add(path)
            return 500, "", "at first it fails"
        children = range(page * LINKS + 1, min(page * LINKS + 1 + LINKS, self.pages))
        links = "".join(f'<a href="{self._link(child)}">{child}</a>' for child in children)
        return 200, "", f"<html><body><p>page {page}</p>{links}</body></html>"

    def _link(self, page: int) -> str:
        return url_of(page, "r" if page % REDIRECTED == 2 else "p", self.hosts, self.port)


def url_of(page: int, kind: str, hosts: int, port: int) -> str:
    """Return the URL of a page ("p"), or of what redirects to it ("r")."""
    return f"http://{_host_of(page % hosts)}:{port}/{kind}/{page}"


def _host_of(number: int) -> str:
    return f"127.0.{number // 250}.{1 + number % 250}"


class Site:
    """The site, as the harness sees it."""

    def __init__(self, pages: int, hosts: int, record: Path) -> None:
        self._record = record
        record.touch()
        command = [sys.executable, __file__, str(pages), str(hosts), str(record)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None  # piped
        self.start_url = url_of(0, "p", hosts, int(self._process.stdout.readline()))
        with contextlib.suppress(PermissionError):
            # What it records is what crawlers are judged by: on a busy machine it must not be late itself.
            os.setpriority(os.PRIO_PROCESS, self._process.pid, -15)
        self.hosts = [_host_of(number) for number in range(hosts)]

    @property
    def fetches(self) -> list[Fetch]:
        """What it has answered so far."""
        return [Fetch(**json.loads(line)) for line in self._record.read_text().splitlines()]

    def fail(self, failures: Mapping[str, str]) -> None:
        """Let hosts fail from now on, each in a way of `FAILURES`, and all others be well."""
        assert self._process.stdin is not None  # piped
        self._process.stdin.write(json.dumps(failures) + "\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    asyncio.run(_Site(int(sys.argv[1]), int(sys.argv[2]), record=Path(sys.argv[3])).serve())
