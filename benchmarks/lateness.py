"""Lateness to the start of the download when pages are pinned: 200 pages, 40 fetches/s in total, CRAWL_RATE 50.

    python benchmarks/lateness.py [--seconds 60]

Prints the 50th, 99th and largest percentile of the lateness that the frontier stored (last 1,000 revisits), and, from the site's own log,
the spread of the intervals between two fetches of a page and the most fetches in any 5 s.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

PAGES = 200
TOTAL_RATE = 40.0
CRAWL_RATE = 50.0

SPIDER = """
import scrapy

class Pinned(scrapy.Spider):
    name = "pinned"
    async def start(self):
        for page in range(int(self.pages)):
            yield scrapy.Request(f"http://127.0.0.1:{self.port}/{page}")
    def parse(self, response):
        pass
"""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fetches: list[tuple[float, str]] = []  # noqa: RUF012  one server a process

    def do_GET(self) -> None:
        self.fetches.append((time.monotonic(), self.path))
        body = b"<p>page</p>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    """Run the crawl and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="optimal_frontier-lateness-") as name:
        folder = Path(name)
        (folder / "pinned.py").write_text(SPIDER)
        redis_url = f"embedded://{folder}/state"
        rules = json.dumps([{"host": "127.0.0.1", "interval": PAGES / TOTAL_RATE}])
        values = {
            "ADDONS": '{"optimal_frontier.Addon": 500}',
            "OPTIMAL_FRONTIER_REDIS_URL": redis_url,
            "OPTIMAL_FRONTIER_NAMESPACE": "pinned",
            "OPTIMAL_FRONTIER_CRAWL_RATE": CRAWL_RATE,
            "OPTIMAL_FRONTIER_RULES": rules,
            "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 10,
            "CLOSESPIDER_TIMEOUT": options.seconds,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": False,
            "LOG_LEVEL": "WARNING",
            "TELNETCONSOLE_ENABLED": False,
        }
        settings = [part for key, value in values.items() for part in ("-s", f"{key}={value}")]
        spider = [
            sys.executable,
            "-m",
            "scrapy",
            "runspider",
            str(folder / "pinned.py"),
            "-a",
            f"port={server.server_port}",
            "-a",
            f"pages={PAGES}",
        ]
        subprocess.run([*spider, *settings], check=True)
        command = [sys.executable, "-m", "optimal_frontier.cli", "--redis-url", redis_url, "--namespace", "pinned", "status", "--json"]
        status = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    fetches = sorted(_Handler.fetches)
    times = np.array([at for at, _ in fetches])
    half = times[-1] - options.seconds / 2
    intervals = np.concatenate([np.diff([at for at, path in fetches if path == f"/{page}" and at > half]) for page in range(PAGES)])
    burst = max(int(np.searchsorted(times, at + 5.0) - i) for i, at in enumerate(times))
    late = status["lateness_seconds"]
    print(f"lateness to download start: p50 {1000 * late['p50']:.1f} ms, p99 {1000 * late['p99']:.1f} ms (last 1,000 revisits)")
    low, middle, high = np.percentile(intervals, [1, 50, 99])
    print(f"interval at the site, asked {PAGES / TOTAL_RATE:g} s: p1 {low:.3f}, p50 {middle:.3f}, p99 {high:.3f} s over {len(intervals)}")
    print(f"most fetches in any 5 s: {burst} (5.5 s worth of CRAWL_RATE: {5.5 * CRAWL_RATE:g})")
    print(f"planned rate {status['planned_rate']:.9f}, revisit budget {status['revisit_budget']:.9f} fetches/s")


if __name__ == "__main__":
    main()
