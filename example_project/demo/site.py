"""The changing site: an HTTP/1.1 server on some ports of 127.0.0.1, in a process of its own, that logs every fetch.

``python -m demo.site --log FILE [--world independent] [--seed 1] [--seconds 90]`` prints one line of JSON, ``{"epoch": ..., "ports":
[...]}``, and then serves until its standard input is closed or it is terminated. `epoch` is ``time.monotonic()`` at the site's start;
that clock is the same for all processes of the machine. The log has one JSON array per fetch: seconds since the start, page, version,
HTTP status, and the length of the page's body, be it sent or spared.

Pages have an ETag, and whoever asks with it (If-None-Match) whether it has changed gets 304 if not. Last-Modified is told as well, but
not gone by: it counts in seconds, and pages change twice within one. Where the world has notices, each host has an Atom feed of its last
ones, ``/feed.xml``; it is logged as page -1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import sys
import time
from bisect import bisect_right
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import formatdate
from functools import partial
from typing import NamedTuple, TextIO

from demo.news import WORLDS
from demo.world import HOSTS, SECONDS, World

#: Seconds between two writes of the log, so that a display can follow it.
_FLUSH_INTERVAL_S = 0.1

#: Path of a host's feed, and how many entries it has.
FEED = "/feed.xml"
FEED_ENTRIES = 20

_REASONS = {200: "OK", 304: "Not Modified", 404: "Not Found", 405: "Method Not Allowed"}
_FILLER = "The text around the version number stays as it is, like the greater part of most pages that change. " * 8


def page_url(page: int, ports: list[int], world: World | None = None) -> str:
    """Address of a page; without a world, of those that are called by their numbers."""
    host, path = (page % HOSTS, f"/page/{page}") if world is None else (world.host(page), world.path(page))
    return f"http://127.0.0.1:{ports[host]}{path}"


def feed_urls(world: World, ports: list[int]) -> list[str]:
    """Addresses of the feeds."""
    return [f"http://127.0.0.1:{port}{FEED}" for port in ports] if world.notices else []


class Answer(NamedTuple):
    """Status, body, further header lines, each with its line end, and the media type."""

    status: int
    body: bytes
    headers: str = ""
    media: str = "text/html"


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
        self._ports: list[int] = []
        self._at = {(world.host(page), world.path(page)): page for page in range(world.pages)}
        self._notices = [[notice for notice in world.notices if world.host(notice[1]) == host] for host in range(world.hosts)]

    async def listen(self) -> tuple[float, list[int]]:
        """Open the ports and start the world's clock; returns the epoch and the ports."""
        loop = asyncio.get_running_loop()
        self._servers = [
            await loop.create_server(partial(_Connection, self, host), "127.0.0.1", 0, backlog=512) for host in range(self._world.hosts)
        ]
        ports = self._ports = [server.sockets[0].getsockname()[1] for server in self._servers]
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
            f'<li><a href="{page_url(p, ports, self._world)}" data-importance="{self._world.importance[p]:.6g}">Page {p}</a></li>'
            for p in self._world.links[page]
        )
        about = "" if not self._world.paths else f" of {self._world.path(page)}"
        before = f"<!doctype html>\n<html><head><title>Page {page}</title></head><body>\n<h1>Page {page}</h1>\n"
        after = f"{about}</p>\n<p>{_FILLER}</p>\n<ul>\n{links}\n</ul>\n</body></html>\n"
        return before, after

    def respond(self, host: int, target: str, if_none_match: str = "") -> Answer:
        """Answer a GET. The nonce in script and comment makes every body differ; the visible text and the weak ETag do not show it."""
        now = time.monotonic() - self._epoch
        if target == FEED and self._notices[host]:
            return self._feed(host, now, if_none_match)
        page = self._at.get((host, target), -1)
        if page < 0 or now >= self._world.death[page]:
            self._log.write(f"[{now:.6f},{page},0,404,0]\n")
            return Answer(404, b"<!doctype html>\n<title>Gone</title>\n<p>There is no such page.</p>\n")
        version = self._world.version(page, now)
        self._nonce += 1
        noise = f"<!-- served {now:.6f} -->\n<script>window.nonce = {self._nonce};</script>\n"
        before, after = self._frames[page]
        body = f'{before}{noise}<p>Version <b id="version">{version}</b>{after}'.encode()
        etag = f'W/"{page}-{version}"'
        status = 304 if if_none_match == etag else 200
        self._log.write(f"[{now:.6f},{page},{version},{status},{len(body)}]\n")
        changed = self._wall_epoch + (self._world.changes[page][version - 2] if version > 1 else 0.0)
        headers = f"ETag: {etag}\r\nLast-Modified: {formatdate(changed, usegmt=True)}\r\n"
        return Answer(status, b"" if status == 304 else body, headers)

    def _feed(self, host: int, now: float, if_none_match: str) -> Answer:
        """Answer for a feed: the pages of the last notices, newest first."""
        past = bisect_right(self._notices[host], (now, self._world.pages))
        last: dict[int, float] = {}
        for at, page in reversed(self._notices[host][:past]):
            last.setdefault(page, at)
            if len(last) == FEED_ENTRIES:
                break
        entries = "".join(
            f"<entry><id>{page_url(page, self._ports, self._world)}</id><title>Page {page}</title>"
            f'<link href="{page_url(page, self._ports, self._world)}"/><updated>{_moment(self._wall_epoch + at)}</updated></entry>\n'
            for page, at in last.items()
        )
        body = f'<?xml version="1.0"?>\n<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>\n{entries}</feed>\n'.encode()
        etag = f'W/"feed-{past}"'
        status = 304 if if_none_match == etag else 200
        self._log.write(f"[{now:.6f},-1,0,{status},{len(body)}]\n")
        return Answer(status, b"" if status == 304 else body, f"ETag: {etag}\r\n", "application/atom+xml")


def _moment(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat()


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
                f"Content-Type: {answer.media}; charset=utf-8\r\nContent-Length: {len(answer.body)}\r\n{answer.headers}"
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
    parser.add_argument("--world", choices=sorted(WORLDS), default="independent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    with open(options.log, "w", encoding="ascii") as log:
        asyncio.run(serve(WORLDS[options.world](options.seed, options.seconds), log))


if __name__ == "__main__":
    main()
