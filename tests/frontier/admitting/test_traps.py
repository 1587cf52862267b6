"""Traps: what no sane site has is excluded by its shape, everything else by caps, and each is counted."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from clocked_namespace import ClockedNamespace, fingerprint, page_of, settings_of

from optimal_frontier.frontier.admitting.traps import REASONS, TrapLog, is_trap
from optimal_frontier.frontier.dispatching.courier import Courier
from optimal_frontier.frontier.dispatching.exchange import Dispatcher, Exchange
from optimal_frontier.frontier.dispatching.forgetting import forget
from optimal_frontier.settings import UrlLimits
from optimal_frontier.settings.urls import NO_LIMITS
from optimal_frontier.state.messages import DROP, KEEP, NewPage
from optimal_frontier.state.rows import ONCE, TRANSIENT

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


def link(name: str, **limits: int) -> NewPage:
    return replace(page_of(name), **limits)


def kept(store: ClockedNamespace, kind: str) -> dict[str, str]:
    """How many pages of each host, or of each pattern, are known."""
    return {name[1:]: many for name, many in store.hash("kept").items() if name[0] == kind and many != "0"}


def test_a_host_takes_no_more_links_than_it_may_and_start_requests_always(store):
    """Known pages are known, others are refused; a page that is fetched once counts, one that is forgotten after it does not."""
    assert store.add(*(link(f"a/{n}", host_limit=3) for n in range(5)), link("b/1", host_limit=3)) == [1, 1, 1, -1, -1, 1]
    once = page_of("a/6", kind=ONCE)
    assert store.add(link("a/1", host_limit=3), page_of("a/start"), replace(once, host_limit=5)) == [0, 1, 1]
    assert store.add(replace(page_of("a/7", kind=ONCE), host_limit=5), page_of("a/8", kind=TRANSIENT)) == [-1, 1]
    assert kept(store, "h") == {"1": "5", "2": "1"}
    for handout in store.dispatch(20):
        store.end(handout, DROP if handout.row.state == TRANSIENT else KEEP)
    assert kept(store, "h") == {"1": "5", "2": "1"}


def test_forgetting_a_page_makes_room(store):
    store.add(*(link(f"a/{n}", host_limit=2) for n in range(2)))
    assert store.add(link("a/3", host_limit=2)) == [-1]
    forget(store, [fingerprint("a/0")])
    assert kept(store, "h") == {"1": "1"}
    assert list(kept(store, "p").values()) == ["1"]
    assert store.add(link("a/3", host_limit=2)) == [1]


def test_a_pattern_is_full_on_its_own_host_only(store):
    calendar = [link(f"a/calendar/{n}/x", pattern_limit=2) for n in range(4)]
    assert store.add(*calendar, link("a/x", pattern_limit=2)) == [1, 1, -2, -2, 1]
    assert store.add(link("b/calendar/1/x", pattern_limit=2)) == [1]


def test_the_dispatcher_asks_for_caps_where_a_page_is_a_link(store):
    settings = settings_of(HOST_MAX_PAGES=2, PATTERN_MAX_PAGES=1)
    pages = [page_of(f"a.example{path}", settings, is_link=True) for path in ("/x/1", "/x/2", "/y/1", "/z/1")]
    outcome = Dispatcher(store, settings).exchange(Exchange(pages=[*pages, page_of("a.example/z/1", settings)]))
    assert outcome.new == 3
    assert [(reason, refused.page) for reason, refused in outcome.trapped] == [("pattern", pages[1].page), ("host", pages[3].page)]


def test_the_courier_counts_and_names_what_was_refused(store, caplog):
    settings = settings_of(HOST_MAX_PAGES=2, PATTERN_MAX_PAGES=1)
    courier = Courier(Dispatcher(store, settings), lambda: None)
    courier.start()
    with caplog.at_level(logging.WARNING):
        courier.add([page_of(f"a.example{path}", settings, is_link=True) for path in ("/x/1", "/x/2", "/x/3", "/y/1", "/z/1")])
        courier.trap("depth", "http://a.example/deep")
        assert courier.flush(10.0)
    courier.draw()  # counters go along with work
    assert courier.stop()
    assert [message.split(" (")[0] for message in caplog.messages if "a.example/x/*" in message]
    counts = store.counts()
    assert (counts["trapped_pattern"], counts["trapped_host"], counts["trapped_depth"]) == (2, 1, 1)


def test_each_reason_is_said_once_and_counted_always(caplog):
    log = TrapLog()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            for reason in REASONS:
                log.note(reason, "http://a.example/")
    assert log.counts == dict.fromkeys(REASONS, 3)
    assert len(caplog.messages) == len(REASONS)
    assert "public" not in REASONS["private"]  # a page of 10.0.0.1 may not lead to 127.0.0.1 either
    assert all(f"trapped_{reason}" in message for reason, message in zip(REASONS, caplog.messages, strict=True))
