"""A site on loopback with a zipped sitemap behind an index, a feed, and on the host ``localhost`` a sitemap whose lastmod is always now."""

from __future__ import annotations

import gzip
import threading
import time
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DAY_S = 86_400.0


def iso(at: float) -> str:
    """A time as sitemaps write it."""
    return datetime.fromtimestamp(at, UTC).isoformat()


class AnnouncingSite:
    """Context manager; serves while it is open.

    ``pages`` and ``news`` are path -> (text, last change): those of the sitemap, and those of the feed. Pages below ``/static`` never
    change.
    """

    def __init__(self) -> None:
        begin = time.time() - DAY_S
        self.pages = {f"/page/{at}": ("first", begin) for at in range(6)}
        self.news = {f"/news/{at}": ("first", begin) for at in range(3)}
        self.fetches: list[tuple[float, str]] = []
        self.damaged = False
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.fetches.append((time.monotonic(), self.path))
                body = site._body(self.path)
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> AnnouncingSite:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return the URL of ``path``."""
        return f"http://{host}:{self.port}{path}"

    def times(self, path: str, after: float = 0.0) -> list[float]:
        """Return the monotonic times after ``after`` at which ``path`` was asked for."""
        return [at for at, asked in list(self.fetches) if asked == path and at > after]

    def _body(self, path: str) -> bytes:
        if path == "/robots.txt":
            return f"User-agent: *\nSitemap: {self.url('/sitemap_index.xml')}\n".encode()
        if path == "/sitemap_index.xml":
            newest = max(modified for _, modified in self.pages.values())
            return _sitemap("sitemapindex", "sitemap", {self.url("/sitemap-1.xml.gz"): newest})
        if path == "/sitemap-1.xml.gz":
            entries = {self.url(page): modified for page, (_, modified) in self.pages.items()}
            # Nothing can be asked for at the first one.
            return gzip.compress(_sitemap("urlset", "url", {"http://127.0.0.1:99999/": time.time()} | entries))
        if path == "/always_now.xml":
            return _sitemap("urlset", "url", {self.url(f"/static/{at}", "localhost"): time.time() for at in range(4)})
        if path == "/long.xml":
            return _sitemap("urlset", "url", {self.url(f"/long/{at}"): time.time() for at in range(100)})
        if path == "/feed":
            items = "".join(
                f"<item><link>{self.url(page)}</link><pubDate>{formatdate(modified)}</pubDate></item>"
                for page, (_, modified) in self.news.items()
            )
            end = "<item><link>http://" if self.damaged else "</channel></rss>"
            return f"<rss><channel><lastBuildDate>{formatdate()}</lastBuildDate>{items}{end}".encode()
        text = {**self.pages, **self.news}.get(path, (str(time.monotonic()) if path.startswith("/sink") else "static", 0.0))[0]
        return f"<html><body><p>{path} {text}</p></body></html>".encode()


def _sitemap(root: str, name: str, entries: dict[str, float]) -> bytes:
    inner = "".join(f"<{name}><loc>{url}</loc><lastmod>{iso(at)}</lastmod></{name}>" for url, at in entries.items())
    return f'<?xml version="1.0"?><{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{inner}</{root}>'.encode()
