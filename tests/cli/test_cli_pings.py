"""``ping`` of pages that are known, and of URLs that are not."""

from __future__ import annotations

from pathlib import Path

from .stored_crawl import HOT, WARM


def test_a_ping_of_an_unknown_url_says_so_at_once(run, crawl):
    """Nothing of it is sent; among known ones it is named, and they are sent."""
    unknown = "http://a.example/unknown"
    result = run("ping", unknown)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"optimal-frontier: {unknown} is not known in namespace" in result.stderr
    assert not crawl.namespace.command("EXISTS", crawl.key("pings"))
    Path("changed.txt").write_text(f"{HOT}\n{unknown}\nno url\n")
    result = run("ping", WARM, "--file", "changed.txt")
    assert (result.exit_code, result.stdout) == (0, "2 pings sent; 1 lines are no URLs\n")
    assert result.stderr == f"{unknown} is not known\n"
    assert [fields[b"url"].decode() for _, fields in crawl.namespace.command("XRANGE", crawl.key("pings"), "-", "+")] == [WARM, HOT]


def test_pings_are_sent_where_only_the_crawl_can_tell_which_pages_are_known(run, crawl):
    crawl.namespace.command("HSET", crawl.key("meta"), "identity", "URL_FINGERPRINT_FUNCTION another.function")
    result = run("ping", HOT, "http://a.example/unknown")
    assert result.stdout == "2 pings sent\n"
    assert result.stderr.startswith("sent without a look at which pages are known: ")
