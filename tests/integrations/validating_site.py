"""Sites on 127.0.0.1 whose pages change at set times, and that answer conditional requests honestly or not.

A page ``/page/N`` changes every ``periods[N]`` seconds. What a site is like:

============  =====================================================================================================
``honest``    ETag and Last-Modified, 304 where they hold
``liar``      304 to whoever asks whether something has changed
``rotating``  another ETag in every answer, a Last-Modified that holds
``silent``    no validators, but 304 to every second request
============  =====================================================================================================

``/moving/N`` is a page with an ETag once, and then redirects to ``/static/landed`` of the site ``elsewhere``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from email.utils import formatdate

from misbehaving_site import MisbehavingSite


class ValidatingSite(MisbehavingSite):
    """Context manager; serves while it is open."""

    def __init__(self, kind: str, periods: Sequence[float] = ()) -> None:
        super().__init__()
        self.kind = kind
        self.periods = periods
        self.began = time.time()
        self.elsewhere = ""
        #: Status of each answer, by path.
        self.statuses: list[tuple[str, int]] = []
        self._answered = 0

    def version(self, page: int) -> int:
        """Return the version of a page now."""
        return int((time.time() - self.began) / self.periods[page])

    async def _answer(self, path: str, headers: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        first, _, rest = path[1:].partition("/")
        if first == "moving":
            self._versions[path] += 1
            text, head = "<p>here</p>", 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: "here"\r\n'
            if self._versions[path] > 1:
                text, head = "", f"HTTP/1.1 302 Found\r\nLocation: {self.elsewhere}/static/landed\r\n"
            writer.write(f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode())
            return True
        if first.partition("?")[0] != "page":
            return await super()._answer(path, headers, writer)
        self._answered += 1
        page = int(rest.partition("?")[0])
        version = self.version(page)
        changed = formatdate(self.began + version * self.periods[page], usegmt=True)
        etag = f'W/"{self._answered}"' if self.kind == "rotating" else f'"{page}-{version}"'
        asked = {"if-none-match", "if-modified-since"} & headers.keys()
        if self.kind == "liar":
            holds = bool(asked)
        elif self.kind == "silent":
            holds = self._answered % 2 == 0
        else:
            holds = headers["if-none-match"] == etag if "if-none-match" in asked else headers.get("if-modified-since") == changed
        validators = "" if self.kind == "silent" else f"ETag: {etag}\r\nLast-Modified: {changed}\r\n"
        text = b"" if holds else f"<html><body><p>page {page}, version {version}</p>{'<p>filler</p>' * 50}</body></html>".encode()
        head = f"HTTP/1.1 {304 if holds else 200} X\r\nContent-Type: text/html\r\nContent-Length: {len(text)}\r\n{validators}\r\n"
        self.statuses.append((path, 304 if holds else 200))
        writer.write(head.encode() + text)
        await writer.drain()
        return True
