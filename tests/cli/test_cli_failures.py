"""What status, page and pages say of what goes wrong, and of pages that moved."""

from __future__ import annotations

import pytest

from optimal_frontier.cli.failure_causes import cause_in_words
from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.state.host_words import HostWords

from .stored_crawl import HOT, WARM, WORTHLESS


def test_status_counts_failures_by_cause(ask, run, crawl):
    """The most frequent first; what they mean for the page is no cause."""
    assert ask("status")["failures_by_cause"] == {}
    for url, error in ((HOT, "500"), (WARM, "502"), (WORTHLESS, "DownloadTimeoutError"), (HOT, "blocked"), (HOT, "404")):
        crawl.fail_at(url, error)
    answer = ask("status")
    assert answer["failures_by_cause"] == {"server": 2, "blocked": 1, "gone": 1, "timeout": 1}
    assert sum(answer["failures_by_cause"].values()) == answer["failures"]
    assert "2 server, 1 blocked, 1 gone, 1 timeout" in run("status").output


@pytest.mark.parametrize(
    ("error", "cause", "words"),
    [("429", "throttled", "fewer requests"), ("RobotsDenied", "robots", "robots.txt"), ("DNSLookupError", "dns", "name")],
)
def test_page_says_why_it_failed_until_it_is_seen(ask, run, crawl, error, cause, words):
    crawl.fail_at(HOT, error)
    answer = ask("page", HOT)
    assert (answer["failed_by"], answer["failures"]) == (cause, 1)
    assert words in answer["why"]
    shown = run("page", HOT).output
    assert cause_in_words(cause) in shown
    assert ", 1 failure in a row" in shown
    crawl.visit(HOT, bit=0)
    answer = ask("page", HOT)
    assert answer["failed_by"] is None
    assert words not in answer["why"]


@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause not in ("", "other")])
def test_every_cause_has_words(cause):
    assert "another reason" not in cause_in_words(cause)


def test_a_page_that_is_gone_waits_for_a_second_look(ask, crawl):
    crawl.fail_at(HOT, "404")
    answer = ask("page", HOT)
    assert answer["failed_by"] == "gone"
    assert "once more" in answer["why"]


def test_held_hosts_and_flagged_contents_are_named(ask, run, crawl):
    crawl.namespace.command("HSET", crawl.key("hosts:words"), crawl.host_number(HOT), HostWords(good=2.0, missing=5.0).pack())
    crawl.namespace.command("ZADD", crawl.key("flagged"), 1, "a.example 63")
    crawl.fail_at(HOT, "404")
    answer = ask("status")
    assert answer["held_hosts"] == ["a.example"]
    assert answer["flagged_contents"] == 1
    assert answer["gone_held"] == 1
    assert "a.example: 404 or 410 for most pages" in run("status").output
    page = ask("page", HOT)
    assert page["host_held"] is True
    assert "held, not retired" in page["why"]
    assert "its host is held" in run("page", HOT).output
    assert ask("page", WORTHLESS)["host_held"] is False


def test_pages_lists_those_that_are_retired(ask, run, crawl):
    """And none else; a host without any has an empty list."""
    for _ in range(2):
        crawl.fail_at(HOT, "404")
    assert [row["url"] for row in ask("pages", "--state", "retired")] == [HOT]
    assert HOT not in [row["url"] for row in ask("pages", "--state", "active", "--limit", "0")]
    assert ask("pages", "--state", "retired", "--host", "b.example:8080") == []
    assert run("pages", "--state", "done").exit_code == 2
    assert ask("status")["retired"] == 1


def test_a_page_that_moved_is_found_by_both_urls(ask, run, crawl):
    """They show the same page; the old one says that it is the old one."""
    target = "http://a.example/new"
    crawl.move(HOT, target)
    old, new = ask("page", HOT), ask("page", target)
    assert old["url"] == new["url"] == target
    assert old["fingerprint"] == new["fingerprint"] == crawl.page(target).hex()
    assert (old["alias_of"], new["alias_of"]) == (target, None)
    assert old["aliases"] == new["aliases"] == [HOT]
    assert f"moved from       {HOT}" in run("page", target).output
    assert ask("status")["moved"] == 1
    assert ask("check")["ok"] is True
    assert run("forget", HOT).exit_code == 0
    assert run("page", target).exit_code != 0
    assert run("page", HOT).exit_code != 0
