"""Crawls in processes of their own, and a look at what they leave in Redis."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forked_programs import ForkedProgram
from scrapy import Request
from scrapy.utils.request import fingerprint

from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.state.aliases import Place, follow_all
from optimal_frontier.state.connection import connect
from optimal_frontier.state.host_words import NOTHING_SAID, HostWords
from optimal_frontier.state.layouts import PartitionState, pack_doubles
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import Row

#: Longest wait for anything that a test expects, seconds.
PATIENCE_S = 20.0

#: The key ``d`` of a partition: first the time, in microseconds, and the tokens.
#: More tokens than a bucket holds: it is full after a while.
_TOKENS = 1e6

#: What every crawl has unless a test says otherwise: quick, and quiet but for what is wrong.
SETTINGS: dict[str, Any] = {
    "ADDONS": {"optimal_frontier.Addon": 500},
    "LOG_LEVEL": "INFO",
    "TELNETCONSOLE_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "ROBOTSTXT_OBEY": False,
    "OPTIMAL_FRONTIER_CRAWL_RATE": 100,
    "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 0.3,
    "OPTIMAL_FRONTIER_MIN_INTERVAL": 0.2,
}

_PROGRAM = '''
import json, logging, os, socket, sys, warnings
import scrapy
from scrapy import Request, Spider, signals
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import IgnoreRequest, ScrapyDeprecationWarning

# Where there is no network Scrapy's cookies log a traceback, the first time on a machine: it could not fetch the list of public suffixes.
logging.getLogger("tldextract").setLevel(logging.ERROR)

def known(look_up):
    """Answer for names that are never anybody's (RFC 6761): a resolver that does not answer at all would be waited for, 10 s a name."""
    def look(host, *more, **named):
        if str(host).endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *more, **named)
    return look

socket.gethostbyname, socket.getaddrinfo = known(socket.gethostbyname), known(socket.getaddrinfo)

class Recorded:
    """Keeps a record of what callbacks saw, and of the stats at the end."""

    @classmethod
    def from_crawler(cls, crawler):
        extension = cls()
        crawler.signals.connect(extension.closed, signals.spider_closed)
        extension.crawler = crawler
        return extension

    def closed(self, spider, reason):
        with open("stats.json", "w") as out:
            json.dump(self.crawler.stats.get_stats() | {"reason": reason}, out, default=str)

def note(**values):
    """Append a line to the record."""
    with open("record.jsonl", "a") as out:
        out.write(json.dumps(values, default=lambda v: sorted(v) if isinstance(v, set) else str(v)) + "\\n")

SITE = os.environ["SITE"]

class Base(Spider):
    name = "tester"
    paths = []

    async def start(self):
        for request in self.first():
            yield request

    if scrapy.version_info < (2, 13):
        def start_requests(self):
            yield from self.first()

    def first(self):
        for path in self.paths:
            yield Request(SITE + path)

    def parse(self, response):
        note(url=response.url, status=response.status, seen=response.meta.get("optimal_frontier"))

%(spider)s

settings = json.load(open("settings.json"))
settings["EXTENSIONS"] = {Recorded: 0}
for name in ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"):
    for path in list(settings.get(name, {})):
        if path in globals():
            settings[name][globals()[path]] = settings[name].pop(path)
process = CrawlerProcess(settings)
process.crawl(Tester)
process.start()
'''


class Crawl:
    """One crawl: ``spider`` is the source of a class ``Tester(Base)`` and of what it needs."""

    def __init__(self, folder: Path, site: str, spider: str, settings: Mapping[str, Any], arguments: list[str] | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        program = _PROGRAM % {"spider": textwrap.dedent(spider)}
        files = {"program.py": program, "settings.json": json.dumps(SETTINGS | dict(settings)), "scrapy.cfg": "[settings]\n"}
        for name, text in files.items():
            # In one step: another crawl may be about to read the one in the same folder, and an empty program ends at once.
            (folder / f"{name}.new").write_text(text)
            (folder / f"{name}.new").replace(folder / name)
        (folder / "stats.json").unlink(missing_ok=True)
        self.log_path = folder / "log.txt"
        environment = {**os.environ, "SITE": site, "PYTHONUNBUFFERED": "1"}
        with self.log_path.open("ab") as log:
            self.log_start = log.tell()
            self.process: ForkedProgram | subprocess.Popen[bytes]
            if arguments:
                command = [sys.executable, *arguments, "program.py"]
                self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment, start_new_session=True)
            else:
                self.process = ForkedProgram(["program.py"], folder, self.log_path, environment)

    @property
    def log(self) -> str:
        """What this process wrote to stdout and stderr."""
        return self.log_path.read_bytes()[self.log_start :].decode(errors="replace")

    @property
    def record(self) -> list[dict[str, Any]]:
        """What callbacks noted, earlier crawls in the same folder included."""
        path = self.folder / "record.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def stats(self) -> dict[str, Any]:
        """Scrapy's stats at the end."""
        stats: dict[str, Any] = json.loads((self.folder / "stats.json").read_text())
        return stats

    def until(self, what: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
        """Wait until ``what`` holds; the crawl must not end before."""
        give_up = time.monotonic() + patience_s
        while True:
            asked = time.monotonic()
            value = what()
            if value:
                return value
            assert self.process.poll() is None, f"the crawl ended with {self.process.poll()}\n{self.log}"
            assert time.monotonic() < give_up, f"waited {patience_s} s in vain\n{self.log}"
            # What takes long to ask would take the crawl's processor.
            time.sleep(min(max(0.02, 3.0 * (time.monotonic() - asked)), 0.2))

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Wait for the end; return the exit code."""
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the crawl did not end\n{self.log}") from None

    def signal(self, number: int) -> None:
        """Send a signal to the crawl's process."""
        self.process.send_signal(number)

    def stop(self) -> int:
        """Stop it in good order."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


@contextmanager
def crawling(*arguments: Any, **keywords: Any) -> Iterator[Crawl]:
    """Run a crawl that is killed at the end, should it still run."""
    crawl = Crawl(*arguments, **keywords)
    try:
        yield crawl
    finally:
        crawl.kill()


class State:
    """What a namespace holds, by URL."""

    def __init__(self, redis_url: str, name: str) -> None:
        self.connection = connect(parse_redis_url(redis_url, Path("/")))
        self.namespace = Namespace(self.connection, name)

    def close(self) -> None:
        """Disconnect."""
        self.connection.close()

    def identity(self, request: str | Request) -> bytes:
        """Return the fingerprint by which a page is known."""
        return fingerprint(Request(request) if isinstance(request, str) else request)

    def place(self, request: str | Request) -> Place | None:
        """Return where a page is kept, by any of its names, or None if it is not known."""
        self._open()
        url = request if isinstance(request, str) else request.url
        return follow_all(self.namespace, [(self.namespace.partition_of(host_of(url)), self.identity(request)[:PAGE_BYTES])])[0]

    def at(self, request: str | Request) -> dict[str, Any]:
        """Return the row of a page, and its attempts; empty if it is not known."""
        place = self.place(request)
        if place is None:
            return {}
        row = Row.unpack(place.value)
        return {**row._asdict(), "attempts": row.attempts}

    def memory(self, request: str | Request) -> Memory:
        """Return what the last responses of a page have left."""
        place = self.place(request)
        assert place is not None, request
        return Memory.unpack(self.namespace.command("HGET", self.key("memory", place.partition), place.page, partition=place.partition))

    def words(self, host: str) -> HostWords:
        """Return what is known of a host's own word; of one that is not known yet nothing is."""
        self._open()
        k = self.namespace.partition_of(host)
        number = self.namespace.command("HGET", self.key("hosts", k), host, partition=k)
        if number is None:
            return NOTHING_SAID
        return HostWords.unpack(self.namespace.command("HGET", self.key("hosts:words", k), number, partition=k))

    def _open(self) -> None:
        """Read once how many partitions there are, as soon as it is known: tests ask again and again."""
        if not self.namespace.run_id:
            self.namespace.open(create=False)

    def key(self, name: str, partition: int = 0) -> str:
        """Return the full name of a key."""
        return self.namespace.key(name, partition)

    def is_leased(self, request: str | Request) -> bool:
        """Tell whether a page is being fetched."""
        place = self.place(request)
        assert place is not None, request
        score = self.namespace.command("ZSCORE", self.key("q", place.partition), place.page, partition=place.partition)
        return score is not None and float(score) % 2 == 1

    @property
    def in_flight(self) -> int:
        """Number of leases."""
        counts = self.counts
        return counts.get("dispatched", 0) - counts.get("ended", 0) - counts.get("leases_expired", 0)

    @property
    def lease_ends(self) -> list[float]:
        """When the leases of the first partition run out, seconds since the epoch."""
        scores = map(float, self.namespace.command("ZRANGE", self.key("q"), 0, -1, "WITHSCORES")[1::2])
        return [score / 1e6 for score in scores if score % 2 == 1]

    @property
    def counts(self) -> dict[str, int]:
        """The counters."""
        return self.namespace.counts()

    @property
    def plan(self) -> dict[str, str]:
        """What the last plan published."""
        return self.namespace.hash("plan")

    @property
    def lateness(self) -> list[float]:
        """Seconds from the deadline to the start of the download, of the last revisits."""
        calls = self.namespace.command("LRANGE", self.key("lateness"), 0, -1)
        return [float(late) for call in calls for late in call.split()]

    def advance(self, seconds: float) -> None:
        """Move the time of the server on, as the scripts see it: it stands still until the server's clock has caught up."""
        key = self.key("d")
        state = PartitionState.stored(self.namespace.command("GET", key))
        assert state is not None
        now = max(state.at, self.namespace.now() * 1e6)
        self.namespace.command("SET", key, pack_doubles(state._replace(at=now + seconds * 1e6, tokens=_TOKENS)))
