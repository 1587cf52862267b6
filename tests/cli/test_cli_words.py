"""``page URL`` and ``status``: whether a host's own word is believed, and why: Last-Modified, sitemaps, 304s, signals."""

from __future__ import annotations

from typing import Any

import pytest

from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.memory import Memory, Signals
from optimal_frontier.state.source_lessons import pack_record

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
def signalled(crawl):
    """A truthful sitemap has told of a change of one page; one that lies names it, too; and somebody pings."""
    record = (1000.0, 100.0, 10.0, 95.0, 9.5, -80.0, -60.0, -50.0, -40.0, -30.0, -20.0, -10.0, -5.0, -1.0, 0.0, -1.0)
    lying = (1000.0, 100.0, 10.0, 90_000.0, 9_000.0, 0.0, -9.0, -20.0, -40.0, -50.0, -60.0, -70.0, -80.0, -90.0, -95.0, -99.0)
    for name, known in (("a.example sitemap", record), ("b.example feed", lying)):
        crawl.namespace.command("HSET", crawl.key("sources"), name, pack_record(known))
    told = (Signals("a.example sitemap", 1.0, 2.0, 1), Signals("b.example feed", 1.0, 2.0, 7), Signals("ping", 1.0, 2.0))
    remember(crawl, HOT, signals=told)
    counts = {
        "signals": 3,
        "signals_moved": 2,
        "signals_true": 1,
        "signals_false": 1,
        "pings_taken": 4,
        "pings_unknown": 1,
        "pings_refused": 2,
    }
    crawl.namespace.command("HSET", crawl.key("stats"), *(value for pair in counts.items() for value in pair))
    return crawl


def test_what_sources_told_is_shown(ask, run, signalled):
    """Counts of the crawl, and what the sources of a page are worth to it."""
    answer = ask("status")
    assert answer["signals"] == {"told": 3, "moved": 2, "true": 1, "false": 1}
    assert answer["pings"] == {"taken": 4, "unknown": 1, "refused": 2}
    shown = run("status").stdout
    assert "3 changes told by sources, 2 moved a deadline; after 1 a change was found, after 1 none" in shown
    assert "4 taken, 1 of no page, 2 refused" in shown
    honest, lying, hand = ask("page", HOT)["sources"]
    assert (honest["name"], honest["signals"], honest["counts"]) == ("a.example sitemap", 1, True)
    assert honest["recall"] > 0.8
    assert honest["moves_seconds"] > 0.0
    assert (lying["counts"], lying["moves_seconds"]) == (False, 0.0)
    assert hand["precision"] > 0.9
    assert ask("page", WARM)["sources"] == []
    assert "not listened to, its signals are hardly ever true" in run("page", HOT).stdout


def test_sources_are_listed(ask, run, signalled):
    honest, lying = ask("sources")
    assert (honest["name"], honest["is_ping"]) == ("a.example sitemap", False)
    assert honest["precision"] > 0.8
    assert lying["precision"] < 0.05
    assert "a.example sitemap" in run("sources").stdout


def test_a_crawl_without_sources_has_no_row_of_them(ask, run, crawl):
    assert ask("page", HOT)["sources"] == []
    assert ask("sources") == []
    assert run("sources").stdout == "no sitemap, feed or ping has told of a page yet\n"
    assert "signals" not in run("status").stdout
    assert "signals since" not in run("page", HOT).stdout
