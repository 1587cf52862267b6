"""Nothing that is read can end a crawler: damaged rows, records, memories and shared values, written while a real crawl runs."""

from __future__ import annotations

import pytest
from crawler import Crawler
from crawls import State
from damage import HELD, MEMORIES, PAGES, SHARED, Damage
from misbehaving_site import MisbehavingSite

from optimal_frontier.frontier.dispatching.setting_aside import mend_put_aside
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.checking import check_state
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.put_aside import read_put_aside

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


def page_of(state: State, url: str) -> bytes:
    return state.identity(url)[:PAGE_BYTES]


def damage_pages(state: State, site: MisbehavingSite) -> dict[str, bytes]:
    """Do each kind of damage to a page that is due, and return which page has which."""
    done = {}
    for at, (name, write) in enumerate(DAMAGES.items()):
        page = page_of(state, site.url(f"/counter/{SOUND + at}"))
        value = state.namespace.command("HGET", state.key("pages"), page)
        new = write(state, page, value)
        if new is not None:
            state.namespace.command("HSET", state.key("pages"), page, new)
        state.namespace.command("ZADD", state.key("q"), 2, page)
        done[name] = page
    return done


def test_a_crawl_goes_on_beside_damage_of_all_kinds(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Sound pages are visited all the time, damaged ones are put aside once and named, held, or go on; and are mended."""
    with crawl(SPIDER % (SOUND + len(DAMAGES)), of_MIN_INTERVAL=0.3, of_MAX_INTERVAL=1.0, of_CRAWL_RATE=200) as running:
        running.until(lambda: state.counts.get("fetched", 0) >= SOUND + len(DAMAGES) and state.plan)
        damaged = damage_pages(state, site)
        running.until(lambda: state.counts.get("set_aside", 0) >= len(PAGES) - 2)
        running.until(lambda: state.counts.get("held", 0) >= len(HELD))
        for name, command in SHARED.items():
            print(name)
            words = [state.key(word[1:]) if isinstance(word, str) and word.startswith("@") else word for word in command]
            if command[1] == "@opens":
                state.namespace.command("DEL", words[1])
            state.namespace.command(*words)
            before = [site.count(f"/counter/{n}") for n in range(SOUND)]
            running.until(lambda before=before: all(site.count(f"/counter/{n}") >= count + 2 for n, count in enumerate(before)))
        set_aside = {one.page: one.reason for one in read_put_aside(state.namespace, 0)}
        assert running.process.poll() is None
        running.stop()
    assert not [line for line in running.record if "secret" in line]
    assert not any("etc/passwd" in fetch.path for fetch in site.fetches)
    # Two kinds of damage make a row that no queue brings up: `check` finds them.
    unseen = {"a row that is empty", "a row that is too short"}
    assert {damaged[name] for name in PAGES if name not in unseen} == set(set_aside)
    assert all(set_aside.values())
    report = check_state(state.namespace, sleep=lambda _: None)
    named = {finding.subject for finding in report.violations}
    assert {f"page {damaged[name].hex()}" for name in PAGES} <= named
    check_state(state.namespace, repair=True, sleep=lambda _: None)
    told = mend_put_aside(state.namespace, FrontierSettings.parse({}))
    assert {one.page for one, _ in told} >= set(set_aside)
    for _ in range(3):
        check_state(state.namespace, repair=True, sleep=lambda _: None)
    assert check_state(state.namespace, sleep=lambda _: None).violations == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "s3://bucket/x", "data:,x", "javascript:void(0)", "mailto:a@b.c"]
)
def test_no_other_scheme_becomes_a_page(crawl: Crawler, site: MisbehavingSite, state: State, url: str) -> None:
    spider = f"""
        class Tester(Base):
            paths = ["/static/1", "/counter/1"]
            def parse(self, response):
                note(url=response.url)
                yield Request({url!r}, callback=self.parse)
    """
    with crawl(spider) as running:
        running.until(lambda: site.count("/counter/1") >= 3)
        running.stop()
    assert state.counts["pages"] == 2
    assert not [line for line in running.record if not line["url"].startswith("http:")]
    assert state.counts["trapped_scheme"] >= 2


def test_a_public_page_leads_to_no_private_host_and_no_password_is_stored(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """The crawl begins at localhost only, by name; what it is asked to follow from a public host, by a redirect, is refused."""
    port = site.url("").rpartition(":")[2]
    spider = f"""
        class Tester(Base):
            def first(self):
                yield Request("http://localhost:{port}/static/1")
                yield Request("http://user:secret@localhost:{port}/static/2")
            def parse(self, response):
                note(url=response.url)
                yield Request("http://10.0.0.1:{port}/static/3")
                yield Request("http://user:secret@localhost:{port}/static/4")
    """
    with crawl(spider, LOG_LEVEL="DEBUG", DOWNLOAD_TIMEOUT=1) as running:
        running.until(lambda: state.counts.get("trapped_credentials", 0) >= 2)
        running.stop()
    assert "secret" not in running.log
    stored = state.namespace.command("HVALS", state.key("pages"))
    assert not any(b"secret" in value for value in stored)


@pytest.mark.parametrize("importance", ["1e300", "float('nan')", "-1", "float('inf')", "'high'", "True"])
def test_importance_is_bounded(crawl: Crawler, site: MisbehavingSite, state: State, importance: str) -> None:
    spider = f"""
        class Tester(Base):
            def first(self):
                yield Request(SITE + "/counter/1", meta={{"importance": {importance}}})
                yield Request(SITE + "/counter/2")
    """
    with crawl(spider) as running:
        running.until(lambda: site.count("/counter/1") >= 3 and site.count("/counter/2") >= 3)
        running.stop()
    assert state.at(site.url("/counter/1"))["importance"] in (1.0, 1e9)
