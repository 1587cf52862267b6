"""The crawlers of a chaos crawl: `scrapy crawl` in a project of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

NAMESPACE = "chaos"

_SETTINGS = """
import os
BOT_NAME = "chaos"
SPIDER_MODULES = ["chaos_project.spiders"]
ADDONS = {{"optimal_frontier.Addon": 500}}
USER_AGENT = os.environ.get("CRAWLER", "none")
LOG_LEVEL = "INFO"
TELNETCONSOLE_ENABLED = False
ROBOTSTXT_OBEY = False
DOWNLOAD_DELAY = 0
DOWNLOAD_TIMEOUT = 10
CONCURRENT_REQUESTS = 16
CONCURRENT_REQUESTS_PER_DOMAIN = 4
RETRY_TIMES = 2
REFERER_ENABLED = False
OPTIMAL_FRONTIER_REDIS_URL = os.environ.get("REDIS_URL", "embedded")
OPTIMAL_FRONTIER_NAMESPACE = "{namespace}"
OPTIMAL_FRONTIER_CRAWL_RATE = {rate}
OPTIMAL_FRONTIER_HOST_DELAY = {delay}
OPTIMAL_FRONTIER_RESOLVE_INTERVAL = 2
OPTIMAL_FRONTIER_MIN_INTERVAL = 1
"""

_SPIDER = """
import os
from scrapy import Request, Spider
from optimal_frontier.state import namespace as module

# The server's clock, which the harness sets: nobody may set the machine's.
plain = module.source
def source(name):
    return plain(name).replace(
        "local t = call('TIME')", "local t = call('TIME'); t[1] = t[1] + tonumber(call('HGET', P .. 'chaos', 'ahead') or 0)"
    )
module.source = source
plain_commands = module.Namespace.commands
def commands(self, rows, *, partition=0, at=None):
    rows = [list(row) for row in rows]
    asked = [i for i, row in enumerate(rows) if row == ["TIME"]]
    told = plain_commands(self, [*rows, *([["HGET", self.key("chaos"), "ahead"]] if asked else [])], partition=partition, at=at)
    ahead = int(told.pop() or 0) if asked else 0
    for i in asked:
        told[i] = (int(told[i][0]) + ahead, int(told[i][1]))
    return told
module.Namespace.commands = commands

class Chaos(Spider):
    name = "chaos"

    async def start(self):
        yield Request(os.environ["START"])

    def parse(self, response):
        for link in response.css("a::attr(href)").getall():
            yield Request(link)
"""


def write_project(folder: Path, rate: float, delay: float) -> None:
    """Write the project into ``folder``."""
    package = folder / "chaos_project" / "spiders"
    package.mkdir(parents=True, exist_ok=True)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = chaos_project.settings\n")
    (folder / "chaos_project" / "__init__.py").touch()
    (folder / "chaos_project" / "settings.py").write_text(_SETTINGS.format(namespace=NAMESPACE, rate=rate, delay=delay))
    (package / "__init__.py").touch()
    (package / "chaos.py").write_text(_SPIDER)


class Crawler:
    """One crawler, which may be started again and again; ``name`` is its user agent."""

    def __init__(self, folder: Path, name: str, redis_url: str, start: str) -> None:
        self.folder, self.name, self.redis_url = folder, name, redis_url
        self._environment = {**os.environ, "CRAWLER": name, "REDIS_URL": redis_url, "START": start}
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / f"{name}.log"
        #: Since when it runs without a break, monotonic seconds.
        self.since = 0.0

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.is_running:
            return
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "scrapy", "crawl", "chaos"], cwd=self.folder, stdout=log, stderr=log, env=self._environment
            )
        self.since = time.monotonic()

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self._process is not None and self.is_running:
            self._process.send_signal(number)
            self.since = time.monotonic()

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self, patience_s: float = 40.0) -> bool:
        """Stop it in good order; return whether that was done in time."""
        process = self._process
        if process is None:
            return True
        self.signal(signal.SIGTERM)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False
        return True
