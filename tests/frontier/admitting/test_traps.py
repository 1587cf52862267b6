"""Traps: what no sane site has is excluded by its shape, everything else by caps, and each is counted."""

from __future__ import annotations

import logging

import pytest
from clocked_store import new_page
from played_crawl import parse

from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.frontier.traps import REASONS, TrapLog, is_trap
from optimal_frontier.settings import UrlLimits
from optimal_frontier.settings.urls import NO_LIMITS
from optimal_frontier.state.columns import ONCE, TRANSIENT

SANE = [
    "/",
    "",
    "/a/b/a/b",
    "/en/en/index.html",
    "/2024/11/11/11/title",
    "/tiles/0/0/0/0.png",
    "/dump/a/a/a/article.html",
    "/1/2/1/2/1/2",
    "/w/index.php?title=X&ns0=1&ns1=1&ns2=1&ns3=1&ns4=1",
    "/list?brand=a&brand=b&brand=c&brand=d",
    "/list?a=&b=&c=&&&&",
    "/calendar/2190/05/01",
    "/x#/a/b/a/b/a/b",
    "/?next=/a/b/a/b/a/b",
    "/" + "long-title-" * 100,
]
TRAPS = [
    "/a/b/a/b/a/b",
    "/x/a/b/a/b/a/b/y",
    "/shop/shop/shop/",
    "/css/img/css/img/css/img/",
    "/start/about/team/jobs/about/team/jobs/about/team/jobs",
    "/?sid=1&sid=1&sid=1",
    "/" + "x" * 2048,
    "/" + "/".join(str(n) for n in range(40)),
    "/?" + "&".join(f"p{n}=1" for n in range(70)),
]


@pytest.mark.parametrize("path", SANE, ids=lambda path: path[:30])
def test_what_sane_sites_have_is_no_trap(path):
    assert not is_trap("http://a.example" + path, UrlLimits())


@pytest.mark.parametrize("path", TRAPS, ids=lambda path: path[:30])
def test_what_begets_itself_is_one_unless_the_limits_are_off(path):
    assert is_trap("http://a.example" + path, UrlLimits())
    assert not is_trap("http://a.example" + path, NO_LIMITS)


def test_the_time_is_bounded_where_the_length_is_not():
    """Ten thousand segments of two kinds: no block of any length comes three times in a row."""
    word, limits = "ab", UrlLimits(None, None, None, 3)
    for _ in range(13):
        word += "".join("b" if letter == "a" else "a" for letter in word)  # Thue and Morse: free of cubes
    assert not is_trap("http://a.example/" + "/".join("seg-" + letter for letter in word), limits)


def pages_of(store) -> dict[str, dict[str, str]]:
    return {name: {k: v for k, v in store.hash(f"{name}:pages").items() if v != "0"} for name in ("hosts", "patterns")}


def test_a_host_takes_no_more_links_than_it_may_and_start_requests_always(store):
    """Known pages are known, others are refused; what is fetched once counts, what is forgotten after it does not."""
    assert store.add(*(new_page(f"a/{n}", host_limit=3) for n in range(5)), new_page("b/1", host_limit=3)) == [1, 1, 1, -1, -1, 1]
    assert store.add(new_page("a/1", host_limit=3), new_page("a/start"), new_page("a/6", host_limit=5, kind=ONCE)) == [0, 1, 1]
    assert store.add(new_page("a/7", host_limit=5, kind=ONCE), new_page("a/8", kind=TRANSIENT)) == [-1, 1]
    assert store.counts()["trapped_host"] == 3
    assert pages_of(store)["hosts"] == {"1": "5", "2": "1"}
    store.visit_all()
    assert pages_of(store)["hosts"] == {"1": "5", "2": "1"}


def test_forgetting_a_page_makes_room(store):
    store.add(*(new_page(f"a/{n}", host_limit=2, pattern="/*") for n in range(2)))
    assert store.add(new_page("a/3", host_limit=2, pattern="/*")) == [-1]
    store.run([("forget_page", [new_page("a/0").fingerprint])])
    assert pages_of(store) == {"hosts": {"1": "1"}, "patterns": {"1": "1"}}
    assert store.add(new_page("a/3", host_limit=2, pattern="/*")) == [1]


def test_a_pattern_is_full_on_its_own_host_only(store):
    calendar = [new_page(f"a/{n}", pattern="/calendar/#/*", pattern_limit=2) for n in range(4)]
    assert store.add(*calendar, new_page("a/x", pattern="/*", pattern_limit=2)) == [1, 1, -2, -2, 1]
    assert store.add(new_page("b/1", pattern="/calendar/#/*", pattern_limit=2)) == [1]
    assert store.counts()["trapped_pattern"] == 2


def test_the_patterns_beyond_a_hosts_share_are_not_one_pattern(store):
    """They would fill up at once, with pages that have nothing in common."""
    store.add(*(new_page(f"a/{n}", pattern=f"/{n}/*") for n in range(200)))
    others = [new_page(f"a/other{n}", pattern=f"/other{n}/*", pattern_limit=2) for n in range(5)]
    assert store.add(*others) == [1] * 5


def test_the_dispatcher_asks_for_caps_where_a_page_is_a_link(store):
    dispatcher = Dispatcher(store, parse(HOST_MAX_PAGES=2, PATTERN_MAX_PAGES=1))

    def page(path: str, is_link: bool = True):
        return dispatcher.new_page(path.encode().rjust(20), f"http://a.example{path}", b"\x80", is_link=is_link)

    outcome = dispatcher.exchange(Exchange(pages=[page("/x/1"), page("/x/2"), page("/y/1"), page("/z/1"), page("/z/1", False)]))
    assert outcome.new == 3
    assert [(reason, refused.pattern) for reason, refused in outcome.trapped] == [("pattern", "/x/*"), ("host", "/z/*")]


def test_each_reason_is_said_once_and_counted_always(caplog):
    log = TrapLog()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            for reason in REASONS:
                log.note(reason, "http://a.example/")
    assert log.counts == dict.fromkeys(REASONS, 3)
    assert len(caplog.messages) == len(REASONS)
    assert all(f"trapped_{reason}" in message for reason, message in zip(REASONS, caplog.messages, strict=True))
