"""``page URL`` and ``status``: whether a host's own word is believed, and why: Last-Modified, sitemaps, 304s, announcements."""

from __future__ import annotations

from typing import Any

import pytest

from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.memory import Announced, Memory

from .stored_crawl import HOT, WARM, WORTHLESS, Crawl


def say(crawl: Crawl, **words: Any) -> None:
    """What is known of the word of the host of HOT and WARM."""
    crawl.namespace.command("HSET", crawl.key("hosts:words"), crawl.host_number(HOT), HostWords(**words).pack())


def remember(crawl: Crawl, url: str, **values: Any) -> None:
    crawl.namespace.command("HSET", crawl.key("memory"), crawl.page(url), Memory(**values).pack())


def test_a_host_that_was_never_checked_says_so(ask, run, crawl):
    assert ask("page", HOT)["last_modified"] is None
    shown = run("page", HOT).stdout
    assert "Last-Modified    not checked yet" in shown
    assert "lastmod" not in shown


def test_trust_is_told_with_its_counts(ask, run, crawl):
    """Of the host, so of all of its pages, and of no other's; sitemaps are shown where there is something to show."""
    say(crawl, header=(12.5, 1.0, 30.0, 0.5), sitemap=(0.0, 0.0, 20.0, 19.0))
    for url in (HOT, WARM):
        answer = ask("page", url)
        assert answer["last_modified"] == {"trusted": True, "unchanged": 12.5, "moved": 1.0, "changed": 30.0, "wrong": 0.5}
        assert answer["lastmod"]["trusted"] is False
    assert ask("page", WORTHLESS)["last_modified"] is None
    shown = run("page", HOT).stdout
    assert "Last-Modified    trusted: wrong at 0.5 of 30 visits that found a change, moved at 1 of 12.5 that found none" in shown
    assert "lastmod          not trusted: wrong at 19 of 20 visits" in shown


def test_validators_of_a_page_and_what_is_known_of_its_hosts_304s(ask, run, crawl):
    nothing = {"etag": None, "last_modified": None, "etag_useless": False, "unchecked": 0, "found_out": False}
    assert ask("page", HOT)["validators"] == {**nothing, "trusted": True, "told": 0, "checks": 0, "lies": 0}
    assert "validators       none; 304s of its host are believed: 0 lies in 0 checks, 0 changes told" in run("page", HOT).stdout
    remember(crawl, HOT, etag=b'W/"7"', last_modified=b"x", misses=3, unchecked=4, lies=2)
    assert "304s of its host are not believed of this page" in run("page", HOT).stdout
    say(crawl, validators=(5.5, 3.0, 4.0, 2.0))
    answer = ask("page", HOT)["validators"]
    assert (answer["etag"], answer["unchecked"], answer["found_out"], answer["trusted"]) == ('W/"7"', 4, True, False)
    assert ask("page", WARM)["validators"]["lies"] == 2
    useless = 'ETag W/"7" (useless: it changes although the content does not) and Last-Modified'
    assert f"{useless}; 304s of its host are not believed: 2 lies in 4 checks, 3 changes told" in run("page", HOT).stdout


@pytest.fixture
def announced(crawl):
    """A sitemap was right about one page, wrong about another, and has put the first one forward again."""
    crawl.namespace.command("HSET", crawl.key("announcers"), "a.example sitemap", "1 1 0 0 1 10 0")
    remember(crawl, HOT, announced=Announced(crawl.time, crawl.time, False, "a.example sitemap"))
    counts = {"announced": 3, "put_forward": 3, "announcements_right": 1, "announcements_wrong": 1}
    crawl.namespace.command("HSET", crawl.key("stats"), *(value for pair in counts.items() for value in pair))
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
