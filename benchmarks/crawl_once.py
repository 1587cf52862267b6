"""Whole crawls of 10,000 tiny pages, once over: this frontier beside Scrapy's default scheduler and, where it is installed, scrapy-redis.

    python benchmarks/crawl_once.py [--pages 10000] [--rounds 5] [--cpu 0] [--paragraphs 0]

Prints of each run pages per second, CPU time a page of spider and server together and the spider's most memory, and the medians of the
ratios to the default scheduler in the same round. With --paragraphs 8000 each page has 300 kB. The site runs in a process of its own;
spider, server and site share the machine as they would for a user (pin the spider with --cpu). Requests are chained (each page links to
the next ones), as a crawl's are.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import multiprocessing
import os
import re
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import redis

from optimal_frontier.state.embedded import EmbeddedServer

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

#: Without what forbids to keep compiled modules: pip compiles Scrapy's, and those of a checkout would be compiled by each crawl.
_COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


async def _serve(ready: multiprocessing.connection.Connection, pages: int, paragraphs: int) -> None:
    filler = "".join(f"<p>some text of paragraph {number}</p>" for number in range(paragraphs))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                number = int(head.split(b" ", 2)[1][1:] or b"0")
                links = "".join(
                    f'<a href="/{link}">{link}</a>' for link in range(number * _FANOUT + 1, number * _FANOUT + _FANOUT + 1) if link < pages
                )
                body = f"<html><body><p>page {number}</p>{links}{filler}</body></html>".encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _site(ready: multiprocessing.connection.Connection, pages: int, paragraphs: int) -> None:
    asyncio.run(_serve(ready, pages, paragraphs))


class Run(NamedTuple):
    """One crawl: pages a second between the spider's opening and its closing, CPU a page of spider and server (us), most memory (MB)."""

    pages_per_s: float
    cpu_us: float
    memory_mb: float


def values_of(system: str, socket: str) -> dict[str, object]:
    """Return the settings of a system; ``socket`` is that of the server."""
    values: dict[str, object] = {"LOG_LEVEL": "INFO", "CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16, "DOWNLOAD_DELAY": 0}
    values |= {"TELNETCONSOLE_ENABLED": 0, "ROBOTSTXT_OBEY": 0, "LOGSTATS_INTERVAL": 0}
    if system == "optimal_frontier":
        values |= {"ADDONS": '{"optimal_frontier.Addon": 500}', "OPTIMAL_FRONTIER_CLOSE_AFTER": 1}
        values |= {"OPTIMAL_FRONTIER_REDIS_URL": f"unix://{socket}", "OPTIMAL_FRONTIER_NAMESPACE": f"once-{secrets.token_hex(4)}"}
    elif system == "scrapy-redis":
        values |= {"SCHEDULER": "scrapy_redis.scheduler.Scheduler", "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter"}
        values |= {"REDIS_URL": f"unix://{socket}", "SCHEDULER_FLUSH_ON_START": 1}
    return values


def crawl(folder: Path, port: int, system: str, client: redis.Redis, options: argparse.Namespace) -> Run:
    """Run one crawl."""
    socket = client.connection_pool.connection_kwargs["path"]
    settings = [part for name, value in values_of(system, socket).items() for part in ("-s", f"{name}={value}")]
    command = [sys.executable, "-m", "scrapy", "runspider", str(folder / "tiny.py"), "-a", f"port={port}", *settings]
    if options.cpu is not None:
        command = ["taskset", "-c", str(options.cpu), *command]
    before = _server_cpu_s(client)
    with (folder / "log").open("w+") as log:
        # in a process that ends by itself after a while, in any case
        run = subprocess.Popen(command, stdout=log, stderr=log, env=_COMPILED, preexec_fn=lambda: signal.alarm(300))
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        told = log.read()
    server = _server_cpu_s(client) - before
    stats = dict(re.findall(r"'([^']+)': ([\d.]+)", told))
    if run.returncode or "downloader/response_status_count/200" not in stats:
        raise SystemExit(f"{system}: exit code {run.returncode}:\n{told[-2000:]}")
    fetched = int(stats["downloader/response_status_count/200"])
    # With a free moment the frontier already revisits; only first visits count.
    if fetched < options.pages:
        raise SystemExit(f"{system}: only {fetched} of {options.pages} pages were fetched:\n{told[-2000:]}")
    cpu_s = used.ru_utime + used.ru_stime + server
    return Run(options.pages / float(stats["elapsed_time_seconds"]), cpu_s / options.pages * 1e6, used.ru_maxrss / 1024)


def _server_cpu_s(client: redis.Redis) -> float:
    info = client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def main() -> None:
    """Run the rounds and print them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu", type=int, default=None, help="pin the spider to this processor")
    parser.add_argument("--paragraphs", type=int, default=0, help="that each page has beside its links")
    options = parser.parse_args()
    systems = ["default", "optimal_frontier"] + (["scrapy-redis"] if importlib.util.find_spec("scrapy_redis") else [])
    parent, child = multiprocessing.Pipe()
    site = multiprocessing.Process(target=_site, args=(child, options.pages, options.paragraphs), daemon=True)
    site.start()
    port = parent.recv()
    runs: dict[str, list[Run]] = {system: [] for system in systems}
    with tempfile.TemporaryDirectory(prefix="of-once-") as name:
        folder = Path(name)
        (folder / "tiny.py").write_text(SPIDER)
        server = EmbeddedServer(folder / "server")
        client = redis.Redis(unix_socket_path=server.ensure(), protocol=2)
        print(f"{options.pages} pages, {os.cpu_count()} processors, {time.strftime('%Y-%m-%d')}")
        for number in range(options.rounds):
            # The order alternates, so that a machine that slows down favours nobody.
            for system in systems if number % 2 else systems[::-1]:
                runs[system].append(crawl(folder, port, system, client, options))
            told = ", ".join(
                f"{system} {some[-1].pages_per_s:.0f} pages/s {some[-1].cpu_us:.0f} us {some[-1].memory_mb:.0f} MB"
                for system, some in runs.items()
            )
            print(f"round {number + 1}: {told}", flush=True)
        client.close()
        server.release()
    site.terminate()
    for system in systems[1:]:
        pairs = list(zip(runs[system], runs["default"], strict=True))
        speed = statistics.median(one.pages_per_s / other.pages_per_s for one, other in pairs)
        cost = statistics.median(one.cpu_us / other.cpu_us for one, other in pairs)
        memory = statistics.median(one.memory_mb / other.memory_mb for one, other in pairs)
        print(f"median of {system} over default: pages/s {speed:.3f}, CPU a page {cost:.3f}, memory {memory:.3f}")


if __name__ == "__main__":
    main()
