"""What status, page and pages say of what goes wrong, and of pages that moved."""

from __future__ import annotations

import pytest

from optimal_frontier.cli.identity import identity
from optimal_frontier.cli.troubles import cause_in_words
from optimal_frontier.frontier.block_pages import name_of
from optimal_frontier.frontier.outcomes import counters_of
from optimal_frontier.state.records import Move

from .stored_crawl import HOT, WARM, WORTHLESS


def fail(crawl, url: str, error: str, outcome: str = "failed") -> None:
    crawl.store.advance(2.0)
    crawl.visit(url, outcome, counters=counters_of(error))


def test_status_counts_failures_by_cause(ask, run, crawl):
    """The most frequent first; what they mean for the page is no cause."""
    assert ask("status")["failures_by_cause"] == {}
    for url, error in ((HOT, "500"), (WARM, "502"), (WORTHLESS, "DownloadTimeoutError"), (HOT, "blocked")):
        fail(crawl, url, error)
    fail(crawl, HOT, "404", "gone")
    answer = ask("status")
    assert answer["failures_by_cause"] == {"server": 2, "blocked": 1, "gone": 1, "timeout": 1}
    assert sum(answer["failures_by_cause"].values()) == answer["failures"]
    assert "2 server, 1 blocked, 1 gone, 1 timeout" in run("status").output


@pytest.mark.parametrize(
    ("error", "cause", "words"),
    [("429", "throttled", "fewer requests"), ("RobotsDenied", "robots", "robots.txt"), ("DNSLookupError", "dns", "name")],
)
def test_page_says_why_it_failed_until_it_is_seen(ask, run, crawl, error, cause, words):
    fail(crawl, HOT, error)
    answer = ask("page", HOT)
    assert answer["failed_by"] == cause
    assert words in answer["why"]
    assert cause_in_words(cause) in run("page", HOT).output
    crawl.store.advance(2.0)
    crawl.visit(HOT, bit=0, shape=1.0, time=1.0)
    answer = ask("page", HOT)
    assert answer["failed_by"] is None
    assert words not in answer["why"]


def test_a_page_that_is_gone_waits_for_a_second_look(ask, crawl):
    fail(crawl, HOT, "404", "gone")
    answer = ask("page", HOT)
    assert answer["failed_by"] == "gone"
    assert "once more" in answer["why"]


def test_held_hosts_and_flagged_contents_are_named(ask, run, crawl):
    store = crawl.store
    store.command("HSET", store.key("health"), "1", "2 5")
    store.run([("flag_contents", [name_of("a.example", b"c" * 16)])])
    fail(crawl, HOT, "404", "gone")
    answer = ask("status")
    assert answer["held_hosts"] == ["a.example"]
    assert answer["flagged_contents"] == 1
    assert answer["gone_held"] == 1
    assert "a.example: 404 or 410 for most pages" in run("status").output
    page = ask("page", HOT)
    assert page["host_held"] is True
    assert "held, not retired" in page["why"]
    assert ask("page", WORTHLESS)["host_held"] is False


def test_pages_lists_those_that_are_retired(ask, run, crawl):
    """And none else; a host without any has an empty list."""
    for _ in range(2):
        crawl.store.advance(10.0)
        for handout in crawl.store.dispatch(10)[0]:
            crawl.store.observe(handout, "gone" if handout.record["url"] == HOT else "released", horizon=20.0)
        crawl.store.advance(1.0)
    assert [row["url"] for row in ask("pages", "--state", "retired")] == [HOT]
    assert HOT not in [row["url"] for row in ask("pages", "--state", "active", "--limit", "0")]
    assert ask("pages", "--state", "retired", "--host", "b.example:8080") == []
    assert run("pages", "--state", "done").exit_code == 2


def test_a_page_that_moved_is_found_by_both_urls(ask, run, crawl):
    """They show the same page; the old one says that it is the old one."""
    target = "http://a.example/new"
    move = Move(identity(HOT), HOT, crawl.page(target, is_stated=False))
    assert crawl.store.run(crawl.store.move_calls([move])) == [1]
    old, new = ask("page", HOT), ask("page", target)
    assert old["url"] == new["url"] == target
    assert old["fingerprint"] == new["fingerprint"] == identity(target).hex()
    assert (old["alias_of"], new["alias_of"]) == (target, None)
    assert old["aliases"] == new["aliases"] == [HOT]
    assert f"moved from       {HOT}" in run("page", target).output
    assert ask("status")["moved"] == 1
    assert run("forget", HOT).exit_code == 0
    assert run("page", target).exit_code != 0
