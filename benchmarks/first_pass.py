"""The first pass over the pages of one host, with the settings of Scrapy's project template: this frontier beside plain Scrapy.

    python benchmarks/first_pass.py [--pages 60] [--delay 0.2] [--latency 0.02] [--jitter 0.5] [--concurrency 1] [--rounds 3]

Both run at the same time, each at a site of its own, so that a busy machine favours nobody. The site notes when requests come. Prints of
each round the seconds from the first request for a page to the last page that was new, and how many requests came in between: the frontier
goes on afterwards, and is interrupted. The bar is 1.2 times what plain Scrapy takes.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from optimal_frontier.state.embedded import EmbeddedServer

SPIDER = """
import scrapy

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        yield scrapy.Request(f"http://127.0.0.1:{self.port}/0")

    def parse(self, response):
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)
"""


class Site:
    """Pages of which the first links to all others; it notes when each was asked for."""

    def __init__(self, pages: int, latency_s: float) -> None:
        self.pages, self.latency_s = pages, latency_s
        self.asked: list[tuple[float, str]] = []
        self.is_done = threading.Event()
        self.port = 0
        started = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True).start()
        started.wait()

    async def _serve(self, started: threading.Event) -> None:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                if path != "/robots.txt":
                    self.asked.append((time.monotonic(), path))
                await asyncio.sleep(self.latency_s)
                links = "".join(f'<a href="/{page}">{page}</a>' for page in range(1, self.pages)) if path == "/0" else ""
                body = b"" if path == "/robots.txt" else f"<html><body><p>page {path}</p>{links}</body></html>".encode()
                kind = b"text/plain" if path == "/robots.txt" else b"text/html"
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (kind, len(body), body))
                if len({path for _, path in self.asked}) >= self.pages:
                    self.is_done.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def taken(self) -> tuple[float, int]:
        """Return the seconds of the first pass and the requests in it."""
        seen: set[str] = set()
        last = 0
        for number, (_, path) in enumerate(self.asked):
            if path not in seen:
                seen.add(path)
                last = number
        return self.asked[last][0] - self.asked[0][0], last + 1


def start(folder: Path, site: Site, values: dict[str, object]) -> subprocess.Popen[bytes]:
    """Start a spider on a site."""
    settings = [part for name, value in values.items() for part in ("-s", f"{name}={value}")]
    command = [sys.executable, "-m", "scrapy", "runspider", str(folder / "pages.py"), "-a", f"port={site.port}", *settings]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)


def main() -> None:
    """Run the rounds and print them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--delay", type=float, default=0.2, help="DOWNLOAD_DELAY, seconds")
    parser.add_argument("--latency", type=float, default=0.02, help="seconds that an answer takes")
    parser.add_argument("--jitter", type=float, default=0.5, help="DOWNLOAD_DELAY_JITTER, share of the delay")
    parser.add_argument("--concurrency", type=int, default=1, help="CONCURRENT_REQUESTS_PER_DOMAIN")
    parser.add_argument("--host-delay", type=float, default=None, help="OPTIMAL_FRONTIER_HOST_DELAY, seconds")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    values: dict[str, object] = {"LOG_LEVEL": "INFO", "TELNETCONSOLE_ENABLED": 0, "ROBOTSTXT_OBEY": 1, "DOWNLOAD_DELAY": options.delay}
    values |= {"CONCURRENT_REQUESTS_PER_DOMAIN": options.concurrency, "DOWNLOAD_DELAY_JITTER": options.jitter}
    ratios = []
    with tempfile.TemporaryDirectory(prefix="of-pass-") as name:
        folder = Path(name)
        (folder / "pages.py").write_text(SPIDER)
        server = EmbeddedServer(folder / "server")
        ours = {"ADDONS": '{"optimal_frontier.Addon": 500}', "OPTIMAL_FRONTIER_REDIS_URL": f"unix://{server.ensure()}"}
        if options.host_delay is not None:
            ours["OPTIMAL_FRONTIER_HOST_DELAY"] = str(options.host_delay)
        for number in range(options.rounds):
            sites = [Site(options.pages, options.latency) for _ in range(2)]
            added = [{}, ours | {"OPTIMAL_FRONTIER_NAMESPACE": f"pass-{secrets.token_hex(4)}"}]
            crawls = [start(folder, site, values | more) for site, more in zip(sites, added, strict=True)]
            for site in sites:
                site.is_done.wait(60 + 5 * options.pages * (options.delay + options.latency))
            for crawl in crawls:
                crawl.send_signal(signal.SIGINT)
                crawl.wait(30)
            (plain, n), (with_us, m) = (site.taken() for site in sites)
            if not all(site.is_done.is_set() for site in sites):
                raise SystemExit(f"a first pass did not end: plain {n} requests, ours {m}")
            ratios.append(with_us / plain)
            told = f"plain {plain:.2f} s in {n} requests, ours {with_us:.2f} s in {m}: {ratios[-1]:.3f}"
            print(f"round {number + 1}: {told}", flush=True)
        server.release()
    print(f"{options.pages} pages, delay {options.delay:g} s: median {statistics.median(ratios):.3f} times plain Scrapy's")


if __name__ == "__main__":
    main()
