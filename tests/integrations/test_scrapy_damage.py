"""Nothing that is read can end a crawler: damaged rows, records, memories and shared values, written while a real crawl runs."""

from __future__ import annotations

import json
import re
from typing import Any

from click.testing import CliRunner
from crawler import Crawler
from crawls import State
from damage import HELD, MEMORIES, PAGES, SHARED, Damage
from misbehaving_site import MisbehavingSite

from optimal_frontier.cli import main
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.put_aside import read_put_aside
from optimal_frontier.state.rows import ACTIVE, RETIRED

DAMAGES: dict[str, Damage] = {**PAGES, **HELD, **MEMORIES}
SPIDER = """
    class Tester(Base):
        paths = [f"/counter/{n}" for n in range(%d)]

        def closed(self, reason):
            pass

        @property
        def secret(self):
            note(secret=True)
"""
SOUND = 8

#: One script: between two commands the result of a visit could put back what was there.
_WRITE = "redis.call('ZADD', KEYS[1], 2, ARGV[1]) if ARGV[2] then redis.call('HSET', KEYS[2], ARGV[1], ARGV[2]) end"


def page_of(state: State, url: str) -> bytes:
    return state.identity(url)[:PAGE_BYTES]


def damage_pages(state: State, site: MisbehavingSite) -> dict[str, bytes]:
    """Do each kind of damage to a page that is due, and return which page has which."""
    done = {}
    for at, (name, write) in enumerate(DAMAGES.items()):
        page = page_of(state, site.url(f"/counter/{SOUND + at}"))
        value = state.namespace.command("HGET", state.key("pages"), page)
        new = write(state, page, value)
        state.namespace.command("EVAL", _WRITE, 2, state.key("q"), state.key("pages"), page, *(() if new is None else (new,)))
        done[name] = page
    return done


def test_a_crawl_goes_on_beside_damage_of_all_kinds(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Sound pages are visited all the time, damaged ones are put aside once and named, held, or go on; and are mended."""
    # Leases are short, as those of a call that broke off at a damaged counter expire: nobody knows that they were given.
    pages = {"of_MIN_INTERVAL": 0.2, "of_MAX_INTERVAL": 0.5, "of_CRAWL_RATE": 100, "of_LEASE_SECONDS": 4}
    # Those that are damaged come up when they are, and seldom afterwards: the visits that are waited for are those of sound ones.
    pages["of_RULES"] = [{"pattern": r"/counter/([89]|\d\d)$", "min_interval": 10, "max_interval": 20}]
    with crawl(SPIDER % (SOUND + len(DAMAGES)), **pages) as running:
        running.until(lambda: state.counts.get("fetched", 0) >= SOUND + len(DAMAGES) and state.plan)
        damaged = damage_pages(state, site)
        # Two kinds of damage make a row that no queue brings up: `check` finds them. A plan, or a look, may write numbers anew before the
        # page comes up.
        unseen, mended_by_plans = {"a row that is empty", "a row that is too short"}, damaged["numbers that are no deadline"]
        expected = {damaged[name] for name in PAGES if name not in unseen} - {mended_by_plans}
        running.until(lambda: expected <= {one.page for one in read_put_aside(state.namespace, 0)})
        running.until(lambda: state.counts.get("held", 0) >= len(HELD))
        survivors = [SOUND + at for at, name in enumerate(DAMAGES) if name in MEMORIES]
        running.until(lambda: all(site.count(f"/counter/{n}") >= 2 for n in survivors))
        for command in SHARED.values():
            words = [state.key(word[1:]) if isinstance(word, str) and word.startswith("@") else word for word in command]
            if command[1] == "@opens":
                state.namespace.command("DEL", words[1])
            state.namespace.command(*words)
            before = [site.count(f"/counter/{n}") for n in range(SOUND)]
            running.until(lambda before=before: all(site.count(f"/counter/{n}") >= count + 2 for n, count in enumerate(before)), 60)
        set_aside = {one.page: one.reason for one in read_put_aside(state.namespace, 0)}
        assert running.process.poll() is None
        running.stop()
    assert not [line for line in running.record if "secret" in line]
    assert not any("etc/passwd" in fetch.path for fetch in site.fetches)
    assert expected <= set(set_aside) <= expected | {mended_by_plans}
    assert all(set_aside.values())
    found = run_check(state)
    left = set_aside.keys() | {damaged[name] for name in unseen}
    assert {f"page {page.hex()}" for page in left} <= {finding["subject"] for finding in found["violations"]}
    mended = run_check(state, "--repair")["repaired"]
    assert {f"page {page.hex()}" for page in set_aside} <= {finding["subject"] for finding in mended}
    assert any(finding["message"].endswith("added anew") for finding in mended)
    for _ in range(3):
        run_check(state, "--repair")
    assert run_check(state)["violations"] == []
    assert state.counts["set_aside"] == 0


def run_check(state: State, *options: str) -> Any:
    """What ``optimal-frontier check --json`` says."""
    where = ["--redis-url", state.connection.spec.display, "--namespace", state.namespace.name]
    return json.loads(CliRunner().invoke(main, [*where, "check", "--json", *options], catch_exceptions=False).stdout)


def test_no_other_scheme_becomes_a_page(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    spider = """
        class Tester(Base):
            paths = ["/static/1", "/counter/1"]
            def parse(self, response):
                note(url=response.url)
                for url in ("file:///etc/passwd", "ftp://127.0.0.1/x", "s3://bucket/x", "data:,x"):
                    yield Request(url, callback=self.parse)
    """
    with crawl(spider) as running:
        running.until(lambda: site.count("/counter/1") >= 3)
        running.stop()
    assert state.counts["pages"] == 2
    assert not [line for line in running.record if not line["url"].startswith("http:")]
    assert state.counts["trapped_scheme"] >= 8


def test_a_page_leads_to_no_other_private_host_and_no_password_is_stored(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """The crawl begins at localhost only, which leads to this machine under other names, and nowhere else that the public cannot reach."""
    port = site.url("").rpartition(":")[2]
    spider = f"""
        class Tester(Base):
            def first(self):
                yield Request("http://localhost:{port}/static/1")
                yield Request("http://user:secret@localhost:{port}/static/2")
            def parse(self, response):
                note(url=response.url)
                yield Request("http://10.0.0.1:{port}/static/3")
                yield Request("http://169.254.169.254/latest/")
                yield Request("http://127.0.0.1:{port}/static/5")
                yield Request("http://user:secret@localhost:{port}/static/4")
    """
    site.answers["/static/5"] = (302, "", {"Location": "http://169.254.169.254/redirected"})
    with crawl(spider, LOG_LEVEL="DEBUG", DOWNLOAD_TIMEOUT=1) as running:
        running.until(lambda: state.counts.get("trapped_credentials", 0) >= 2 and state.counts.get("trapped_private", 0) >= 3)
        running.stop()
    assert {host.decode() for host in state.namespace.command("HKEYS", state.key("hosts"))} == {f"localhost:{port}", f"127.0.0.1:{port}"}
    assert "secret" not in running.log
    assert re.search(r"http://(10\.|169\.)\S+ is on a private host, and was found on a host of another kind", running.log)
    stored = state.namespace.command("HVALS", state.key("pages"))
    assert not any(b"secret" in value for value in stored)


def test_importance_is_bounded(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    spider = """
        class Tester(Base):
            def first(self):
                for at, importance in enumerate((1e300, float("nan"), -1, float("inf"), "high", True)):
                    yield Request(SITE + f"/counter/{at}", meta={"importance": importance})
                yield Request(SITE + "/counter/9")
    """
    with crawl(spider) as running:
        running.until(lambda: all(site.count(f"/counter/{at}") >= 3 for at in (*range(6), 9)))
        running.stop()
    assert all(state.at(site.url(f"/counter/{at}"))["importance"] in (1.0, 1e9) for at in range(6))


def test_a_page_that_is_gone_where_it_moved_to_gets_its_url_back(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """A permanent redirect that was none: the site takes it back, and its target dies. What was learned goes along."""
    spider = """
        class Tester(Base):
            paths = ["/moved/static/target", "/counter/1"]
    """
    former, target = site.url("/moved/static/target"), site.url("/static/target")
    with crawl(spider, of_MIN_INTERVAL=0.2, of_MAX_INTERVAL=0.5) as running:
        running.until(lambda: state.counts.get("moved") == 1 and state.at(target).get("visits", 0) >= 3)
        learned = state.at(target)["observations"]
        site.answers["/moved/static/target"] = (200, "here again", {})
        site.answers["/static/target"] = (404, "gone", {})
        running.until(lambda: state.counts.get("moved_back") == 1 and state.at(former).get("failures") == 0, 60)
        running.until(lambda: state.at(former)["visits"] > learned + 1)
        running.stop()
    assert state.at(former)["state"] == ACTIVE
    assert state.at(former)["observations"] > learned
    assert state.at(target)["state"] == RETIRED
    assert run_check(state)["violations"] == []


def test_a_page_that_is_gone_under_all_of_its_names_is_retired(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    spider = """
        class Tester(Base):
            paths = ["/moved/static/target", "/counter/1"]
    """
    former = site.url("/moved/static/target")
    with crawl(spider, of_MIN_INTERVAL=0.2, of_MAX_INTERVAL=0.5) as running:
        running.until(lambda: state.counts.get("moved") == 1)
        site.answers["/static/target"] = (404, "gone", {})
        running.until(lambda: state.counts.get("moved_back") == 1 and state.at(former).get("state") == RETIRED, 60)
        running.stop()
    assert state.counts["retired"] == 2


def test_a_middleware_may_send_a_public_page_through_a_private_host(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """As renderers on localhost do: it is no redirect, the word is the user's own. Where a public page redirects to is refused still."""
    spider = """
        class Rendered:
            def process_request(self, request, spider=None):
                if request.url == "http://public.example/away":
                    return scrapy.http.Response(request.url, status=302, headers={"Location": SITE + "/static/secret"})
                if request.url.startswith("http://public.example/"):
                    return request.replace(url=SITE + "/static/rendered", meta=request.meta | {"page": request.url})

        class Tester(Base):
            def first(self):
                yield Request("http://public.example/")
                yield Request("http://public.example/away")
            def parse(self, response):
                note(url=response.url, page=response.meta["page"])
    """
    with crawl(spider, DOWNLOADER_MIDDLEWARES={"Rendered": 10}, of_MAX_INTERVAL=0.5) as running:
        running.until(lambda: site.count("/static/rendered") >= 3 and state.counts.get("trapped_private"))
        running.stop()
    assert {"url": site.url("/static/rendered"), "page": "http://public.example/"} in running.record
    assert not site.count("/static/secret")
