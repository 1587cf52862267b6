"""What status, page, check and rename-callback say of lost items and held pages."""

from __future__ import annotations

from optimal_frontier.frontier.judging.callback_errors import after_callback_error
from optimal_frontier.frontier.judging.holding import hold
from optimal_frontier.frontier.judging.outcomes import CALLBACK, ITEM
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.state.checking import check_state
from optimal_frontier.state.rows import ONCE

from .stored_crawl import HOT, WARM


def raise_in(crawl, url, cause=CALLBACK, error="KeyError: 'price'"):
    """Visit a page whose callback raises."""
    crawl.make_due(url)
    handout = crawl.lease(url)
    observation = crawl.judged(handout, Visit(handout.received))
    assert crawl.end([after_callback_error(observation, cause, error)]) == [1]


def hold_page(crawl, url):
    crawl.make_due(url)
    assert crawl.end([hold(crawl.lease(url))]) == [1]


def test_pages_with_lost_items_are_counted_and_named(ask, run, crawl):
    assert ask("status")["lost_items"] == {"callback": 0, "item": 0}
    assert "lost items" not in run("status").output
    raise_in(crawl, HOT)
    raise_in(crawl, HOT)
    raise_in(crawl, WARM, ITEM, "OSError: no space left")
    answer = ask("status")
    assert answer["lost_items"] == {"callback": 1, "item": 1}
    assert answer["failures_by_cause"] == {"callback": 2, "item": 1}
    assert answer["failures"] == 0
    assert "of 1 page the callback raised, of 1 an item pipeline" in run("status").output
    page = ask("page", HOT)
    assert page["lost_items"] == {"cause": "callback", "error": "KeyError: 'price'"}
    assert (page["failures"], page["failed_by"]) == (2, "callback")
    assert "Its items may be lost (KeyError: 'price')" in page["why"]
    output = run("page", WARM).output
    assert "an item pipeline raised an exception: OSError: no space left" in output
    assert ask("check")["ok"] is True


def test_a_visit_without_an_error_clears_it(ask, run, crawl):
    raise_in(crawl, HOT)
    crawl.make_due(HOT)
    crawl.see(crawl.lease(HOT), HOT)
    assert ask("status")["lost_items"] == {"callback": 0, "item": 0}
    page = ask("page", HOT)
    assert (page["lost_items"], page["failed_by"]) == (None, None)
    assert "lost items" not in run("page", HOT).output
    assert ask("check")["ok"] is True


def test_forget_takes_its_count_along(run, ask, crawl):
    raise_in(crawl, HOT)
    run("forget", HOT)
    assert ask("status")["lost_items"]["callback"] == 0
    assert ask("check")["ok"] is True


def test_check_recounts_them(ask, crawl):
    raise_in(crawl, HOT)
    hold_page(crawl, WARM)
    for name in ("lost_callback", "lost_item", "held"):
        crawl.namespace.command("HINCRBY", crawl.key("stats"), name, 3)
    found = {finding.subject for finding in check_state(crawl.namespace, sleep=lambda _: None).violations}
    assert found == {"lost_callback", "lost_item", "held"}
    check_state(crawl.namespace, repair=True, sleep=lambda _: None)
    assert ask("check")["ok"] is True
    assert ask("status")["lost_items"] == {"callback": 1, "item": 0}
    assert ask("status")["held_pages"] == 1


def test_held_pages_are_counted_and_explained(ask, run, crawl):
    hold_page(crawl, HOT)
    answer = ask("status")
    assert (answer["held_pages"], answer["failures_by_cause"], answer["failures"]) == (1, {"held": 1}, 0)
    assert "1: the spider lacks their callback, or the class of their request" in run("status").output
    page = ask("page", HOT)
    assert (page["held"], page["deadline"], page["failed_by"]) == ("parse", None, None)
    assert page["why"].startswith("Held: ")
    assert "active, held" in run("page", HOT).output


def test_rename_callback_says_how_many(ask, run, crawl):
    hold_page(crawl, HOT)
    result = run("rename-callback", "parse", "product")
    assert (result.exit_code, result.stdout) == (0, "renamed parse to product: 4 pages; 1 of them were held, and are due now\n")
    assert ask("status")["held_pages"] == 0
    assert ask("check")["ok"] is True
    crawl.add("http://c.example/once", state=ONCE, meta={b"scrapy_callback": b"once"})
    assert run("rename-callback", "once", "product").stdout == "renamed once to product: 1 page\n"


def test_rename_callback_names_what_is_stored(run, crawl):
    crawl.add("http://c.example/", meta={b"scrapy_callback": b"item", b"scrapy_errback": b"failed"})
    result = run("rename-callback", "itme", "product")
    assert result.exit_code == 1
    assert result.stderr == (
        f"optimal-frontier: no stored request has the callback 'itme' in namespace {crawl.namespace.name!r}; "
        "stored: parse (4), failed (1), item (1)\n"
    )


def test_rename_callback_wants_a_name(run, crawl):
    for new in ("pro-duct", "parse", ""):
        result = run("rename-callback", "parse", new)
        assert result.exit_code == 2
        assert "NEW" in result.stderr
