"""What hosts that take connections and never answer cost the others: ten hosts, 30 pages each, CRAWL_RATE 20.

    python benchmarks/silent_hosts.py [--silent 2] [--seconds 90] [--package FOLDER ...]

Prints the fetches a second that the other hosts got, by the log of the site: in each 10 s, and in the second half. ``--package``: folders
with the package of other commits, for a comparison; they take turns. DOWNLOAD_TIMEOUT is 5 s (Scrapy's is 180), and each fetch is tried
three times.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

HOSTS, PAGES, RATE = 10, 300, 20.0

SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "spider"
    async def start(self):
        for page in range(int(self.pages)):
            yield scrapy.Request(f"http://127.0.0.{1 + page % int(self.hosts)}:{self.port}/{page}")
    def parse(self, response):
        pass
"""


class Site:
    """Serves all hosts on a thread; the first ones never answer."""

    def __init__(self, silent: int) -> None:
        self._silent = silent
        self.port = 0
        self.answered: list[float] = []
        ready = threading.Event()
        threading.Thread(target=asyncio.run, args=(self._serve(ready),), daemon=True).start()
        ready.wait()

    async def _serve(self, ready: threading.Event) -> None:
        server = await asyncio.start_server(self._handle, "0.0.0.0", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await server.serve_forever()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = int(writer.get_extra_info("sockname")[0].rpartition(".")[2])
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                if host <= self._silent:
                    await asyncio.sleep(3600)
                self.answered.append(time.monotonic())
                body = b"<p>%d</p>" % int(time.monotonic() / 30)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def crawl(package: str, silent: int, seconds: float) -> None:
    """Run a crawl and print its figures."""
    site = Site(silent)
    with tempfile.TemporaryDirectory(prefix="optimal_frontier-silent-") as folder:
        (Path(folder) / "spider.py").write_text(SPIDER)
        values = {
            "ADDONS": '{"optimal_frontier.Addon": 500}',
            "OPTIMAL_FRONTIER_REDIS_URL": f"embedded://{folder}/state",
            "OPTIMAL_FRONTIER_CRAWL_RATE": RATE,
            "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 10,
            "CLOSESPIDER_TIMEOUT": seconds,
            "DOWNLOAD_TIMEOUT": 5,
            "DOWNLOAD_DELAY": 0,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
            "ROBOTSTXT_OBEY": False,
            "LOG_LEVEL": "CRITICAL",
            "TELNETCONSOLE_ENABLED": False,
        }
        given = {"port": site.port, "pages": PAGES, "hosts": HOSTS}
        arguments = [part for name, value in values.items() for part in ("-s", f"{name}={value}")]
        arguments += [part for name, value in given.items() for part in ("-a", f"{name}={value}")]
        begun = time.monotonic()
        # Elsewhere, so that the package is that of `package`.
        environment = os.environ | {"PYTHONPATH": package}
        subprocess.run([sys.executable, "-m", "scrapy", "runspider", "spider.py", *arguments], check=True, cwd=folder, env=environment)
    fetches = np.array(site.answered) - begun
    by_ten = np.histogram(fetches, np.arange(0.0, seconds + 1.0, 10.0))[0] / 10
    half = np.count_nonzero((fetches > seconds / 2) & (fetches < seconds)) / (seconds / 2)
    print(
        f"{package}: {half:.1f} fetches/s of the others in the second half; by 10 s: {' '.join(f'{rate:.1f}' for rate in by_ten)}",
        flush=True,
    )


def main() -> None:
    """Crawl with each package in turn."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--silent", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--package", nargs="+", default=[str(Path(__file__).resolve().parents[1])])
    options = parser.parse_args()
    for package in options.package:
        crawl(str(Path(package).resolve()), options.silent, options.seconds)


if __name__ == "__main__":
    main()
