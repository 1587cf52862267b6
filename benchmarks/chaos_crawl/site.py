"""The site of a chaos crawl, a process of its own: pages that link to others on many hosts, and a record of every fetch."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

#: Links of a page; seconds that an answer takes; every so many pages is reached by a redirect, or fails at first.
LINKS, ANSWER_S, REDIRECTED, FAILING = 6, 0.01, 23, 37


@dataclass
class Fetch:
    """One request: host, path, who asked, when it came and was answered (monotonic, s; 0: it was not), status."""

    host: str
    path: str
    crawler: str
    at: float
    done: float = 0.0
    status: int = 200


@dataclass
class _Site:
    """``pages`` pages over ``hosts`` hosts, 127.0.0.1 and those behind it."""

    pages: int
    hosts: int
    port: int = 0
    record: Path = Path()
    _failed: set[str] = field(default_factory=set)

    async def serve(self) -> None:
        """Serve until the process is ended; say the port first."""
        server = await asyncio.start_server(self._connection, "0.0.0.0", self.port, backlog=1000)  # loopback has many hosts
        self.port = server.sockets[0].getsockname()[1]
        print(self.port, flush=True)
        self._out = self.record.open("a", buffering=1)
        await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                fetch = Fetch(headers["host"], head[0].split(" ")[1], headers.get("user-agent", ""), time.monotonic())
                await asyncio.sleep(ANSWER_S)
                status, extra, text = self._answer(fetch.path)
                fetch.status = status
                writer.write(
                    f"HTTP/1.1 {status} x\r\nContent-Type: text/html\r\n{extra}Content-Length: {len(text)}\r\n\r\n{text}".encode("latin-1")
                )
                await writer.drain()
                fetch.done = time.monotonic()
                self._out.write(json.dumps(asdict(fetch)) + "\n")
        writer.close()

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
    number = page % hosts
    return f"http://127.0.{number // 250}.{1 + number % 250}:{port}/{kind}/{page}"


class Site:
    """The site, as the harness sees it."""

    def __init__(self, pages: int, hosts: int, record: Path) -> None:
        self._record = record
        record.touch()
        command = [sys.executable, __file__, str(pages), str(hosts), str(record)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None  # piped
        self.start_url = url_of(0, "p", hosts, int(self._process.stdout.readline()))

    @property
    def fetches(self) -> list[Fetch]:
        """What it has answered so far."""
        return [Fetch(**json.loads(line)) for line in self._record.read_text().splitlines()]

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


if __name__ == "__main__":
    asyncio.run(_Site(int(sys.argv[1]), int(sys.argv[2]), record=Path(sys.argv[3])).serve())
