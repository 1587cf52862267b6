"""What `status` and `page` say of sitemaps and feeds."""

from __future__ import annotations

import pytest

from optimal_frontier.state.records import Announcement

from .stored_crawl import HOT, WARM


@pytest.fixture
def announced(crawl):
    """A sitemap is right about one page, wrong about another, and has put the first one forward again."""
    store = crawl.store
    for url, bit in ((HOT, 1), (WARM, 0)):
        store.advance(100.0)
        page = crawl.page(url, lastmod=(store.time(), 60.0), announcement=Announcement("a.example sitemap", 50.0))
        assert store.run(store.lastmod_calls([page])) == [1]
        store.observe(crawl.lease(url), bit=bit, shape=1.0, time=1.0)
    store.advance(100.0)
    page = crawl.page(HOT, lastmod=(store.time(), 60.0), announcement=Announcement("a.example sitemap", 50.0))
    assert store.run(store.lastmod_calls([page])) == [1]
    return crawl


def test_what_sources_announced_is_shown(ask, run, announced):
    """Counts of the crawl, and of the announcers of the page's host."""
    assert ask("status")["announcements"] == {"announced": 3, "put_forward": 3, "right": 1, "wrong": 1, "distrusted": 0, "held": 0}
    known = {"right": 1, "wrong": 1, "has_say": True, "waiting": 1}
    assert ask("page", HOT)["announcers"] == {"waits": True, "sitemap": known}
    assert ask("page", WARM)["announcers"] == {"waits": False, "sitemap": known}
    assert "3 changes by sitemaps and feeds, 3 put forward (1 right, 1 wrong), 0 not acted on" in run("status").stdout
    assert "put forward by one, not visited yet; sitemap right 1 times, wrong 1" in run("page", HOT).stdout


def test_a_crawl_without_sources_has_no_row_of_them(ask, run, crawl):
    assert ask("page", HOT)["announcers"] == {"waits": False}
    assert "announce" not in run("status").stdout + run("page", HOT).stdout


def test_check_counts_the_pages_that_wait(ask, announced):
    """And finds a mark of what is no page."""
    assert ask("check")["violations"] == []
    store = announced.store
    store.command("HSET", store.key("announced"), 99, "1 0 1 0 a.example sitemap")
    store.command("HSET", store.key("announced"), 98, "1 0 1 0 a.example sitemap")
    found = {violation["subject"] for violation in ask("check", code=1)["violations"]}
    assert found == {"slot 99", "slot 98", "announcer a.example sitemap"}
