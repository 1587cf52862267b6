"""``page URL``: whether its host's Last-Modified and sitemaps are believed, and why."""

from __future__ import annotations

from .stored_crawl import HOT, WARM, WORTHLESS


def test_a_host_that_was_never_checked_says_so(ask, run, crawl):
    assert ask("page", HOT)["last_modified"] is None
    shown = run("page", HOT).stdout
    assert "Last-Modified    not checked yet" in shown
    assert "lastmod" not in shown


def test_trust_is_told_with_its_counts(ask, run, crawl):
    """Of the host, so of all of its pages, and of no other's; sitemaps are shown where there is something to show."""
    crawl.store.command("HSET", crawl.store.key("trust"), "1:header", "12.5 1 30 0.5", "1:sitemap", "0 0 20 19")
    for url in (HOT, WARM):
        answer = ask("page", url)
        assert answer["last_modified"] == {"trusted": True, "unchanged": 12.5, "moved": 1.0, "changed": 30.0, "wrong": 0.5}
        assert answer["lastmod"]["trusted"] is False
    assert ask("page", WORTHLESS)["last_modified"] is None
    shown = run("page", HOT).stdout
    assert "Last-Modified    trusted: wrong at 0.5 of 30 visits that found a change, moved at 1 of 12.5 that found none" in shown
    assert "lastmod          not trusted: wrong at 19 of 20 visits" in shown
