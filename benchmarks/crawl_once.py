"""Whole crawls of 10,000 tiny pages, once over: this frontier against Scrapy's default scheduler, in pairs.

    python benchmarks/crawl_once.py [--pages 10000] [--pairs 5] [--cpu 0]

Prints pages per second of each run and the ratio of each pair, and their medians. The site runs in a process of its own; spider, embedded
server and site share the machine as they would for a user (pin the spider with --cpu). Requests are chained (each page links to the next
ones), as a crawl's are.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPIDER = """
import scrapy

class Tiny(scrapy.Spider):
    name = "tiny"

    async def start(self):
        yield scrapy.Request(f"http://127.0.0.1:{self.port}/0")

    def start_requests(self):
        yield scrapy.Request(f"http://127.0.0.1:{self.port}/0")

    def parse(self, response):
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)
"""

_FANOUT = 10


async def _serve(ready: multiprocessing.connection.Connection, pages: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                number = int(head.split(b" ", 2)[1][1:] or b"0")
                links = "".join(
                    f'<a href="/{link}">{link}</a>' for link in range(number * _FANOUT + 1, number * _FANOUT + _FANOUT + 1) if link < pages
                )
                body = f"<html><body><p>page {number}</p>{links}</body></html>".encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _site(ready: multiprocessing.connection.Connection, pages: int) -> None:
    asyncio.run(_serve(ready, pages))


def crawl(folder: Path, port: int, ours: bool, pages: int, cpu: int | None) -> float:
    """Run one crawl and return pages per second between the spider's opening and its closing."""
    values = {"LOG_LEVEL": "INFO", "CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16, "DOWNLOAD_DELAY": 0}
    values |= {"TELNETCONSOLE_ENABLED": 0, "ROBOTSTXT_OBEY": 0, "LOGSTATS_INTERVAL": 0}
    if ours:
        values["ADDONS"] = '{"optimal_frontier.Addon": 500}'
        values["OPTIMAL_FRONTIER_CLOSE_AFTER"] = 1
        values["OPTIMAL_FRONTIER_REDIS_URL"] = f"embedded://{tempfile.mkdtemp(dir=folder)}"
    settings = [part for name, value in values.items() for part in ("-s", f"{name}={value}")]
    command = [sys.executable, "-m", "scrapy", "runspider", str(folder / "tiny.py"), "-a", f"port={port}", *settings]
    if cpu is not None:
        command = ["taskset", "-c", str(cpu), *command]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    stats = dict(re.findall(r"'([^']+)': ([\d.]+)", run.stderr))
    fetched = int(stats["downloader/response_status_count/200"])
    # With a free moment the frontier already revisits; only first visits count.
    if fetched < pages:
        raise SystemExit(f"only {fetched} of {pages} pages were fetched:\n{run.stderr[-2000:]}")
    return pages / float(stats["elapsed_time_seconds"])


def main() -> None:
    """Run the pairs and print them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--cpu", type=int, default=None, help="pin the spider to this processor")
    options = parser.parse_args()
    parent, child = multiprocessing.Pipe()
    site = multiprocessing.Process(target=_site, args=(child, options.pages), daemon=True)
    site.start()
    port = parent.recv()
    ratios, ours_all, default_all = [], [], []
    with tempfile.TemporaryDirectory(prefix="optimal_frontier-benchmark-") as name:
        folder = Path(name)
        (folder / "tiny.py").write_text(SPIDER)
        print(f"{options.pages} pages, {os.cpu_count()} processors, {time.strftime('%Y-%m-%d')}")
        for pair in range(options.pairs):
            # The order alternates, so that a machine that slows down favours neither.
            order = (True, False) if pair % 2 else (False, True)
            rates = {ours: crawl(folder, port, ours, options.pages, options.cpu) for ours in order}
            ratios.append(rates[True] / rates[False])
            ours_all.append(rates[True])
            default_all.append(rates[False])
            both = f"default scheduler {rates[False]:7.1f} pages/s, optimal_frontier {rates[True]:7.1f}"
            print(f"pair {pair + 1}: {both}, ratio {ratios[-1]:.3f}", flush=True)
    site.terminate()
    print(
        f"median: default scheduler {statistics.median(default_all):.1f} pages/s, "
        f"optimal_frontier {statistics.median(ours_all):.1f}, ratio {statistics.median(ratios):.3f}"
    )


if __name__ == "__main__":
    main()
