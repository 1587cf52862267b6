"""RULES and interval bounds that changed between two sessions reach the pages that are stored."""

from __future__ import annotations

from pathlib import Path

import pytest
from clocked_store import START, fingerprint

from optimal_frontier.errors import SchemaMismatchError
from optimal_frontier.frontier.dispatcher import Dispatcher, host_of
from optimal_frontier.frontier.session import Session, apply_bounds
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.columns import DONE, ONCE
from optimal_frontier.state.records import encode_record


def parse(**values: object) -> FrontierSettings:
    return FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()})


def add(store, settings, *urls: str, **meta: object) -> None:
    dispatcher = Dispatcher(store, settings)
    record = [encode_record({"url": url, "meta": meta}) for url in urls]
    importance = meta.get("importance")
    store.add(*(dispatcher.new_page(fingerprint(url), url, raw, importance=importance) for url, raw in zip(urls, record, strict=True)))


def row(store, url: str):
    return store.records_at("page", [store.slot(url)])[0]


NEWS, SHOP = "http://a.org/news/1", "http://b.org/shop"


def test_nothing_is_read_while_the_rules_stay_the_same(store):
    settings = parse(RULES=[{"pattern": "/news/", "interval": 60}])
    assert apply_bounds(store, settings) == 0  # a new namespace
    add(store, settings, NEWS, SHOP)
    assert apply_bounds(store, settings) == 0


def test_changed_rules_change_bounds_and_importance_of_stored_pages(store):
    """Of every page that is revisited, also across more than one batch."""
    old = parse(RULES=[{"pattern": "/news/", "interval": 60}])
    apply_bounds(store, old)
    add(store, old, NEWS, SHOP, *(f"http://c.org/{i}" for i in range(1200)))
    assert row(store, NEWS)[["min_rate", "max_rate", "gap"]].item() == (1 / 60, 1 / 60, 30)
    new = parse(RULES=[{"pattern": "/news/", "min_interval": 10, "importance": 4}, {"host": "b.org", "max_interval": 100}])
    assert apply_bounds(store, new) == 1202
    assert row(store, NEWS)[["importance", "max_rate", "gap"]].item() == (4, 1 / 10, 10)
    assert row(store, SHOP)[["importance", "min_rate", "gap"]].item() == (1, 1 / 100, 1)
    assert apply_bounds(store, new) == 0


def test_changed_default_bounds_reach_stored_pages(store):
    apply_bounds(store, parse())
    add(store, parse(), NEWS)
    assert apply_bounds(store, parse(MIN_INTERVAL=5, MAX_INTERVAL=50)) == 1
    assert row(store, NEWS)[["min_rate", "max_rate", "gap"]].item() == (1 / 50, 1 / 5, 5)


def test_what_a_request_said_of_its_importance_stands(store):
    apply_bounds(store, parse())
    add(store, parse(), NEWS, importance=2.5)
    apply_bounds(store, parse(RULES=[{"pattern": ".", "importance": 9}]))
    assert row(store, NEWS)["importance"] == 2.5


def test_what_a_later_request_said_of_a_known_page_stands(store):
    """Until the page is forgotten: what comes into its slot is as any other page."""
    apply_bounds(store, parse())
    add(store, parse(), NEWS)
    add(store, parse(), NEWS, importance=2.5)
    apply_bounds(store, parse(RULES=[{"pattern": ".", "importance": 9}]))
    assert row(store, NEWS)["importance"] == 2.5
    slot = store.slot(NEWS)
    store.run([("forget_page", [fingerprint(NEWS)])])
    add(store, parse(), SHOP)
    assert store.slot(SHOP) == slot
    apply_bounds(store, parse(RULES=[{"pattern": ".", "importance": 8}]))
    assert row(store, SHOP)["importance"] == 8


def test_pages_that_are_no_longer_to_be_revisited_are_done(store):
    """A fetched one at once, one that waits for its first visit after that; both leave the count of pages."""
    apply_bounds(store, parse())
    add(store, parse(), NEWS)
    store.visit_all(rate=1.0)
    add(store, parse(), SHOP)
    apply_bounds(store, parse(RULES=[{"pattern": ".", "revisit": False}]))
    assert (row(store, NEWS)["state"], row(store, SHOP)["state"]) == (DONE, ONCE)
    assert store.counts()["pages"] == 0
    (handout,) = store.visit_all()
    assert handout.slot == store.slot(SHOP)
    assert row(store, SHOP)["state"] == DONE
    store.set_time(START + 1e6)
    assert store.dispatch(5)[0] == []


def test_a_lease_that_is_given_back_after_its_page_is_done_queues_nothing(store):
    apply_bounds(store, parse())
    add(store, parse(), NEWS)
    store.visit_all(rate=1.0)
    store.advance(2)
    (handout,), _ = store.dispatch(1)
    apply_bounds(store, parse(RULES=[{"pattern": ".", "revisit": False}]))
    assert store.observe(handout, "released") == 1
    assert store.command("ZCARD", store.key("due:1")) == 0
    assert store.command("ZCARD", store.key("hosts:due")) == 0


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://Example.ORG/", "example.org"),
        ("https://example.org:443/", "example.org"),
        ("http://example.org:443/", "example.org:443"),
        ("http://user:pw@example.org:81/", "example.org:81"),
        ("http://[::1]:8080/", "::1:8080"),
        ("http://example.org:99999/", "example.org"),
        ("data:text/plain,x", ""),
    ],
)
def test_a_host_is_the_name_with_a_port_that_is_not_the_default(url, host):
    assert host_of(url) == host


def test_a_session_of_another_spider_is_refused_before_anything_runs(redis_socket, redis_client, namespace):
    """And a closed session leaves neither lease, owner nor lock."""
    settings = parse(REDIS_URL=f"unix://{redis_socket}", NAMESPACE=namespace, CRAWL_RATE=10)
    first = Session(settings, Path(), "first", lambda: None)
    with pytest.raises(SchemaMismatchError, match="'first'"):
        Session(settings, Path(), "second", lambda: None)
    page = first.dispatcher.new_page(fingerprint(NEWS), NEWS, encode_record({"url": NEWS}))
    first.courier.add([page])
    assert first.courier.flush(10)
    first.courier.ask(5, {}, 0)
    assert first.close()
    assert redis_client.hget(first.store.key("stats"), "pages") == b"1"
    assert not redis_client.exists(*(first.store.key(name) for name in ("leases", "owners", "planner")))
