"""The site of a chaos crawl: pages that link to others on many hosts, and a record of every fetch."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field

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
class Site:
    """``pages`` pages over ``hosts`` hosts, 127.0.0.1 and those behind it."""

    pages: int
    hosts: int
    port: int = 0
    fetches: list[Fetch] = field(default_factory=list)
    _failed: set[str] = field(default_factory=set)

    def url(self, page: int, kind: str = "p") -> str:
        """Return the URL of a page, or of what redirects to it."""
        number = page % self.hosts
        return f"http://127.0.{number // 250}.{1 + number % 250}:{self.port}/{kind}/{page}"

    async def serve(self) -> asyncio.Server:
        """Serve until the result is closed."""
        server = await asyncio.start_server(self._connection, "0.0.0.0", self.port, backlog=1000)  # noqa: S104  # loopback has many hosts
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                fetch = Fetch(headers["host"], head[0].split(" ")[1], headers.get("user-agent", ""), time.monotonic())
                self.fetches.append(fetch)
                await asyncio.sleep(ANSWER_S)
                status, extra, text = self._answer(fetch.path)
                fetch.status = status
                writer.write(
                    f"HTTP/1.1 {status} x\r\nContent-Type: text/html\r\n{extra}Content-Length: {len(text)}\r\n\r\n{text}".encode("latin-1")
                )
                await writer.drain()
                fetch.done = time.monotonic()
        writer.close()

    def _answer(self, path: str) -> tuple[int, str, str]:
        _, kind, number = path.split("/")
        page = int(number)
        if kind == "r":
            return 302, f"Location: {self.url(page)}\r\n", ""
        if page % FAILING == 1 and path not in self._failed:
            self._failed.add(path)
            return 500, "", "at first it fails"
        children = range(page * LINKS + 1, min(page * LINKS + 1 + LINKS, self.pages))
        links = "".join(f'<a href="{self.url(child, "r" if child % REDIRECTED == 2 else "p")}">{child}</a>' for child in children)
        return 200, "", f"<html><body><p>page {page}</p>{links}</body></html>"
