"""Hosts on 127.0.0.1, a port each, that behave as badly as real ones.

===============  =====================================================================================================================
``honest``       ETag and Last-Modified; 304 where they hold; two pages more that die at their third visit
``noisy``        time, nonce, token and a counter in every answer: in attributes and scripts, and visibly in ``#clock`` and ``.views``
``liar``         304 to whoever asks whether something has changed
``rotating``     another ETag in every answer
``flaky``        of four answers one is none: 503, 429 with ``Retry-After``, a hang, a dropped connection, half of the body
``blocked``      for a while every URL has one and the same page, status 200
``vanishing``    for a while every URL is a 404
``moving``       after a while every URL has moved for good (301)
``detour``       every third answer is a temporary redirect (302) to a page that holds the same
``garbled``      a wrong charset, NULs, tags that never close, attributes in another order each time
``dead``         404 from the third visit on, for ever
``down``         503, for ever
``mess``         a loop of redirects, a path that robots.txt forbids, an image served as HTML, a large page, links without end
===============  =====================================================================================================================
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections import Counter
from email.utils import formatdate, parsedate_to_datetime
from functools import partial
from typing import Final

from misbehaving.pages import TruePage

#: Hosts whose pages change as they should be seen to; a page of them is ``/page/N``.
TRUTHFUL: Final = ["honest", "noisy", "liar", "rotating", "flaky", "blocked", "vanishing", "moving", "detour", "garbled"]
HOSTS: Final = [*TRUTHFUL, "dead", "down", "mess"]

#: When hosts are out of their mind, as shares of the run.
SPELL: Final = (0.35, 0.5)
#: A hang is longer than the crawl's DOWNLOAD_TIMEOUT, seconds.
HANG_S: Final = 6.0
LARGE: Final = 8_000_000

Answer = tuple[int, dict[str, str], bytes]


class MisbehavingSite:
    """Context manager; serves on a thread of its own while it is open.

    Attributes
    ----------
    ports : dict of str to int
        Of each host.
    fetches : list of tuple
        Seconds since the site began, host, path, status of every answer; status 0: none.
    """

    def __init__(self, pages: dict[tuple[str, int], TruePage], seconds: float, seed: int) -> None:
        self.ports: dict[str, int] = {}
        self.fetches: list[tuple[float, str, str, int]] = []
        self.bytes_sent = 0
        self.began = 0.0
        self._pages, self._seconds = pages, seconds
        self._random = random.Random(seed)
        self._visits: Counter[tuple[str, str]] = Counter()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    def __enter__(self) -> MisbehavingSite:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the site did not start")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()

    def url(self, host: str, path: str) -> str:
        """Return a URL."""
        return f"http://127.0.0.1:{self.ports[host]}{path}"

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        servers = []
        for host in HOSTS:
            server = await asyncio.start_server(partial(self._connection, host), "127.0.0.1", 0)
            self.ports[host] = server.sockets[0].getsockname()[1]
            servers.append(server)
        self.began = time.time()
        self._ready.set()
        await self._stop.wait()
        for server in servers:
            server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                path = head[0].split(" ")[1]
                asked = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
                if not await self._respond(host, path, asked, writer):
                    break
        writer.close()

    async def _respond(self, host: str, path: str, asked: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        now = time.time() - self.began
        visit = self._visits[host, path]
        self._visits[host, path] += 1
        whole = True
        if host == "flaky" and path.startswith("/page/") and visit % 4 == 3:
            trouble = self._random.randrange(5)
            if trouble < 2:
                self.fetches.append((now, host, path, 0))
                if trouble == 0:
                    await asyncio.sleep(HANG_S)
                return False
            if trouble == 2:
                status, extra, body = 503, {}, b"overloaded"
            elif trouble == 3:
                status, extra, body = 429, {"Retry-After": "1"}, b"slow down"
            else:
                (status, extra, body), whole = self._answer(host, path, asked, now, visit), False
        else:
            status, extra, body = self._answer(host, path, asked, now, visit)
        self.fetches.append((now, host, path, status))
        self.bytes_sent += len(body)
        fields = {"Content-Type": "text/html; charset=utf-8", "Date": formatdate(usegmt=True), "Content-Length": str(len(body))} | extra
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode("latin-1") + (body if whole else body[: len(body) // 2]))
        await writer.drain()
        return whole

    def _answer(self, host: str, path: str, asked: dict[str, str], now: float, visit: int) -> Answer:
        if path == "/robots.txt":
            return 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /private/\n"
        if host == "mess":
            return self._mess(path)
        number = int(path.rpartition("/")[2]) if path.rpartition("/")[2].isdigit() else -1
        if host == "dead" or path.startswith("/dying/"):
            return (200, {}, _page("still here")) if visit < 2 else (404, {}, b"gone")
        if host == "down":
            return 503, {}, b"down"
        if (host, number) not in self._pages:
            return 404, {}, b"no such page"
        within = SPELL[0] <= now / self._seconds < SPELL[1]
        if within and host == "blocked":
            return 200, {}, _page("Please enable JavaScript and cookies to continue")
        if within and host == "vanishing":
            return 404, {}, b"<html><body>not found</body></html>"
        if host == "moving" and path.startswith("/page/") and now > SPELL[0] * self._seconds:
            return 301, {"Location": f"/moved/{number}"}, b""
        if host == "detour" and path.startswith("/page/") and visit % 3 == 2:
            return 302, {"Location": f"/copy/{number}"}, b""
        return self._edition(host, number, asked, now)

    def _edition(self, host: str, number: int, asked: dict[str, str], now: float) -> Answer:
        page = self._pages[host, number]
        edition, content = page.edition(now), f"Page {number} in its edition {page.edition(now)}"
        chance = self._random.random()
        if host == "honest":
            etag, modified = f'"{number}-{edition}"', formatdate(self.began + page.modified(now), usegmt=True)
            extra = {"ETag": etag, "Last-Modified": modified}
            if "if-none-match" in asked:
                fits = asked["if-none-match"] == etag
            else:
                fits = "if-modified-since" in asked and parsedate_to_datetime(asked["if-modified-since"]) >= parsedate_to_datetime(modified)
            return (304, extra, b"") if fits else (200, extra, _page(content))
        if host == "liar":
            extra = {"ETag": f'"{number}"'}
            return (304, extra, b"") if "if-none-match" in asked else (200, extra, _page(content))
        if host == "rotating":
            return 200, {"ETag": f'W/"{chance}"'}, _page(content)
        if host == "noisy":
            return 200, {}, _noisy(content, chance)
        if host == "garbled":
            attributes = " ".join(self._random.sample(['class="a"', 'id="b"', 'lang="de"'], 3))
            body = f"<html><body><p {attributes}>{content} \x00<b>caf\xe9<i>".encode("latin-1")
            return 200, {"Content-Type": "text/html; charset=no-such-charset"}, body
        return 200, {}, _page(content)

    def _mess(self, path: str) -> Answer:
        if path == "/loop":
            return 302, {"Location": "/loop"}, b""
        if path == "/image":
            return 200, {}, b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
        if path == "/large":
            return 200, {}, b"<html><body>" + b"<p>word</p>" * (LARGE // 11)
        if path.startswith("/calendar/"):
            day = int(path.rpartition("/")[2])
            return 200, {}, _page(f'Day {day}, <a href="/calendar/{day + 1}">next</a> <a href="/calendar/{day + 7}">week</a>')
        return 200, {}, _page("here")


def _page(content: str) -> bytes:
    return f"<html><head><title>Page</title></head><body><main><p>{content}</p></main></body></html>".encode()


def _noisy(content: str, chance: float) -> bytes:
    return f"""<html><head><meta name="csrf-token" content="{chance}"><script nonce="{chance}">var t = {chance};</script></head>
<body data-request="{chance}"><main><p>{content}</p><a href="/page/1?sid={chance}">next</a></main>
<footer><span id="clock">{time.time()}</span><span class="views">{int(1e6 * chance)} views</span></footer></body></html>""".encode()
