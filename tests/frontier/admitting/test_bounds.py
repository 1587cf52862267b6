"""RULES and interval bounds that changed between two sessions reach the pages that are stored."""

from __future__ import annotations

import pytest
from clocked_namespace import START, ClockedNamespace, fingerprint, page_of, settings_of

from optimal_frontier.frontier.admitting.bounds import apply_bounds, rebounded
from optimal_frontier.frontier.hosts import host_of
from optimal_frontier.state.messages import RELEASE, REST
from optimal_frontier.state.rows import DONE, ONCE, Row

NEWS, SHOP = "a.org/news/1", "b.org/shop"


def test_nothing_is_read_while_the_rules_stay_the_same(store: ClockedNamespace) -> None:
    settings = settings_of(RULES=[{"pattern": "/news/", "interval": 60}])
    assert apply_bounds(store, settings) == 0  # a new namespace
    store.add(page_of(NEWS, settings), page_of(SHOP, settings))
    assert apply_bounds(store, settings) == 0


def test_changed_rules_change_bounds_and_importance_of_stored_pages(store: ClockedNamespace) -> None:
    """Of every page that was visited, also across more than one batch; and when they are due."""
    old = settings_of(RULES=[{"pattern": "/news/", "interval": 60}])
    apply_bounds(store, old)
    store.add(page_of(NEWS, old), page_of(SHOP, old), *(page_of(f"c.org/{i}", old) for i in range(700)))
    store.visit(NEWS, SHOP, *(f"c.org/{i}" for i in range(700)))
    assert store.row(NEWS)[9:11] == (60.0, 60.0)
    new = settings_of(RULES=[{"pattern": "/news/", "min_interval": 10, "importance": 4}, {"host": "b.org", "max_interval": 100}])
    assert apply_bounds(store, new) == 702
    news, shop = store.row(NEWS), store.row(SHOP)
    assert (news.importance, news.min_interval, news.e) == (4, 10, 10)
    assert (shop.importance, shop.max_interval, shop.l) == (1, 100, 100)
    assert store.score(SHOP) == pytest.approx((shop.b / 1e6 + 100) * 1e6, abs=2)
    assert apply_bounds(store, new) == 0


def test_changed_default_bounds_reach_stored_pages(store: ClockedNamespace) -> None:
    apply_bounds(store, settings_of())
    store.visit(NEWS)
    assert apply_bounds(store, settings_of(MIN_INTERVAL=5, MAX_INTERVAL=50)) == 1
    row = store.row(NEWS)
    assert (row.min_interval, row.max_interval, row.e, row.l) == (5, 50, 5, 50)


def test_what_a_request_said_of_its_importance_stands(store: ClockedNamespace) -> None:
    apply_bounds(store, settings_of())
    store.add(page_of(NEWS, importance=2.5))
    store.visit(NEWS)
    apply_bounds(store, settings_of(RULES=[{"pattern": ".", "importance": 9}]))
    assert store.row(NEWS).importance == 2.5


def test_what_a_later_request_said_of_a_known_page_stands(store: ClockedNamespace) -> None:
    apply_bounds(store, settings_of())
    store.visit(NEWS)
    store.add(page_of(NEWS, importance=2.5))
    store.add(page_of(NEWS))
    apply_bounds(store, settings_of(RULES=[{"pattern": ".", "importance": 9}]))
    assert store.row(NEWS).importance == 2.5


def test_pages_that_are_no_longer_to_be_revisited_are_done(store: ClockedNamespace) -> None:
    """One that was fetched at once; one that waits for its first visit is judged by the rules of then."""
    apply_bounds(store, settings_of())
    store.visit(NEWS)
    store.add(page_of(SHOP))
    apply_bounds(store, settings_of(RULES=[{"pattern": ".", "revisit": False}]))
    assert store.row(NEWS).state == DONE
    assert store.counts()["pages"] == 1
    store.set_time(START + 1e6)
    assert [handout.page for handout in store.dispatch(5)] == [fingerprint(SHOP)[:12]]


def test_a_page_that_is_fetched_once_by_rule_is_done_after_that(store: ClockedNamespace) -> None:
    page = page_of(NEWS, settings_of(RULES=[{"pattern": ".", "revisit": False}]))
    assert page.row.state == ONCE
    store.add(page)
    (handout,) = store.dispatch(5)
    store.end(handout, REST, state=DONE)
    assert store.score(NEWS) is None
    assert "pages" not in store.counts()


def test_a_page_that_is_being_fetched_is_left_to_its_judge(store: ClockedNamespace) -> None:
    apply_bounds(store, settings_of())
    store.visit(NEWS)
    store.advance(2000.0)
    (handout,) = store.dispatch(1)
    apply_bounds(store, settings_of(RULES=[{"pattern": ".", "revisit": False}]))
    assert store.end(handout, RELEASE) == 1
    assert store.counts()["pages"] == 1


def test_pinned_pages_go_by_their_new_interval_at_once() -> None:
    known = Row(b=1e6, a=5.0, s=0.0, e=5.0, l=5.0, min_interval=5.0, max_interval=5.0)
    assert rebounded(known, Row(min_interval=9.0, max_interval=9.0))[4:8] == (9.0, 0.0, 9.0, 9.0)
    assert rebounded(known, Row(min_interval=1.0, max_interval=50.0))[4:8] == (5.0, 0.0, 1.0, 50.0)


def test_numbers_that_are_not_about_the_interval_stay() -> None:
    """Backoff after a failure, announcements, pages that are forced."""
    for known in (Row(b=1e6, a=5.0, e=5.0, l=5.0, failures=2), Row(b=1e6, flags=1), Row(b=1e6, a=7.0, e=7.0, l=7.0, flags=2)):
        assert rebounded(known, Row(min_interval=9.0, max_interval=9.0))[4:8] == known[4:8]


def test_a_longest_wait_that_was_chosen_to_learn_stays() -> None:
    known = Row(b=1e6, a=5.0, s=1.0, e=1.0, l=20.0, min_interval=1.0, max_interval=100.0)
    assert rebounded(known, Row(min_interval=2.0, max_interval=50.0))[4:8] == (5.0, 1.0, 2.0, 20.0)


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
def test_a_host_is_the_name_with_a_port_that_is_not_the_default(url: str, host: str) -> None:
    assert host_of(url) == host
