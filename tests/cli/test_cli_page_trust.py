"""``page URL``: whether its host's Last-Modified and sitemaps are believed, and why."""

from __future__ import annotations

from optimal_frontier.state.memory import Memory

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


def test_validators_of_a_page_and_what_is_known_of_its_hosts_304s(ask, run, crawl):
    assert ask("page", HOT)["validators"] == {
        "etag": None,
        "last_modified": None,
        "etag_useless": False,
        "unchecked": 0,
        "found_out": False,
        "trusted": True,
        "told": 0,
        "checks": 0,
        "lies": 0,
    }
    assert "validators       none; 304s of its host are believed: 0 lies in 0 checks, 0 changes told" in run("page", HOT).stdout
    store = crawl.store
    slot = ask("page", HOT)["slot"]
    store.command("HSET", store.key("memory"), slot, Memory(etag=b'W/"7"', last_modified=b"x", misses=3, unchecked=4, lies=2).pack())
    assert "304s of its host are not believed of this page" in run("page", HOT).stdout
    store.command("HSET", store.key("trust"), "1:validators", "5.5 3 4 2")
    answer = ask("page", HOT)["validators"]
    assert (answer["etag"], answer["unchecked"], answer["found_out"], answer["trusted"]) == ('W/"7"', 4, True, False)
    assert ask("page", WARM)["validators"]["lies"] == 2
    useless = 'ETag W/"7" (useless: it changes although the content does not) and Last-Modified'
    assert f"{useless}; 304s of its host are not believed: 2 lies in 4 checks, 3 changes told" in run("page", HOT).stdout
