"""A real crawl of hosts that misbehave in every way, held against the truth: ``python benchmarks/misbehaving_crawl.py``.

Prints, per host, what was sent and learned, the counters of the crawl, and whether what is promised held; exit code 1 if something did not:

- of the pages with bits, the true change rate lies within the 95% interval for 90 to 99%;
- no page is lost: every page that exists is known and active, under the address that it has moved to;
- no retry storm: nobody is asked more often than budget and backoff allow;
- each kind of outcome has its counter.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from misbehaving.pages import TruePage, make_pages
from misbehaving.site import HOSTS, TRUTHFUL, MisbehavingSite

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.state.connection import connect
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.reading import record_of
from optimal_frontier.state.records import url_of_record
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import ACTIVE, Row

NAMESPACE = "misbehaving"
#: Fetches per second.
BUDGET = 60.0
#: Share of pages whose true rate lies within the 95% interval.
COVERED = (0.90, 0.99)
#: Least jitter of a backoff, as a share of it.
LEAST_JITTER = 0.5

_SPIDER = """
import json, os
from pathlib import Path
from urllib.parse import urlsplit
import scrapy

class Pages(scrapy.Spider):
    name = "pages"
    custom_settings = json.loads(Path("settings.json").read_text())

    async def start(self):
        for url in json.loads(Path("urls.json").read_text()):
            yield scrapy.Request(url, errback=self.failed)

    def parse(self, response):
        if urlsplit(response.url).path.startswith("/calendar/"):
            yield from response.follow_all(css="a")

    def failed(self, failure):
        pass
"""


def main() -> int:
    """Run the crawl and print what came of it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=130.0, help="of the crawl (default: %(default)g)")
    parser.add_argument("--pages", type=int, default=12, help="per host (default: %(default)d)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folder with the crawl's log, and say where")
    options = parser.parse_args()
    pages = make_pages(TRUTHFUL, options.pages, 1.5 * options.seconds + 30, options.seed)
    folder = Path(tempfile.mkdtemp(prefix="misbehaving-"))
    with MisbehavingSite(pages, options.seconds, options.seed) as site:
        crawl(site, folder, options.pages, options.seconds)
        checks = report(site, pages, folder, options)
    if not options.keep:
        subprocess.run(["rm", "-r", str(folder)], check=True)
    else:
        print(f"kept: {folder}")
    for name, holds, said in checks:
        print(f"{'ok  ' if holds else 'FAIL'}  {name}: {said}")
    return 0 if all(holds for _, holds, _ in checks) else 1


def crawl(site: MisbehavingSite, folder: Path, pages: int, seconds: float) -> None:
    """Crawl the site for so many seconds, as ``scrapy runspider`` does."""
    urls = [site.url(host, f"/page/{number}") for host in TRUTHFUL for number in range(pages)]
    urls += [site.url(host, f"/page/{number}") for host in ("dead", "down") for number in range(4)]
    urls += [site.url("honest", f"/dying/{number}") for number in range(2)]
    urls += [site.url("mess", path) for path in ("/loop", "/image", "/large", "/calendar/1", "/private/1")]
    urls += ["http://127.0.0.1:9/", "http://no-such-host.invalid/"]
    rule = {"host": f"127.0.0.1:{site.ports['noisy']}", "exclude": ["#clock", ".views"]}
    settings = {
        "ADDONS": {"optimal_frontier.Addon": 500},
        "LOG_LEVEL": "INFO",
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_DELAY": 0,
        "DOWNLOAD_TIMEOUT": 2,
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
        "TELNETCONSOLE_ENABLED": False,
        "CLOSESPIDER_TIMEOUT": seconds,
        "RETRY_ENABLED": True,
        "OPTIMAL_FRONTIER_REDIS_URL": f"embedded://{folder}/state",
        "OPTIMAL_FRONTIER_NAMESPACE": NAMESPACE,
        "OPTIMAL_FRONTIER_CRAWL_RATE": BUDGET,
        "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 5,
        "OPTIMAL_FRONTIER_MIN_INTERVAL": 0.5,
        "OPTIMAL_FRONTIER_RULES": [rule],
        "OPTIMAL_FRONTIER_PATTERN_MAX_PAGES": 50,
    }
    (folder / "urls.json").write_text(json.dumps(urls))
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "spider.py").write_text(_SPIDER)
    with (folder / "log.txt").open("wb") as log:
        subprocess.run([sys.executable, "-m", "scrapy", "runspider", "spider.py"], cwd=folder, stdout=log, stderr=log, timeout=seconds + 60)


#: The last call of a traceback is one of ours: its lines of code end it.
RAISED_BY_US = re.compile(r'^  File "[^"]*/optimal_frontier/[^"]*".*\n(?:    .*\n)*(?!  )', re.MULTILINE)


def report(site: MisbehavingSite, pages: dict[tuple[str, int], TruePage], folder: Path, options: Any) -> list[tuple[str, bool, str]]:
    """Print the tables; return what is promised: name, whether it held, and the figures."""
    known, counts = stored(site, folder)
    print(f"{len(site.fetches)} fetches in {options.seconds:g} s, {site.bytes_sent / 1e6:.1f} MB")
    print(f"{'host':10} {'fetches':>8} {'statuses':40} {'bits':>6} {'within 95%':>11} {'rate / truth':>13}")
    covered, missing = [], []
    for host in HOSTS:
        statuses = Counter(status for _, at, _, status in site.fetches if at == host)
        inside, ratios, bits = [], [], 0
        for (owner, number), page in pages.items():
            if owner != host:
                continue
            path = f"/{'moved' if host == 'moving' else 'page'}/{number}"
            row = known.get((host, path))
            if row is None or row.state != ACTIVE:
                missing.append(f"{host}{path}")
                continue
            bits += row.observations
            if row.observations:
                posterior = RatePosterior(row.shape, row.time)
                low, high = posterior.interval(0.95)
                inside.append(low <= page.rate <= high)
                ratios.append(posterior.median / page.rate)
        covered += inside
        said = " ".join(f"{status or 'none'}:{count}" for status, count in sorted(statuses.items()))
        rates = f"{np.mean(inside):11.0%} {np.median(ratios):13.2f}" if inside else ""
        print(f"{host:10} {sum(statuses.values()):8} {said:40} {bits:6} {rates}")
    print("counters: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    share = float(np.mean(covered)) if covered else 0.0
    worst, allowed = most_asked(site, options.seconds)
    log = (folder / "log.txt").read_text(errors="replace")
    expected = EXPECTED_COUNTERS
    return [
        ("true rates within the 95% interval", COVERED[0] <= share <= COVERED[1], f"{share:.1%} of {len(covered)} pages"),
        ("no page lost", not missing, f"missing: {', '.join(missing) or 'none'}"),
        ("no retry storm", worst <= allowed, f"a page that always fails was asked for {worst} times, backoff allows {allowed}"),
        ("budget", len(site.fetches) <= BUDGET * options.seconds * 1.05 + 70, f"{len(site.fetches) / options.seconds:.1f} of {BUDGET:g}/s"),
        (
            "each outcome has its counter",
            all(counts.get(name) for name in expected),
            f"missing: {[n for n in expected if not counts.get(n)]}",
        ),
        (
            "no traceback of ours",
            not RAISED_BY_US.search(log),
            f"{log.count('Traceback')} in the log, of Scrapy's",
        ),
    ]


#: What must have been counted.
EXPECTED_COUNTERS = (
    "observations", "changes", "not_modified", "bytes_saved",
    "failures_timeout", "failures_dns", "failures_connection", "failures_server", "failures_throttled", "failures_robots",
    "failures_truncated", "failures_gone", "retired", "gone_held", "blocked_pages", "host_holds", "moved", "trapped_pattern",
)  # fmt: skip


def stored(site: MisbehavingSite, folder: Path) -> tuple[dict[tuple[str, str], Row], dict[str, int]]:
    """Return what is known of each page, by host and path, and the counters."""
    names = {f"http://127.0.0.1:{port}": host for host, port in site.ports.items()}
    connection = connect(parse_redis_url(f"embedded://{folder}/state", folder))
    try:
        namespace = Namespace(connection, NAMESPACE)
        namespace.open(create=False)
        values = namespace.command("HVALS", namespace.key("pages"))
        hosts = namespace.hash("hosts:names")
        known = {}
        for value in values:
            row = Row.unpack(value)
            url = url_of_record(record_of(value), hosts.get(str(row.host), ""))
            origin, _, path = url.rpartition("//")[2].partition("/")
            if (host := names.get(f"http://{origin}")) is not None:
                known[host, f"/{path}"] = row
        return known, namespace.counts()
    finally:
        connection.close()


def most_asked(site: MisbehavingSite, seconds: float) -> tuple[int, int]:
    """Return how often a page that never works was asked for at most, and how often backoff allows it (1, 2, 4, ... s, jitter, two tries of
    Scrapy's own at the first visit)."""
    asked = Counter(path for _, host, path, _ in site.fetches if host == "down" and path != "/robots.txt")
    allowed, waited = 0, 0.0
    while waited <= seconds:
        waited += LEAST_JITTER * 2.0 ** min(allowed + 1, 17)
        allowed += 1
    return max(asked.values()), allowed + 2


if __name__ == "__main__":
    sys.exit(main())
