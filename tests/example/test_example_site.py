"""The site serves what its world says, over real sockets in a process of its own; `run.py` measures whoever fetches from it."""

import asyncio
import io
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import run as example
from changing_site import settings
from changing_site.spiders.pages import PagesSpider
from demo.processes import PROJECT, running_site
from demo.record import LogFollower
from demo.report import measure
from demo.site import Site
from demo.world import BUDGET, make_world
from example_client import fetch_all, periodic_visits
from scrapy.http import HtmlResponse, Request


def test_site_serves_the_world_and_logs_it(tmp_path):
    log = tmp_path / "site.jsonl"
    world = make_world(1, 2.0)
    dying = int(np.isfinite(world.death).argmax())
    hot = int(world.change_rate.argmax())
    with running_site(1, 2.0, log) as address:
        visits = [(0.1, 1), (0.1, 1), (0.1, hot), (float(world.death[dying]) + 0.05, dying), (2.5, hot)]
        answers = asyncio.run(fetch_all(address, visits, connections=1))
    rows = LogFollower(log).read_new()
    assert [(page, status) for page, status, _ in answers] == [(row[1], row[3]) for row in rows]
    assert [status for _, status, _ in answers] == [200, 200, 200, 404, 200]
    shown = [int(re.search(r'id="version">(\d+)', body)[1]) if status == 200 else 0 for _, status, body in answers]
    assert shown == [row[2] for row in rows] == [world.version(page, at) if status == 200 else 0 for at, page, _, status, _ in rows]
    assert shown[4] > shown[2]


def test_only_script_and_comment_tell_two_fetches_apart(tmp_path):
    with running_site(1, 2.0, tmp_path / "site.jsonl") as address:
        page = int((make_world(1, 2.0).change_rate == 0).argmax())
        (_, _, one), (_, _, two) = asyncio.run(fetch_all(address, [(0, page), (0, page)]))
    assert one != two
    assert re.sub(r"<!--.*?-->|<script>.*?</script>", "", one) == re.sub(r"<!--.*?-->|<script>.*?</script>", "", two)


def test_site_answers_304_while_a_page_is_what_it_was():
    """By the ETag alone, which is the version's; the body's length is logged as what was spared."""
    world, log = make_world(1), io.StringIO()
    site = Site(world, log)

    async def answers():
        _, ports = await site.listen()
        await site.close()
        page = int((world.change_rate == 0).argmax())
        at = (page % len(ports), f"/page/{page}")
        full = site.respond(*at)
        etag = re.search(r"ETag: (.*)\r\n", full.headers)[1]
        return page, full, etag, site.respond(*at, etag), site.respond(*at, '"x"')

    page, full, etag, same, other = asyncio.run(answers())
    assert etag == f'W/"{page}-1"'
    assert (full.status, same.status, other.status) == (200, 304, 200)
    assert same.body == b""
    assert same.headers == full.headers
    assert "Last-Modified: " in full.headers
    rows = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [row[3:] for row in rows] == [[200, len(full.body)], [304, rows[1][4]], [200, len(other.body)]]
    assert rows[1][4] == pytest.approx(len(full.body), abs=3)  # the nonce's digits


def test_spider_yields_what_it_sees_and_follows_with_importance():
    world = make_world(1)
    site = Site(world, io.StringIO())

    async def answer():
        _, ports = await site.listen()
        await site.close()
        return ports, site.respond(0, "/page/0"), site.respond(1, "/page/0"), site.respond(0, "/robots.txt")

    ports, (status, body, *_), (elsewhere, *_), (robots, *_) = asyncio.run(answer())
    assert (status, elsewhere, robots) == (200, 404, 404)
    url = f"http://127.0.0.1:{ports[0]}/page/0"
    spider = PagesSpider(start_url=url, start_importance="0.5")
    request = Request(url, meta={"optimal_frontier": {"changed": True}})
    item, *requests = spider.parse(HtmlResponse(url, body=body, encoding="utf-8", request=request))
    assert item == {"url": url, "version": 1, "changed": True}
    assert [int(r.url.rpartition("/")[2]) for r in requests] == list(world.links[0])
    assert [r.meta["importance"] for r in requests] == pytest.approx(world.importance[list(world.links[0])], rel=1e-5)


@pytest.mark.timing
def test_uniform_fetcher_is_measured_at_its_budget(tmp_path):
    world = make_world(1, 6.0)
    times, pages = periodic_visits(np.full(300, BUDGET / 300), 0.2, 6.2, np.random.default_rng(1))
    times = 0.2 + (np.arange(len(times)) + 1) / (len(times) / 6.0)  # the first round at the budget's pace too
    with running_site(1, 6.0, tmp_path / "site.jsonl") as address:
        asyncio.run(fetch_all(address, zip(times, pages, strict=True)))
    log = LogFollower(tmp_path / "site.jsonl")
    log.read_new()
    report = measure(world, log.record(), 3.2, 6.2)
    assert report.fetch_rate == pytest.approx(2 * BUDGET, rel=0.05)
    assert report.burst == pytest.approx(2 * BUDGET * 5, rel=0.03)
    assert report.pages_fetched == 300


class StandInCrawl:
    """Fetches every page in turn, at the budget, from a thread: what `run.py` needs of a crawl."""

    redis_url = "embedded:///nowhere"

    def __init__(self, world, address, data, timeout, settings):
        visits = [(1 + k / BUDGET, k % 300) for k in range(int(BUDGET * (timeout + 0.5)))]
        self._thread = threading.Thread(target=lambda: asyncio.run(fetch_all(address, visits)))
        self._thread.start()

    def ended(self):
        return not self._thread.is_alive()

    def finish(self, patience):
        self._thread.join(patience)

    def stop(self):
        self._thread.join()

    def trouble(self):
        return []


@pytest.mark.timing
def test_run_reports_a_crawl_as_json(monkeypatch, capsys):
    monkeypatch.setattr(example, "Crawl", StandInCrawl)
    assert example.main(["--seconds", "12", "--json", "--no-plot"]) == 0
    out, err = capsys.readouterr()
    figures = json.loads(out)
    assert figures["fetch_rate"] == pytest.approx(BUDGET, rel=0.05)
    assert figures["burst"] <= figures["burst_allowed"] == 275
    assert 0 < figures["uniform"] < figures["optimum"] < 1
    assert re.search(r"10\.\d of 12 s +\d{3} fetches +300 of 300 pages +fresh now 0\.\d+", err)


def test_failed_crawl_ends_with_its_log_and_code_1(tmp_path):
    run = [sys.executable, str(PROJECT / "run.py"), "--seconds", "30", "--no-plot", "-s", "SCHEDULER=nowhere.Scheduler"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "example: the crawl" in done.stderr
    assert "Error" in done.stderr
    assert not list(Path(tmp_path).iterdir())


def test_settings_spend_the_budget_of_the_world():
    assert settings.OPTIMAL_FRONTIER_CRAWL_RATE == BUDGET
    assert settings.ADDONS == {"optimal_frontier.Addon": 500}
