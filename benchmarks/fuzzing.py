"""A hundred thousand nonsensical answers through the whole of Scrapy and of us: ``python benchmarks/fuzzing.py``.

A real crawl, with all middlewares, whose downloader makes up what comes back: statuses, headers, encodings, bodies, links. Exit code 1 if
an exception of ours came out, an answer took longer than it may, or a page was lost.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, ClassVar

import scrapy
from fuzzed.answers import make_answer, make_url
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import CloseSpider

from optimal_frontier.integrations.scrapy import ChangeDetectionMiddleware

#: Most seconds that one answer may take in our middleware.
MOST_S = 2.0


class Run:
    """What the parts of the crawl share."""

    rng = random.Random(1)
    inputs = 0
    most = 100_000
    slowest = 0.0
    seconds = 0.0


class Nonsense:
    """Download handler."""

    lazy = False

    def __init__(self, crawler: Any) -> None:
        pass

    @classmethod
    def from_crawler(cls, crawler: Any) -> Nonsense:
        return cls(crawler)

    async def download_request(self, request: Any) -> Any:
        Run.inputs += 1
        if Run.inputs % 64 == 0:
            await asyncio.sleep(0)
        if Run.rng.random() < 0.02:
            raise Run.rng.choice([TimeoutError("slow"), ConnectionError("no"), OSError("broken"), ValueError("nonsense")])
        return make_answer(request, Run.rng)

    async def close(self) -> None:
        pass


class Timed(ChangeDetectionMiddleware):
    """Ours, with a stopwatch."""

    def process_response(self, request: Any, response: Any, spider: Any = None) -> Any:
        began = time.perf_counter()
        try:
            return super().process_response(request, response)
        finally:
            took = time.perf_counter() - began
            Run.seconds += took
            Run.slowest = max(Run.slowest, took)


class Spider(scrapy.Spider):
    """Asks for everything that it finds, and for what it makes up."""

    name = "fuzzed"
    handle_httpstatus_all = True
    seen: ClassVar[set[Any]] = set()

    async def start(self) -> Any:
        for _ in range(400):
            yield scrapy.Request(make_url(Run.rng), errback=self.failed)

    def parse(self, response: Any) -> Any:
        self.seen.add(response.meta["optimal_frontier"]["changed"])
        if Run.inputs >= Run.most:
            raise CloseSpider("enough")
        growing = Run.inputs < Run.most / 4
        for _ in range(Run.rng.randrange(3) if growing else 0):
            meta = Run.rng.choice([{}, {"importance": Run.rng.choice([1, 0.1, -1, "x"])}, {"lastmod": Run.rng.choice(["x", "2024", 5])}])
            yield scrapy.Request(make_url(Run.rng), errback=self.failed, meta=meta)

    def failed(self, failure: Any) -> None:
        pass


class Ours(logging.Handler):
    """Keeps log records whose traceback goes through our code."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            lines = "".join(traceback.format_exception(record.exc_info[1]))
            last = traceback.extract_tb(record.exc_info[1].__traceback__)[-1:]
            if "/optimal_frontier/" in lines and (not last or "fuzzing.py" not in last[0].filename):
                self.found.append(lines)


def main() -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    Run.rng, Run.most = random.Random(options.seed), options.inputs
    ours = Ours()
    logging.getLogger().addHandler(ours)
    with tempfile.TemporaryDirectory(prefix="fuzzing-") as folder:
        process = CrawlerProcess(settings(Path(folder)))
        crawler = process.create_crawler(Spider)
        process.crawl(crawler)
        began = time.monotonic()
        process.start()
    stats = crawler.stats.get_stats()
    print(f"{Run.inputs} answers in {time.monotonic() - began:.0f} s; in our middleware {1e6 * Run.seconds / Run.inputs:.0f} us each, "
          f"slowest {Run.slowest:.3f} s")  # fmt: skip
    for name in sorted(stats):
        if name.startswith(("optimal_frontier/", "downloader/exception_type", "spider_exceptions", "log_count")):
            print(f"  {name} {stats[name]}")
    print(f"exceptions of ours: {len(ours.found)}")
    for text in dict.fromkeys(ours.found):
        print(text)
    return int(bool(ours.found) or Run.slowest > MOST_S or Run.inputs < Run.most)


def settings(folder: Path) -> dict[str, Any]:
    """Return the crawl's settings: every option that looks at answers is on."""
    return {
        "ADDONS": {"optimal_frontier.Addon": 500},
        "DOWNLOADER_MIDDLEWARES": {ChangeDetectionMiddleware: None, Timed: 25},
        "DOWNLOAD_HANDLERS": {"http": Nonsense, "https": Nonsense},
        "LOG_LEVEL": "CRITICAL",
        "RETRY_TIMES": 1,
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
        "OPTIMAL_FRONTIER_REDIS_URL": f"embedded://{folder}/state",
        "OPTIMAL_FRONTIER_NAMESPACE": "fuzzed",
        "OPTIMAL_FRONTIER_MIN_INTERVAL": 0.01,
        "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 5,
        "OPTIMAL_FRONTIER_CANONICAL_LINKS": True,
    }


if __name__ == "__main__":
    sys.exit(main())
