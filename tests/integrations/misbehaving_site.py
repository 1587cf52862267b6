"""A site on 127.0.0.1 that behaves as badly as real ones, and keeps a record of every request that it got.

It runs on an event loop in a thread of its own. The first part of a path says how it behaves:

==================  ==================================================================================================
``/static/...``     always the same page
``/counter/...``    another page at every request
``/news/SECONDS``   a page that is republished whenever the seconds since the epoch are a multiple of SECONDS
``/weibull/K/S/N``  changes at times between which there are S seconds on average, of a Weibull distribution of shape K (1: memoryless)
``/links/a,b``      a page with links to ``/a`` and ``/b``
``/pages/N``        a page with links to ``/static/0`` ... ``/static/N-1``
``/status/S``       answers with status S;  ``/fails-after/N`` with 503 after N times 200
``/moved/PATH``     sends to ``/PATH`` for ever;  ``/cut/...`` hangs up in the middle of the page
``/redirect/PATH``  sends to ``/PATH``;  ``/away`` to the host ``offsite.invalid``;  ``/loop`` to itself
``/slow/SECONDS``   answers after a while;  ``/hang`` never does;  ``/drop`` hangs up;  ``/drip/SECONDS`` answers at once, but
                    for the last byte
``/once/...``       hangs up unless it is the first request of its connection
``/private/...``    forbidden by robots.txt
``/modified/H/N``   another page at every request, whose Last-Modified was ``ages[H]`` seconds ago; to be cached for ``max_age``
                    seconds; who asks whether it still holds is told yes
``/sitemap.xml``    ``sitemap``: pairs of path and lastmod
==================  ==================================================================================================

What stands in ``answers`` goes before: path -> status, text, further headers; also by host and path.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from email.utils import formatdate
from urllib.parse import unquote

ROBOTS = "User-agent: *\nDisallow: /private/\n"


@dataclass(frozen=True)
class Fetch:
    """One request that the site got; ``at`` is this process's monotonic clock, seconds."""

    at: float
    method: str
    path: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class MisbehavingSite:
    """Context manager; serves while it is open."""

    def __init__(self, *hosts: str) -> None:
        #: Addresses beside 127.0.0.1 at which it serves, on the same port.
        self.hosts = hosts
        self.answers: dict[str, tuple[int, str | bytes, dict[str, str]]] = {}
        self.fetches: list[Fetch] = []
        self.port = 0
        self.ages: dict[str, float] = {}
        self.max_age: int | None = None
        self.sitemap: list[tuple[str, str | None]] = []
        self._versions: Counter[str] = Counter()
        self._editions: dict[str, tuple[int, float, random.Random]] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    def __enter__(self) -> MisbehavingSite:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return the URL of ``path``."""
        return f"http://{host}:{self.port}{path}"

    def of(self, path: str) -> list[Fetch]:
        """Return the requests for ``path`` so far."""
        return [fetch for fetch in list(self.fetches) if fetch.path == path]

    def count(self, path: str) -> int:
        """Return how often ``path`` was asked for."""
        return len(self.of(path))

    def paths(self) -> list[str]:
        """Return what was asked for so far, in order, robots.txt left out."""
        return [fetch.path for fetch in list(self.fetches) if fetch.path != "/robots.txt"]

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        servers = [server, *[await asyncio.start_server(self._connection, host, self.port) for host in self.hosts]]
        self._ready.set()
        await self._stop.wait()
        for server in servers:
            server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            for earlier in itertools.count():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.fetches.append(Fetch(time.monotonic(), method, unquote(path), headers, body))
                if (path.startswith("/once") and earlier) or not await self._answer(unquote(path), headers, writer):
                    break
        writer.close()

    async def _answer(self, path: str, headers: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        first, _, rest = path[1:].partition("/")
        status, extra = 200, ""
        text: str | bytes = f"<html><body><p>{first}</p></body></html>"
        if path == "/robots.txt":
            text = ROBOTS
        elif first == "counter":
            self._versions[path] += 1
            text = f"<html><body><p>version {self._versions[path]} of {path}</p></body></html>"
        elif first == "news":
            text = f"<html><body><p>edition {time.time() // float(rest)} of {path}</p></body></html>"
        elif first == "weibull":
            text = f"<html><body><p>edition {self._edition(path)}</p></body></html>"
        elif first == "links":
            text = "<html><body>" + "".join(f'<a href="/{link}">{link}</a>' for link in rest.split(",")) + "</body></html>"
        elif first == "pages":
            text = "<html><body>" + "".join(f'<a href="/static/{n}">{n}</a>' for n in range(int(rest))) + "</body></html>"
        elif first == "status":
            status = int(rest.partition("/")[0])
        elif first == "fails-after":
            self._versions[path] += 1
            status = 200 if self._versions[path] <= int(rest) else 503
        elif first == "moved":
            status, extra = 301, f"Location: /{rest}\r\n"
        elif first == "redirect":
            status, extra = 302, f"Location: /{rest}\r\n"
        elif first == "away":
            status, extra = 302, "Location: http://offsite.invalid/\r\n"
        elif first == "loop":
            status, extra = 302, f"Location: {path}\r\n"
        elif first == "slow":
            await asyncio.sleep(float(rest.partition("/")[0]))
        elif first == "hang":
            await asyncio.sleep(3600)
        elif first == "drop":
            return False
        elif first == "modified":
            status = 304 if "if-modified-since" in headers else 200
            self._versions[path] += status == 200
            text = f"<html><body><p>version {self._versions[path]} of {path}</p></body></html>"
            extra = self._times(self.ages[rest.partition("/")[0]])
        elif first == "sitemap.xml":
            entries = ((self.url(at), f"<lastmod>{when}</lastmod>" if when else "") for at, when in self.sitemap)
            urls = "".join(f"<url><loc>{url}</loc>{lastmod}</url>" for url, lastmod in entries)
            text = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
        answer = self.answers.get(headers.get("host", "").partition(":")[0] + path) or self.answers.get(path)
        if answer is not None:
            status, text, more = answer
            extra += "".join(f"{name}: {value}\r\n" for name, value in more.items())
        payload = b"" if status == 304 else text if isinstance(text, bytes) else text.encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(payload)}\r\n{extra}\r\n"
        is_cut = first == "cut"
        writer.write(head.encode() + (payload[:-9] if is_cut else payload[:-1]))
        await writer.drain()
        if first == "drip":
            await asyncio.sleep(float(rest.partition("/")[0]))
        if not is_cut:
            writer.write(payload[-1:])
            await writer.drain()
        return not is_cut

    def _edition(self, path: str) -> int:
        """Number of changes since the page was first asked for, by the clock and draws of its own."""
        shape, mean = map(float, path.split("/")[2:4])
        now = time.monotonic()
        edition, following, rng = self._editions.get(path) or (0, now, random.Random(path))
        while following <= now:
            edition, following = edition + 1, following + rng.weibullvariate(mean / math.gamma(1 + 1 / shape), shape)
        self._editions[path] = edition, following, rng
        return edition

    def _times(self, age: float) -> str:
        now = time.time()
        cache = "" if self.max_age is None else f"Cache-Control: max-age={self.max_age}\r\n"
        return f"Date: {formatdate(now, usegmt=True)}\r\nLast-Modified: {formatdate(now - age, usegmt=True)}\r\n{cache}"
