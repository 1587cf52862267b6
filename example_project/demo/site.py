"""The changing site: an HTTP/1.1 server on ten ports of 127.0.0.1, in a process of its own, that logs every fetch.

``python -m demo.site --log FILE [--seed 1] [--seconds 90]`` prints one line of JSON, ``{"epoch": ..., "ports": [...]}``, and then
serves until its standard input is closed or it is terminated. `epoch` is ``time.monotonic()`` at the site's start; that clock is the
same for all processes of the machine. The log has one JSON array per fetch: seconds since the start, page, version, HTTP status, and the
length of the page's body, be it sent or spared.

Pages have an ETag, and whoever asks with it (If-None-Match) whether it has changed gets 304 if not. Last-Modified is told as well, but not
gone by: it counts in seconds, and pages change twice within one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import sys
import time
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from typing import NamedTuple, TextIO

from demo.world import HOSTS, SECONDS, World, make_world

#: Seconds between two writes of the log, so that a display can follow it.
_FLUSH_INTERVAL_S = 0.1

_REASONS = {200: "OK", 304: "Not Modified", 404: "Not Found", 405: "Method Not Allowed"}
_FILLER = "The text around the version number stays as it is, like the greater part of most pages that change. " * 8


def page_url(page: int, ports: list[int]) -> str:
    """Address of a page."""
    return f"http://127.0.0.1:{ports[page % HOSTS]}/page/{page}"


class Answer(NamedTuple):
    """Status, body and further header lines, each with its line end."""

    status: int
    body: bytes
    headers: str = ""


class Site:
    """Answers for the world at the present time, and keeps the log.

    Parameters
    ----------
    world : World
        What to serve.
    log : text file
        Gets one line per fetch.
    """

    def __init__(self, world: World, log: TextIO) -> None:
        self._world = world
        self._log = log
        self._frames: list[tuple[str, str]] = []
        self._nonce = 0
        self._epoch = 0.0
        self._wall_epoch = 0.0
        self._servers: list[asyncio.Server] = []

    async def listen(self) -> tuple[float, list[int]]:
        """Open the ports and start the world's clock; returns the epoch and the ports."""
        loop = asyncio.get_running_loop()
        self._servers = [await loop.create_server(partial(_Connection, self, host), "127.0.0.1", 0, backlog=512) for host in range(HOSTS)]
        ports = [server.sockets[0].getsockname()[1] for server in self._servers]
        self._frames = [self._frame(page, ports) for page in range(self._world.pages)]
        self._epoch, self._wall_epoch = time.monotonic(), time.time()
        return self._epoch, ports

    async def close(self) -> None:
        """Close the ports."""
        for server in self._servers:
            server.close()
        await asyncio.sleep(0)

    def _frame(self, page: int, ports: list[int]) -> tuple[str, str]:
        """What stands before and after the version number on a page."""
        links = "\n".join(
            f'<li><a href="{page_url(p, ports)}" data-importance="{self._world.importance[p]:.6g}">Page {p}</a></li>'
            for p in self._world.links[page]
        )
        before = f"<!doctype html>\n<html><head><title>Page {page}</title></head><body>\n<h1>Page {page}</h1>\n"
        after = f"<p>{_FILLER}</p>\n<ul>\n{links}\n</ul>\n</body></html>\n"
        return before, after

    def respond(self, host: int, target: str, if_none_match: str = "") -> Answer:
        """Answer a GET. The nonce in script and comment makes every body differ; the visible text and the weak ETag do not show it."""
        now = time.monotonic() - self._epoch
        prefix, _, number = target.rpartition("/")
        page = int(number) if prefix == "/page" and number.isdecimal() and len(number) < 9 else -1
        if page >= self._world.pages or page % HOSTS != host:
            page = -1
        if page < 0 or now >= self._world.death[page]:
            self._log.write(f"[{now:.6f},{page},0,404,0]\n")
            return Answer(404, b"<!doctype html>\n<title>Gone</title>\n<p>There is no such page.</p>\n")
        version = self._world.version(page, now)
        self._nonce += 1
        noise = f"<!-- served {now:.6f} -->\n<script>window.nonce = {self._nonce};</script>\n"
        before, after = self._frames[page]
        body = f'{before}{noise}<p>Version <b id="version">{version}</b></p>\n{after}'.encode()
        etag = f'W/"{page}-{version}"'
        status = 304 if if_none_match == etag else 200
        self._log.write(f"[{now:.6f},{page},{version},{status},{len(body)}]\n")
        changed = self._wall_epoch + (self._world.changes[page][version - 2] if version > 1 else 0.0)
        headers = f"ETag: {etag}\r\nLast-Modified: {formatdate(changed, usegmt=True)}\r\n"
        return Answer(status, b"" if status == 304 else body, headers)


class _Connection(asyncio.Protocol):
    """One client connection: requests without a body, one after another, kept alive."""

    def __init__(self, site: Site, host: int) -> None:
        self._site = site
        self._host = host
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, self._buffer = self._buffer[:end].decode("latin-1"), self._buffer[end + 4 :]
            line, _, headers = head.partition("\r\n")
            parts = line.split(" ")
            if len(parts) != 3:
                self._transport.close()
                return
            asked = re.search(r"^if-none-match:[ \t]*(.*?)[ \t]*\r?$", headers, re.IGNORECASE | re.MULTILINE)
            answer = self._site.respond(self._host, parts[1], asked[1] if asked else "") if parts[0] == "GET" else Answer(405, b"")
            close = parts[2] == "HTTP/1.0" or "connection: close" in headers.lower()
            self._transport.write(
                f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\nDate: {formatdate(usegmt=True)}\r\n"
                f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(answer.body)}\r\n{answer.headers}"
                f"Connection: {'close' if close else 'keep-alive'}\r\n\r\n".encode()
                + answer.body
            )
            if close:
                self._transport.close()
                return


async def serve(world: World, log: TextIO) -> None:
    """Serve the world until standard input is closed or SIGTERM comes."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # The process that started the site holds the other end: if it dies in whatever way, the site goes too.
    with suppress(PermissionError):  # a plain file or /dev/null cannot be waited for
        loop.add_reader(sys.stdin, stop.set)
    site = Site(world, log)
    epoch, ports = await site.listen()
    print(json.dumps({"epoch": epoch, "ports": ports}), flush=True)
    while not stop.is_set():
        log.flush()
        try:
            await asyncio.wait_for(stop.wait(), _FLUSH_INTERVAL_S)
        except TimeoutError:
            continue
    await site.close()
    log.flush()


def main() -> None:
    """Run the site's process."""
    parser = argparse.ArgumentParser(description="Serve the changing site of the example.")
    parser.add_argument("--log", required=True, help="file that gets one line per fetch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    with open(options.log, "w", encoding="ascii") as log:
        asyncio.run(serve(make_world(options.seed, options.seconds), log))


if __name__ == "__main__":
    main()
