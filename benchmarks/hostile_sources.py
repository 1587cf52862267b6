"""A real crawl beside hostile sources: the longest gap between two fetches of it, and its memory.

    python benchmarks/hostile_sources.py [--seconds 20]

The site has pages that are fetched all the time, and sources that are hostile: a sitemap of 1.4 million entries, zips of a thousand times
their size (by themselves, and by Content-Encoding), an index that names 50,000 indexes, and a chain of indexes without end. The last line
says the longest gap between two fetches from the first page on, the one of the same crawl without sources, and the most memory. Sources
that an index names go before other pages, so that fewer pages are fetched while they come.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

PAGES = 200
RATE = 100
SPIDER = """
import json, os, time
from scrapy import Request, Spider, signals
from scrapy.crawler import CrawlerProcess

class Gaps:
    # The longest gap between two fetches, in time of the processor that this process has used meanwhile.
    @classmethod
    def from_crawler(cls, crawler):
        gaps = cls()
        gaps.last, gaps.longest, gaps.count = 0.0, 0.0, 0
        crawler.signals.connect(gaps.fetched, signals.request_reached_downloader)
        crawler.signals.connect(gaps.closed, signals.spider_closed)
        return gaps
    def fetched(self, request):
        now = time.process_time()
        self.count += 1
        if self.count > 50:
            self.longest = max(self.longest, now - self.last)
        self.last = now
    def closed(self):
        with open("gap", "w") as out:
            out.write(repr(self.longest))

class Pages(Spider):
    name = "pages"
    async def start(self):
        for at in range(%d):
            yield Request(os.environ["SITE"] + f"/page/{at}")
    def parse(self, response):
        pass

process = CrawlerProcess(json.loads(os.environ["SETTINGS"]))
process.crawl(Pages)
process.start()
"""
HOSTILE = ("/many.xml.gz", "/many.txt", "/bomb.xml.gz", "/encoded.xml", "/barren.xml", "/wide.xml", "/chain/0.xml")


class HostileSite:
    """Serves pages and sources on loopback; notes when pages were asked for."""

    def __init__(self) -> None:
        self.fetches: list[tuple[float, str]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.fetches.append((time.monotonic(), self.path))
                body, headers = site.answer(self.path)
                self.send_response(200)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        filler = b"<!--" + b" " * 50_000_000 + b"-->"
        bomb = b"<urlset>" + b" " * 50_000_000 + b"</urlset>"
        self._bodies = {
            "/many.xml.gz": gzip.compress(
                b"<urlset>%s</urlset>" % b"".join(b"<url><loc>%s/x/%d</loc></url>" % (self.url.encode(), at) for at in range(1_400_000)), 3
            ),
            "/many.txt": b"\n".join(b"%s/y/%d" % (self.url.encode(), at) for at in range(1_400_000)),
            "/bomb.xml.gz": gzip.compress(filler + bomb),
            "/encoded.xml": gzip.compress(bomb),
            "/barren.xml": b"<urlset>%s</urlset>" % (b"<x/>" * 10_000_000),
            "/wide.xml": b"<sitemapindex>%s</sitemapindex>"
            % b"".join(b"<sitemap><loc>%s/chain/%d.xml</loc></sitemap>" % (self.url.encode(), 1000 + at) for at in range(50_000)),
        }
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> tuple[bytes, dict[str, str]]:
        """Return the body and headers of a path."""
        if path.startswith("/chain/"):
            at = int(path.removeprefix("/chain/").removesuffix(".xml"))
            return b"<sitemapindex><sitemap><loc>%s/chain/%d.xml</loc></sitemap></sitemapindex>" % (self.url.encode(), at + 100_000), {}
        if path in self._bodies:
            headers = {"Content-Type": "application/xml"} | ({"Content-Encoding": "gzip"} if path == "/encoded.xml" else {})
            return self._bodies[path], headers
        return f"<p>{path} {time.time_ns()}</p>".encode(), {"Content-Type": "text/html"}

    def pages(self) -> list[float]:
        """When pages were asked for that are no sources."""
        return [at for at, path in list(self.fetches) if path.startswith(("/page/", "/x/", "/y/"))]


def crawl(site: HostileSite, folder: Path, seconds: float, sources: list[str]) -> tuple[list[float], float, float, int]:
    """Crawl for some seconds from the first fetch on; return the longest gaps (s; of all fetches, of pages, and in time of the processor),
    memory (MB), fetches of pages."""
    settings = {
        "ADDONS": {"optimal_frontier.Addon": 500},
        "LOG_LEVEL": "ERROR",
        "EXTENSIONS": {"__main__.Gaps": 0},
        "TELNETCONSOLE_ENABLED": False,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "OPTIMAL_FRONTIER_REDIS_URL": f"embedded://{folder}",
        "OPTIMAL_FRONTIER_CRAWL_RATE": RATE,
        "OPTIMAL_FRONTIER_MIN_INTERVAL": 0.2,
        "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 5.0,
        "OPTIMAL_FRONTIER_SOURCES": [site.url + path for path in sources],
    }
    program = folder / "program.py"
    program.write_text(SPIDER % PAGES)
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, str(program)], cwd=folder, env={**os.environ, "SITE": site.url, "SETTINGS": json.dumps(settings)}
    )
    while process.poll() is None and not any(at > started for at in site.pages()):
        time.sleep(0.05)
    most, until = 0.0, time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        time.sleep(0.1)
        status = Path(f"/proc/{process.pid}/status").read_text()
        most = max(most, int(status.partition("VmHWM:")[2].split()[0]) / 1000 if "VmHWM:" in status else 0.0)
    process.send_signal(signal.SIGTERM)
    ended = time.monotonic()
    process.wait(60)
    times = [at for at, _ in list(site.fetches) if started <= at <= ended][PAGES // 4 :]
    pages = [at for at in site.pages() if started <= at <= ended]
    gaps = [max(b - a for a, b in pairwise([*some, ended])) for some in (times, pages[PAGES // 4 :] or [started])]
    return gaps, float((folder / "gap").read_text()), most, len(pages)


def main() -> None:
    """Print a line for each crawl."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    site = HostileSite()
    for name, sources in (("no sources", []), *((path, [path]) for path in HOSTILE), ("all", list(HOSTILE))):
        with tempfile.TemporaryDirectory() as folder:
            (gap, of_pages), busy, memory, fetches = crawl(site, Path(folder), seconds, sources)
        print(
            f"{name:14} longest gap {gap:.3f} s ({busy:.3f} s of the processor), of pages {of_pages:.3f} s, {memory:.0f} MB, "
            f"{fetches} pages in {seconds:g} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
